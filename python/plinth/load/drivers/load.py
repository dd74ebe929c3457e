"""A load by a driver, with the interface of `plinth.load.Load`."""

import contextlib
import select
import sys
import time
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from plinth.load.drivers.messages import Order, Started
from plinth.model.errors import RunError
from plinth.model.load import LoadProgress, LoadResult, Second
from plinth.model.load_config import LoadConfig
from plinth.model.workload import Driver
from plinth.system import cancel
from plinth.system.log_file import LogFile
from plinth.system.process import Child
from plinth.system.runner import Runner

_POLL_S = 0.1
_LOG_LINES, _LOG_BYTES = 20, 64 * 1024
_NOTHING_YET = LoadProgress(
    elapsed_ns=0,
    phase="connect",
    done=0,
    failed=0,
    retried=0,
    clients_open=0,
    seconds=(),
    events=(),
    events_dropped=0,
)


class DriverLoad:
    """A closed loop of one script by `config.clients` processes of a driver, or by those of a part of it.

    They end with us, however that comes. `log` gets what they print, which is nothing as long as all is well.
    """

    def __init__(self, driver: Driver, config: LoadConfig, runner: Runner, log: LogFile) -> None:
        self._order = Order(driver=driver, load=config)
        self._runner = runner
        self._log = log
        self._process: Child | None = None
        self._pipe: Connection | None = None
        self._started: Started | None = None
        self._has_begun = config.part is None
        self._progress = _NOTHING_YET
        self._seconds: list[Second] = []
        self._histograms = bytearray()
        self._result: LoadResult | None = None

    def start(self) -> None:
        """Return when the load runs, or the clients of a part are connected. Raises RunError if no client connects."""
        ours, theirs = Pipe()
        with theirs:
            number = theirs.fileno()
            argv = [sys.executable, "-m", "plinth.load.drivers", str(number)]
            # It need not be in the journal: it ends when nobody holds the other end of the pipe any more.
            self._process = self._runner.spawn(argv, log=self._log, pass_fds=[number])
        self._pipe = ours
        with contextlib.suppress(BrokenPipeError):  # its last output has the reason
            self._pipe.send_bytes(self._order.model_dump_json().encode())
        while self._started is None:
            self._receive(_POLL_S)
        if self._started.failure is not None:
            self._end()
            code = self._started.sqlstate
            state = f" (SQLSTATE {code})" if code else ""
            raise RunError(f"the load could not run: no client could connect: {self._started.failure}{state}")

    @property
    def processes(self) -> tuple[int, ...]:
        """The pids of the clients and of the process that they come from; none before it runs, or once it has ended."""
        return () if self._started is None or self._process is None else self._started.processes

    @property
    def driver(self) -> str | None:
        """Name and version of the driver, once clients are connected."""
        return None if self._started is None else self._started.driver

    def go(self, at_monotonic_ns: int) -> None:
        """Begin a part of a load, whose clients `start` has connected, at an instant of this machine's monotonic clock."""
        if self._pipe is None or self._started is None or self._has_begun:
            raise RunError("the load is no part of one that is connected and has not begun")
        with contextlib.suppress(BrokenPipeError):  # its process has ended, which the next progress says
            self._pipe.send_bytes(f"go {at_monotonic_ns}".encode())
        self._has_begun = True

    def take_histograms(self) -> bytes:
        """Return the histograms of each second that a part of a load has finished since the last call, as
        `plinth._native.LoadRun.take_histograms` describes them."""
        taken = bytes(self._histograms)
        self._histograms.clear()
        return taken

    def progress(self) -> LoadProgress:
        """Return the progress, and the seconds since the last call."""
        while self._pipe is not None and self._result is None and self._pipe.poll():
            self._receive(0)
        seconds, self._seconds = self._seconds, []
        phase = self._progress.phase if self._result is None else "done"
        return self._progress.model_copy(update={"seconds": tuple(seconds), "phase": phase})

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end for at most `timeout_s` seconds; return whether the load has ended. Raises RunError if it crashed."""
        deadline = time.monotonic() + timeout_s
        while self._process is not None and self._result is None and (left_s := deadline - time.monotonic()) > 0:
            self._receive(left_s)
        if self._result is not None:
            self._end()
        return self._process is None

    def begin_measuring(self, not_before_ns: int = 0) -> int:
        """Raises RunError: clients are told when the warm-up ends before it begins. Such a load is refused in the plan."""
        raise RunError("a load by a driver has a warm-up of fixed length")

    def stop(self) -> None:
        """Stop the load and return at once. Running transactions may finish within `stop_timeout_s`."""
        if self._pipe is None:
            return
        if self._started is None or not self._has_begun:
            self._end()
            return
        with contextlib.suppress(BrokenPipeError):  # it has just ended
            self._pipe.send_bytes(b"stop")

    def result(self) -> LoadResult:
        """Return the results. Raises RunError while the load runs."""
        if self._result is None:
            raise RunError("the load has not ended")
        return self._result

    def _receive(self, timeout_s: float) -> None:
        """Receive one message, if one arrives in time."""
        assert self._pipe is not None
        try:
            if not cancel.poll({self._pipe.fileno(): select.POLLIN}, timeout_s):
                return
            kind, _, document = self._pipe.recv_bytes().partition(b" ")
        except (EOFError, ConnectionResetError) as error:
            raise self._broken() from error
        match kind:
            case b"started" | b"failed":
                self._started = Started.model_validate_json(document)
            case b"histograms":
                self._histograms += document
            case b"progress":
                self._progress = LoadProgress.model_validate_json(document)
                self._seconds += self._progress.seconds
            case _:
                self._result = LoadResult.model_validate_json(document)

    def _end(self) -> None:
        """Close the pipe, which ends the process."""
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            pipe.close()
        process, self._process = self._process, None
        if process is not None:
            process.wait()

    def _broken(self) -> RunError:
        """Raise the error that the process ended prematurely."""
        process = self._process
        self._end()
        return RunError(
            f"the driver's process ended with exit code {process.wait() if process else 'n/a'}",
            where=f"driver {self._order.driver}",
            details=self._log.tail(_LOG_BYTES).splitlines()[-_LOG_LINES:],
        )
