"""The end of processes that end by themselves with their connections."""

import contextlib
import os
import select
import signal
from collections.abc import Sequence

from plinth.system import cancel
from plinth.system.process import Child, all_exit

_END_TIMEOUT_S = 3.0
"""An agent needs 2 s for a load that does not end."""


def end_children(children: Sequence[Child], timeout_s: float = _END_TIMEOUT_S) -> None:
    """Wait for processes whose connections are closed, and kill those that do not end by themselves within `timeout_s`."""
    with cancel.masked(), contextlib.ExitStack() as stack:
        descriptors = [os.pidfd_open(child.pid) for child in children]
        for descriptor in descriptors:
            stack.callback(os.close, descriptor)
        if not all_exit(descriptors, timeout_s):
            for child, descriptor in zip(children, descriptors, strict=True):
                if not select.select([descriptor], [], [], 0)[0]:
                    os.kill(child.pid, signal.SIGKILL)  # a stopped one takes no other
        for child in children:
            child.wait()
