"""What runs on each machine of a fleet: `plinth agent`, which a coordinator starts and talks to over a connection.

It keeps nothing on the machine. It ends with the connection, or when no request has come for LEASE_S.
"""

import json
import os
import platform
import shutil
import signal
import socket
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic_ns
from typing import NamedTuple

from plinth import __version__
from plinth.common.shown import bytes_shown_in_json
from plinth.fleet.protocol import (
    LEASE_S,
    MAX_REASON,
    ClockReading,
    Collected,
    Copied,
    Done,
    Hello,
    LedgerPiece,
    Link,
    Measuring,
    Polled,
    Reached,
    Reply,
    Request,
    Usage,
)
from plinth.fleet.recording import AgentRecording
from plinth.load import Load
from plinth.load.driver import PartDriver, make_load
from plinth.load.engine import OF_ENGINE
from plinth.model.connection import Connection
from plinth.model.errors import PlinthError, RunError
from plinth.model.load import BulkProgress, BulkResult
from plinth.model.load_config import LoadConfig, LoadScript, ShellUser
from plinth.model.workload import Driver
from plinth.system.extras import require_package
from plinth.system.framed_tls import Disconnected, ProtocolError, parsed
from plinth.system.log_file import log_in_memory
from plinth.system.owner import SHELL_COMMANDS, shell_user
from plinth.system.runner import Runner
from plinth.workload.bulk import bulk_loader, loader_errors

_REACH_TRANSACTIONS = 20
_REACH_TIMEOUT_S = 3.0
_END_TIMEOUT_S = 2.0
_PIECE_BYTES = 2**20


def serve(connection: socket.socket) -> int:
    """Answer requests until the connection ends or the lease is over; returns the exit code. Nothing of the load is left then."""
    link = Link(connection)
    agent = Agent()
    try:
        while True:
            frame = link.receive(LEASE_S)
            received_ns = time.monotonic_ns()
            reply, binary = agent.answer(parsed(Request, frame.document), received_ns, frame.binary)
            link.send(reply.model_dump_json().encode(), binary)
    except Disconnected:
        return 0
    except PlinthError:
        return 1
    finally:
        link.close()
        agent.end()


def connection_of_standard_streams() -> socket.socket:
    """Return the connection that standard input and output are: a socket, or two pipes that are joined to one."""
    connection = socket.socket(fileno=os.dup(0)) if _is_socket(0) else _joined(os.dup(0), os.dup(1))
    # What is printed later must not get into the frames.
    os.dup2(2, 1)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    return connection


class Starting:
    """Runs `start`. `is_done` once it has returned; `failure` says why it has not."""

    def __init__(self, start: Callable[[], None]) -> None:
        self.is_done = False
        self.failure: str | None = None
        self._start = start
        threading.Thread(target=self._run, name="connect", daemon=True).start()

    def _run(self) -> None:
        try:
            self._start()
            self.is_done = True
        except PlinthError as error:
            self.failure = in_one_line(error)
        except Exception as error:  # noqa: BLE001 - what goes wrong in this thread is the coordinator's to hear
            self.failure = f"the agent broke: {type(error).__name__}: {error}"[:MAX_REASON]


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


class AgentCopy:
    """One bulk load; begins at once, and connects while the agent answers. Raises ProtocolError, RunError."""

    def __init__(self, config_json: str) -> None:
        try:
            config = json.loads(config_json)
        except ValueError:  # whose message cites the document, which holds secrets
            raise ProtocolError("the configuration of the bulk loader is no JSON") from None
        self._loader = bulk_loader(config)
        self._starting = Starting(self._start)

    def state(self) -> Copied:
        """Return how far it is."""
        if self._starting.failure is not None:
            return Copied(state="failed", failure=self._starting.failure)
        progress = BulkProgress.model_validate_json(self._loader.progress())
        if not self._starting.is_done:
            return Copied(state="connecting", progress=progress)
        if not self._loader.wait(0):
            return Copied(state="running", progress=progress)
        with loader_errors():
            result = BulkResult.model_validate_json(bytes_shown_in_json(self._loader.result()))
        return Copied(state="ended", progress=progress, result=result)

    def stop(self) -> None:
        """Have the streams withdraw what they are sending."""
        self._loader.stop()

    def end(self) -> None:
        """Stop, and wait until the connections are closed."""
        self._loader.stop()
        self._loader.wait(_END_TIMEOUT_S)

    def _start(self) -> None:
        with loader_errors():
            self._loader.start()


class Agent:
    """The state of one agent: at most one load, or one part of a dataset."""

    def __init__(self) -> None:
        self._load: PartDriver | None = None
        self._starting: Starting | None = None
        self._ledger: AgentLedger | None = None
        self._recording: AgentRecording | None = None
        self._copy: AgentCopy | None = None
        self._is_told = False
        self._usage = UsageWatch()
        self._of_drivers = ExitStack()

    def answer(self, request: Request, received_ns: int, binary: bytes) -> tuple[Reply, bytes]:
        """Return the reply to a request that came at `received_ns` of the monotonic clock, with `binary` behind it."""
        try:
            match request.kind:
                case "clock":
                    return ClockReading(received_ns=received_ns, sent_ns=time.monotonic_ns()), b""
                case "hello":
                    return hello(), b""
                case "reach":
                    return reach(request.connection), b""
                case "recording":
                    if self._recording is None:
                        self._recording = AgentRecording()
                    self._recording.add(binary)
                    return Done(), b""
                case "prepare":
                    return self._prepare(request.load, request.driver), b""
                case "poll":
                    return self._poll()
                case "go":
                    load = self._of_load()
                    if request.at_ns < time.monotonic_ns():
                        raise PlinthError("the agent was told of the start only when it was over: it is late")
                    load.go(request.at_ns)
                    self._is_told = True
                    return Done(), b""
                case "measure":
                    return Measuring(warmup_ns=self._of_load().begin_measuring(request.at_ns)), b""
                case "stop":
                    (self._copy or self._of_load()).stop()
                    return Done(), b""
                case "collect":
                    return Collected(result=self._of_load().result(), usage=self._usage.usage()), b""
                case "ledger":
                    if self._ledger is None or not self._of_load().wait(0):
                        raise PlinthError("the agent has no ledger that is complete")
                    return self._ledger.piece(request.number, request.offset)
                case "copy":
                    self._copy = self._new_copy(request.bulk)
                    return Done(), b""
                case "copied":
                    return Copied() if self._copy is None else self._copy.state(), b""
        except PlinthError as error:
            return Reply(refused=in_one_line(error)), b""

    def end(self) -> None:
        """End the load, if one runs: its connections are closed."""
        if self._load is not None:
            self._load.stop()
            with suppress(RunError):  # the process of a driver was broken already
                self._load.wait(_END_TIMEOUT_S)
        self._of_drivers.close()
        if self._ledger is not None:
            self._ledger.close()
        if self._recording is not None:
            self._recording.close()
        if self._copy is not None:
            self._copy.end()

    def _new_copy(self, config_json: str) -> AgentCopy:
        if self._load is not None or self._copy is not None:
            raise PlinthError("an agent sends the rows of one part")
        return AgentCopy(config_json)

    def _of_load(self) -> PartDriver:
        if self._load is None:
            raise PlinthError("the agent has no load; it is to be prepared first")
        return self._load

    def _prepare(self, config: LoadConfig | None, driver: Driver) -> Reply:
        if config is None or config.part is None or self._load is not None or self._copy is not None:
            raise PlinthError("an agent takes one part of a load")
        changes: dict[str, object] = {"shell_user": _shell_user_of(config)}
        if config.ledger is not None:
            self._ledger = AgentLedger()
            changes["ledger"] = config.ledger.model_copy(update={"folder": str(self._ledger.folder)})
        if config.replay is not None:
            if self._recording is None:
                raise PlinthError("the agent has no replay file; it is to be sent first")
            changes["replay"] = config.replay.model_copy(update={"file": self._recording.path})
        if driver == "sqlalchemy":
            require_package(driver, f"driver {driver!r}")
        log = self._of_drivers.enter_context(log_in_memory())
        self._load = make_load(driver, config.model_copy(update=changes), Runner(), log)
        self._starting = Starting(self._start)
        return Done()

    def _start(self) -> None:
        self._of_load().start()
        if self._ledger is not None:
            self._ledger.hold()

    def _poll(self) -> tuple[Reply, bytes]:
        load, starting = self._load, self._starting
        if load is None or starting is None:
            return Polled(state="idle"), b""
        if starting.failure is not None:
            return Polled(state="failed", failure=starting.failure), b""
        if not starting.is_done:
            return Polled(state="connecting"), b""
        if not self._is_told:
            return Polled(state="connected", driver=load.driver), b""
        progress = load.progress()
        has_ended = progress.phase == "done"
        if not has_ended:
            self._usage.look(progress.phase == "measure", load.processes)
        # Histograms of the rows that the progress has, and maybe of one that was finished since.
        return Polled(state="ended" if has_ended else "running", progress=progress), load.take_histograms()


def in_one_line(error: PlinthError) -> str:
    """Return the error with the last of its further lines, in which a program that broke says why."""
    return ("; ".join((str(error), *error.details[-1:])) or type(error).__name__)[:MAX_REASON]


def _shell_user_of(config: LoadConfig) -> ShellUser | None:
    """Return who runs shell commands of scripts on this machine: where the agent is root, the user who runs servers here."""
    sources = [script.source for script in config.scripts if isinstance(script, LoadScript)]
    return shell_user() if any(command in source for command in SHELL_COMMANDS for source in sources) else None


def hello() -> Hello:
    """Return who and what this process is."""
    return Hello(
        plinth=__version__,
        python=platform.python_version(),
        host=socket.gethostname(),
        cores=len(os.sched_getaffinity(0)),
        pid=os.getpid(),
        wall_clock_ns=time.time_ns(),
    )


def reach(connection: Connection | None) -> Reached:
    """Return whether the server answers from here."""
    if connection is None:
        raise PlinthError("there is no server to reach")
    config = LoadConfig(
        connection=connection,
        scripts=[LoadScript(name="reach", source="SELECT 1;")],
        transactions_per_client=_REACH_TRANSACTIONS,
        connect_timeout_s=_REACH_TIMEOUT_S,
    )
    load = Load(config)
    try:
        load.start()
        if not load.wait(_REACH_TIMEOUT_S):
            load.stop()
            return Reached(error=f"no answer to SELECT 1 within {_REACH_TIMEOUT_S:g} s")
        outcome = load.outcome()
        if not outcome.result.measured.done:
            errors = [one.message for one in outcome.result.errors if one.message]
            return Reached(error=errors[0][:MAX_REASON] if errors else "nothing was done")
        round_trip_ns = outcome.transactions().percentile_ns(0.5)
        return Reached(server_version=outcome.result.engine.server_version, round_trip_ns=round_trip_ns)
    except PlinthError as error:
        return Reached(error=in_one_line(error).removeprefix(OF_ENGINE))


def _is_socket(descriptor: int) -> bool:
    return stat.S_ISSOCK(os.fstat(descriptor).st_mode)


def _joined(read: int, write: int) -> socket.socket:
    """Return one end of a socket pair, whose other end two threads join to what is read and written. They end with the pipes."""
    ours, theirs = socket.socketpair()

    def to_us() -> None:
        while piece := os.read(read, 65536):
            theirs.sendall(piece)
        theirs.shutdown(socket.SHUT_WR)

    def from_us() -> None:
        while piece := theirs.recv(65536):
            left = memoryview(piece)
            while left:
                left = left[os.write(write, left) :]

    for pump in (to_us, from_us):
        threading.Thread(target=_quietly, args=(pump,), daemon=True).start()
    return ours


def _quietly(pump: Callable[[], None]) -> None:
    try:
        pump()
    except OSError:  # the other side has ended, which the link sees
        return


def main(words: Sequence[str]) -> int:
    """Run the hidden command `plinth agent`, whose standard streams are the connection to the coordinator."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C at the coordinator reaches a local agent as well; it decides
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    match words:
        case []:
            return serve(connection_of_standard_streams())
        case _:
            sys.stderr.write("error: plinth agent is started by a coordinator, and takes no arguments from people\n")
            return 2


_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_IDLE_MODES = (3, 4)
_MODES = 8
_NAME = "plinth-load"


class _Look(NamedTuple):
    at_ns: int
    host_total_s: float
    host_idle_s: float
    threads: dict[str, int]
    """CPU time and time in the run queue of each engine thread, or each client of a driver, in ns."""


@dataclass
class UsageWatch:
    """The first and the last look of the measured phase."""

    _first: _Look | None = None
    _last: _Look | None = None

    def look(self, is_measuring: bool, processes: Sequence[int] = ()) -> None:
        """Take a look if the load is being measured. `processes` are those of a driver; the first only waits for the others."""
        if not is_measuring:
            return
        look = _look(processes[1:])
        if self._first is None:
            self._first = look
        elif look.threads:  # threads that have ended leave nothing to be read
            self._last = look

    def usage(self) -> Usage:
        """Return the shares between the two looks; unknown where there were none."""
        first, last = self._first, self._last
        if first is None or last is None:
            return Usage()
        total_s = last.host_total_s - first.host_total_s
        idle_s = last.host_idle_s - first.host_idle_s
        threads = first.threads.keys() & last.threads.keys()
        spent_ns = sum(last.threads[thread] - first.threads[thread] for thread in threads)
        time_ns = (last.at_ns - first.at_ns) * len(threads)
        return Usage(
            engine_busy=min(1.0, spent_ns / time_ns) if time_ns else None,
            host_busy=min(1.0, max(0.0, 1 - idle_s / total_s)) if total_s > 0 else None,
        )


def _look(clients: Sequence[int]) -> _Look:
    fields = [int(ticks) * _TICK_S for ticks in Path("/proc/stat").read_text().splitlines()[0].split()[1 : 1 + _MODES]]
    threads = {}
    for task in (*_engine_threads(), *(Path(f"/proc/{client}") for client in clients)):
        with suppress(OSError):  # it ended meanwhile
            worked_ns, waited_ns, _ = (task / "schedstat").read_text().split()
            threads[task.name] = int(worked_ns) + int(waited_ns)
    return _Look(monotonic_ns(), sum(fields), sum(fields[mode] for mode in _IDLE_MODES), threads)


def _engine_threads() -> Iterator[Path]:
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it ended meanwhile
            if (task / "comm").read_text().startswith(_NAME):
                yield task
