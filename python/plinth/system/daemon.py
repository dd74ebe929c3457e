"""Daemons of Plinth: started as commands, found by their own arguments, asked on their control sockets.

A daemon prints a line of JSON with "ready": true once it answers.
"""

import json
import os
import select
import socket
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from plinth.model.errors import MissingCapability, PlinthError, RunError, UsageError
from plinth.system import cancel
from plinth.system.log_file import LogFile
from plinth.system.paths import check_socket_path
from plinth.system.process import Child, arguments
from plinth.system.runner import Runner

ANSWER_TIMEOUT_S = 5.0
_READY_TIMEOUT_S = 30.0
_LOOK_AGAIN_S = 0.01
_LOG_LINES = 5
_READY = b'"ready": true'


class Daemon(NamedTuple):
    """A process that serves something, and its control socket."""

    pid: int
    control: Path

    def answers(self) -> bool:
        """Return whether it answers on its control socket."""
        try:
            return self._ask()
        except OSError:
            return False

    def hangs(self) -> bool:
        """Return whether it was asked and did not answer. A daemon that just starts or ends cannot be asked: it does not
        count as hung."""
        try:
            self._ask()
        except (TimeoutError, BlockingIOError):  # EAGAIN when too many connections wait
            return True
        except OSError:
            return False
        return False

    def _ask(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(ANSWER_TIMEOUT_S)
            connection.connect(str(self.control))
            connection.sendall(b'{"command": "status"}\n')
            return bool(connection.recv(1))


def find_daemons(words: Collection[str], options: Mapping[str, str]) -> list[Daemon]:
    """Return the processes whose arguments have all of `words`, and each option with its value."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        given = arguments(process)
        if not all(word in given for word in words):
            continue
        control = _after("--control", given)
        if control is not None and all(_after(option, given) == value for option, value in options.items()):
            found.append(Daemon(int(process.name), Path(control)))
    return found


def start_daemon(argv: tuple[str, ...], log: LogFile, runner: Runner) -> None:
    """Start a daemon that writes to a new `log`, and wait until it is ready. Raises its own error when it ends before."""
    daemon = runner.spawn(argv, log=log)
    pidfd = os.pidfd_open(daemon.pid)
    try:
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while _READY not in log.path.read_bytes():
            if cancel.poll({pidfd: select.POLLIN}, _LOOK_AGAIN_S):
                raise _not_served(daemon, log.path)
            if time.monotonic() > deadline:
                raise RunError(f"not ready within {_READY_TIMEOUT_S:g} s", where=str(log.path))
    finally:
        os.close(pidfd)


def log_tail(log: Path) -> str:
    """Return the end of a daemon's log."""
    try:
        return " | ".join(log.read_text(errors="replace").splitlines()[-_LOG_LINES:])
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _not_served(daemon: Child, log: Path) -> RunError | MissingCapability | UsageError:
    """Return the daemon's own error, with the exit code that it chose."""
    exit_code = daemon.wait()
    kind = {5: MissingCapability, 2: UsageError}.get(exit_code, RunError)
    lines = log.read_text(errors="replace").splitlines()
    return kind(f"the daemon ended with exit code {exit_code}", where=str(log), details=lines[-_LOG_LINES:])


def _after(option: str, words: list[str]) -> str | None:
    return words[words.index(option) + 1] if option in words[:-1] else None


class DaemonControl:
    """Commands to a daemon. Each opens a new connection, and is done when it returns.

    `served` is what the daemon serves, such as "emulated disk"; `hint` says how to end it.
    """

    served: str
    hint: str

    def __init__(self, path: Path, *, timeout_s: float = 10.0) -> None:
        self.path = path
        self.timeout_s = timeout_s

    def _ask(self, command: str, timeout_s: float | None = None, **arguments: Any) -> dict[str, Any]:
        """Execute a command. Raises RunError when the daemon is not there or does not answer in time, UsageError when it refuses."""
        timeout_s = self.timeout_s if timeout_s is None else timeout_s
        line = json.dumps({"command": command, **arguments}).encode() + b"\n"
        try:
            answer = self._exchange(line, timeout_s)
        except TimeoutError as error:
            raise self._failure(f"did not answer {command!r} within {timeout_s:g} s: it hangs") from error
        except (FileNotFoundError, ConnectionRefusedError) as error:
            raise self._failure("is not running") from error
        except OSError as error:
            raise self._failure(f"cannot be asked: {error.strerror or error}") from error
        if not answer.endswith(b"\n"):
            raise self._failure(f"went away without an answer to {command!r}")
        parts = json.loads(answer)
        if not parts.pop("ok"):
            noun = self.served.split()[-1]
            raise UsageError(f"the {noun} refuses {command!r}: {parts['error']}", where=str(self.path))
        return parts

    def _exchange(self, line: bytes, timeout_s: float) -> bytes:
        check_socket_path(self.path)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_s)
            connection.connect(str(self.path))
            connection.sendall(line)
            connection.shutdown(socket.SHUT_WR)
            received = bytearray()
            while chunk := connection.recv(65536):
                received += chunk
            return bytes(received)

    def _failure(self, what: str) -> PlinthError:
        return RunError(f"the {self.served}'s daemon {what}", where=str(self.path), hint=self.hint)
