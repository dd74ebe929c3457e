"""Handles standard streams that were closed when the process started (`2>&-`)."""

import io
import os
import sys

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
