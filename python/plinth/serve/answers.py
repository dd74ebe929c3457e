"""Answers of bundles from a process of its own: an analysis in the server's would hold Python's global lock, and with it all pages.

`python -m plinth.serve.answers FD` is that process. It ends when nobody holds the other end of the pipe FD any more.
"""

import json
import os
import signal
import sys
import threading
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

from plinth.bundle import BundleFolder
from plinth.model.history import BundleAnswer
from plinth.system.log_file import LogFile
from plinth.system.process import Child
from plinth.system.runner import Runner
from plinth.tasks.history import answer_or_reason

Answered = tuple[BundleAnswer | None, str | None]
"""The answer of a bundle, or None and why there is none."""
_NICENESS = 10
"""Pages come first."""


class Answers:
    """The process that analyses bundles, one at a time; started when the first is asked for, and anew after it was killed."""

    def __init__(self) -> None:
        self._process: Child | None = None
        self._pipe: Connection | None = None
        self._is_closed = False
        self._changing = threading.Lock()

    def answer(self, root: BundleFolder, name: str) -> Answered:
        """The answer of the bundle `name` below `root`; blocks until its analysis has ended, or `close` was called."""
        with self._changing:
            if self._is_closed:
                return None, "the server was ended"
            if self._pipe is None:
                self._start()
            pipe, process = self._pipe, self._process
        assert pipe is not None and process is not None
        try:
            pipe.send_bytes(json.dumps([str(root.path), name]).encode())
            answer, missing = json.loads(pipe.recv_bytes())
        except (EOFError, OSError):  # it was killed: by the kernel for its memory, by a user, or by `close`
            pipe.close()
            self._pipe = None
            return None, f"its analysis ended with {_end_of(process)}"
        return answer and BundleAnswer.model_validate(answer), missing

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
            output = LogFile(Path("answers"), lambda _: os.memfd_create("answers", os.MFD_CLOEXEC))
            argv = [sys.executable, "-m", __name__, str(number)]
            # It need not be in the journal: it ends when nobody holds the other end of the pipe any more.
            self._process = Runner().spawn(argv, log=output, pass_fds=[number])
        self._pipe = ours


def _end_of(process: Child) -> str:
    code = process.wait()
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"


def _answered(root: str, name: str) -> Answered:
    try:
        folder = BundleFolder(Path(root))
        return answer_or_reason(folder.folder(name) if name else folder)
    except Exception as error:  # noqa: BLE001 - one bundle must not keep all others from being answered
        return None, f"{type(error).__name__}: {error}"


def main(number: int) -> int:
    """Answer for each bundle that is asked for through the pipe with this descriptor."""
    os.set_inheritable(number, False)
    os.nice(_NICENESS)
    pipe = Connection(number)
    try:
        while True:
            answer, missing = _answered(*json.loads(pipe.recv_bytes()))
            pipe.send_bytes(json.dumps([answer and answer.model_dump(), missing]).encode())
    except (EOFError, BrokenPipeError):  # the server has ended
        return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
