"""The errors of storage of a run: after its trials the storages of each variant fail in turn while a load runs, and work again; the server
is watched, and every commit is looked for."""

import contextlib
import re
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from plinth.load import LoadDriver
from plinth.model.errors import Interrupted, PlinthError
from plinth.model.io_error import CameBack, IoErrorResult, IoErrorSpec, PlannedIoError, ServerAnswer
from plinth.model.load import LoadResult
from plinth.model.load_config import Rate
from plinth.model.plan import Variant, storage_that_holds
from plinth.model.progress import Progress
from plinth.model.units import format_count
from plinth.run.faults.power import Power
from plinth.run.faults.recovery_check import CutState, Findings, check_recovered, restore_power, start_server
from plinth.run.faults.server_faults import RETRY_CONNECT_S
from plinth.run.faulty_storage import Failing
from plinth.run.host import Struck
from plinth.run.power_cuts.after_trials import AfterTrials
from plinth.run.power_cuts.power_cut import CutSubject, await_first_commit, run_for
from plinth.run.trial.load_config import STOP_TIMEOUT_S
from plinth.system import cancel
from plinth.system.database import connect, connect_unpinned, database_errors
from plinth.workload.commit_ledger import read_commit_ledger
from plinth.workload.survival import prepare_commits

_TPS = 500.0
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


def make_io_errors(after: AfterTrials, made: Collection[IoErrorResult]) -> None:
    """Make the planned errors, each written to the bundle, but those `made` before of which something was learned."""
    planned, spec = after.plan.io_errors, after.plan.experiment.io_errors
    if not planned or spec is None:
        return
    known = {one.number for one in made if one.was_tested}
    after.listener.phase(f"storage fails: {format_count(len(planned), 'error')}")
    began_s, failed = time.monotonic(), 0
    for done, one in enumerate(one for one in planned if one.number not in known):
        cancel.check()
        label = after.variants[one.variant].label
        rate = done / (time.monotonic() - began_s) if done else None
        what = f"{one.words}: {label}"
        after.listener.progress(Progress("errors", len(known) + done, len(planned), "errors", what, rate))
        result = _make(after, spec, one)
        after.writer.write_io_error(result)
        failed += result.failure is not None
        if result.failure is not None:
            after.listener.note(f"error {result.number} failed: {result.failure}")
        elif result.damage:
            kinds = ", ".join(f"{one.kind} ({one.count}): {one.evidence[0]}" for one in result.damage)
            after.listener.note(f"error {result.number}, {label}, {result.words}: {kinds}")
    after.tell_untested(failed, len(planned), "error")


def _make(after: AfterTrials, spec: IoErrorSpec, planned: PlannedIoError) -> IoErrorResult:
    variant, found, started_unix_ns = after.variants[planned.variant], Findings(), time.time_ns()
    result, failure = after.attempt(variant, found, lambda: _with_load(after, spec, planned, variant, found))
    if result is not None:
        return result
    return IoErrorResult(
        **planned.model_dump(),
        started_unix_ns=started_unix_ns,
        damage=tuple(found.damage),
        checks=tuple(found.checks),
        failure=failure,
    )


def _with_load(
    after: AfterTrials, spec: IoErrorSpec, planned: PlannedIoError, variant: Variant, found: Findings
) -> IoErrorResult:
    cluster, subject = after.subject_of(variant, spec.recovery_limit_s)
    ledger = after.writer.make_io_error_ledger(planned) if variant.workload.keeps_ledger else None
    storage = cluster.context.storages[storage_that_holds(planned.holds, cluster.planned.primary.roles)]
    layout = subject.server.layout
    failing = partial(cluster.host.failing, planned, storage, cluster.planned, layout, cluster.runner)
    power = Power(cluster.storages, "all", cluster.runner, cluster.journal)
    # Clients that have lost their connection try again, and none begins so much that is answered by an error that the server's log takes
    # all space.
    changes: dict[str, object] = {"retry_connect_s": RETRY_CONNECT_S}
    if variant.workload.rate is None:
        changes["rate"] = Rate.constant(_TPS)
    load = after.endless_load(subject, planned.seed, ledger, changes)
    try:
        case = _Case(planned, subject, failing, power, load, found, spec.back_within_s)
        return case.make(spec.lasts_s, ledger)
    finally:
        if ledger is not None and not found.damage:
            after.writer.drop_io_error_ledger(planned)


@dataclass
class _Case:
    """A storage that fails as planned while a load runs: what the server does, and whether every commit is there once the power of all disks
    was cut at the end; damage is added to `found`. An exception does not mean that the storages are damaged."""

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
            cancel.sleep(lasts_s / 2)
            half = self.load.progress().done
            cancel.sleep(lasts_s / 2)
            moved = self.load.progress().done > half
        return struck, moved

    def _logged(self) -> list[str]:
        """Return what the server has logged since this began."""
        server = self.subject.server
        server.fetch_log()
        return server.layout.log.tail(_LOG_BYTES, self._log_begin_bytes).splitlines()

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

        with contextlib.suppress(psycopg.Error, PlinthError), connect(self.subject.server.control) as control:
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
        one, key = self.subject, "io_errors.recovery_limit"
        return restore_power(self.power, self.found) and start_server(
            one.server, one.variant.settings, self.found, one.recovery_limit_s, key=key
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
