"""Ends commands that are interrupted or whose output cannot be written."""

import errno
import os
import signal
import sys
from collections.abc import Callable

from plinth import exit_codes

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def run_with_output(command: Callable[[], int]) -> int:
    """Run a command and flush standard output; return its exit code, or an error's if the output could not be written.

    Nothing is printed when the reader has closed the pipe, as in `plinth plan | head`.
    """
    try:
        code = command()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _discard_buffers()
        return exit_codes.BROKEN_PIPE
    except OSError as error:
        if error.errno not in _NO_ROOM or error.filename is not None:
            raise
        _discard_buffers()
        from plinth.cli.printing import print_plain

        print_plain(f"error: cannot write the output: {error.strerror}", file=sys.stderr)
        return exit_codes.FAILED


def _discard_buffers() -> None:
    """Discard the buffers of standard output, which would otherwise fail again when Python exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def die_interrupted() -> None:
    """End this process by SIGINT with its default action, so that a shell also ends the loop around the command."""
    sys.stdout.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
