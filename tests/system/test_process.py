"""Processes that were left running: asked after and waited for, regardless of what a signal's handler raises meanwhile."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plinth.storage.devices.disk_daemon import SERVE_MODULE, daemons
from plinth.system.log_file import LogFile
from plinth.system.process import Child, ProcessMark, arguments, boot_id, kill_all, started_ticks
from plinth.system.runner import Runner

_TIMEOUT_S = 20.0
_EXECS = 20_000
_INTERRUPTS = 2_000  # Popen.poll would leave its lock held after one in five


class _Interrupt(Exception):
    pass


def child(tmp_path: Path, script: str) -> Child:
    return Runner().spawn(["sh", "-c", script], log=LogFile(tmp_path / "log"))


@contextlib.contextmanager
def no_longer_than(seconds: float) -> Iterator[None]:
    """End the test, rather than hang, when what is within waits in vain."""

    def late(*_: object) -> None:
        raise AssertionError(f"not done after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    ("script", "exit_code"), [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", -signal.SIGTERM), ("kill -9 $$", -9)]
)
def test_the_end_is_seen_before_it_is_waited_for_and_reported_more_than_once(
    tmp_path: Path, script: str, exit_code: int
) -> None:
    process = child(tmp_path, script)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert process.has_ended()
    assert [process.wait(), process.wait()] == [exit_code, exit_code]
    assert process.has_ended()
    with pytest.raises(ChildProcessError):
        os.waitpid(process.pid, os.WNOHANG)  # nothing is left of it


def test_a_process_may_call_itself_anything() -> None:
    program = "import ctypes, sys; ctypes.CDLL(None).prctl(15, b'\\xff) 1 ('); print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        ticks = started_ticks(process.pid)
        assert ticks is not None
        assert ProcessMark(process.pid, ticks, boot_id()).is_alive()
        process.communicate()


@pytest.mark.parametrize(("user", "found"), [(None, True), ("nobody", False)])
def test_a_daemon_of_ours_is_known_by_its_arguments_and_its_user(user: str | None, found: bool) -> None:
    """A process that hangs under the name of ours would have ours killed."""
    words = [SERVE_MODULE, "--mount", "/mnt/no-such", "--control", "/no-such", "--label", "plinth-x"]
    command = ["sh", "-c", "echo; read end", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=user) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert [daemon.pid == process.pid for daemon in daemons(Path("/mnt/no-such"))] == [True] * found
        process.communicate()


def test_arguments_are_read_of_a_process_during_exec() -> None:
    """The kernel tells none between the former and the new ones: a daemon would be missed that is just there to be ended."""
    script = 'exec sh -c "$0" "$0"'
    with subprocess.Popen(["sh", "-c", script, script]) as process:
        reported = {tuple(arguments(Path(f"/proc/{process.pid}"))) for _ in range(_EXECS)}
        process.kill()
    assert reported == {("sh", "-c", script, script)}


def test_processes_that_start_while_others_are_killed_are_killed_too() -> None:
    started = [subprocess.Popen(["sleep", "1000"]) for _ in range(3)]

    def first_that_lives() -> list[int]:
        return [process.pid for process in started if process.poll() is None][:1]

    assert kill_all(first_that_lives, _TIMEOUT_S) == []
    assert [process.wait() for process in started] == [-signal.SIGKILL] * 3


def test_a_zombie_is_no_living_process() -> None:
    process = subprocess.Popen(["sleep", "1000"])
    ticks = started_ticks(process.pid)
    assert ticks is not None
    mark = ProcessMark(process.pid, ticks, boot_id())
    assert mark.is_alive()
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not mark.is_alive()
    process.wait()


def test_what_a_handler_raises_in_the_middle_of_asking_leaves_nothing_held(tmp_path: Path) -> None:
    process = child(tmp_path, "exec sleep 1000")

    def interrupt(*_: object) -> None:
        raise _Interrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(_INTERRUPTS):
            with contextlib.suppress(_Interrupt):
                signal.setitimer(signal.ITIMER_REAL, 0.000_2)
                while not process.has_ended():
                    pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    os.kill(process.pid, signal.SIGKILL)
    with no_longer_than(_TIMEOUT_S):
        assert process.wait() == -signal.SIGKILL


def test_an_interrupted_wait_can_be_repeated(tmp_path: Path) -> None:
    process = child(tmp_path, "exec sleep 1000")
    with pytest.raises(AssertionError, match="not done"), no_longer_than(0.05):
        process.wait()
    assert not process.has_ended()
    os.kill(process.pid, signal.SIGTERM)
    with no_longer_than(_TIMEOUT_S):
        assert process.wait() == -signal.SIGTERM
