"""Signals and other reasons to end a run: they cancel the work where it waits, and never undoing."""

import signal
import threading

import pytest

from plinth.model.errors import BudgetSpent, Interrupted, StorageBroken
from plinth.run.interrupt import InterruptGuard
from plinth.system import cancel
from plinth.system.runner import Runner


def test_a_signal_cancels_once_and_is_then_held_back():
    held_back = []
    with pytest.raises(Interrupted, match="SIGTERM"), InterruptGuard(held_back.append) as guard:
        signal.raise_signal(signal.SIGTERM)
        try:
            cancel.sleep(60)
        except Interrupted:
            cancel.check()  # this is the way out
            signal.raise_signal(signal.SIGTERM)
            with guard.shielded():
                signal.raise_signal(signal.SIGINT)
            raise
    assert len(held_back) == 2
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_while_undoing_cancels_neither_that_nor_what_follows():
    held_back = []
    with InterruptGuard(held_back.append) as guard:
        with guard.shielded():
            signal.raise_signal(signal.SIGINT)
            cancel.sleep(0.01)
        cancel.check()
    assert len(held_back) == 1


def test_a_terminal_that_goes_ends_the_work_but_not_under_nohup():
    before = signal.getsignal(signal.SIGHUP)
    with pytest.raises(Interrupted, match="SIGHUP"), InterruptGuard(lambda text: None):
        signal.raise_signal(signal.SIGHUP)
        cancel.sleep(60)
    assert signal.getsignal(signal.SIGHUP) == before
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with InterruptGuard(pytest.fail):
            signal.raise_signal(signal.SIGHUP)
            cancel.check()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_that_nothing_waited_for_is_raised_at_the_end():
    with pytest.raises(Interrupted, match="SIGINT"), InterruptGuard(lambda text: None):
        signal.raise_signal(signal.SIGINT)


def test_a_command_is_ended_by_a_signal():
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGTERM])
    commands = []
    with pytest.raises(Interrupted), InterruptGuard(lambda text: None):
        timer.start()
        Runner(commands.append).run(["sleep", "60"])
    assert commands == []


def test_another_thread_ends_the_work():
    held_back = []
    reason = BudgetSpent("enough")
    with pytest.raises(BudgetSpent) as raised, InterruptGuard(held_back.append) as guard:
        thread = threading.Timer(0.01, guard.stop, [reason])
        thread.start()
        try:
            cancel.sleep(60)
        finally:
            signal.raise_signal(signal.SIGINT)
            thread.join()
    assert raised.value is reason
    assert len(held_back) == 1


def test_what_is_being_undone_is_not_ended_by_another_thread():
    with InterruptGuard(lambda text: None) as guard:
        with guard.shielded():
            thread = threading.Thread(target=guard.stop, args=[BudgetSpent("enough")])
            thread.start()
            thread.join()
            cancel.check()
        cancel.check()


def test_a_storage_that_broke_cancels_a_trial_and_what_follows_continues():
    held_back = []
    with pytest.raises(Interrupted, match="SIGINT"), InterruptGuard(held_back.append):
        reason = StorageBroken("slow", "its daemon died")
        threads: list[threading.Thread] = []
        with pytest.raises(StorageBroken) as raised, cancel.scope() as token:
            threads.append(threading.Timer(0.01, token.cancel, [reason]))
            threads[0].start()
            cancel.sleep(60)
        assert raised.value is reason
        threads[0].join()
        signal.raise_signal(signal.SIGINT)  # not held back: this is not the way out
        cancel.sleep(60)
    assert held_back == []


def test_what_is_held_back_is_told_by_another_thread_than_the_one_that_writes():
    writing, told = threading.Lock(), []

    def tell(text: str) -> None:
        with writing:
            told.append(text)

    with InterruptGuard(tell) as guard, guard.shielded(), writing:
        signal.raise_signal(signal.SIGINT)
    assert len(told) == 1
