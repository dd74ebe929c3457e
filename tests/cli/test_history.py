"""`plinth history`: bundles of every state are listed, and none of them ends the command."""

import fcntl
import json
import os

import pytest

from command_line import SLOW, loaded_by, plinth
from plinth.system.lock import LOCK_FILE
from small_bundles import CONTENTS, change, written
from spoilt_bundles import SPOILT


@pytest.fixture(autouse=True)
def state(tmp_path_factory, monkeypatch):
    """Where answers are kept."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("PLINTH_STATE_DIR", str(folder))
    return folder


def listed(directory, *options):
    done = plinth("history", directory, "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["bundles"]


@pytest.mark.long
def test_bundles_are_listed_with_question_answer_and_machine_the_newest_first(tmp_path):
    written(tmp_path / "old", created_unix_ns=10**18)
    written(tmp_path / "deeper" / "new", created_unix_ns=2 * 10**18)
    bundles = listed(tmp_path)
    assert [one["folder"] for one in bundles] == [str(tmp_path / "deeper" / "new"), str(tmp_path / "old")]
    for one in bundles:
        assert one["status"] == "complete"
        assert one["question"] == CONTENTS.plan.experiment.question
        assert "memory" in one["answer"]
        assert one["headline"]["value"] > 1 and "memory" in one["headline"]["note"]
        assert CONTENTS.host.cpu_model in one["machine"]
    shown = plinth("history", tmp_path).stdout
    assert "2033-05-1" in shown
    assert bundles[0]["answer"].split()[0] in shown
    assert "2 bundles" in shown


def test_without_answers_nothing_is_analysed(tmp_path):
    written(tmp_path / "b", trials=False)
    (one,) = listed(tmp_path, "--no-answers")
    assert (one["answer"], one["answer_missing"]) == (None, "not asked for")
    assert not loaded_by("history", tmp_path, "--no-answers") & SLOW


def without_plan(bundle):
    (bundle / "plan.json").unlink()


def nested_too_deep(bundle):
    (bundle / "plan.json").write_text("[" * 100_000)


@pytest.mark.parametrize(
    ("spoil", "reason"), [*SPOILT.items(), (without_plan, "plan.json"), (nested_too_deep, "plan.json")]
)
def test_what_cannot_be_read_is_listed_with_the_reason_next_to_what_can(tmp_path, spoil, reason):
    written(tmp_path / "whole", trials=False)
    spoil(written(tmp_path / "spoilt", trials=False))
    by_folder = {one["folder"]: one for one in listed(tmp_path, "--no-answers")}
    assert by_folder[str(tmp_path / "whole")]["status"] == "complete"
    spoilt = by_folder[str(tmp_path / "spoilt")]
    assert spoilt["status"] == "unreadable"
    assert reason in spoilt["reason"]
    shown = plinth("history", tmp_path, "--no-answers")
    assert shown.returncode == 0
    assert reason in " ".join(shown.stdout.split())


def test_a_trial_that_is_corrupted_leaves_the_bundle_without_an_answer(tmp_path):
    bundle = written(tmp_path / "b")
    (next((bundle / "trials").iterdir()) / "hist.parquet").write_bytes(b"PAR1 of another kind PAR1")
    (one,) = listed(tmp_path)
    assert one["status"] == "complete"
    assert one["answer"] is None
    assert "hist.parquet" in one["answer_missing"]


def test_parts_that_contradict_one_another_are_no_traceback(tmp_path):
    bundle = written(tmp_path / "b")
    change(next((bundle / "trials").iterdir()) / "trial.json", variant="of another experiment")
    (one,) = listed(tmp_path)
    assert one["question"] == CONTENTS.plan.experiment.question
    assert one["answer"] or one["answer_missing"]


def test_a_killed_run_is_distinguished_from_one_that_is_alive(tmp_path):
    path = written(tmp_path / "b", trials=False, finished=False)
    (one,) = listed(tmp_path)
    assert one["status"] == "running"
    assert f"was killed: `plinth resume {path}`" in one["reason"]
    with (path / LOCK_FILE).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        (one,) = listed(tmp_path)
        assert (one["status"], one["reason"]) == ("running", None)


def test_an_answer_is_kept_until_a_file_of_the_bundle_changes(tmp_path, state):
    path = written(tmp_path / "b")
    (first,) = listed(tmp_path)
    (kept,) = (state / "cache" / "answers").iterdir()
    change(kept, answer={"text": "kept", "headline": None})
    assert listed(tmp_path)[0]["answer"] == "kept"
    os.utime(next(path.glob("trials/*/trial.json")))
    assert listed(tmp_path)[0]["answer"] == first["answer"]
    kept.write_text("{")
    assert listed(tmp_path)[0]["answer"] == first["answer"]


def test_without_a_state_directory_it_lists_all_the_same(tmp_path, monkeypatch):
    written(tmp_path / "b")
    monkeypatch.setenv("PLINTH_STATE_DIR", "/proc/no-such-folder")
    assert listed(tmp_path)[0]["answer"]


def test_links_to_folders_are_not_followed(tmp_path):
    written(tmp_path / "outside" / "b", trials=False)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in")
    assert listed(tmp_path / "in") == []


def test_hostile_names_and_dates_are_shown_escaped(tmp_path):
    name = os.fsencode(tmp_path) + b"/\x1b]0;x\x07<b>$(id)\xff"
    written(tmp_path / "b", trials=False, created_unix_ns=10**40)
    (tmp_path / "b").rename(os.fsdecode(name))
    (one,) = listed(tmp_path, "--no-answers")
    assert one["folder"].endswith("<b>$(id)\\xff")
    shown = plinth("history", tmp_path, "--no-answers")
    assert shown.returncode == 0
    assert "\x1b" not in shown.stdout
    assert "\\x1b]0;x\\x07<b>$(id)\\xff" in shown.stdout
    assert "not a date" in shown.stdout


def test_a_bundle_given_itself_is_listed(tmp_path):
    assert [one["folder"] for one in listed(written(tmp_path / "b", trials=False), "--no-answers")] == [
        str(tmp_path / "b")
    ]


def test_a_directory_that_is_not_there_is_an_error_that_names_it(tmp_path):
    done = plinth("history", tmp_path / "none")
    assert done.returncode == 2
    assert str(tmp_path / "none") in done.stderr
