"""Trials that begin with a cold or a warm cache: by the page cache and by the devices' own counters."""

import json

import pytest

MIB = 2**20
EXPERIMENT = """\
spec = 1
name = "caches"
question = "What does a cold cache cost?"

[storage.looped]
kind = "loop"
size = "600MiB"
[storage.memory]
kind = "tmpfs"
size = "600MiB"

[server.settings]
shared_buffers = "16MB"
autovacuum = false

[dataset]
kind = "numbers"
rows = 500_000

[workload]
builtin = "numbers-select"
clients = 2

[matrix]
storage = ["looped", "memory"]

[measure]
warmup = "0s"
duration = "1s"
repeats = 1
aa = false
probe = "0s"
cache = "CACHE"
"""


def run(project, cache: str, *words: str) -> dict[str, dict]:
    """The trials of a run, by variant."""
    project.write(EXPERIMENT.replace("CACHE", cache))
    done = project.run(*words)
    assert done.returncode in (0, 3), done.stderr
    trials = {trial["variant"]: trial for trial in project.trials()}
    assert all(trial["status"] == "complete" for trial in trials.values()), trials
    return trials


def read_bytes(trial: dict) -> int:
    """What the storage's own device has read during the load."""
    return trial["devices"][0]["read_bytes"]


@pytest.mark.long
def test_a_cold_cache_is_read_from_the_device_and_memory_is_said_not_to_be_cold(project, nothing_left):
    trials = run(project, "cold")
    disk, memory = trials["looped"], trials["memory"]
    assert disk["cache"]["asked"] == "cold" and disk["cache"]["reached"] is True
    assert disk["cache"]["relation_bytes"] > 30 * MIB > MIB >= disk["cache"]["resident_bytes"]
    # Of so many random rows most are in pages that were not read before: 10 MiB where the load did 2,560.
    first_reads = min(disk["totals"]["done"], 2560)
    assert read_bytes(disk) > max(MIB, first_reads * 8192 / 2), "the load found nothing in memory"
    (check,) = [check for check in disk["checks"] if check["name"].startswith("cold cache")]
    assert check["ok"]
    assert memory["cache"]["reached"] is False
    (gap,) = [gap for gap in memory["gaps"] if gap["what"] == "cold cache"]
    assert "storage memory is in memory" in gap["reason"]

    shown = project.whole_report()
    assert "looped: cold cache in 1 of 1 trials" in shown
    assert "memory, trial" in shown and "the cache was not in the state asked for" in shown
    report = json.loads(project.plinth("report", project.bundle, "--json").stdout)
    assert [one.partition(":")[0] for one in report["analysis"]["preparations"]] == ["looped", "memory"]
    nothing_left()


@pytest.mark.long
def test_a_warm_cache_is_not_read_from_the_device(project, nothing_left):
    trials = run(project, "warm")
    disk, memory = trials["looped"], trials["memory"]
    assert disk["cache"]["reached"] is True and memory["cache"]["reached"] is True
    assert disk["cache"]["read_bytes_by_pass"][-1] <= MIB
    assert read_bytes(disk) <= MIB
    assert "pg_prewarm" in disk["cache"]["evidence"]
    nothing_left()


@pytest.mark.long
def test_what_memory_does_not_hold_is_not_warm(project):
    past_the_page_cache = ("--set", "server.settings.debug_io_direct='data'", "--set", 'matrix.storage=["looped"]')
    (trial,) = run(project, "warm", *past_the_page_cache).values()
    assert trial["cache"]["reached"] is False
    assert all(size > 10 * MIB for size in trial["cache"]["read_bytes_by_pass"])
    (gap,) = [gap for gap in trial["gaps"] if gap["what"] == "warm cache"]
    assert gap["reason"].startswith("memory does not hold all tables and indexes: ")


@pytest.mark.long
def test_an_external_server_is_warmed_by_what_it_has(project, service):
    _, services = service
    head, _, rest = EXPERIMENT.replace("CACHE", "warm").partition("[storage.looped]")
    tables = "[dataset]" + rest.partition("[dataset]")[2].replace(
        'storage = ["looped", "memory"]', "workload.clients = [1]"
    )
    project.write(f'{head}[server]\nconnection = "service=mine"\n{tables}')
    done = project.run(PGSERVICEFILE=str(services))
    assert done.returncode in (0, 3), done.stderr
    (trial,) = project.trials()
    assert trial["cache"]["reached"] is True, "shared buffers of 128 MB hold it all"
    assert "sequential scans" in trial["cache"]["evidence"]
    (gap,) = [gap for gap in trial["gaps"] if "read before the trial" in gap["what"]]
    assert gap["reason"] == "the extension pg_prewarm is not installed in the database"


def test_cold_needs_the_right_to_drop_the_page_cache(project):
    project.write(EXPERIMENT.replace("CACHE", "cold"))
    # As in most containers: root, but /proc/sys is read-only.
    script = 'mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec "$@"'
    refused = project.plinth("plan", "x.toml", prefix=("unshare", "--mount", "sh", "-c", script, "sh"))
    assert refused.returncode == 5, refused.stderr
    assert "needs the right to drop the page cache" in refused.stderr
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 0, planned.stderr
    assert "$ sh -c 'echo 3 > /proc/sys/vm/drop_caches'" in planned.stdout
