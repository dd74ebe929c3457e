"""The coordinator: starts a process for each client, starts and stops the load, and merges the clients' reports.

It is a separate process, so that clients are forked from one without threads that has loaded the driver once. Clients and
coordinator end with who started them.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait

from plinth._native import ScriptDraws
from plinth.load.drivers.aggregates import Aggregates, Timeline
from plinth.load.drivers.client import run_client
from plinth.load.drivers.messages import Batch, ClientError, Ended, Go, Order, Ready, Started
from plinth.load.drivers.sessions import versions
from plinth.model.load import EngineCost, LoadProgress, LoadResult, Phase, ScriptTotals, Second

_TICK_S = 0.1
_CANCEL_TIMEOUT_S = 5.0


class Client:
    """The coordinator's state of one client."""

    def __init__(self, pid: int, pipe: Connection) -> None:
        self.pid = pid
        self.pipe = pipe
        self.ready: Ready | None = None
        self.next_row = 0
        """The first row to which the client may still contribute."""


class Coordinator:
    """Runs what it is sent over `conductor`: Started, LoadProgress and LoadResult go there."""

    def __init__(self, conductor: Connection, order: Order) -> None:
        self._conductor = conductor
        self._order = order
        self._load = order.load
        script = self._load.only_script
        self._timeline = Timeline(round(self._load.warmup_s * 1e9))
        draws = ScriptDraws(script.name, script.source, self._load.variables, self._load.seed, self._load.clients, 0)
        lines = [(line, text) for line, text, _ in draws.statements()]
        self._aggregates = Aggregates(
            self._timeline, script.name, lines, self._load.latency_limit_s, is_part=self._load.part is not None
        )
        self._all: list[Client] = []
        self._working: list[Client] = []
        self._ended: list[Ended] = []
        self._aborted = 0
        self._stopped = False
        self._went = Go(0, 0, 0)

    def work(self) -> None:
        """Run the load from start to end. Raises EOFError when the conductor ends, or gives up a part before it has begun."""
        versions(self._order.driver)  # loads the driver, before it is forked
        forked_ns = time.monotonic_ns()
        self._fork()
        first = self._await_connections()
        connect_ns = time.monotonic_ns() - forked_ns
        if self._stopped or not self._working:
            failure = first.message if first else "it was stopped before it began"
            self._send("failed", Started(failure=failure, sqlstate=first.sqlstate if first else None))
            return
        ready = next(client.ready for client in self._working if client.ready is not None)
        started = Started(processes=(os.getpid(), *(client.pid for client in self._working)), driver=ready.driver)
        if self._load.part is None:
            t0_ns, started_unix_ns = time.monotonic_ns(), time.time_ns()
            self._begin(t0_ns)
            self._send("started", started)
        else:
            self._send("started", started)
            t0_ns = self._await_go()
            started_unix_ns = time.time_ns() + t0_ns - time.monotonic_ns()
            self._begin(t0_ns)
        self._await_ends()
        self._send("result", self._result(started_unix_ns, connect_ns))

    def _fork(self) -> None:
        coordinator = os.getpid()
        for number in self._numbers():
            ours, theirs = Pipe()
            pid = os.fork()
            if pid == 0:
                ours.close()
                run_client(theirs, self._order, number, coordinator)
            theirs.close()
            self._all.append(Client(pid, ours))

    def _numbers(self) -> range:
        """Return the numbers of our clients among those of the whole load: dealt to its parts in turn."""
        part = self._load.part
        return range(self._load.clients) if part is None else range(part.number, self._load.clients, part.of)

    def _await_connections(self) -> ClientError | None:
        """Wait until every client has connected or failed. Return the first error."""
        first = None
        pending = list(self._all)
        while pending and not self._stopped:
            for client in self._readable_clients(pending):
                pending.remove(client)
                match message := _received(client):
                    case Ready():
                        client.ready = message
                        self._working.append(client)
                    case ClientError():
                        self._aggregates.note(message)
                        first = first or message
                        os.waitpid(client.pid, 0)
                    case _:
                        died = self._died(client)
                        first = first or died
        return first

    def _await_go(self) -> int:
        """Wait until a part is told when it begins, by the monotonic clock."""
        word, _, at_ns = self._conductor.recv_bytes().partition(b" ")
        if word != b"go":
            raise EOFError
        return int(at_ns)

    def _begin(self, t0_ns: int) -> None:
        duration_s = self._load.duration_s or 0.0
        ends_ns = self._timeline.warmup_ns + round(duration_s * 1e9)
        self._went = Go(t0_ns, self._timeline.warmup_ns, ends_ns)
        for client in self._working:
            with suppress(BrokenPipeError):  # it has ended meanwhile, which is noticed when its reports are received
                client.pipe.send(self._went)

    def _await_ends(self) -> None:
        """Receive reports until all clients have ended; those that do not end in time are interrupted, and then killed."""
        deadlines = self._deadlines()
        due_ns, number = next(deadlines)
        sent_ns = 0
        while self._working:
            was_stopped = self._stopped
            for client in self._readable_clients(self._working):
                self._receive(client)
            now_ns = self._now_ns()
            if self._stopped and not was_stopped:
                self._signal(signal.SIGTERM)
                due_ns = min(due_ns, now_ns + round(self._load.stop_timeout_s * 1e9))
            if now_ns >= due_ns:
                self._signal(number)
                later_ns, number = next(deadlines)
                due_ns = now_ns + later_ns
            if now_ns - sent_ns >= _TICK_S * 1e9:
                sent_ns = now_ns
                self._progress(self._aggregates.close_rows(self._passed_rows()))

    def _deadlines(self) -> Iterator[tuple[int, signal.Signals]]:
        """Return when clients that are still there get which signal: the first since the beginning, the others after the one before."""
        yield self._went.ends_ns + round(self._load.stop_timeout_s * 1e9), signal.SIGINT
        while True:
            yield round(_CANCEL_TIMEOUT_S * 1e9), signal.SIGKILL

    def _readable_clients(self, clients: list[Client]) -> list[Client]:
        """Return the clients that sent a message or have ended; handles messages of the conductor meanwhile."""
        pipes = {client.pipe: client for client in clients}
        ready = wait([*pipes, self._conductor], _TICK_S)
        if self._conductor in ready:
            self._conductor.recv_bytes()  # EOFError: the conductor has ended, and so does this process
            self._stopped = True
        return [pipes[pipe] for pipe in ready if pipe in pipes]  # type: ignore[index] - the conductor is none

    def _receive(self, client: Client) -> None:
        match message := _received(client):
            case Batch():
                self._aggregates.take(message)
                client.next_row = message.row + 1
            case Ended():
                self._ended.append(message)
                self._aborted += message.aborted
                self._working.remove(client)
                os.waitpid(client.pid, 0)
            case _:
                self._working.remove(client)
                self._aborted += 1
                self._died(client)
                self._aggregates.take_open(self._now_ns())

    def _died(self, client: Client) -> ClientError:
        """Handle a client that ended without a message: its unreported transactions are unknown."""
        _, status = os.waitpid(client.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        message = f"a client's process ended {how}; what it did since its last report is not counted"
        error = ClientError("client_died", None, None, message, max(0, self._now_ns()))
        self._aggregates.note(error)
        return error

    def _passed_rows(self) -> int:
        """Return the row before which all rows are complete; not the current one, which the load's end may shorten."""
        rows = [client.next_row for client in self._working]
        return min(*rows, self._timeline.row(self._now_ns())) if rows else 0

    def _signal(self, number: signal.Signals) -> None:
        for client in self._working:
            os.kill(client.pid, number)

    def _now_ns(self) -> int:
        return time.monotonic_ns() - self._went.t0_ns if self._went.t0_ns else 0

    def _progress(self, seconds: list[Second]) -> None:
        if histograms := self._aggregates.take_histograms():
            self._conductor.send_bytes(b"histograms " + histograms)
        totals = self._aggregates.totals()
        now_ns = max(0, self._now_ns())
        phase: Phase = "warmup" if now_ns < self._timeline.warmup_ns else "measure"
        self._send(
            "progress",
            LoadProgress(
                elapsed_ns=now_ns,
                phase=phase,
                done=totals.done,
                failed=totals.failed,
                retried=totals.retried,
                clients_open=len(self._working),
                seconds=tuple(seconds),
                events=(),
                events_dropped=0,
            ),
        )

    def _result(self, started_unix_ns: int, connect_ns: int) -> LoadResult:
        end_ns = max([ended.t_ns for ended in self._ended], default=max(0, self._now_ns()))
        self._progress(self._aggregates.close_all(end_ns))
        script = self._load.only_script
        measured = self._aggregates.totals(measured_only=True)
        ready = [client.ready for client in self._all if client.ready is not None]
        warmup_ns = min(self._timeline.warmup_ns, end_ns)
        return LoadResult(
            started_unix_ns=started_unix_ns,
            first_start_ns=min(
                (ended.first_start_ns for ended in self._ended if ended.first_start_ns is not None), default=None
            ),
            connect_ns=connect_ns,
            warmup_ns=warmup_ns,
            measured_ns=end_ns - warmup_ns,
            interrupted=self._stopped,
            clients_aborted=self._aborted,
            totals=self._aggregates.totals(),
            measured=measured,
            scripts=(ScriptTotals(name=script.name, weight=script.weight, measured=measured),),
            series=tuple(self._aggregates.series),
            histograms=self._aggregates.histograms(),
            errors=self._aggregates.errors(),
            engine=EngineCost(
                user_cpu_ns=sum(ended.user_cpu_ns for ended in self._ended),
                system_cpu_ns=sum(ended.system_cpu_ns for ended in self._ended),
                loop_lag_p99_ns=None,
                bytes_sent=None,
                bytes_received=None,
                threads=len(self._all),
                server_version=ready[0].server_version,
                driver=ready[0].driver,
            ),
        )

    def _send(self, kind: str, what: Started | LoadProgress | LoadResult) -> None:
        self._conductor.send_bytes(f"{kind} {what.model_dump_json()}".encode())


def _received(client: Client) -> object:
    """Receive a client's message; None if the client has ended."""
    try:
        return client.pipe.recv()
    except (EOFError, ConnectionResetError):
        return None
