"""The client of a daemon's control socket: one JSON object a line, each answered by one.

docs/internals/emulated-disk.md has the protocol.
"""

import json
import socket
from pathlib import Path
from typing import Any

from plinth.model.errors import PlinthError, RunError, UsageError
from plinth.system.unix_socket import check_socket_path


class DaemonControl:
    """Commands to a daemon. Each opens a connection of its own, and is done when it returns.

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
