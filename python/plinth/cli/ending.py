"""How a command ends that is cut short from outside."""

import os
import signal
import sys

BROKEN_PIPE = 141
INTERRUPTED = 130


def nobody_reads() -> int:
    """The exit code when the reader of our output is gone, as in `plinth plan | head`; nothing more is written to it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE


def die_interrupted() -> None:
    """End by SIGINT, as programs do that know nothing of it: a shell's loop around them ends only then."""
    sys.stdout.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
