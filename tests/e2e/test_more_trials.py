"""`plinth resume --more`: trials that are added to a complete run, as a reader of its report asks for them."""

import json
import shutil
import signal

import pytest


@pytest.fixture(scope="module")
def once(module_project):
    """A complete run of two repeats, whose report asks for more trials."""
    done = module_project.run("--set", "measure.repeats=2", "--set", "measure.aa=true")
    assert done.returncode == 3, done.stderr  # two trials decide nothing
    assert "more trials of each would be needed to tell" in done.stdout
    assert "plinth resume" in done.stdout and "--more 3" in done.stdout
    return module_project


@pytest.fixture
def complete(once, project):
    """That run in a folder of its own, with the key by which it may be resumed."""
    for name in ("bundle", "state"):
        shutil.copytree(once.folder / name, project.folder / name, symlinks=True, dirs_exist_ok=True)
    return project


def plan(project):
    return json.loads((project.bundle / "plan.json").read_text())


def analysis(project):
    report = json.loads(project.plinth("report", project.bundle, "--json").stdout)
    return report.get("analysis", report)


@pytest.mark.long
def test_trials_are_added_and_the_results_are_those_of_all(complete, nothing_left):
    before, planned = complete.trials(), plan(complete)["trials"]
    wear = json.loads((complete.bundle / "wear.json").read_text())
    first_disk = (complete.bundle / "env/storage-disk.json").read_bytes()

    done = complete.plinth("resume", complete.bundle, "--more", 2)
    assert done.returncode in (0, 3), done.stderr
    assert "2 more of each of 3 variants: trials 7 to 12" in done.stderr
    nothing_left()

    trials = complete.trials()
    assert [one["number"] for one in trials] == list(range(1, 13))
    assert trials[:6] == before
    for block in (3, 4):
        assert {one["variant"] for one in trials if one["block"] == block} == {"disk", "memory", "disk-aa"}
    longer = plan(complete)
    assert longer["trials"][:6] == planned
    assert longer["experiment"]["measure"]["repeats"] == 4
    assert [(one["repeats"], one["first_trial"]) for one in longer["extensions"]] == [(2, 7)]
    assert complete.status() == "complete"
    assert complete.plinth("verify", complete.bundle).returncode == 0
    assert (complete.bundle / "env/before-trial-0007/storage-disk.json").read_bytes() == first_disk

    counted = analysis(complete)
    assert (counted["trials_planned"], counted["trials_counted"]) == (12, 12)
    assert {one["tps"]["n"] for one in counted["variants"]} == {4}
    added = [warning for warning in counted["warnings"] if "were added" in warning]
    assert len(added) == 1 and "trials 7 to 12" in added[0]
    assert "--set measure.repeats=4" in complete.plinth("report", complete.bundle, "--markdown").stdout
    later = json.loads((complete.bundle / "wear.json").read_text())
    for disk in wear["disks"]:
        now = next(one for one in later["disks"] if one["disk"] == disk["disk"])
        assert now["written_bytes"] > disk["written_bytes"]


@pytest.mark.long
def test_killed_among_the_trials_that_are_added_it_is_finished_as_ever(complete, nothing_left):
    before = complete.trials()
    running = complete.start(command=("resume", complete.bundle, "--more", 1))
    running.wait_for("trial 7 of 9")
    running.signal(signal.SIGKILL)
    assert running.end()[0] == -signal.SIGKILL
    kept = complete.trials()
    assert kept[:6] == before and len(kept) >= 7

    once_more = complete.plinth("resume", complete.bundle, "--more", 1)
    assert once_more.returncode == 2, once_more.stderr
    assert f"trials are added to a complete run; this one is running: {len(kept)} of 9 trials" in once_more.stderr
    assert f"finish it first: `plinth resume {complete.bundle}`" in once_more.stderr
    assert complete.trials() == kept

    done = complete.plinth("resume", complete.bundle)
    assert done.returncode in (0, 3), done.stderr
    trials = complete.trials()
    assert [one["number"] for one in trials] == list(range(1, 10))
    assert trials[: len(kept)] == kept
    assert complete.plinth("verify", complete.bundle).returncode == 0
    nothing_left()

    again = complete.plinth("resume", complete.bundle, "--more", 1)
    assert again.returncode in (0, 3), again.stderr
    assert [one["first_trial"] for one in plan(complete)["extensions"]] == [7, 10]
    assert len(complete.trials()) == 12
    nothing_left()


@pytest.mark.long
def test_a_number_that_cannot_be_added_changes_nothing(complete):
    files = contents(complete.bundle)
    for number, said in (
        ("0", "cannot add 0 trials of each variant: allowed: 1 to 998"),
        ("-1", "cannot add -1 trials of each variant"),
        ("999", "this one has 2"),
        ("many", "many"),
    ):
        done = complete.plinth("resume", complete.bundle, "--more", number)
        assert done.returncode == 2, done.stderr
        assert said in done.stderr
        assert contents(complete.bundle) == files


@pytest.mark.long
def test_what_was_altered_gets_no_more_trials(complete):
    """Its plan by the key of the run, all else by the seal; also what an extension itself wrote."""
    extended = complete.plinth("resume", complete.bundle, "--more", 1)
    assert extended.returncode in (0, 3), extended.stderr
    for name, old, new, code, said in (
        ("plan.json", '"first_trial": 7', '"first_trial": 1', 4, "altered"),
        ("plan.json", '"repeats": 3', '"repeats": 4', 4, "altered"),
        ("trials/0007-*/trial.json", '"status": "complete"', '"status": "failed"', 1, "changed after its run"),
    ):
        (file,) = complete.bundle.glob(name)
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))
        files = contents(complete.bundle)
        done = complete.plinth("resume", complete.bundle, "--more", 1)
        assert done.returncode == code, done.stderr
        assert said in done.stderr
        assert contents(complete.bundle) == files
        file.write_text(text)


@pytest.mark.long
@pytest.mark.usefixtures("repeated")
def test_a_resumed_run_gets_no_more_trials(project, nothing_left):
    running = project.start()
    running.wait_for("trial 1 of")
    done = project.plinth("resume", project.bundle, "--more", 1)
    assert done.returncode == 4, done.stderr
    assert str(running.process.pid) in done.stderr
    code, said = running.end()
    assert code == 3, said
    assert len(project.trials()) == 6
    nothing_left()


def contents(bundle):
    return {file: file.read_bytes() for file in bundle.rglob("*") if file.is_file() and "derived" not in file.parts}
