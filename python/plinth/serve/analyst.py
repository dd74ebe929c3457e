"""Analyses bundles in a separate process: in the server's it would hold Python's global lock, and with it all pages, and could
not be ended.

`python -m plinth.serve.analyst FD NICENESS` is that process. It ends when nobody holds the other end of the pipe FD any more.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

from plinth.bundle import BundleFolder
from plinth.model.choices import Metric
from plinth.model.errors import PlinthError, RunError
from plinth.report import build_report, render_html
from plinth.system.log_file import LogFile
from plinth.system.process import Child
from plinth.system.runner import Runner
from plinth.tasks.analysis import analyse_bundle
from plinth.tasks.compare import compare_bundles
from plinth.tasks.history import INCONSISTENT, answer_or_reason

METRICS: tuple[Metric, ...] = ("tps", "latency_p99")
"""Metrics of a comparison; the command line compares others, too."""
Task = Literal["answer", "report", "comparison"]


class Analyst:
    """The process, which does one task at a time; started with the first, and again after it was killed."""

    def __init__(self, niceness: int = 0) -> None:
        self._niceness = niceness
        self._process: Child | None = None
        self._pipe: Connection | None = None
        self._is_closed = False
        self._changing = threading.Lock()
        self._working = threading.Lock()

    def do(self, task: Task, root: BundleFolder, names: Sequence[str]) -> Any:
        """Return the result of a task with the bundles `names` below `root`, as JSON. Blocks until it is done, or `close` was called.

        Raises RunError with what the task reports, and if its process was killed: by the kernel for its memory, by a user, or by `close`.
        """
        with self._working:
            with self._changing:
                if self._is_closed:
                    raise RunError("the server was ended")
                if self._pipe is None:
                    self._start()
                pipe, process = self._pipe, self._process
            assert pipe is not None and process is not None
            try:
                pipe.send_bytes(json.dumps([task, str(root.path), list(names)]).encode())
                done = json.loads(pipe.recv_bytes())
            except (EOFError, OSError) as error:
                pipe.close()
                self._pipe = None
                raise RunError(f"its analysis ended with {_end_of(process)}") from error
        if "error" in done:
            raise RunError(**done["error"])
        return done["result"]

    def close(self) -> None:
        """Kill the process; it writes nothing but its cache, by renaming."""
        with self._changing:
            self._is_closed = True
            if self._process is not None and not self._process.has_ended():
                os.kill(self._process.pid, signal.SIGKILL)

    def _start(self) -> None:
        ours, theirs = Pipe()
        with theirs:
            number = theirs.fileno()
            output = LogFile(Path("analyst"), lambda _: os.memfd_create("analyst", os.MFD_CLOEXEC))
            argv = [sys.executable, "-m", __name__, str(number), str(self._niceness)]
            # It need not be in the journal: it ends when nobody holds the other end of the pipe any more.
            self._process = Runner().spawn(argv, log=output, pass_fds=[number])
        self._pipe = ours


def _end_of(process: Child) -> str:
    code = process.wait()
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"


def _answer(bundles: Sequence[BundleFolder]) -> Any:
    answer, missing = answer_or_reason(bundles[0])
    return [answer and answer.model_dump(), missing]


def _report(bundles: Sequence[BundleFolder]) -> Any:
    return render_html(build_report(*analyse_bundle(bundles[0])))


def _comparison(bundles: Sequence[BundleFolder]) -> Any:
    return compare_bundles(bundles, baseline=None, metrics=METRICS, allowed=()).model_dump(mode="json")


_TASKS: dict[Task, Callable[[Sequence[BundleFolder]], Any]] = {
    "answer": _answer,
    "report": _report,
    "comparison": _comparison,
}


def _done(task: Task, root: str, names: Sequence[str]) -> dict[str, Any]:
    try:
        folder = BundleFolder(Path(root))
        return {"result": _TASKS[task]([folder.folder(name) if name else folder for name in names])}
    except PlinthError as error:
        reported = {"message": error.message, "where": error.where, "hint": error.hint, "details": error.details}
    except INCONSISTENT as error:
        reason = f"the parts of the bundle contradict one another: {type(error).__name__}: {error}"
        reported = {"message": reason}
    except Exception as error:  # noqa: BLE001 - one bundle must not keep all others from being analysed
        reported = {"message": f"{type(error).__name__}: {error}"}
    return {"error": reported}


def main(number: int, niceness: int) -> int:
    """Do each task that comes through the pipe with this descriptor."""
    os.set_inheritable(number, False)
    os.nice(niceness)
    pipe = Connection(number)
    try:
        while True:
            pipe.send_bytes(json.dumps(_done(*json.loads(pipe.recv_bytes()))).encode())
    except (EOFError, BrokenPipeError):  # the server has ended
        return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
