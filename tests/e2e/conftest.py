"""The command as a user runs it: a project folder, a state directory of its own, and what must not be left behind."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import psycopg
import pytest

from plinth.system.log_file import LogFile
from plinth.system.mounts import mounts_within
from plinth.system.owner import server_owner
from plinth.system.process import Child
from plinth.system.runner import Runner
from prepared_plinth import PreparedProcess, run_prepared
from servers import all_installations

EXPERIMENT = """\
spec = 1
name = "quick"
question = "Is memory faster than disk?"

[storage.disk]
kind = "directory"
[storage.memory]
kind = "tmpfs"
size = "1GiB"

[dataset]
kind = "tpcb"
scale = 1

[workload]
builtin = "tpcb-like"
clients = 4

[matrix]
storage = ["disk", "memory"]

[measure]
warmup = "100ms"
duration = "400ms"
repeats = 1
aa = false
probe = "10ms"
"""


class Running:
    """A `plinth` that was started; its stderr is read line by line as it comes."""

    def __init__(self, process: subprocess.Popen[str] | PreparedProcess) -> None:
        self.process = process
        self.lines: list[str] = []
        self._queue: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._queue.put(line)
        self._queue.put(None)

    def wait_for(self, text: str, timeout_s: float = 60) -> str:
        """The first further line on stderr that holds `text`."""
        deadline = time.monotonic() + timeout_s
        while True:
            line = self._queue.get(timeout=max(0.01, deadline - time.monotonic()))
            assert line is not None, f"ended before it said {text!r}:\n{''.join(self.lines)}"
            self.lines.append(line)
            if text in line:
                return line

    def next_line(self, timeout_s: float = 90) -> str | None:
        """The next line on stderr; None when it has closed it."""
        line = self._queue.get(timeout=timeout_s)
        if line is not None:
            self.lines.append(line)
        else:
            self._queue.put(None)  # for `end`
        return line

    def end(self, timeout_s: float = 90) -> tuple[int, str]:
        """Exit code and all of stderr, once it has ended."""
        code = self.process.wait(timeout_s)
        while (line := self._queue.get(timeout=10)) is not None:
            self.lines.append(line)
        return code, "".join(self.lines)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)


class Project:
    """A folder with an experiment file; commands run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.bundle = folder / "bundle"
        self.started: list[Running] = []
        self.experiment = EXPERIMENT
        self.write(self.experiment)

    def write(self, text: str) -> None:
        (self.folder / "x.toml").write_text(text)

    def environment(self, **changes: str) -> dict[str, str]:
        return {**os.environ, "NO_COLOR": "1", "COLUMNS": "200", "PLINTH_STATE_DIR": str(self.state), **changes}

    def plinth(self, *words: object, timeout_s: float = 120, prefix: tuple[str, ...] = (), **env: str):
        """Run a command to its end; one with a `prefix` in a process of its own."""
        if not prefix:
            return run_prepared(words, self.folder, self.environment(**env), timeout_s)
        return subprocess.run(
            [*prefix, sys.executable, "-m", "plinth", *map(str, words)],
            cwd=self.folder,
            env=self.environment(**env),
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )

    def run(self, *words: object, **kwargs):
        """`plinth run x.toml` to its end."""
        return self.plinth("run", "x.toml", "--bundle", self.bundle, *words, **kwargs)

    def whole_report(self) -> str:
        """`plinth report --full`, in one line."""
        done = self.plinth("report", self.bundle, "--full")
        assert done.returncode == 0, done.stderr
        return " ".join(done.stdout.split())

    def start(
        self,
        *words: object,
        command: tuple[object, ...] | None = None,
        program: tuple[str, ...] = (),
        stdout: int | IO[str] = subprocess.DEVNULL,
    ) -> Running:
        """`plinth run x.toml`, left running; `program`: what a Python of its own runs instead."""
        arguments = command or ("run", "x.toml", "--bundle", self.bundle, *words)
        if program:
            process = subprocess.Popen(
                [sys.executable, *program, *map(str, arguments)],
                cwd=self.folder,
                env=self.environment(),
                stdout=stdout,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        else:
            process = PreparedProcess(arguments, self.folder, self.environment(), stdout)
        running = Running(process)
        self.started.append(running)
        return running

    def trials(self, bundle: Path | None = None) -> list[dict]:
        """The trial.json of every trial, in order."""
        return [
            json.loads(path.read_text()) for path in sorted((bundle or self.bundle).glob("trials/[0-9]*/trial.json"))
        ]

    def status(self) -> str:
        return json.loads((self.bundle / "manifest.json").read_text())["status"]

    def postmasters(self) -> list[int]:
        """The pids of the servers that run on this project's storages."""
        found = []
        for path in self.state.glob("work/*/*/postmaster.pid"):
            try:
                words = path.read_text().split()
            except FileNotFoundError:  # stopped in this very moment
                continue
            found += map(int, words[:1])  # none in the moment between its making and its first line
        return found

    def left_behind(self) -> list[str]:
        """What a run should have undone: journals, storages, mounts, loop devices, servers and other daemons."""
        left = [str(path) for path in self.state.glob("journal/*.jsonl")]
        left += [str(path) for path in self.state.glob("work/*")]
        left += [str(mount.point) for mount in mounts_within(self.folder) if mount.source != "plinth-test"]
        left += [str(image) for image in attached_images() if image.is_relative_to(self.folder)]
        for process in Path("/proc").glob("[0-9]*"):  # "[0-9]*/cmdline" would fail at one that ends meanwhile
            try:
                words = (process / "cmdline").read_bytes()
            except OSError:  # it has ended
                continue
            if str(self.state).encode() in words and any(
                one in words for one in (b"postgres", b"serve", b"etcd", b"patroni")
            ):
                left.append(words.replace(b"\0", b" ").decode())
        return left


def attached_images() -> list[Path]:
    """The files that back loop devices. From sysfs: losetup waits for a file system that does not answer."""
    found = []
    for entry in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):  # it has just been detached
            found.append(Path(entry.read_text().strip()))
    return found


@pytest.fixture
def project(scratch: Path) -> Iterator[Project]:
    """A project; what a failed test leaves behind is cleaned up by Plinth itself."""
    with project_in(scratch) as made:
        yield made


@pytest.fixture
def repeated(project: Project) -> None:
    """Gives the project's experiment two trials of each variant, and the A/A pair."""
    project.write(project.experiment.replace("repeats = 1\naa = false", "repeats = 2"))


@pytest.fixture(scope="module")
def module_project(module_scratch: Path) -> Iterator[Project]:
    """As `project`, for a run that all tests of a module share."""
    with project_in(module_scratch) as made:
        yield made


@contextlib.contextmanager
def project_in(folder: Path) -> Iterator[Project]:
    made = Project(folder)
    yield made
    for running in made.started:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait()
    if made.left_behind():  # it costs as much as a small test
        made.plinth("clean")


@pytest.fixture
def nothing_left(project: Project) -> Callable[[], None]:
    def check() -> None:
        assert project.left_behind() == []

    return check


@pytest.fixture
def interrupt() -> int:
    return signal.SIGINT


@pytest.fixture
def service(scratch: Path) -> Iterator[tuple[str, Path]]:
    """A running server, by connection string and by a service file that names it."""
    owner, runner = server_owner(), Runner()
    bindir = Path(all_installations(owner, runner)["debian"].bindir)
    home = scratch / "theirs"
    home.mkdir()
    if not owner.is_current_user:
        os.chown(home, owner.uid, owner.gid)
    data = home / "data"
    runner.run([str(bindir / "initdb"), "-D", str(data), "-U", "bench", "--auth=trust", "-E", "SQL_ASCII"], owner=owner)
    server = runner.spawn(
        [str(bindir / "postgres"), "-D", str(data), "-k", str(home), "-c", "listen_addresses="],
        owner=owner,
        cwd=data,
        log=LogFile(scratch / "theirs.log"),
    )
    try:
        string = f"host={home} user=bench dbname=postgres client_encoding=UTF8"
        wait_until_ready(string, server)
        services = scratch / "pg_service.conf"
        services.write_text(f"[mine]\nhost={home}\nuser=bench\ndbname=postgres\n")
        yield string, services
    finally:
        os.kill(server.pid, signal.SIGTERM)
        server.wait()


def wait_until_ready(string: str, server: Child) -> None:
    while True:
        assert not server.has_ended(), "the server ended"
        try:
            psycopg.connect(string).close()
        except psycopg.OperationalError:
            continue
        return
