"""Whole runs with storages and a server on another host, which is this machine under a name that an sshd of ours answers to."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import get_args

import pytest

from every_kind import KINDS, LEVELS, experiment
from hosts_here import HostHere, host_here
from own_sshd import own_sshd
from plinth import open_bundle
from plinth.model.durability import CutMoment
from waiting import wait_until

NAMES = ("db1", "db2")
MOMENTS = get_args(CutMoment)
REST = """\
[dataset]
kind = "tpcb"
scale = 1
[workload]
builtin = "tpcb-like"
clients = 2
ledger = true
[matrix]
storage = ["near", "far"]
[measure]
warmup = "200ms"
duration = "1s"
repeats = 1
aa = false
probe = "10ms"
"""
LONG = (
    REST.replace('["near", "far"]', '["far"]')
    .replace("repeats = 1", "repeats = 2")
    .replace('duration = "1s"', 'duration = "4s"')
)
"""Whose second trial is long enough to be killed in it."""
HEAD = """\
spec = 1
name = "hosts"
question = "Which machine is faster?"
[storage.near]
kind = "directory"
"""


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    with own_sshd(tmp_path_factory.mktemp("sshd") / "own", NAMES) as running:
        yield running


@pytest.fixture
def db1(sshd, project, monkeypatch) -> HostHere:
    host = host_here("db1", sshd, project.folder)
    monkeypatch.setenv("PATH", host.environment["PATH"])
    return host


@pytest.fixture
def db2(sshd, project) -> HostHere:
    return host_here("db2", sshd, project.folder)


def _write(project, db1, far='kind = "directory"', more="", rest=REST):
    project.write(f'{HEAD}[storage.far]\nhost = "db1"\n{far}\n{more}{rest}{db1.toml}')


def test_a_server_here_and_one_on_a_host_are_compared(project, db1, nothing_left):
    _write(project, db1)
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 0, planned.stderr
    said = " ".join((planned.stdout + planned.stderr).split())
    assert "on host db1: " in said and "host db1 is the same machine as this machine" in said
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    trials = project.trials()
    assert [trial["status"] for trial in trials] == ["complete"] * 2, [trial["failure"] for trial in trials]
    far = next(trial for trial in trials if trial["variant"] == "far")
    assert all(check["ok"] for check in far["checks"]) and far["measured"]["done"] > 0
    storage = json.loads((project.bundle / "env" / "storage-far.json").read_text())
    assert storage["host"] == "db1" and storage["path"].startswith(str(db1.state))
    log = (project.bundle / "logs" / "postgresql-2-far.log").read_text()
    assert "database system is ready to accept connections" in log
    plan = json.loads((project.bundle / "plan.json").read_text())
    assert list(plan["hosts"]) == ["db1"]
    samples = open_bundle(project.bundle).samples("process_cpu").columns
    by_trial = zip(samples["t_ns"], samples["trial"], strict=True)
    times_s = [t_ns / 1e9 for t_ns, trial in by_trial if trial == far["number"]]
    assert min(times_s) < 0.5 and 1 < max(times_s) < 3, "by the clock of the load"
    (gap,) = [gap for gap in far["gaps"] if gap["what"] == "load engine among the processes of host db1"]
    assert "the clock of the host is known to within " in gap["reason"]
    assert db1.left() == [] and db1.agents() == []
    nothing_left()


REPLICATED = """\
[server]
storage = "STORAGE"
synchronous_standby_names = "ANY 1 (a, b)"
[server.standby.a]
storage = "OTHER"
[server.standby.b]
storage = "farther"
[dataset]
kind = "tpcb"
scale = 1
[workload]
builtin = "tpcb-like"
clients = 2
ledger = true
[measure]
warmup = "200ms"
duration = "1s"
repeats = 1
aa = false
probe = "0s"
"""


@pytest.mark.long
@pytest.mark.parametrize(("primary", "other"), [("far", "near"), pytest.param("near", "far", marks=pytest.mark.long)])
def test_standbys_are_on_hosts_of_their_own_and_every_machine_is_observed(
    project, db1, db2, nothing_left, primary, other
):
    rest = REPLICATED.replace("STORAGE", primary).replace("OTHER", other)
    farther = '[storage.farther]\nhost = "db2"\nkind = "directory"\n'
    _write(project, db1, more=farther, rest=rest + db2.toml)
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 0, planned.stderr
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete", trial["failure"]
    assert all(check["ok"] for check in trial["checks"]) and trial["measured"]["done"] > 0
    for name in ("a", "b"):
        (facts,) = project.bundle.glob(f"env/standby-*.{name}.json")
        assert json.loads(facts.read_text())["standby"]["sync_state"] in ("quorum", "sync")
    plan = json.loads((project.bundle / "plan.json").read_text())
    secrets = [log.read_text() for log in (project.bundle / "logs").iterdir()]
    assert not any("PGPASSWORD" in text or "password=" in text for text in secrets) and plan["hosts"].keys() == {
        "db1",
        "db2",
    }
    opened = open_bundle(project.bundle)
    others = ["", "db2"] if primary == "far" else ["db1", "db2"]
    for source in ("host_cpu", *(f"host_cpu@{name}" for name in others)):
        assert len(opened.samples(source).columns["t_ns"]) > 1, source
    report = json.loads(project.plinth("report", project.bundle, "--json").stdout)
    titles = [panel["title"] for panel in report["panels"]]
    assert "Host CPU by mode, host db2" in titles
    assert ("Host CPU by mode, where the run was started" in titles) == (primary == "far")
    assert all("away (round trip by TCP)" in standby["upstream"] for standby in report["standbys"])
    for host in (db1, db2):
        assert host.left() == [] and host.agents() == []
    nothing_left()


FAILED_OVER = """\
[server]
storage = "far"
synchronous_standby_names = "ANY 1 (a, b)"
[server.standby.a]
storage = "farther"
[server.standby.b]
storage = "near"
[dataset]
kind = "none"
[workload]
builtin = "ledger"
clients = 2
[measure]
warmup = "100ms"
duration = "6s"
repeats = 1
aa = false
probe = "0s"
restore = "copy"
[[measure.action]]
at = "500ms"
do = "kill"
[[measure.action]]
at = "500ms"
do = "failover"
to = "a"
probe_interval = "100ms"
probes = 2
"""


EMULATED = 'kind = "emulated"\nprofile = "nvme"\nsize = "600MiB"'


@pytest.mark.long
@pytest.mark.parametrize(
    ("far", "fault"),
    [('kind = "directory"', "kill"), pytest.param(EMULATED, "power", marks=pytest.mark.long)],
    ids=["kill", "power"],
)
def test_a_primary_on_a_host_is_failed_over_to_another_and_comes_back(project, db1, db2, nothing_left, far, fault):
    farther = f'[storage.farther]\nhost = "db2"\n{far}\n'
    rest = FAILED_OVER if fault == "kill" else FAILED_OVER.replace('do = "kill"', 'do = "power"\nmode = "drop"')
    _write(project, db1, far, more=farther, rest=rest + db2.toml)
    done = project.run()
    assert done.returncode in (0, 3), done.stdout + done.stderr
    for trial in project.trials():
        assert trial["status"] == "complete", trial["failure"]
        outage = trial["outage"]
        assert (
            outage["faults"][0].startswith("kill primary" if fault == "kill" else "cut the power of primary")
            and outage["primary"] == "a"
        )
        assert outage["failover"]["rejoin"]["how"] in ("rewind", "backup"), outage["failover"]["rejoin"]
        assert outage["lost"] == 0 and outage["acknowledged"] > 0
        assert trial["restored"]["how"].keys() == {"data", "data of a", "data of b"}
    for host in (db1, db2):
        assert host.left() == [] and host.agents() == []
    nothing_left()


CONDUCTED = (
    FAILED_OVER.replace('to = "a"\nprobe_interval = "100ms"\nprobes = 2\n', "")
    .replace(
        "[server]\n",
        '[server]\nfailover = "patroni"\n'
        'patroni = { ttl = "20s", loop_wait = "1s", retry_timeout = "3s", primary_start_timeout = "0s" }\n',
    )
    .replace('"ANY 1 (a, b)"', '"ANY 1 (a)"')
    .replace('[server.standby.b]\nstorage = "near"\n', "")
)
"""Of a primary on one host and a standby on another: the third etcd is on this machine."""


def _etcds(project) -> list[Path]:
    return sorted(project.bundle.glob("logs/etcd-*.log"))


@pytest.mark.long
def test_the_plan_has_an_etcd_on_each_host_and_an_odd_number_of_them(project, db1, db2):
    _write(project, db1, more='[storage.farther]\nhost = "db2"\nkind = "directory"\n', rest=CONDUCTED + db2.toml)
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 0, planned.stderr
    said = " ".join(planned.stdout.split())
    assert "start an etcd on each of host db1, host db2, this machine, and Patroni (ttl 20 s" in said


@pytest.mark.long
def test_patroni_that_a_host_lacks_is_named_with_the_host(project, db1, db2):
    programs = project.folder / "without-patroni"
    programs.mkdir()
    for folder in map(Path, ("/usr/bin", "/usr/sbin", "/bin", "/sbin")):
        for program in folder.iterdir():
            if program.name != "patroni" and not (programs / program.name).exists():
                (programs / program.name).symlink_to(program)
    command = db2.command.read_text().replace("export", f"PATH={programs}\nexport PATH")
    db2.command.write_text(command)
    _write(project, db1, more='[storage.farther]\nhost = "db2"\nkind = "directory"\n', rest=CONDUCTED + db2.toml)
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 5, planned.stdout + planned.stderr
    said = " ".join(planned.stderr.split())
    assert "host db2: patroni: there is no such program" in said or (
        "patroni: there is no such program" in said and "host db2" in said
    )


@pytest.mark.long
def test_patroni_fails_over_from_one_host_to_another(project, db1, db2, nothing_left):
    _write(project, db1, more='[storage.farther]\nhost = "db2"\nkind = "directory"\n', rest=CONDUCTED + db2.toml)
    outage = _conducted(project)
    assert outage["gap_s"] < 8, "it does not wait for the lock to run out"
    assert len(_etcds(project)) == 3
    for host in (db1, db2):
        assert host.left() == [] and host.agents() == []
    nothing_left()


@pytest.mark.long
def test_two_of_three_etcds_agree_when_a_machine_fails_with_its_own(project, db1, db2, nothing_left):
    rest = (
        CONDUCTED.replace('do = "kill"\n', 'do = "kill"\nmachine = true\n')
        .replace('duration = "6s"', 'duration = "32s"')
        .replace("ANY 1 (a)", "ANY 1 (a, b)")
        .replace("[dataset]", '[server.standby.b]\nstorage = "near"\n[dataset]', 1)
    )
    _write(project, db1, more='[storage.farther]\nhost = "db2"\nkind = "directory"\n', rest=rest + db2.toml)
    outage = _conducted(project)
    assert 18 <= outage["gap_s"] <= 26, "of a ttl of 20 s, renewed each second; and the etcds have to elect a leader"
    assert len(_etcds(project)) == 3
    for host in (db1, db2):
        assert host.left() == [] and host.agents() == []
    nothing_left()


def _conducted(project) -> dict:
    """The outage of a run that Patroni has conducted."""
    done = project.run(timeout_s=240)
    assert done.returncode in (0, 3), done.stdout + done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete", trial["failure"]
    outage = trial["outage"]
    assert outage["primary"] != "primary" and outage["lost"] == 0 and outage["acknowledged"] > 0
    assert outage["failover"]["by"].startswith("Patroni ")
    assert not any("PRIVATE KEY" in log.read_text(errors="replace") for log in project.bundle.glob("logs/*"))
    assert outage["failover"]["rejoin"]["how"] in ("rewind", "restart")
    return outage


def test_a_host_that_is_not_there_is_named_with_what_to_do(project, db1):
    _write(project, db1)
    text = (project.folder / "x.toml").read_text()
    project.write(text.replace('address = "ssh://db1"', 'address = "ssh://nosuch.invalid"'))
    done = project.run()
    assert done.returncode == 1 and "nosuch.invalid" in done.stderr
    assert not project.bundle.exists()


def test_a_command_that_is_not_there_is_said_with_what_to_try(project, db1):
    _write(project, db1)
    text = (project.folder / "x.toml").read_text()
    project.write(text.replace(f'command = "{db1.command}"', 'command = "/nosuch/plinth"'))
    planned = project.plinth("plan", "x.toml")
    said = " ".join(planned.stderr.split())
    assert planned.returncode == 1 and "no agent could be started on host db1: " in said
    assert "/nosuch/plinth --version" in said


def test_another_version_is_refused(project, db1):
    _write(project, db1)
    program = "import plinth; plinth.__version__ = '9.9'; from plinth.cli import main; raise SystemExit(main())"
    db1.command.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{program}" "$@"\n')
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 5
    assert "host db1 has another version: plinth 9.9" in " ".join(planned.stderr.split())


LIE = '\nlie = "ignore-flush"\nphysics = { cache_size = "64MiB", cache_protected = false }'
CUT = """\
[durability]
cuts = 6
modes = ["drop"]
within = "300ms"
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("lie", "is_lost"),
    [pytest.param("", False, id="honest"), pytest.param(LIE, True, marks=pytest.mark.long, id="lies")],
)
def test_the_power_of_a_host_is_cut_and_what_is_lost_is_found(project, db1, nothing_left, lie, is_lost):
    rest = REST.replace('["near", "far"]', '["far"]')
    _write(project, db1, EMULATED + lie, rest=rest + CUT)
    done = project.run()
    assert done.returncode in (0, 3), done.stdout + done.stderr
    cuts = [json.loads(path.read_text()) for path in sorted(project.bundle.glob("cuts/*.json"))]
    assert all(cut["failure"] is None for cut in cuts), [cut["failure"] for cut in cuts]
    assert any("lost commit" in [one["kind"] for one in cut["damage"]] for cut in cuts) is is_lost
    if not is_lost:
        assert [cut["moment"] for cut in cuts] == list(MOMENTS)
        assert all(cut["damage"] == [] and cut["acknowledged"] > 0 and cut["recovery_s"] > 0 for cut in cuts)
        compared = {"no page is older than before the load", "untouched rows are as before the load", "pg_checksums"}
        for cut in cuts:
            made = {check["name"] for check in cut["checks"] if check["not_run"] is None}
            assert compared <= made, made
    assert db1.left() == [] and db1.agents() == []
    nothing_left()


BTRFS = 'kind = "loop"\nfilesystem = "btrfs"\nsize = "600MiB"'
TAKEN = """\
restore = "auto"
[[measure.action]]
at = "300ms"
do = "snapshot"
[[measure.action]]
at = "600ms"
do = "snapshot"
"""


@pytest.mark.long
def test_snapshots_are_taken_on_a_host_and_gone_back_to(project, db1, nothing_left):
    rest = REST.replace('["near", "far"]', '["far"]').replace("repeats = 1", "repeats = 2")
    _write(project, db1, BTRFS, rest=rest + TAKEN)
    done = project.run()
    assert done.returncode in (0, 3), done.stdout + done.stderr
    for trial in project.trials():
        assert trial["status"] == "complete", trial["failure"]
        assert [(one["kind"], one["damage"]) for one in trial["flashbacks"]] == [("btrfs", [])] * 2
        assert all(one["acknowledged"] > 0 and one["undone"] > 0 for one in trial["flashbacks"])
        assert trial["restored"]["how"] == {"data": "snapshot"}
    assert db1.left() == [] and db1.agents() == []
    nothing_left()


@pytest.mark.long
def test_pages_are_written_on_a_host_and_its_commands_are_in_the_bundle(project, db1):
    _write(project, db1, rest=REST.replace("scale = 1", 'scale = 1\nloader = "pages"'))
    done = project.run()
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert [trial["status"] for trial in project.trials()] == ["complete"] * 2
    loaded = {path.stem: json.loads(path.read_text()) for path in project.bundle.glob("env/dataset-*.json")}
    assert len(loaded) == 2
    assert all("write pages" in [task["name"] for task in one["tasks"]] for one in loaded.values())
    commands = [json.loads(line) for line in (project.bundle / "logs" / "commands.jsonl").read_text().splitlines()]
    there = [command["argv"] for command in commands if command.get("host") == "db1"]
    assert any(argv[0].endswith("/initdb") for argv in there)


def test_an_atlas_of_disks_of_a_host_is_refused_by_its_key(project, db1):
    _write(project, db1, rest=REST + "[durability]\natlas = 10\n")
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 2
    assert "disks of another host are not recorded for an atlas" in " ".join(planned.stderr.split())


FAILING = """\
[io_errors]
errors = [ERRORS]
times = ["always"]
holds = ["data"]
lasts = "1s"
back_within = "5s"
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "errors", [("flush",), pytest.param(("bad-sectors", "full", "hang", "shutdown"), marks=pytest.mark.long)], ids=len
)
def test_the_storage_of_a_host_fails_and_the_server_there_is_watched(project, db1, nothing_left, errors):
    rest = REST.replace('["near", "far"]', '["far"]')
    _write(project, db1, EMULATED, rest=rest + FAILING.replace("ERRORS", ", ".join(f'"{one}"' for one in errors)))
    done = project.run()
    assert done.returncode in (0, 3), done.stdout + done.stderr
    results = [json.loads(path.read_text()) for path in sorted(project.bundle.glob("io-errors/*.json"))]
    assert [(one["error"], one["failure"]) for one in results] == [(error, None) for error in errors]
    for one in results:
        assert one["acknowledged"] > 0 and one["came_back"] != "never"
        match one["error"]:
            case "flush" | "bad-sectors":
                assert one["server"] == "PANIC" and one["struck"] > 0, one
                assert "Input/output error" in one["said"][0]
            case "full":
                assert "No space left on device" in one["said"][0]
            case "hang":
                assert one["server"] == "waits" and one["came_back"] == "went on"
            case _:
                assert one["came_back"] in ("remounted", "restarted")
    assert db1.left() == [] and db1.agents() == []
    nothing_left()


def test_what_is_written_to_the_disks_of_a_host_is_counted_and_ends_the_run(project, db1):
    rest = LONG.replace("aa = false", 'aa = false\nmax_written = "24MiB"').replace("scale = 1", "scale = 2")
    _write(project, db1, rest=rest)
    done = project.run()
    said = " ".join(done.stderr.split())
    assert done.returncode == 4 and "the write budget is spent" in said, said
    wear = json.loads((project.bundle / "wear.json").read_text())
    assert (
        all(disk["disk"].startswith("db1:") and disk["written_bytes"] > 0 for disk in wear["disks"]) and wear["disks"]
    )
    assert db1.left() == [] and db1.agents() == []


def test_a_storage_on_a_host_that_is_not_described(project, db1):
    _write(project, db1)
    text = (project.folder / "x.toml").read_text()
    project.write(text.replace('host = "db1"', 'host = "db3"'))
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 2
    assert "host 'db3' is not one of: db1" in " ".join(planned.stderr.split())


def test_all_problems_of_a_host_are_said_by_the_plan(project, db1):
    far = 'kind = "directory"\npath = "/nosuch/place"'
    _write(project, db1, far=far, more='[server]\nversion = 18\n[server.settings]\nshared_bufers = "1GB"\n')
    planned = project.plinth("plan", "x.toml")
    said = " ".join(planned.stderr.split())
    assert planned.returncode == 2
    assert "/nosuch/place" in said and "shared_bufers" in said


@pytest.mark.parametrize("killed", ["agent", pytest.param("coordinator", marks=pytest.mark.long)])
def test_a_kill_on_either_side_leaves_nothing_on_the_host(project, db1, killed):
    _write(project, db1, rest=LONG)
    running = project.start()
    running.wait_for("trial 1 of")
    if killed == "coordinator":
        running.signal(signal.SIGKILL)
        running.process.wait(60)
        cleaned = project.plinth("clean")
        assert cleaned.returncode == 0 and "by `plinth clean` there" not in cleaned.stderr, cleaned.stderr
        assert db1.left() == [], "so has clean"
    else:
        for pid in db1.agents():
            os.kill(pid, signal.SIGKILL)
        code, said = running.end()
        assert code == 1 and "host db1 is lost" in said
        assert db1.left() == [], "the coordinator has had the host clean up"
    wait_until(lambda: not db1.agents(), timeout_s=60)
    wait_until(lambda: not db1.left(), timeout_s=60)


def test_what_a_server_that_died_has_logged_is_in_the_bundle(project, db1):
    rest = LONG.replace("repeats = 2", "repeats = 1")
    _write(project, db1, rest=rest)
    running = project.start()
    running.wait_for("load tpcb into")
    wait_until(lambda: any((db1.state / "work").glob("*/1-far/postmaster.pid")))
    (pid_file,) = (db1.state / "work").glob("*/1-far/postmaster.pid")
    os.kill(int(pid_file.read_text().split()[0]), signal.SIGQUIT)
    code, _ = running.end()
    assert code == 1
    log = (project.bundle / "logs" / "postgresql-1-far.log").read_text()
    assert "received immediate shutdown request" in log


@pytest.mark.long
def test_ctrl_c_undoes_what_is_on_the_host(project, db1, nothing_left):
    _write(project, db1, rest=LONG)
    running = project.start()
    running.wait_for("trial 1 of")
    running.signal(signal.SIGINT)
    code, _ = running.end()
    assert code == 130
    assert db1.left() == [] and db1.agents() == []
    nothing_left()


@pytest.mark.long
def test_a_run_that_was_killed_is_resumed_with_all_made_again(project, db1):
    _write(project, db1, rest=LONG)
    running = project.start()
    running.wait_for("trial 1 of")
    running.signal(signal.SIGKILL)
    running.process.wait(60)
    resumed = project.plinth("resume", project.bundle)
    assert resumed.returncode in (0, 3), resumed.stderr
    assert [trial["status"] for trial in project.trials()] == ["complete"] * 2
    assert db1.left() == [] and db1.agents() == []


def test_host_check_says_what_it_finds_of_each_host(project, db1):
    _write(project, db1)
    found = project.plinth("host", "check", "x.toml")
    assert found.returncode == 0, found.stderr
    said = " ".join(found.stdout.split())
    assert "db1: it is the same machine as this machine" in said and "1 of 1 hosts were reached" in said
    as_json = json.loads(project.plinth("host", "check", "x.toml", "--json").stdout)
    assert as_json[0]["name"] == "db1" and as_json[0]["listen_address"] == "127.0.0.1"


def test_host_check_without_a_host(project):
    found = project.plinth("host", "check", "x.toml")
    assert found.returncode == 2 and "the experiment has no hosts" in found.stderr


@pytest.mark.long
def test_the_clock_of_a_host_may_be_another(project, db1, nothing_left):
    elsewhen = "exec unshare --time --monotonic 5000 --boottime 5000 --fork --kill-child"
    db1.command.write_text(db1.command.read_text().replace("exec", elsewhen))
    _write(project, db1, rest=REST.replace('["near", "far"]', '["far"]'))
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete", trial["failure"]
    for source in ("host_cpu", "process_cpu", "pg_wal"):
        times_s = [t_ns / 1e9 for t_ns in open_bundle(project.bundle).samples(source).columns["t_ns"]]
        assert min(times_s) < 0.5 and 1 < max(times_s) < 3, f"{source}: by the clock of the load"
    assert db1.left() == [] and db1.agents() == []
    nothing_left()


def test_a_storage_of_a_host_that_is_too_small_is_named_with_the_host(project, db1):
    _write(project, db1, 'kind = "tmpfs"\nsize = "60MiB"')
    planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 5, planned.stdout
    said = " ".join(planned.stderr.split())
    assert "host db1 lacks what the plan needs" in said and "storage far" in said and "60.0 MiB" in said


POOL = """
[storage.vdev]
kind = "file"
size = "400MiB"
on = "memory"

[storage.pool]
kind = "zfs"
data = ["vdev"]
"""


@pytest.mark.long
def test_every_kind_of_storage_is_made_on_a_host(project, db1, nothing_left):
    levels = [*LEVELS, "pool"]
    there = experiment(levels, KINDS + POOL).replace("\nkind =", '\nhost = "db1"\nkind =')
    project.write(f"{there}{db1.toml}")
    done = project.run(timeout_s=240)
    assert done.returncode in (0, 3), done.stderr
    trials = {trial["variant"]: trial for trial in project.trials()}
    assert trials.keys() == set(levels)
    for name, trial in trials.items():
        assert trial["status"] == "complete" and trial["tps"] > 0, trial["failure"]
        storage = json.loads((project.bundle / "env" / f"storage-{name}.json").read_text())
        assert storage["host"] == "db1" and storage["volatile"], name
    assert db1.left() == [] and db1.agents() == []
    nothing_left()
