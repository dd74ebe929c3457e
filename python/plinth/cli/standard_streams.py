"""Handles standard streams that were closed when the process started (`2>&-`), and commands that are interrupted or whose output
cannot be written."""

import errno
import io
import os
import signal
import sys
from collections.abc import Callable

from plinth import exit_codes

_STREAMS = {0: "stdin", 1: "stdout", 2: "stderr"}


def open_standard_streams() -> list[str]:
    """Open /dev/null on each standard descriptor that is closed; return the names of the closed outputs.

    sys.stdin stays None, as Python has it, so that a command that is to read from it can say so.

    Otherwise the next file to be opened, a journal or a server's log, would get the number, and all that a library or a
    child writes to standard error would get into it.
    """
    closed = [number for number in _STREAMS if _open_null_if_closed(number)]
    outputs = [_STREAMS[number] for number in closed if number != 0]
    for name in outputs:
        _reopen(name)
    return outputs


def escape_unencodable() -> None:
    """Write characters that the encoding of standard output lacks as escapes such as `\\xb2`, and is no error."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _open_null_if_closed(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, os.O_RDWR)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        os.set_inheritable(number, True)
        return True
    return False


def _reopen(name: str) -> None:
    number = next(number for number, one in _STREAMS.items() if one == name)
    stream = open(number, "w", closefd=False, errors="backslashreplace")  # noqa: SIM115 - as long as the process
    setattr(sys, name, stream)
    setattr(sys, f"__{name}__", stream)


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
