"""The server's log: kept whole, and its last lines shown when something went wrong."""

from plinth.system.log_file import LogFile

TAIL_LINES = 20
_TAIL_BYTES = 64 * 1024
_CRASHES = (" was terminated by signal ", " exited with exit code ", "PANIC:")  # postmaster.c, LogChildExit; elog.c
_REFUSED = "FATAL:  the database system is "  # postmaster.c: starting up, in recovery mode, shutting down


class ServerLog:
    """Reads what is appended to `log` from now on; earlier starts have written to it, too."""

    def __init__(self, log: LogFile) -> None:
        self.path = log.path
        self._log = log
        self._begin_bytes = log.size_bytes()

    def tail(self, lines: int = TAIL_LINES) -> tuple[str, ...]:
        """The last lines."""
        return tuple(self._log.tail(_TAIL_BYTES, self._begin_bytes).splitlines()[-lines:])

    def crash(self, lines: int = TAIL_LINES) -> tuple[str, ...]:
        """The first line of the last crash of a server process and those after it; the last lines where there is none.

        Connections that were refused while the server recovered are left out.
        """
        log = [line for line in self.tail(_TAIL_BYTES) if _REFUSED not in line]
        crashes = [number for number, line in enumerate(log) if any(crash in line for crash in _CRASHES)]
        return tuple(log[crashes[-1] :][:lines]) if crashes else tuple(log[-lines:])
