"""The load of `plinth bench --fleet`: several machines in the place of one engine, and the lines of the report about each."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import FrameType
from typing import TypeVar

from plinth.bench.events import as_libpq
from plinth.bench.failure import BenchFailure
from plinth.fleet.executors import executor_of
from plinth.fleet.load import FleetLoad
from plinth.load.engine import OF_ENGINE
from plinth.model.connection import Connection
from plinth.model.errors import Interrupted, PlinthError
from plinth.model.fleet import FleetSpec
from plinth.model.load import FleetTrial, MachineTrial
from plinth.model.load_config import LoadConfig
from plinth.model.units import format_count
from plinth.system import cancel
from plinth.system.log_file import log_in_memory
from plinth.system.runner import Runner

_SLICE_S = 0.1
_WHILE_RUNNING = 2
_LOOPBACK = ("localhost", "127.", "::1")
_Result = TypeVar("_Result")


class FleetRun:
    """A load by a fleet, with the methods of the native LoadRun that bench uses. Agents run until it is left.

    Ctrl-C is raised between exchanges with agents, never within one: what was measured could not be collected then.
    All methods raise BenchFailure.
    """

    def __init__(self, config_json: str, fleet: FleetSpec) -> None:
        self._config = LoadConfig.model_validate_json(config_json)
        self._fleet = fleet

    def __enter__(self) -> "FleetRun":
        with ExitStack() as stack, _failures():
            executor = executor_of(self._fleet, Runner(), stack.enter_context(log_in_memory()))
            self._load = FleetLoad(self._config, executor)
            stack.callback(self._load.close)
            self._left = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        with _interrupt_as(lambda: None):
            self._left.close()

    def start(self) -> None:
        """Start the agents and connect all clients; return when the load begins."""
        try:
            with cancel.scope() as token, _interrupt_as(lambda: token.cancel(Interrupted("interrupted"))):
                with _failures(self._hint()):
                    self._load.start()
        except Interrupted:
            raise KeyboardInterrupt from None

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end for at most `timeout_s` seconds; return whether the load has ended."""
        deadline = time.monotonic() + timeout_s
        while True:
            left_s = deadline - time.monotonic()
            if self._whole(partial(self._load.wait, max(0.0, min(_SLICE_S, left_s)))):
                return True
            if left_s <= _SLICE_S:
                return False

    def progress(self) -> str:
        """Return the progress since the last call, as the native module gives it."""
        return self._load.progress().model_dump_json()

    def stop(self) -> None:
        """Stop all machines and return at once."""
        self._whole(self._load.stop)

    def result(self) -> str:
        """Return the merged result, as the native module gives it."""
        return self._whole(self._load.result).model_dump_json()

    def _whole(self, exchange: Callable[[], _Result]) -> _Result:
        """Do it to its end; Ctrl-C that comes meanwhile is raised then."""
        came: list[bool] = []
        with _failures(exit_code=_WHILE_RUNNING), _interrupt_as(lambda: came.append(True)):
            done = exchange()
        if came:
            raise KeyboardInterrupt
        return done

    def _hint(self) -> str | None:
        """Return what is likely wrong where machines do not reach the server: its place may mean another one there."""
        host = own_place(self._config.connection)
        if not self._fleet.is_remote or host is None:
            return None
        return (
            f"Each machine looks for the server at {host} of its own: give -h a name or address that all of them reach."
        )


def own_place(connection: Connection) -> str | None:
    """Return the first of its hosts that is another one on each machine: a socket, or an address of the loopback."""
    for one in connection.hosts:
        place = one.hostaddr or one.host
        if place.startswith(("/", "@", *_LOOPBACK)):
            return place
    return None


def machine_lines(fleet: FleetTrial, measured_ns: int) -> list[str]:
    """Return the end of the report: what each machine did, what it cost there, and when it began."""
    skew = "unknown" if fleet.skew_ns is None else f"{fleet.skew_ns / 1e6:.3f} ms"
    return [
        f"number of machines: {len(fleet.machines)}",
        f"start skew of the machines = {skew}",
        *(line for machine in fleet.machines for line in _of_machine(machine, measured_ns)),
    ]


def _of_machine(machine: MachineTrial, measured_ns: int) -> Iterator[str]:
    done = machine.measured.done
    tps = f"{done / (measured_ns / 1e9):.6f}" if measured_ns else "NaN"
    cpu_us = (machine.user_cpu_ns + machine.system_cpu_ns) / 1000
    yield f"machine {machine.name}: {format_count(machine.clients, 'client')}, {format_count(machine.threads, 'thread')}"
    yield f" - number of transactions actually processed: {done} (tps = {tps})"
    if machine.latency_p50_ns is not None and machine.latency_p99_ns is not None:
        yield f" - latency p50 = {machine.latency_p50_ns / 1e6:.3f} ms, p99 = {machine.latency_p99_ns / 1e6:.3f} ms"
    yield (
        f" - client CPU = {f'{cpu_us / done:.3f} us per transaction' if done else 'n/a: no transaction'}, "
        f"engine {_share(machine.engine_busy)}, {machine.cores} cores {_share(machine.host_busy)}"
    )
    start_ns = machine.first_start_ns
    began = "served no client" if start_ns is None else f"began {start_ns / 1e6:.3f} ms after the agreed start"
    yield f" - {began}, its clock known to {machine.clock_error_ns / 1e6:.3f} ms"


def _share(busy: float | None) -> str:
    return "n/a" if busy is None else f"{busy:.1%} busy"


@contextmanager
def _failures(hint: str | None = None, exit_code: int = 1) -> Iterator[None]:
    """Yield errors of the fleet as bench reports them; `hint` where a machine does not reach the server."""
    try:
        yield
    except PlinthError as error:
        where = (
            f"{error.where}: " if error.where and error.where.startswith("machine ") else ""
        )  # else a key of experiments
        message = error.message.removeprefix(OF_ENGINE)
        if not message.startswith("cannot connect"):
            hint = None
        raise BenchFailure(
            f"{where}{as_libpq(message)}", lines=error.details, hint=error.hint or hint, exit_code=exit_code
        ) from error


@contextmanager
def _interrupt_as(act: Callable[[], object]) -> Iterator[None]:
    """Have Ctrl-C do `act` meanwhile. Only the main thread gets it, and who ignores it, as a shell's background jobs do, ignores it
    here."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or handler in (signal.SIG_IGN, None):
        yield
        return

    def on_signal(number: int, frame: FrameType | None) -> None:
        act()

    signal.signal(signal.SIGINT, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
