"""The ledger of commits that an agent's engine writes, until the coordinator has it."""

import os
import shutil
import tempfile
from pathlib import Path

from plinth.fleet.protocol import LedgerPiece
from plinth.model.errors import PlinthError

_PIECE_BYTES = 2**20


class AgentLedger:
    """A folder for the engine's files. They lose their names once they are open, so that nothing is left of an agent that is killed."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="plinth-agent-"))
        self._files: list[tuple[int, int]] = []

    def hold(self) -> None:
        """Keep the files, which the engine has made, without their folder."""
        for path in sorted(self.folder.glob("*.ledger")):
            self._files.append((int(path.stem), os.open(path, os.O_RDONLY | os.O_CLOEXEC)))
        shutil.rmtree(self.folder)

    def piece(self, number: int, offset: int) -> tuple[LedgerPiece, bytes]:
        """Return bytes of the file with this number, from 0, and which it is. Raises PlinthError for one that there is not."""
        if not (0 <= number < len(self._files) and offset >= 0):
            raise PlinthError(f"the agent has {len(self._files)} files of a ledger, and none with the number {number}")
        thread, descriptor = self._files[number]
        content = os.pread(descriptor, _PIECE_BYTES, offset)
        is_last = offset + len(content) >= os.fstat(descriptor).st_size
        return LedgerPiece(thread=thread, files=len(self._files), is_last=is_last), content

    def close(self) -> None:
        """Give up all of it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for _, descriptor in self._files:
            os.close(descriptor)
        self._files.clear()
