"""The replay file of a recorded workload: a coordinator sends it to its agents, which keep it without a name."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from plinth.fleet.asking import ask_all
from plinth.fleet.executors.executor import Started
from plinth.fleet.protocol import Done, Request
from plinth.model.errors import MissingCapability
from plinth.system import cancel
from plinth.system.failures import from_os_error

_PIECE_BYTES = 2**20
"""All agents get a piece before the first gets the next, within the lease of each."""


def send_recording(agents: Sequence[Started], file: Path) -> None:
    """Send a replay file to all agents. Raises RunError, or MissingCapability where it cannot be read here or kept there."""
    try:
        with file.open("rb") as opened:
            while piece := opened.read(_PIECE_BYTES):
                cancel.check()
                ask_all(agents, Request(kind="recording"), Done, binary=piece)
    except OSError as error:
        raise from_os_error(error, "read the replay file", file) from error


class AgentRecording:
    """A replay file as it arrives. It has no name, so that nothing is left of an agent that is killed, and nobody else can open it."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(buffering=0, prefix="plinth-agent-")  # noqa: SIM115 - it lasts as long as the agent

    @property
    def path(self) -> str:
        """Path by which this process can open it."""
        return f"/proc/self/fd/{self._file.fileno()}"

    def add(self, piece: bytes) -> None:
        """Keep the next bytes. Raises MissingCapability where they cannot be written."""
        left = memoryview(piece)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            raise MissingCapability(
                f"cannot keep the replay file in {tempfile.gettempdir()}: {error.strerror}",
                hint="TMPDIR names another folder",
            ) from error

    def close(self) -> None:
        """Give it up."""
        self._file.close()
