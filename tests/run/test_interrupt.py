"""Signals in a run: raised where work may stop, also where Python would lose them."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from plinth.model.errors import BudgetSpent, Interrupted, StorageBroken
from plinth.run import interrupt
from plinth.run.interrupt import InterruptGuard
from plinth.system.runner import Runner
from plinth.system.uninterrupted import uninterrupted


def test_a_signal_is_raised_once_and_then_held_back():
    told = []
    with InterruptGuard(told.append) as guard:
        with pytest.raises(Interrupted, match="SIGTERM"):
            signal.raise_signal(signal.SIGTERM)
        with guard.shielded():
            signal.raise_signal(signal.SIGINT)
    assert len(told) == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_terminal_that_goes_ends_the_work_but_not_under_nohup():
    before = signal.getsignal(signal.SIGHUP)
    with InterruptGuard(lambda text: None):
        with pytest.raises(Interrupted, match="SIGHUP"):
            signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) == before
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with InterruptGuard(pytest.fail):
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_in_a_callback_of_fork_is_not_lost():
    """What such a callback raises is only printed by Python: the run went on as if nobody had pressed Ctrl-C."""
    armed = [True]

    def in_parent():
        if armed:  # it stays registered for as long as this process lives
            armed.clear()
            signal.raise_signal(signal.SIGINT)

    os.register_at_fork(after_in_parent=in_parent)
    with InterruptGuard(lambda text: None):
        with pytest.raises(Interrupted, match="SIGINT"):
            child = os.fork()
            if child == 0:
                os._exit(0)
            threading.Event().wait(10)
        os.waitpid(child, 0)


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGALRM], ids=lambda n: n.name)
def test_a_thread_that_is_being_started_is_let_start(by, monkeypatch):
    """What was raised between its birth and its entry among the threads made it fail, with a traceback on stderr."""
    thread = threading.Thread(target=lambda: None)
    failed = []
    with InterruptGuard(lambda text: None) as guard:
        name = "_start_joinable_thread" if hasattr(threading, "_start_joinable_thread") else "_start_new_thread"
        start = getattr(threading, name)

        def interrupted(*arguments, **named):
            identity = start(*arguments, **named)
            guard.stop(BudgetSpent("enough")) if by == signal.SIGALRM else signal.raise_signal(by)
            return identity

        monkeypatch.setattr(threading, name, interrupted)
        hook = sys.unraisablehook
        monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: (failed.append(unraisable), hook(unraisable)))
        with pytest.raises(Interrupted):
            thread.start()
            threading.Event().wait(10)
    thread.join()
    assert failed == []


def test_a_command_that_is_being_started_is_known_and_ended(tmp_path, monkeypatch):
    """One that nobody knew went on after everything had been undone: a mount that came when it had been unmounted."""
    started = []

    class Interrupting(subprocess.Popen):
        def __init__(self, *arguments, **named):
            super().__init__(*arguments, **named)
            started.append(self)
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(subprocess, "Popen", Interrupting)
    with InterruptGuard(lambda text: None), pytest.raises(Interrupted):
        Runner().run(["sleep", "60"])
    (process,) = started
    assert process.returncode == -signal.SIGKILL


def test_a_start_that_hangs_is_interrupted_all_the_same(monkeypatch):
    monkeypatch.setattr(interrupt, "_LONGEST_WAIT_S", 0.1)
    with InterruptGuard(lambda text: None), pytest.raises(Interrupted), uninterrupted():
        signal.raise_signal(signal.SIGTERM)
        threading.Event().wait(60)


def test_another_thread_ends_the_work_wherever_it_is():
    held_back = []
    with InterruptGuard(held_back.append) as guard:
        reason = BudgetSpent("enough")
        thread = threading.Timer(0.01, guard.stop, [reason])
        with pytest.raises(BudgetSpent) as raised:
            thread.start()
            threading.Event().wait(10)
        assert raised.value is reason
        signal.raise_signal(signal.SIGINT)  # what follows is the way out
        assert len(held_back) == 1
        thread.join()


def test_what_is_being_undone_is_not_ended_by_another_thread():
    with InterruptGuard(lambda text: None) as guard:
        with guard.shielded():
            thread = threading.Thread(target=guard.stop, args=[BudgetSpent("enough")])
            thread.start()
            thread.join()
            signal.raise_signal(signal.SIGALRM)
        signal.raise_signal(signal.SIGALRM)


def test_a_piece_of_work_is_called_off_and_what_follows_goes_on():
    held_back = []
    with InterruptGuard(held_back.append) as guard:
        reason = StorageBroken("slow", "its daemon died")
        thread = threading.Timer(0.01, guard.call_off, [reason])
        with pytest.raises(StorageBroken) as raised, guard.callable_off():
            thread.start()
            threading.Event().wait(10)
        assert raised.value is reason
        thread.join()
        with pytest.raises(Interrupted, match="SIGINT"):
            signal.raise_signal(signal.SIGINT)  # not held back: this is not the way out
    assert held_back == []


def test_what_may_not_be_called_off_is_not():
    with InterruptGuard(lambda text: None) as guard:
        with guard.callable_off():
            pass
        guard.call_off(StorageBroken("slow", "its daemon died"))
        signal.raise_signal(signal.SIGALRM)
        with guard.callable_off():
            signal.raise_signal(signal.SIGALRM)


def test_work_that_ends_while_it_is_called_off_tells_so():
    with InterruptGuard(lambda text: None) as guard:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])  # on its way for as long as this
        try:
            with pytest.raises(StorageBroken), guard.callable_off():
                thread = threading.Thread(target=guard.call_off, args=[StorageBroken("slow", "it hangs")])
                thread.start()
                thread.join()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])


def test_a_call_off_in_a_callback_of_fork_is_not_lost():
    armed = [True]
    with InterruptGuard(lambda text: None) as guard:

        def in_parent():
            if armed:
                armed.clear()
                guard.call_off(StorageBroken("slow", "it hangs"))

        os.register_at_fork(after_in_parent=in_parent)
        with pytest.raises(StorageBroken), guard.callable_off():
            child = os.fork()
            if child == 0:
                os._exit(0)
            threading.Event().wait(10)
        os.waitpid(child, 0)
