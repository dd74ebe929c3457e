"""measure.target: trials that end once every comparison is decided, or the budget is spent, as a user runs them."""

import json
import shutil
import signal

import pytest

EXPERIMENT = """\
spec = 1
name = "adaptive"
question = "Do more transactions fit into the same time?"

[storage.disk]
kind = "tmpfs"
size = "512MiB"

[dataset]
kind = "tpcb"
scale = 1

[workload]
script = "long.sql"
clients = 2

[matrix]
"workload.script" = ["long.sql", "short.sql"]

[measure]
warmup = "100ms"
duration = "600ms"
probe = 0
target = "5%"
"""


SCRIPTS = {"long.sql": "\\sleep 80 ms\nSELECT 1;\n", "short.sql": "\\sleep 20 ms\nSELECT 1;\n"}
"""Their sleep decides how long they take, so that a busy machine changes little."""


def write(project):
    for name, text in SCRIPTS.items():
        (project.folder / name).write_text(text)
    project.write(EXPERIMENT)


def manifest(project):
    return json.loads((project.bundle / "manifest.json").read_text())


def analysis(project):
    return json.loads(project.plinth("report", project.bundle, "--json").stdout)["analysis"]


@pytest.fixture(scope="module")
def decided(module_project):
    write(module_project)
    done = module_project.run()
    assert done.returncode == 0, done.stderr
    module_project.said = done
    return module_project


@pytest.mark.long
def test_trials_end_once_the_comparison_is_decided(decided):
    assert [one["block"] for one in decided.trials()] == [block for block in (1, 2, 3, 4) for _ in range(3)]
    assert manifest(decided)["trials_end"] == {"block": 4, "reason": "decided", "open_comparisons": 0}
    assert "every comparison is decided after 4 blocks: no more trials are run" in decided.said.stderr
    found = analysis(decided)
    (compared,) = found["comparisons"]
    assert compared["verdict"] == "better"
    ratio = compared["ratio"]["interval"]
    assert 1 < ratio["low"] < 4 < 1.2 * ratio["high"], (
        "a transaction takes a little more than its sleep: the truth is just below 4"
    )
    assert (found["trials_planned"], found["trials_counted"]) == (12, 12)
    assert not any("not decided" in warning or "not in the bundle" in warning for warning in found["warnings"])
    assert decided.left_behind() == []


@pytest.mark.long
def test_such_a_bundle_is_whole(decided):
    assert decided.plinth("verify", decided.bundle).returncode == 0
    again = decided.plinth("resume", decided.bundle)
    assert again.returncode == 0 and "all trials are in the bundle" in again.stderr
    more = decided.plinth("resume", decided.bundle, "--more", 1)
    assert more.returncode == 2 and "every comparison was decided after block 4" in more.stderr
    assert len(decided.trials()) == 12


@pytest.mark.long
def test_a_trial_that_was_taken_out_of_it_is_missed(decided, tmp_path):
    bundle = tmp_path / "bundle"
    shutil.copytree(decided.bundle, bundle)
    (gone,) = bundle.glob("trials/0012-*")
    shutil.rmtree(gone)
    done = decided.plinth("verify", bundle)
    assert done.returncode == 1 and "planned, but not in the bundle: trial 12" in done.stderr


@pytest.mark.long
def test_the_plan_says_how_few_and_how_many(decided):
    said = decided.plinth("plan", "x.toml", "--set", "measure.budget=20min").stdout
    assert "12 to 60 trials" in said
    assert "once differences of 5 % are decided (measure.target), or when they have taken 20 min" in said


@pytest.mark.long
def test_interrupted_it_is_resumed_to_the_same_end(project, nothing_left):
    write(project)
    running = project.start()
    running.wait_for("trial 5 of 60")
    running.signal(signal.SIGINT)
    assert running.end()[0] == 130
    assert manifest(project)["trials_end"] is None
    done = project.plinth("resume", project.bundle)
    assert done.returncode == 0, done.stderr
    assert manifest(project)["trials_end"]["reason"] == "decided"
    assert [one["number"] for one in project.trials()] == list(range(1, 13))
    nothing_left()


@pytest.mark.long
def test_the_budget_ends_them_and_more_of_the_planned_blocks_are_run_when_asked(project, nothing_left):
    write(project)
    done = project.run("--set", "measure.budget=1s")
    assert done.returncode == 3, done.stderr  # nothing is decided
    assert "measure.budget = 1 s" in done.stderr and "the comparison is not decided" in done.stderr
    assert manifest(project)["trials_end"] == {"block": 1, "reason": "budget", "open_comparisons": 1}
    assert len(project.trials()) == 3
    assert project.plinth("verify", project.bundle).returncode == 0
    assert any("when measure.budget was spent" in one for one in analysis(project)["warnings"])

    too_many = project.plinth("resume", project.bundle, "--more", 20)
    assert too_many.returncode == 2 and "allowed: 1 to 19" in too_many.stderr
    more = project.plinth("resume", project.bundle, "--more", 1)
    assert more.returncode == 3, more.stderr
    assert "at most 1 more of each of 3 variants: trials 4 to 6" in more.stderr
    assert manifest(project)["trials_end"] == {"block": 2, "reason": "budget", "open_comparisons": 1}
    assert [one["number"] for one in project.trials()] == list(range(1, 7))
    nothing_left()
