"""A place on a disk that does not answer: a finding in addition to those of the machine, within the timeout."""

import os
import signal
from pathlib import Path

import pytest

from emulated_disks import served
from plinth.tasks.doctor import examine_path


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plinth.system.timeout.ANSWER_TIMEOUT_S", 0.5)
    monkeypatch.setattr("plinth.tasks.doctor.WINDOW_S", 0.01)


def test_a_place_that_hangs_is_a_problem_and_the_machine_is_examined(scratch: Path, hurried: None) -> None:
    with served(scratch) as disk:
        disk.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, disk.process.pid, os.WSTOPPED | os.WNOWAIT)
        try:
            examination = examine_path(disk.mount)
        finally:
            disk.signal(signal.SIGCONT)
    (lost,) = (one for one in examination.findings if one.about == str(disk.mount))
    assert (lost.id, lost.severity) == ("place.reachable", "problem")
    assert "no answer" in lost.saw
    assert any(one.about == "machine" for one in examination.findings)
