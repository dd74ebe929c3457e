"""A client process: runs and times transactions on one connection, and counts failures."""

import gc
import os
import resource
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection as Pipe
from typing import Any, NoReturn

import psycopg

from plinth._native import EngineError, ScriptDraws
from plinth.load.drivers.aggregates import Timeline
from plinth.load.drivers.messages import Batch, ClientError, Ended, Go, Order, Ready
from plinth.load.drivers.sessions import Session, open_session
from plinth.system import cancel
from plinth.system.runner import die_with_parent

_BROKEN = 70
_LOOK_S = 0.1
_RETRYABLE = {"40001": "serialization_failure", "40P01": "deadlock_detected"}
_TERMINATED = "57P01"
_IN_BLOCK = "the script ends inside a transaction block; end it with COMMIT or ROLLBACK"


def run_client(pipe: Pipe, order: Order, number: int, coordinator_pid: int) -> NoReturn:
    """Run as client `number` in this process, and exit."""
    code = 0
    try:
        die_with_parent(coordinator_pid)
        _Client(pipe, order, number).work()
    except (EOFError, BrokenPipeError):  # the coordinator has ended
        code = 1
    except BaseException:  # noqa: BLE001 - nothing may go up into what was the coordinator before the fork
        traceback.print_exc()
        code = _BROKEN
    os._exit(code)  # without the exit handlers, which belong to the coordinator


class _ClientStopped(Exception):
    """The client cannot continue."""


class _Client:
    def __init__(self, pipe: Pipe, order: Order, number: int) -> None:
        self._pipe = pipe
        self._order = order
        self._load = order.load
        self._stopping = False
        script = self._load.only_script
        self._draws = ScriptDraws(
            script.name, script.source, self._load.variables, self._load.seed, self._load.clients, number
        )
        self._statements = [parts for _, _, parts in self._draws.statements()]
        # The client is first asked to stop, then interrupted: psycopg cancels its query.
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def work(self) -> None:
        session = self._open()
        if session is None:
            return
        gc.freeze()  # exclude inherited objects from garbage collection, which would copy their pages in each client
        self._pipe.send(Ready(session.connection.info.parameter_status("server_version"), session.version))
        go = self._pipe.recv()
        assert isinstance(go, Go)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        reopen = self._connect if self._load.replace_terminated else None
        worker = _Worker(session, self._draws, self._load.max_tries, self._load.latency_limit_s, go, self._pipe, reopen)
        aborted = False
        try:
            worker.run(lambda: self._stopping)
        except KeyboardInterrupt:
            worker.record_unfinished()
        except _ClientStopped:
            aborted = True
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        worker.flush()
        self._pipe.send(Ended(max(0, worker.now_ns()), worker.first_start_ns, *worker.measured_cpu_ns(), aborted))
        worker.close()

    def _open(self) -> Session | None:
        """Open a session; on failure report it to the coordinator and return None."""
        opened = self._connect()
        if isinstance(opened, ClientError):
            self._pipe.send(opened)
            return None
        return opened

    def _connect(self) -> Session | ClientError:
        """Open a session; on failure return why there is none."""
        try:
            return open_session(
                self._order.driver,
                self._load.connection,
                self._load.protocol,
                self._statements,
                self._load.connect_timeout_s,
            )
        except Exception as error:
            failed = _below(error)
            if not isinstance(failed, psycopg.Error):
                raise
            kind = "timeout" if isinstance(failed, psycopg.errors.ConnectionTimeout) else "connect"
            return ClientError(kind, failed.sqlstate, None, _message(failed), 0)

    def _stop(self, *_: object) -> None:
        self._stopping = True


class _Worker:
    """Runs the transactions of a client. Times count from the beginning of the load."""

    def __init__(
        self,
        session: Session,
        draws: ScriptDraws,
        max_tries: int,
        latency_limit_s: float | None,
        go: Go,
        pipe: Pipe,
        reopen: Callable[[], Session | ClientError] | None,
    ) -> None:
        """Take `reopen`, which opens another session when an administrator has terminated this one; None: the client ends then."""
        self._session = session
        self._reopen = reopen
        self._draws = draws
        self._max_tries = max_tries
        self._limit_ns = None if latency_limit_s is None else latency_limit_s * 1e9
        self._go = go
        self._pipe = pipe
        self._timeline = Timeline(go.warmup_ns)
        self._under_way = False
        self.first_start_ns: int | None = None
        """When the first transaction began; None if there was none."""
        self._cpu_before: resource.struct_rusage | None = None
        """CPU time of the process at the start of the measured phase; None until then."""
        self._begin_row(0)

    def now_ns(self) -> int:
        """Return the time since the beginning of the load."""
        return time.monotonic_ns() - self._go.t0_ns

    def run(self, stopping: Callable[[], bool]) -> None:
        """Run from the beginning until the end, or until stopped. Raises _ClientStopped if the client cannot continue."""
        while not stopping() and (early_ns := -self.now_ns()) > 0:
            cancel.sleep(min(early_ns / 1e9, _LOOK_S))
        while not stopping() and (began_ns := self.now_ns()) < self._go.ends_ns:
            if self.first_start_ns is None:
                self.first_start_ns = began_ns
            self._under_way = True
            self._transaction(began_ns, stopping)
            self._under_way = False

    def measured_cpu_ns(self) -> tuple[int, int]:
        """Return the CPU time in the program, and in the kernel, since the measured phase began: with the first transaction that ended in it."""
        before, now = self._cpu_before, resource.getrusage(resource.RUSAGE_SELF)
        if before is None:
            return 0, 0
        return round((now.ru_utime - before.ru_utime) * 1e9), round((now.ru_stime - before.ru_stime) * 1e9)

    def close(self) -> None:
        """Close the session."""
        self._session.close()

    def flush(self) -> None:
        """Send the batch of ended transactions."""
        self._pipe.send(self._batch)

    def record_unfinished(self) -> None:
        """Record the running transaction, if any, as neither completed nor failed."""
        if self._under_way:
            self._advance(self.now_ns()).open += 1

    def _transaction(self, began_ns: int, stopping: Callable[[], bool]) -> None:
        try:
            values = self._draws.draw()
        except EngineError as error:
            self._failed(ClientError("script", None, None, str(error), self.now_ns()), 1)
            return
        tries = 1
        while (error := self._try(values, began_ns, tries)) is not None:
            if not self._may_retry(error, tries, began_ns) or stopping():
                self._failed(error, tries)
                return
            self._advance(error.t_ns).errors.append(error._replace(retried=True))
            tries += 1

    def _try(self, values: Sequence[tuple[Any, ...]], began_ns: int, tries: int) -> ClientError | None:
        """Run the statements once. Return None on success, which is counted; else the error, after a rollback."""
        took_ns: list[int] = []
        last_ns = self.now_ns() if tries > 1 else began_ns
        try:
            for run, parameters in zip(self._session.runs, values, strict=True):
                run(parameters)
                now_ns = self.now_ns()
                took_ns.append(now_ns - last_ns)
                last_ns = now_ns
        except Exception as error:  # noqa: BLE001 - any error of a driver is counted, by what became of the connection
            return self._rolled_back(self._client_error(_below(error), len(took_ns)))
        if self._session.connection.pgconn.transaction_status:
            return self._rolled_back(ClientError("script", None, len(took_ns) - 1, _IN_BLOCK, last_ns))
        batch = self._advance(last_ns)
        batch.latencies.append(last_ns - began_ns)
        batch.retries += tries - 1
        batch.retried += tries > 1
        for times, one_ns in zip(batch.statements, took_ns, strict=True):
            times.append(one_ns)
        return None

    def _failed(self, error: ClientError, tries: int) -> None:
        """Count a failed transaction that is not retried. Raises _ClientStopped if the client cannot continue."""
        batch = self._advance(self.now_ns())
        batch.errors.append(error)
        batch.failed += 1
        batch.retries += tries - 1
        batch.retried += tries > 1
        batch.serialization_failures += error.kind == "serialization_failure"
        batch.deadlock_failures += error.kind == "deadlock_detected"
        if error.kind == "terminated":
            self._replace_session()
        elif error.kind in ("connection_lost", "script"):
            raise _ClientStopped

    def _replace_session(self) -> None:
        """Open another session. Raises _ClientStopped where there is none to be had, as of a server that shuts down."""
        assert self._reopen is not None, "only then an error is of that kind"
        self._session.close()
        opened = self._reopen()
        if isinstance(opened, ClientError):
            now_ns = self.now_ns()
            self._advance(now_ns).errors.append(opened._replace(t_ns=now_ns))
            raise _ClientStopped
        self._session = opened

    def _may_retry(self, error: ClientError, tries: int, began_ns: int) -> bool:
        now_ns = self.now_ns()
        return (
            error.kind in _RETRYABLE.values()
            and (self._max_tries == 0 or tries < self._max_tries)
            and (self._limit_ns is None or now_ns - began_ns <= self._limit_ns)
            and now_ns < self._go.ends_ns
        )

    def _rolled_back(self, error: ClientError) -> ClientError:
        """Return after a rollback the error, or that of the rollback if the connection was lost."""
        connection = self._session.connection
        if connection.closed or not connection.pgconn.transaction_status:
            return error
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error as lost:
            return self._client_error(lost, error.statement or 0)
        return error

    def _client_error(self, error: Exception, number: int) -> ClientError:
        """Return the class of an error. The client ends if the connection is lost, or if the error comes from the program itself."""
        sqlstate = getattr(error, "sqlstate", None)
        if self._session.connection.closed:
            kind = "terminated" if sqlstate == _TERMINATED and self._reopen else "connection_lost"
        else:
            kind = _RETRYABLE.get(sqlstate, "sql") if sqlstate else "script"
        return ClientError(kind, sqlstate, number, _message(error), self.now_ns())

    def _advance(self, t_ns: int) -> Batch:
        """Return the batch of the row that contains an instant, and send the previous batch."""
        if t_ns >= self._row_ends_ns:
            self.flush()
            self._begin_row(self._timeline.row(t_ns))
        return self._batch

    def _begin_row(self, row: int) -> None:
        self._batch = Batch.empty(row, len(self._session.runs))
        self._row_ends_ns = self._timeline.start_ns(row + 1)
        if self._cpu_before is None and self._timeline.phase(row) == "measure":
            self._cpu_before = resource.getrusage(resource.RUSAGE_SELF)


def _below(error: Exception) -> Exception:
    """Return psycopg's exception if SQLAlchemy has wrapped it."""
    return getattr(error, "orig", None) or error


def _message(error: Exception) -> str:
    diagnosis = getattr(error, "diag", None)
    primary = diagnosis.message_primary if diagnosis is not None else None
    return primary or str(error).strip().partition("\n")[0] or type(error).__name__
