"""The server's log: kept whole, and its last lines shown when something went wrong."""

from pathlib import Path

TAIL_LINES = 20
_TAIL_BYTES = 64 * 1024


class ServerLog:
    """What is appended to the file at `path` from now on; earlier starts have written to it, too."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._begin_bytes = path.stat().st_size if path.exists() else 0

    def tail(self, lines: int = TAIL_LINES) -> tuple[str, ...]:
        """The last lines."""
        if not self.path.exists():
            return ()
        with self.path.open("rb") as log:
            log.seek(max(self._begin_bytes, self.path.stat().st_size - _TAIL_BYTES))
            return tuple(log.read().decode(errors="replace").splitlines()[-lines:])
