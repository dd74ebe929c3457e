"""Reads the output of a command until it ends, times out, or the work is cancelled."""

import os
import select
import subprocess
from time import monotonic

from plinth.system import cancel

_CHUNK_BYTES = 65536


class CommandPipes:
    """A command with pipes, its input, and its output so far.

    Not `Popen.communicate`, which waits for nothing but the pipes: a cancelled work would wait until they are closed.
    """

    def __init__(self, process: subprocess.Popen[bytes], input_bytes: bytes | None) -> None:
        self._process = process
        assert process.stdout is not None
        assert process.stderr is not None
        self._output = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
        self._open = dict.fromkeys(self._output, select.POLLIN)
        self._input = memoryview(input_bytes or b"")
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            self._open[process.stdin.fileno()] = select.POLLOUT

    def communicate(self, timeout_s: float | None) -> bool:
        """Whether it has closed its pipes and ended within `timeout_s`; None waits for as long as it takes.

        Raises the reason when the work is cancelled; the command keeps running.
        """
        deadline = None if timeout_s is None else monotonic() + timeout_s
        while self._open:
            came = cancel.poll(self._open, _left_s(deadline))
            if not came and _is_over(deadline):
                return False
            for descriptor in came:
                self._serve(descriptor)
        return self._is_reaped(deadline)

    def output(self) -> tuple[bytes, bytes]:
        """Return stdout and stderr so far."""
        stdout, stderr = self._output.values()
        return bytes(stdout), bytes(stderr)

    def close(self) -> None:
        """Close the pipes."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _serve(self, descriptor: int) -> None:
        if descriptor not in self._output:
            self._send(descriptor)
        elif chunk := os.read(descriptor, _CHUNK_BYTES):
            self._output[descriptor] += chunk
        else:
            del self._open[descriptor]

    def _send(self, descriptor: int) -> None:
        try:
            self._input = self._input[os.write(descriptor, self._input[:_CHUNK_BYTES]) :]
        except BrokenPipeError:  # it has closed its standard input
            self._input = memoryview(b"")
        if not self._input:
            del self._open[descriptor]
            assert self._process.stdin is not None
            self._process.stdin.close()

    def _is_reaped(self, deadline: float | None) -> bool:
        if self._process.poll() is not None:
            return True
        pidfd = os.pidfd_open(self._process.pid)
        try:
            while not cancel.poll({pidfd: select.POLLIN}, _left_s(deadline)):
                if _is_over(deadline):
                    return False
        finally:
            os.close(pidfd)
        self._process.wait()
        return True


def _left_s(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - monotonic())


def _is_over(deadline: float | None) -> bool:
    return deadline is not None and monotonic() >= deadline
