"""The command `plinth` without its start: each is forked from a process that has imported what commands import.

A command in a new process takes 0.5 s of CPU to import and to make the schemas of its models, which a plan that is refused hardly adds to.
What starts, reads signals or ends in a special way is tested with a new process: `Project.start`, tests/cli/test_standard_streams.py.
"""

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

from initdb_copies import copied_data_directories

_PREPARATION = """\
spec = 1
name = "prepared"
question = "Is this prepared?"
storage.a.kind = "directory"
dataset = { kind = "tpcb", scale = 1 }
workload.builtin = "tpcb-like"
matrix.storage = ["a"]
"""
_OF_RUNS = ("duckdb", "numpy", "psycopg", "plinth.analyse", "plinth.bundle", "plinth.report", "plinth.run.conduct")
_NUMBER = struct.Struct("i")
_lock = threading.Lock()
_server: "tuple[int, socket.socket] | None" = None


class PreparedProcess:
    """A command under way in its own session; as far as subprocess.Popen's, its methods are the same."""

    def __init__(
        self,
        words: Sequence[object],
        folder: Path | None,
        environment: Mapping[str, str],
        stdout: int | IO[Any] = subprocess.PIPE,
        stderr: int | IO[Any] = subprocess.PIPE,
    ) -> None:
        self.args = ["plinth", *map(str, words)]
        self.returncode: int | None = None
        request = {"argv": self.args, "folder": str(folder or Path.cwd()), "environment": dict(environment)}
        body = json.dumps(request).encode()
        self._ended, its_end = socket.socketpair()
        with its_end, contextlib.ExitStack() as its_streams:
            self.stdout, its_stdout = _stream(stdout, its_streams)
            self.stderr, its_stderr = _stream(stderr, its_streams)
            with _lock:
                message = [_NUMBER.pack(len(body)) + body]
                socket.send_fds(_running_server(), message, [its_stdout, its_stderr, its_end.fileno()])
        self.pid = _received(self._ended)

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, or a signal's number below zero, once it has ended."""
        if self.returncode is None:
            self._ended.settimeout(timeout)
            try:
                self.returncode = _received(self._ended)
            except TimeoutError as error:
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from error
            self._ended.close()
        return self.returncode

    def poll(self) -> int | None:
        """The exit code if it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(1e-6)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal unless it is known to have ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def run_prepared(
    words: Sequence[object], folder: Path | None, environment: Mapping[str, str], timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run a command line to its end, as subprocess.run does with text. A timeout kills it."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = PreparedProcess(words, folder, environment, stdout, stderr)
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            print(_text(stdout), _text(stderr))
            raise
        return subprocess.CompletedProcess(process.args, code, _text(stdout), _text(stderr))


def _stream(asked: int | IO[Any], its_streams: contextlib.ExitStack) -> tuple[Any, int]:
    """Our end of a pipe, if one is asked for, and its descriptor, which may be closed once it was sent."""
    if asked == subprocess.PIPE:
        ours, its = os.pipe()
        its_streams.callback(os.close, its)
        return os.fdopen(ours), its
    if asked == subprocess.DEVNULL:
        return None, its_streams.enter_context(Path(os.devnull).open("w")).fileno()
    return None, asked if isinstance(asked, int) else asked.fileno()


def _received(connection: socket.socket) -> int:
    received = connection.recv(_NUMBER.size, socket.MSG_WAITALL)
    assert received, "the process that commands are forked from has ended"
    return _NUMBER.unpack(received)[0]


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def _running_server() -> socket.socket:
    """A child of this very process: one of the parent's would not be in the namespaces that a forked child has entered."""
    global _server
    if _server is None or _server[0] != os.getpid():
        ours, its = socket.socketpair()
        with its:
            subprocess.Popen(
                [sys.executable, __file__, str(its.fileno())], pass_fds=[its.fileno()], start_new_session=True
            )
        atexit.register(ours.close)  # which ends it
        _server = (os.getpid(), ours)
    return _server[1]


def _serve(requests: socket.socket) -> None:
    """Fork a process for each request, until the tests have ended."""
    _prepare()
    with copied_data_directories():
        _fork_each(requests)


def _fork_each(requests: socket.socket) -> None:
    """Fork a process for each request, until there can be none any more."""
    signal.signal(
        signal.SIGCHLD, signal.SIG_IGN
    )  # not before: the plan waits for processes, of which nothing would be left
    while head := socket.recv_fds(requests, _NUMBER.size, 3, socket.MSG_WAITALL):
        size, descriptors = head[0], head[1]
        if not size:
            return
        request = json.loads(requests.recv(_NUMBER.unpack(size)[0], socket.MSG_WAITALL))
        if os.fork() == 0:
            requests.close()
            _run_and_report(request, *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _prepare() -> None:
    """Plan an experiment, and import what a run imports besides."""
    from plinth.__main__ import main

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.toml")
        path.write_text(_PREPARATION)
        sys.argv = ["plinth", "plan", str(path), "--json"]
        with contextlib.redirect_stdout(io.StringIO()):
            assert main() == 0
    for name in _OF_RUNS:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # what is there is never visited again: a visit writes to every object, and so copies the memory of each command


def _run_and_report(request: Any, stdout: int, stderr: int, report: int) -> NoReturn:
    """In a child of the server: run the command in another child, and report its id and its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with socket.socket(fileno=report) as reporting:
        pid = os.fork()
        if pid == 0:
            reporting.close()
            _run(request, stdout, stderr)
        reporting.send(_NUMBER.pack(pid))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        reporting.send(_NUMBER.pack(code))
    os._exit(0)


def _run(request: Any, stdout: int, stderr: int) -> NoReturn:
    """Become the command, which ends as Python ends: what it raises ends this process too."""
    from plinth.__main__ import main

    os.setsid()
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    os.closerange(3, max(stdout, stderr) + 1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    tempfile.tempdir = None  # as kept from the environment of before
    sys.argv = request["argv"]
    code = main()
    # As Python ends, but for the memory: to take it apart copies that of the process that was forked first.
    threading._shutdown()  # type: ignore[attr-defined]  # pyright: ignore
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
    os._exit(0)  # DuckDB would complain of what the collector does not visit
