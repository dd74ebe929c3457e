"""A warm-up that ends once throughput is steady, and one that has to end without."""

import json

import pytest

EXPERIMENT = """\
spec = 1
name = "warmup"
question = "Is the warm-up as long as it has to be?"

[storage.memory]
kind = "tmpfs"
size = "512MiB"

[dataset]
kind = "tpcb"
scale = 1

[workload]
script = "faster.sql"
clients = 8

[workload.variables]
growth = 0

[matrix]
"workload.variables.growth" = [0, 1]

[measure]
warmup = "1s"
warmup_max = "12s"
duration = "1s"
repeats = 1
aa = false
probe = "0s"
[[measure.action]]
at = "200ms"
do = "checkpoint"
"""
# 200 ms each; in the other variant, less by the second since the server's start, so that throughput rises by the same each second.
SCRIPT = """\
SELECT (2e5 / (1 + :growth::float8 * extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())))::int AS slept \\gset
\\sleep :slept us
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, 1, 0, now());
"""


@pytest.fixture
def warming(project):
    project.write(EXPERIMENT)
    (project.folder / "faster.sql").write_text(SCRIPT)
    return project


@pytest.mark.long
def test_a_warm_up_ends_when_throughput_is_steady_or_at_its_cap(warming, nothing_left):
    planned = warming.plinth("plan", "x.toml")
    assert planned.returncode == 0, planned.stderr
    assert "10 s to 12 s warm-up, until throughput is steady over 10 s" in planned.stdout
    assert "at most about" in planned.stdout
    done = warming.run()
    assert done.returncode in (0, 3), done.stderr
    trials = {trial["variant"]: trial for trial in warming.trials()}
    (steady,) = [trial for name, trial in trials.items() if name.endswith("0")]
    (rising,) = [trial for name, trial in trials.items() if name.endswith("1")]
    assert steady["warmup_end"] == {"reason": "steady", "seen": None}
    assert steady["warmup_ns"] == 11_000_000_000
    assert rising["warmup_end"]["reason"] == "cap"
    assert rising["warmup_end"]["seen"].startswith("throughput rose by ")
    assert rising["warmup_ns"] == 12_000_000_000
    for trial in (steady, rising):
        assert trial["status"] == "complete", trial["failure"]
        assert 1_000_000_000 <= trial["measured_ns"] < 2_000_000_000
        lines = next(warming.bundle.glob(f"trials/{trial['number']:04}-*/events.jsonl")).read_text().splitlines()
        (action,) = [event for event in map(json.loads, lines) if event["kind"] == "action_start"]
        assert 0.2 <= (action["t_ns"] - trial["warmup_ns"]) / 1e9 + 0.05 < 0.9
    report = json.loads(warming.plinth("report", warming.bundle, "--json").stdout)
    analysis = report["analysis"]
    (caveat,) = [text for text in analysis["warnings"] if "of warm-up" in text]
    assert "not steady after 12 s of warm-up: throughput rose by" in caveat
    ended = [text for text in analysis["preparations"] if "warm-up of" in text]
    assert sorted(text.partition(": ")[2] for text in ended) == [
        "warm-up of 11 s; throughput was steady at its end in 1 of 1 trials",
        "warm-up of 12 s; throughput was steady at its end in 0 of 1 trials",
    ]
    nothing_left()


def test_a_warm_up_that_cannot_become_steady_is_refused_in_the_plan(warming):
    for change, words in [
        ('measure.warmup_max="500ms"', "warmup_max: got 500 ms, less than warmup, 1 s, which is the least"),
        ('measure.steady_window="20s"', "less than steady_window, 20 s: no warm-up could be seen to be steady"),
        ('workload.driver="psycopg"', "driver 'psycopg' has a warm-up of fixed length"),
    ]:
        refused = warming.plinth("plan", "x.toml", "--set", change)
        assert refused.returncode == 2, (change, refused.stderr)
        assert words in refused.stderr, (change, refused.stderr)
