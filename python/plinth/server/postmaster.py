"""The postmaster of a managed server as a child process, and its log: xlogrecovery.c and postmaster.c of PostgreSQL have the messages."""

import errno
import os
import re
import signal
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from time import monotonic

from plinth.model.errors import RunError
from plinth.model.recovery import Recovery
from plinth.server.layout import ServerLayout
from plinth.system.log_file import LogFile
from plinth.system.process import all_exit
from plinth.system.regular_file import read_small_file
from plinth.system.runner import Runner

START_TIMEOUT_S = 300.0  # recovery after a crash may have much to read
_NO_RESPONSE_S = 5.0
_LOOK_AGAIN_S = 0.02
TAIL_LINES = 20
_TAIL_BYTES = 64 * 1024
# Of a recovery of minutes, in which every attempt to connect is refused with a line.
_RECOVERY_LINES, _RECOVERY_BYTES = 100_000, 4 * 2**20
_CRASHES = (" was terminated by signal ", " exited with exit code ", "PANIC:")  # postmaster.c, LogChildExit; elog.c
_REFUSED = "FATAL:  the database system is "  # postmaster.c: starting up, in recovery mode, shutting down
_STATUS_LINE = 7  # of postmaster.pid: LOCK_FILE_LINE_PM_STATUS of miscadmin.h, counted from 0
_IO_URING_FAILED = ("could not setup io_uring queue", "could not register io_uring")
_IO_URING_DISABLED = Path("/proc/sys/kernel/io_uring_disabled")
_NO_IO_URING = 'or take io_method = "worker"'
# With the log_line_prefix of PostgreSQL, '%m [%p] '. All lines of a start have one time zone.
_LINE = re.compile(r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) \S+ \[\d+\] LOG:  (?P<message>.*)")
_LSN = r"(?P<high>[0-9A-F]{1,8})/(?P<low>[0-9A-F]{1,8})"
_BEGINS = re.compile(r"starting PostgreSQL \d+")
_REDO_BEGINS = re.compile(rf"redo starts at {_LSN}")
_REDO_ENDS = re.compile(rf"redo done at {_LSN}")
_NO_REDO = "redo is not required"
_READY = "database system is ready to accept connections"


class StartTooLong(RunError):
    """A running server that does not accept connections in time, for example because its recovery has much to read."""


class Postmaster:
    """A postmaster that has been started; `log` begins with this start."""

    def __init__(self, layout: ServerLayout, runner: Runner) -> None:
        step = layout.start_step()
        assert step.argv is not None  # it is a command
        self._data_directory = layout.data_directory
        self._version = layout.installation.version
        self._log = ServerLog(layout.log)
        group = layout.memory_group
        # There from its first instant, since the journal knows a server by the directory that it works in.
        self._process = runner.spawn(
            step.argv,
            owner=layout.owner if layout.place is None else None,
            cwd=layout.data_directory,
            env=None if layout.place is None else layout.owner.named_in_environment(),
            log=layout.log,
            at_gate=None if group is None else group.enter,
        )

    @property
    def pid(self) -> int:
        """Return its pid, which no other process gets before `reap`."""
        return self._process.pid

    def alive(self) -> bool:
        """Return whether it runs."""
        return not self._process.has_ended()

    def check_alive(self) -> None:
        """Raise RunError, with the log's last lines, when it has ended."""
        if not self.alive():
            raise self._failed(self._ending())

    def wait_until_ready(self, limit_s: float = START_TIMEOUT_S) -> None:
        """Wait until connections are taken. Raises RunError when it ends before, StartTooLong when it takes longer than
        `limit_s`."""
        deadline = monotonic() + limit_s
        while not self._says_ready():
            if not self._runs_on():
                raise self._failed(f"did not come up: it {self._ending()}")
            if monotonic() > deadline:
                failed = self._failed(f"did not come up within {limit_s:g} s")
                raise StartTooLong(failed.message, where=failed.where, details=failed.details, hint=failed.hint)

    def wait_out_recovery(self, conninfo: str, lost_backend: int | None = None) -> None:
        """Wait while no connections are taken since the server recovers, as from a backend that has crashed; not indefinitely.

        PostgreSQL 18 that is told to shut down while it recovers so never ends (seen with 18.6). A server that does not answer at
        all may have just ended the session that asked, or hang: it is asked for a few seconds only.
        """
        from psycopg.pq import PGconn, Ping

        begun = monotonic()
        # Until the postmaster has seen its end, it takes connections as if nothing had happened.
        while lost_backend is not None and Path(f"/proc/{lost_backend}").exists():
            if monotonic() - begun > _NO_RESPONSE_S or not self._runs_on():
                return
        limits_s = {int(Ping.REJECT): START_TIMEOUT_S, int(Ping.NO_RESPONSE): _NO_RESPONSE_S}
        while (answer := PGconn.ping(conninfo.encode())) in limits_s:
            if monotonic() - begun > limits_s[answer] or not self._runs_on():
                return

    def pause(self) -> None:
        """Wait a moment, at most until it ends, which raises RunError: between two looks at something it is to do."""
        if not self._runs_on():
            self.check_alive()

    def reap(self) -> None:
        """Wait for its end and reap it."""
        self._process.wait()

    def log_tail(self, lines: int = TAIL_LINES) -> tuple[str, ...]:
        """Return the last lines that it logged."""
        return self._log.tail(lines)

    def recovery(self) -> Recovery | None:
        """Return how it recovered at its start; None where it had nothing to recover from, or its log does not say."""
        return recovery_of(self._log.tail(_RECOVERY_LINES, _RECOVERY_BYTES))

    def log_crash(self) -> tuple[str, ...]:
        """Return what it logged of the last crash of one of its processes, and after it."""
        return self._log.crash()

    def _runs_on(self) -> bool:
        """Return whether it still runs after a moment; returns at once when it ends."""
        if not self.alive():
            return False
        pidfd = os.pidfd_open(self.pid)
        try:
            return not all_exit([pidfd], _LOOK_AGAIN_S)
        finally:
            os.close(pidfd)

    def _says_ready(self) -> bool:
        """Return whether postmaster.pid is this postmaster's, not left from a crash, and says so."""
        try:
            lines = read_small_file(self._data_directory / "postmaster.pid").decode(errors="replace").splitlines()
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ELOOP, errno.EINVAL):
                raise
            return False  # it is not there yet; or what is there is none that a server wrote
        return lines[:1] == [str(self.pid)] and len(lines) > _STATUS_LINE and lines[_STATUS_LINE].strip() == "ready"

    def _failed(self, how: str) -> RunError:
        said = self.log_tail()
        hint = io_uring_hint(said)
        return RunError(f"PostgreSQL {self._version} {how}", where=str(self._log.path), details=said, hint=hint)

    def _ending(self) -> str:
        code = self._process.wait()
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


class ServerLog:
    """Reads what is appended to `log` from now on; earlier starts have written to it, too."""

    def __init__(self, log: LogFile) -> None:
        self.path = log.path
        self._log = log
        self._begin_bytes = log.size_bytes()

    def tail(self, lines: int = TAIL_LINES, most_bytes: int = _TAIL_BYTES) -> tuple[str, ...]:
        """Return the last lines."""
        return tuple(self._log.tail(most_bytes, self._begin_bytes).splitlines()[-lines:])

    def crash(self, lines: int = TAIL_LINES) -> tuple[str, ...]:
        """Return the first line of the last crash of a server process and those after it; the last lines where there is none.

        Connections that were refused while the server recovered are left out.
        """
        log = [line for line in self.tail(_TAIL_BYTES) if _REFUSED not in line]
        crashes = [number for number, line in enumerate(log) if any(crash in line for crash in _CRASHES)]
        return tuple(log[crashes[-1] :][:lines]) if crashes else tuple(log[-lines:])


def recovery_of(lines: Iterable[str]) -> Recovery | None:
    """Return how the server whose log this is recovered when it was started last; None where it had nothing to recover from, and of a log
    with another prefix or language."""
    began: datetime | None = None
    redo_from: tuple[datetime, int] | None = None
    redo_to: tuple[datetime, int] | None = None
    ready: datetime | None = None
    for line in lines:
        match = _LINE.fullmatch(line.rstrip())
        if match is None:
            continue
        time, message = datetime.fromisoformat(match["time"]), match["message"]
        if _BEGINS.match(message):
            began, redo_from, redo_to, ready = time, None, None, None
        elif found := _REDO_BEGINS.match(message):
            redo_from = time, _position(found)
        elif found := _REDO_ENDS.match(message):
            redo_to = time, _position(found)
        elif message.startswith(_NO_REDO):
            redo_from = redo_to = time, 0
        elif message.startswith(_READY) and ready is None:
            ready = time
    if began is None or redo_from is None or redo_to is None or ready is None:
        return None
    times = [began, redo_from[0], redo_to[0], ready]
    if times != sorted(times):  # the clock was set
        return None
    return Recovery(
        before_redo_s=(redo_from[0] - began).total_seconds(),
        redo_s=(redo_to[0] - redo_from[0]).total_seconds(),
        redo_bytes=max(0, redo_to[1] - redo_from[1]),
        after_redo_s=(ready - redo_to[0]).total_seconds(),
    )


def _position(match: re.Match[str]) -> int:
    """Return a position of the WAL in bytes."""
    return (int(match["high"], 16) << 32) + int(match["low"], 16)


def io_uring_hint(log: Sequence[str], disabled: Path = _IO_URING_DISABLED) -> str | None:
    """Return what to do about io_uring where the last lines of a server's log say that it could not be set up.

    `disabled` is the kernel's setting: 1, for privileged processes and members of kernel.io_uring_group only; 2, for none
    (Documentation/admin-guide/sysctl/kernel.rst).
    """
    said = next((line for line in reversed(log) if any(words in line for words in _IO_URING_FAILED)), None)
    if said is None:
        return None
    try:
        setting = disabled.read_text().strip()
    except OSError:
        setting = "0"
    if setting in ("1", "2"):
        return f"kernel.io_uring_disabled = {setting} forbids it: `sysctl kernel.io_uring_disabled=0` allows it, {_NO_IO_URING}"
    if "Cannot allocate memory" in said:
        return f"its memory counts as locked: raise the limit (ulimit -l), {_NO_IO_URING}"
    return f"a filter of system calls, as that of a container, may forbid it (seccomp), {_NO_IO_URING}"
