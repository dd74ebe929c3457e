"""Reads kernel messages during an operation, which explain failures of mount(2) and mkfs."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_KMSG = "/dev/kmsg"  # one record at a time: "priority,sequence,time,flags;message" (Documentation/ABI/testing/dev-kmsg)
_RECORD_MAX_BYTES = 8192


@contextmanager
def kernel_log() -> Iterator[Callable[[], list[str]]]:
    """Yield a function that returns the lines that the kernel has logged since; none where we may not read its log."""
    try:
        log = os.open(_KMSG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        yield list
        return
    try:
        os.lseek(log, 0, os.SEEK_END)
        yield lambda: list(_read_on(log))
    finally:
        os.close(log)


def _read_on(log: int) -> Iterator[str]:
    while True:
        try:
            record = os.read(log, _RECORD_MAX_BYTES)
        except BlockingIOError:
            return
        except BrokenPipeError:  # records were overwritten before they were read
            continue
        yield record.decode(errors="replace").partition(";")[2].partition("\n")[0]
