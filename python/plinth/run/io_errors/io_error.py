"""One error of a storage: the load runs, the storage fails and works again, the server is watched, and commits are looked for."""

import contextlib
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from plinth.load import LoadDriver
from plinth.model.errors import Interrupted, PlinthError
from plinth.model.io_error import CameBack, IoErrorResult, IoErrorSpec, PlannedIoError, ServerAnswer
from plinth.model.load import LoadResult
from plinth.run.faults.power import Power
from plinth.run.faults.recovery_check import CutState, Findings, check_recovered, start_server
from plinth.run.faulty_storage import Failing, Struck
from plinth.run.power_cuts.power_cut import CutSubject, await_first_commit, run_for
from plinth.run.trial.load_config import STOP_TIMEOUT_S
from plinth.system import cancel
from plinth.system.database import connect, connect_unpinned, database_errors
from plinth.workload.commit_ledger import read_commit_ledger
from plinth.workload.survival import prepare_commits

_BEFORE_S = 0.5
_POLL_S = 0.05
_CHECKPOINT, _BETWEEN_CHECKPOINTS_S = "CHECKPOINT", 0.3
_SWITCH, _BETWEEN_SWITCHES_S = "SELECT pg_switch_wal()", 0.02
_LOG_BYTES = 64 * 2**20
_CRASHED = "all server processes terminated; reinitializing"
_MOST_SAID = 6
_MOST_CLIENTS = 6
_SEVERITIES: tuple[ServerAnswer, ...] = ("PANIC", "FATAL", "ERROR")
_ERRNO = "Input/output error|No space left on device|Read-only file system|Structure needs cleaning|Disk quota exceeded|Bad file descriptor"
_ABOUT_STORAGE = re.compile(
    rf"(?P<severity>PANIC|FATAL|ERROR|WARNING|LOG):  (?P<message>.*(?:{_ERRNO}).*|.*invalid page in block.*)"
)
_NUMBERS = re.compile(r"\d+")
# Assigning a transaction id has the commit written to WAL, and flushed.
_COMMITTED = "SELECT pg_current_xact_id()"
_COMMIT_TIMEOUT_MS = 5_000
_STATEMENT_TIMEOUT_MS = 60_000


def make_io_error(
    planned: PlannedIoError,
    subject: CutSubject,
    failing: Failing,
    power: Power,
    spec: IoErrorSpec,
    load: LoadDriver,
    ledger: Path | None,
    found: Findings,
) -> IoErrorResult:
    """Have a storage fail as planned while a load runs, see what the server does, cut the power of all disks at the end, and look for
    every commit; damage is added to `found`.

    `failing` has the storage fail; `ledger` is the folder of the load's ledger. An exception does not mean that the storages are damaged.
    """
    return _Case(planned, subject, failing, power, load, found, spec.back_within_s).make(spec.lasts_s, ledger)


@dataclass
class _Case:
    planned: PlannedIoError
    subject: CutSubject
    failing: Failing
    power: Power
    load: LoadDriver
    found: Findings
    back_within_s: float
    _started_unix_ns: int = field(default_factory=time.time_ns)
    _log_begin_bytes: int = 0

    def make(self, lasts_s: float, ledger: Path | None) -> IoErrorResult:
        one, server = self.subject, self.subject.server
        server.fetch_log()
        self._log_begin_bytes = server.layout.log.size_bytes()
        files = server.files()
        with (
            database_errors("prepare an error", one.variant.label),
            connect(server.control) as control,
            connect_unpinned(server.connection) as session,
        ):
            before = prepare_commits(control, session, one.variant.workload, one.dataset)
            fingerprint = files.take_fingerprint(control)
        try:
            self.load.start()
            await_first_commit(self.load)
            run_for(self.load, _BEFORE_S)
            struck, moved = self._fail(lasts_s)
            came_back, back_s = self._come_back()
        finally:
            self.load.stop()
            self.load.wait(STOP_TIMEOUT_S)
        said = _about_storage(self._logged())
        result = self.load.result()
        cut_ns = time.monotonic_ns()
        self.found.lost = self.power.cut("drop", self.planned.seed)
        server.lose_power()
        known = None if ledger is None else read_commit_ledger(ledger).answered_by(cut_ns)
        at_cut = CutState(before, result, known, cut_ns, None, fingerprint)
        if self._recovers():
            came_back = came_back or "remounted"
            check_recovered(server, files, one.variant, one.dataset, at_cut, self.found)
        return IoErrorResult(
            **self.planned.model_dump(),
            started_unix_ns=self._started_unix_ns,
            struck=struck.requests,
            server=_answer(said, moved),
            said=tuple(dict.fromkeys(f"{severity}:  {message}" for severity, message in said))[:_MOST_SAID],
            clients=_clients(result),
            came_back=came_back or "never",
            back_s=back_s,
            acknowledged=self.found.acknowledged,
            damage=tuple(self.found.damage),
            checks=tuple(self.found.checks),
        )

    def _fail(self, lasts_s: float) -> tuple[Struck, bool]:
        """Have the storage fail, and the server write and read; return what was struck, and whether transactions ended late in that time."""
        with self._writing(), self.failing() as struck:
            self._wait(lasts_s / 2)
            half = self.load.progress().done
            self._wait(lasts_s / 2)
            moved = self.load.progress().done > half
        return struck, moved

    def _logged(self) -> list[str]:
        """Return what the server has logged since this began."""
        server = self.subject.server
        server.fetch_log()
        return server.layout.log.tail(_LOG_BYTES, self._log_begin_bytes).splitlines()

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (left_s := deadline - time.monotonic()) > 0:
            cancel.sleep(min(left_s, _POLL_S))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Meanwhile write checkpoints, one after the other: what is in shared buffers goes to the files, and these are flushed. Where WAL has no
        space, have it take new segments instead: a checkpoint would give back old ones."""
        is_without_space = (self.planned.error, self.planned.holds) == ("full", "wal")
        statement, pause_s = (
            (_SWITCH, _BETWEEN_SWITCHES_S) if is_without_space else (_CHECKPOINT, _BETWEEN_CHECKPOINTS_S)
        )
        ending = threading.Event()

        def work() -> None:
            while not ending.is_set():
                self._execute(statement)
                ending.wait(pause_s)

        thread = threading.Thread(target=work, name="writing", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join(_STATEMENT_TIMEOUT_MS / 1000)

    def _execute(self, statement: str) -> None:
        """Execute a statement. That it fails is in the server's log."""
        import psycopg

        with (
            contextlib.suppress(psycopg.Error, PlinthError),
            connect(self.subject.server.control) as control,
        ):
            control.execute(f"SET statement_timeout = {_STATEMENT_TIMEOUT_MS}".encode())
            control.execute(statement.encode())

    def _come_back(self) -> tuple[CameBack | None, float | None]:
        """Wait until a transaction is committed again, restart the server where none is; return how it came back, and after how long; None
        where it needs its file systems to be mounted again."""
        server, healed_s = self.subject.server, time.monotonic()
        if self._commits_within(self.back_within_s):
            back_s = time.monotonic() - healed_s
            how: CameBack = "recovered" if any(_CRASHED in line for line in self._logged()) else "went on"
        else:
            server.lose_power()
            try:
                server.start(self.subject.variant.settings, self.back_within_s)
            except Interrupted:
                raise
            except (PlinthError, OSError):
                return None, None
            if not self._commits_within(self.back_within_s):
                return None, None
            how, back_s = "restarted", time.monotonic() - healed_s
        self._execute(_CHECKPOINT)  # from here on WAL of before is not replayed
        return how, back_s

    def _commits_within(self, limit_s: float) -> bool:
        import psycopg

        deadline = time.monotonic() + limit_s
        while self.subject.server.alive() and time.monotonic() < deadline:
            cancel.check()
            try:
                with connect(self.subject.server.control) as control:
                    control.execute(f"SET statement_timeout = {_COMMIT_TIMEOUT_MS}".encode())
                    control.execute("SET synchronous_commit = on")
                    control.execute(_COMMITTED)
                return True
            except psycopg.Error:
                cancel.sleep(_POLL_S)
        return False

    def _recovers(self) -> bool:
        """Mount all file systems again and start the server; a failure is a finding."""
        try:
            self.power.restore()
        except PlinthError as error:
            self.found.refuse((error.message, *error.details))
            return False
        one = self.subject
        return start_server(
            one.server, one.variant.settings, self.found, one.recovery_limit_s, key="io_errors.recovery_limit"
        )


def _about_storage(lines: Sequence[str]) -> list[tuple[str, str]]:
    """Return severity and message of the lines of a server's log about its storage, each kind of message once."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for line in lines:
        if match := _ABOUT_STORAGE.search(line):
            severity, message = match["severity"], match["message"]
            found.setdefault((severity, _NUMBERS.sub("0", message)), (severity, message))
    order = [*_SEVERITIES, "WARNING", "LOG"]
    return sorted(found.values(), key=lambda one: order.index(one[0]))


def _answer(said: Sequence[tuple[str, str]], moved: bool) -> ServerAnswer:
    """Return the most severe message about the storage; without one, whether transactions ended."""
    for severity in _SEVERITIES:
        if any(one == severity for one, _ in said):
            return severity
    return "nothing" if moved else "waits"


def _clients(result: LoadResult) -> tuple[str, ...]:
    counts: Counter[str] = Counter()
    for error in result.errors:
        counts[_NUMBERS.sub("N", error.message)] += error.count
    return tuple(f"{count:,}x {message}" for message, count in counts.most_common(_MOST_CLIENTS))
