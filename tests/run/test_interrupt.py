"""Signals in a run: raised where work may stop, also where Python would lose them."""

import os
import signal
import threading

import pytest

from plinth.model.errors import Interrupted
from plinth.run.interrupt import InterruptGuard


def test_a_signal_is_raised_once_and_then_held_back():
    told = []
    with InterruptGuard(told.append) as guard:
        with pytest.raises(Interrupted, match="SIGTERM"):
            signal.raise_signal(signal.SIGTERM)
        with guard.shielded():
            signal.raise_signal(signal.SIGINT)
    assert len(told) == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_in_a_callback_of_fork_is_not_lost():
    """What such a callback raises is only printed by Python: the run went on as if nobody had pressed Ctrl-C."""
    armed = [True]

    def in_parent():
        if armed.pop():
            signal.raise_signal(signal.SIGINT)
        armed.append(False)

    os.register_at_fork(after_in_parent=in_parent)
    with InterruptGuard(lambda text: None):
        with pytest.raises(Interrupted, match="SIGINT"):
            child = os.fork()
            if child == 0:
                os._exit(0)
            threading.Event().wait(10)
        os.waitpid(child, 0)
