"""The ledgers of commits of all agents, collected into the folder that the load was to write."""

from collections.abc import Sequence
from pathlib import Path

from plinth.fleet.asking import ask_each
from plinth.fleet.executors import Started
from plinth.fleet.protocol import LedgerPiece, ProtocolError, Request
from plinth.workload.commit_ledger import by_another_clock


def collect_ledgers(agents: Sequence[Started], clock_offsets_ns: Sequence[int], folder: Path) -> None:
    """Write the files of all agents, as one engine with all threads would have, with times of this machine's monotonic clock.

    A clock's offset is the agent's clock minus this one. Raises RunError.
    """
    left = [_Collecting(agent, offset_ns) for agent, offset_ns in zip(agents, clock_offsets_ns, strict=True)]
    while left:  # all in turn, so that none waits longer than its lease
        replies = ask_each([one.agent for one in left], [one.request() for one in left], LedgerPiece)
        for one, (piece, binary) in zip(left, replies, strict=True):
            one.take(piece, binary, folder)
        left = [one for one in left if not one.is_done]


class _Collecting:
    """How far one agent's files are."""

    def __init__(self, agent: Started, clock_offset_ns: int) -> None:
        self.agent = agent
        self.is_done = False
        self._clock_offset_ns = clock_offset_ns
        self._number = 0
        self._content = bytearray()

    def request(self) -> Request:
        """For the next piece."""
        return Request(kind="ledger", number=self._number, offset=len(self._content))

    def take(self, piece: LedgerPiece, binary: bytes, folder: Path) -> None:
        """Add a piece; a whole file is written."""
        if not (binary or piece.is_last):
            raise ProtocolError(f"the agent on {self.agent.name} has sent no piece of a ledger")
        self._content += binary
        if not piece.is_last:
            return
        content = by_another_clock(bytes(self._content), -self._clock_offset_ns, f"machine {self.agent.name}")
        file = folder / f"{piece.thread}.ledger"
        if file.exists():
            raise ProtocolError(
                f"the agent on {self.agent.name} has sent the ledger of thread {piece.thread}, which is there"
            )
        file.write_bytes(content)
        self._content.clear()
        self._number += 1
        self.is_done = self._number >= piece.files
