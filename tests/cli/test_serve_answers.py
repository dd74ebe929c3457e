"""The process of `plinth serve` that works out answers."""

import os
import signal
from pathlib import Path

import pytest

from plinth.bundle import BundleFolder
from plinth.serve.answers import Answers
from plinth.tasks.history import answer_or_reason
from serving import Served
from small_bundles import written
from waiting import until


@pytest.fixture
def answers(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("PLINTH_STATE_DIR", str(tmp_path_factory.mktemp("state")))
    answers = Answers()
    yield answers
    answers.close()


def children(pid):
    return [
        int(child)
        for thread in Path(f"/proc/{pid}/task").iterdir()
        for child in (thread / "children").read_text().split()
    ]


def test_answers_are_those_of_the_analysis_and_a_killed_process_is_said_and_replaced(tmp_path, answers):
    bundle = written(tmp_path / "b")
    (written(tmp_path / "spoilt") / "plan.json").unlink()
    root = BundleFolder(tmp_path)
    others = set(children(os.getpid()))
    expected, _ = answer_or_reason(BundleFolder(bundle))
    assert expected
    assert answers.answer(root, "b") == (expected, None)
    answer, missing = answers.answer(root, "spoilt")
    assert answer is None and "plan.json" in missing
    (process,) = set(children(os.getpid())) - others
    os.kill(process, signal.SIGKILL)
    assert answers.answer(root, "b") == (None, "its analysis ended with signal SIGKILL")
    assert answers.answer(root, "b") == (expected, None)


def test_after_the_end_nothing_is_answered(tmp_path, answers):
    answers.close()
    assert answers.answer(BundleFolder(tmp_path), "b")[0] is None


def test_the_process_ends_with_a_server_that_is_killed(tmp_path, monkeypatch):
    monkeypatch.setenv("PLINTH_STATE_DIR", str(tmp_path / "state"))
    written(tmp_path / "in" / "b")
    with Served(tmp_path / "in") as served:
        until(lambda: children(served.pid), 60)
        (process,) = children(served.pid)
        served.interrupt(signal.SIGKILL)
        until(lambda: not Path(f"/proc/{process}").exists(), 60)
