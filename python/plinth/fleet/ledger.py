"""The commit ledgers of all agents, collected into the folder that the load was to write."""

from collections.abc import Sequence
from pathlib import Path

from plinth.fleet.asking import ask_each
from plinth.fleet.executors.executor import Started
from plinth.fleet.protocol import LedgerPiece, Request
from plinth.fleet.split import threads_of
from plinth.model.load_config import LoadConfig
from plinth.system.framed_tls import ProtocolError
from plinth.workload.commit_ledger import by_another_clock

_MOST_BYTES = 2**32
"""Of one file: more than a hundred million commits of one thread. Each is in memory until it is whole."""


def collect_ledgers(
    agents: Sequence[Started], parts: Sequence[LoadConfig], clock_offsets_ns: Sequence[int], folder: Path
) -> None:
    """Write the files of all agents, as one engine with all threads would have, with times of this machine's monotonic clock.

    `parts` are those of the load; a clock's offset is the agent's clock minus this one. Raises RunError.
    """
    left = [
        _Collecting(agent, set(threads_of(part)), offset_ns)
        for agent, part, offset_ns in zip(agents, parts, clock_offsets_ns, strict=True)
    ]
    while left:  # all in turn, so that none waits longer than its lease
        replies = ask_each([one.agent for one in left], [one.request() for one in left], LedgerPiece)
        for one, (piece, binary) in zip(left, replies, strict=True):
            one.take(piece, binary, folder)
        left = [one for one in left if not one.is_done]


class _Collecting:
    """How far one agent's files are."""

    def __init__(self, agent: Started, threads: set[int], clock_offset_ns: int) -> None:
        self.agent = agent
        self.is_done = False
        self._threads = threads
        self._clock_offset_ns = clock_offset_ns
        self._number = 0
        self._content = bytearray()

    def request(self) -> Request:
        """Return the request for the next piece."""
        return Request(kind="ledger", number=self._number, offset=len(self._content))

    def take(self, piece: LedgerPiece, binary: bytes, folder: Path) -> None:
        """Add a piece; a whole file is written."""
        if piece.thread not in self._threads or not (binary or piece.is_last):
            raise ProtocolError(f"the agent on {self.agent.name} has sent a piece of another agent's ledger")
        if len(self._content) + len(binary) > _MOST_BYTES:
            raise ProtocolError(f"the agent on {self.agent.name} has sent more of a ledger than any load writes")
        self._content += binary
        if not piece.is_last:
            return
        content = by_another_clock(bytes(self._content), -self._clock_offset_ns, f"machine {self.agent.name}")
        with (folder / f"{piece.thread}.ledger").open("xb") as file:
            file.write(content)
        self._threads.remove(piece.thread)
        self._content.clear()
        self._number += 1
        self.is_done = self._number >= piece.files
