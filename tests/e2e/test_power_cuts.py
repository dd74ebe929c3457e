"""Power cuts of a run: an honest disk keeps every commit, one that lies is found out, and a run is resumed between cuts."""

import json
import signal
from pathlib import Path

import pytest

from plinth.bundle import read_cuts
from power_cut_experiment import LEDGER, TPCB, TPCB_WITH_LEDGER, experiment
from typed import present
from waiting import wait_until

CONTROLS = {
    "ignoring": 'lie = "ignore-flush"',
    "late": 'lie = "late-flush=20"',  # a commit may take several flushes: those of the file system's journal
    "dropping": 'lie = "drop-fraction=0.1"',
    "no_barriers": 'mount_options = ["nobarrier"]',
}
"""Disks, and a file system, that do not keep what they acknowledge."""


@pytest.fixture(scope="module")
def tested(module_project):
    """A run of an honest disk and of storages that lose commits, and its report."""
    text = experiment(cuts=5, durability="stop_after = 1", load=TPCB_WITH_LEDGER, honest="", **CONTROLS)
    memory = '[storage.memory]\nkind = "tmpfs"\nsize = "512MiB"\n[dataset]'
    module_project.write(text.replace("[dataset]", memory).replace('"no_barriers"]', '"no_barriers", "memory"]'))
    done = module_project.run("--yes", timeout_s=280)
    assert done.returncode in (0, 3), done.stderr
    report = json.loads(module_project.plinth("report", module_project.bundle, "--json").stdout)
    return module_project, {variant["id"]: variant for variant in report["analysis"]["variants"]}, done


@pytest.mark.long
def test_an_honest_disk_keeps_every_commit_in_every_mode_and_moment(tested):
    project, variants, _ = tested
    cuts = [cut for cut in read_cuts(project.bundle) if cut.variant == "honest"]
    assert [(cut.mode, cut.moment) for cut in cuts] == [
        *((mode, "load") for mode in ("drop", "subset", "prefix", "torn")),
        ("drop", "checkpoint"),
    ]
    for cut in cuts:
        assert cut.failure is None and cut.damage == ()
        assert cut.disks == ("honest",) and cut.acknowledged > 0 and cut.recovery_s is not None
        assert cut.recovery is not None and cut.mounted_s is not None
        assert 0 < cut.mounted_s + cut.recovery.total_s <= cut.recovery_s, "the parts of it"
        assert [check.name for check in cut.checks if check.not_run is None] == [
            "no page is older than before the load",
            "untouched rows are as before the load",
            "no sequence is set back",
            "unlogged tables are empty",
            "verify_heapam",
            "bt_index_parent_check",
            "pg_check_visible",
            "pg_check_frozen",
            "invariants of the dataset",
            "hint bits agree with pg_xact",
            "other databases",
            "index entries point to rows",
            "rows are in their hash and GiST indexes",
            "pg_checksums",
        ]
    assert variants["honest"]["safety"]["grade"] == "keeps"
    assert variants["honest"]["safety"]["tested"] == "damage in 0 of 5 power cuts"
    recovery = variants["honest"]["durability"]["recovery"]
    assert recovery["cuts"] == 5 and recovery["redo_bytes"] > 0
    assert "## Recovery" in project.plinth("report", project.bundle, "--markdown").stdout


@pytest.mark.long
@pytest.mark.parametrize("control", [*CONTROLS, "memory"])
def test_what_loses_commits_is_found_by_the_first_cut_and_no_more_are_made(tested, control):
    project, variants, done = tested
    variant = variants[control.replace("_", "-")]
    cuts = [cut for cut in read_cuts(project.bundle) if cut.variant == variant["id"]]
    assert len(cuts) == 1 and cuts[0].mode == "drop" and cuts[0].damage
    assert variant["safety"]["grade"] == "does not keep"
    assert variant["durability"]["damaged"] == 1
    assert f"{variant['label']}: drop in load" in done.stderr
    assert "damage in 1 of 1 power cut" in variant["safety"]["tested"]


@pytest.mark.long
def test_nothing_is_left_and_the_bundle_is_whole(tested):
    project, _, _ = tested
    assert project.left_behind() == []
    assert project.plinth("verify", project.bundle).returncode == 0


@pytest.mark.long
def test_every_form_of_the_report_has_the_cuts(tested):
    project, _, _ = tested
    markdown = project.plinth("report", project.bundle, "--markdown").stdout
    assert "## Power cuts" in markdown
    assert "| honest | 5 of 5 |" in markdown and "| late | 1 of 5 |" in markdown
    assert "no power cut was made" not in markdown


@pytest.mark.long
def test_every_form_of_the_report_says_what_became_of_the_controls(tested):
    project, _, done = tested
    said = "Controls, which must lose commits: damage was found in 5 of 5 power cuts"
    assert said in " ".join(done.stdout.split())
    assert said in project.plinth("report", project.bundle, "--markdown").stdout
    analysis = json.loads(project.plinth("report", project.bundle, "--json").stdout)["analysis"]
    expected = {one["variant"]: one["expected"] for one in analysis["cut_controls"]["controls"]}
    assert set(expected) == {*(name.replace("_", "-") for name in CONTROLS), "memory"}
    assert "lies about flushes (late-flush=20)" in expected["late"]
    assert said in (project.bundle / "derived" / "report.html").read_text()


@pytest.mark.long
def test_a_run_that_is_interrupted_between_cuts_makes_the_rest_when_resumed(project, nothing_left):
    project.write(experiment(cuts=3, durability='moments = ["load"]\nmodes = ["drop"]', honest=""))
    run = project.start("--yes")
    run.wait_for("cut the power")
    wait_until(lambda: read_cuts(project.bundle), timeout_s=60)
    run.signal(signal.SIGINT)
    code, stderr = run.end()
    assert code == 130 and "Traceback" not in stderr
    nothing_left()
    assert project.status() == "interrupted"
    before = {cut.number: cut.started_unix_ns for cut in read_cuts(project.bundle)}
    assert before
    resumed = project.plinth("resume", project.bundle, timeout_s=200)
    assert resumed.returncode in (0, 3), resumed.stderr
    after = {cut.number: cut.started_unix_ns for cut in read_cuts(project.bundle)}
    assert sorted(after) == [1, 2, 3]
    assert before.items() <= after.items()
    nothing_left()


@pytest.mark.long
def test_with_a_ledger_each_lost_commit_is_named(project, nothing_left):
    """synchronous_commit = off loses the last commits, and nothing else; with on, the control, nothing is missing."""
    text = experiment(cuts=2, durability='modes = ["drop"]\nmoments = ["load"]\nstop_after = 9', load=LEDGER, disk="")
    matrix = '[matrix]\nstorage = ["disk"]'
    project.write(text.replace(matrix, '[matrix]\nserver.settings.synchronous_commit = ["on", "off"]'))
    done = project.run("--yes", timeout_s=200)
    assert done.returncode in (0, 3), done.stderr
    cuts = read_cuts(project.bundle)
    assert all(cut.failure is None and cut.acknowledged > 0 and cut.lost_wal_bytes is not None for cut in cuts)
    clean = [cut for cut in cuts if not cut.damage]
    assert {cut.variant for cut in clean} >= {"synchronous-commit-on"}, [cut.variant for cut in cuts]
    assert all(
        cut.lost_time_s is None and not list(project.bundle.glob(f"ledgers/cut-{cut.number:05d}")) for cut in clean
    )
    lost = [(cut, damage) for cut in cuts for damage in cut.damage]
    assert lost and all(cut.variant == "synchronous-commit-off" for cut, _ in lost)
    for cut, damage in lost:
        assert damage.kind == "lost commit"
        assert "lost commit: client " in damage.evidence[0] and "acknowledged, sent at" in damage.evidence[0]
        assert any("recovery found WAL up to" in one for one in damage.evidence)
        assert cut.lost_time_s is not None and cut.lost_time_s > 0
        assert cut.lost_wal_bytes is not None and cut.lost_wal_bytes > 0
        assert list(project.bundle.glob(f"ledgers/cut-{cut.number:05d}/*.ledger"))
    assert project.plinth("verify", project.bundle).returncode == 0
    nothing_left()


ALONE = """\
mount -t tmpfs plinth-test /dev/shm || exit
"$@"
code=$?
echo; echo left:
ls /dev/shm
tail -n +2 /proc/sysvipc/shm
exit $code
"""
"""A command in namespaces of its own, and what shared memory it has left there."""


@pytest.mark.long
@pytest.mark.parametrize("cuts", [3, pytest.param(30, marks=pytest.mark.timeout(900), id="many")])
def test_servers_that_lost_their_power_leave_no_shared_memory(project, nothing_left, cuts):
    project.write(
        experiment(cuts=cuts, durability='moments = ["load", "checkpoint", "recovery"]\nmodes = ["drop"]', honest="")
    )
    alone = ("unshare", "--ipc", "--mount", "--", "sh", "-c", ALONE, "sh")
    done = project.run("--yes", "--quiet", prefix=alone, timeout_s=840)
    assert done.returncode in (0, 3), done.stderr
    assert [cut.failure for cut in read_cuts(project.bundle)] == [None] * cuts
    _, is_told, left = done.stdout.partition("\nleft:\n")
    assert is_told and left == ""
    nothing_left()


SELECT_ONLY = TPCB[0], 'builtin = "select-only"'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (experiment(load=SELECT_ONLY, honest=""), "it could not be determined which commits of select-only are there"),
        (experiment(load=SELECT_ONLY, honest=""), "set workload.ledger = true"),
        (
            experiment(honest="").replace(
                'kind = "emulated"\nprofile = "sata-ssd"\nsize = "512MiB"', 'kind = "directory"'
            ),
            "honest is of kind directory: the power of its disk cannot be cut by software",
        ),
        (
            experiment(honest="").replace("[dataset]", "[server.settings]\nzero_damaged_pages = true\n[dataset]"),
            "zero_damaged_pages = on hides the damage",
        ),
        (experiment(cuts=0, honest=""), "cuts"),
        (experiment(durability='modes = ["all"]', honest=""), "modes"),
        (experiment(durability="stop_afer = 2", honest=""), "stop_after"),
    ],
)
def test_what_cannot_be_tested_is_refused_in_the_plan(project, text, said):
    project.write(text)
    refused = project.plinth("plan", "x.toml")
    assert refused.returncode == 2
    assert said in refused.stderr and "x.toml:" in refused.stderr


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_parts_of_a_recovery_add_up_to_the_time_without_connections(project):
    text = (Path(__file__).parents[2] / "experiments" / "recovery.toml").read_text()
    project.write(text)
    shorter = ("durability.cuts=2", "durability.within=5s", "measure.duration=2s")
    done = project.run(*(word for one in shorter for word in ("--set", one)), "--repeats", "1", "--yes", timeout_s=850)
    assert done.returncode in (0, 3), done.stderr
    cuts = read_cuts(project.bundle)
    assert len(cuts) == 8
    parts = [
        (cut.variant, present(cut.mounted_s) + present(cut.recovery).total_s, present(cut.recovery_s)) for cut in cuts
    ]
    # What is left is the start of the server's process and its first session, which reads the catalogs: longest on the slow drive.
    assert [one for one in parts if not 0 <= one[2] - one[1] <= 0.2 * one[2]] == [], parts
    report = json.loads(project.plinth("report", project.bundle, "--json").stdout)
    tests = [variant["durability"] for variant in report["analysis"]["variants"] if variant["durability"]]
    assert len(tests) == 4
    for test in tests:
        recovery, whole_s = test["recovery"], test["recovery_median_s"]
        keys = ("mounted_s", "before_redo_s", "redo_s", "after_redo_s", "session_s")
        assert sum(recovery[key] for key in keys) == pytest.approx(whole_s, rel=0.05)
