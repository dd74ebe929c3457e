"""How a command ends that is cut short from outside."""

import errno
import os
import signal
import sys
from collections.abc import Callable

FAILED = 1
BROKEN_PIPE = 141
INTERRUPTED = 130
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def with_output(command: Callable[[], int]) -> int:
    """Run a command whose results must reach standard output; returns its exit code, or that of their not arriving.

    When the reader is gone, as in `plinth plan | head`, nothing is said: there is nobody to hear it.
    """
    try:
        code = command()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _write_no_more()
        return BROKEN_PIPE
    except OSError as error:
        if error.errno not in _NO_ROOM or error.filename is not None:
            raise
        _write_no_more()
        from plinth.cli.plain import print_plain

        print_plain(f"error: cannot write the output: {error.strerror}", file=sys.stderr)
        return FAILED


def _write_no_more() -> None:
    """What is still in buffers must not fail once more when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def die_interrupted() -> None:
    """End by SIGINT, as programs do that know nothing of it: a shell's loop around them ends only then."""
    sys.stdout.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
