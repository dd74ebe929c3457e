"""Every wait ends on SIGINT and SIGTERM: for servers and machines that do not answer, for locks, for what a shell hands over."""

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plinth.exit_codes import INTERRUPTED
from ramdisk_experiment import VALID
from waiting import wait_until

BOUND_S = 60
SIGNALS = (signal.SIGINT, signal.SIGTERM)
ENDED = (INTERRUPTED, -signal.SIGINT, -signal.SIGTERM)


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(BOUND_S)
        yield listening


@contextlib.contextmanager
def started(
    *words: object, cwd: Path, stdin: int = subprocess.DEVNULL, **environment: str
) -> Iterator[subprocess.Popen[str]]:
    env = {**os.environ, "NO_COLOR": "1", "PLINTH_STATE_DIR": str(cwd / "state"), **environment}
    process = subprocess.Popen(
        [sys.executable, "-m", "plinth", *map(str, words)],
        cwd=cwd,
        env=env,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def ends(process: subprocess.Popen[str], number: signal.Signals) -> None:
    process.send_signal(number)
    said = process.communicate(timeout=BOUND_S)[1]
    assert process.returncode in ENDED, (process.returncode, said)
    assert "Traceback" not in said


def external(folder: Path, silent: socket.socket) -> Path:
    head, tables = (
        VALID.split("[storage.disk]")[0],
        VALID.partition("[dataset]")[2].replace('storage = ["disk", "memory"]\n', ""),
    )
    file = folder / "external.toml"
    file.write_text(f'{head}[server]\nconnection = "host=127.0.0.1 port={port_of(silent)}"\n[dataset]{tables}')
    return file


def port_of(listening: socket.socket) -> int:
    return listening.getsockname()[1]


def hosts(folder: Path, silent: socket.socket) -> Path:
    file = folder / "hosts.toml"
    host = f'kind = "directory"\nhost = "one"\n[host.one]\naddress = "ssh://127.0.0.1:{port_of(silent)}"'
    file.write_text(VALID.replace('kind = "directory"', host))
    return file


TO_SILENT: dict[str, Callable[[Path, socket.socket], list[object]]] = {
    "plan of an external server": lambda folder, silent: ["plan", external(folder, silent)],
    "run on an external server": lambda folder, silent: ["run", external(folder, silent)],
    "bench": lambda _, silent: ["bench", "-h", "127.0.0.1", "-p", port_of(silent)],
    "durability load": lambda _, silent: [
        *("durability", "load", f"host=127.0.0.1 port={port_of(silent)}", "--witness", f"127.0.0.1:{port_of(silent)}"),
        *("--fingerprint", f"sha256:{'0' * 64}"),
    ],
    "host check by ssh": lambda folder, silent: ["host", "check", hosts(folder, silent)],
    "plan of a host by ssh": lambda folder, silent: ["plan", hosts(folder, silent)],
}


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("words", TO_SILENT.values(), ids=TO_SILENT)
def test_what_waits_for_a_server_that_says_nothing_ends(
    tmp_path: Path, silent: socket.socket, words: Callable[[Path, socket.socket], list[object]], number: signal.Signals
) -> None:
    with started(*words(tmp_path, silent), cwd=tmp_path, PLINTH_WITNESS_TOKEN="x" * 32) as process:
        connection, _ = silent.accept()
        with connection:
            ends(process, number)


HANDED: dict[str, list[object]] = {
    "bench -f -": ["bench", "-h", "/nowhere", "-f", "-"],
    "bench -f <(...)": ["bench", "-h", "/nowhere", "-f", "/dev/stdin"],
    "--token-file <(...)": [
        *("durability", "load", "host=/nowhere", "--witness", "127.0.0.1:1", "--fingerprint", f"sha256:{'0' * 64}"),
        *("--token-file", "/dev/stdin"),
    ],
    "--job-file <(...)": ["probe", "io", ".", "--job-file", "/dev/stdin"],
}


@pytest.mark.long
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("words", HANDED.values(), ids=HANDED)
def test_what_waits_for_what_a_shell_hands_over_ends(
    tmp_path: Path, words: list[object], number: signal.Signals
) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb"), os.fdopen(reading, "rb"), started(*words, cwd=tmp_path, stdin=reading) as process:
        pipe = os.fstat(reading)
        wait_until(lambda: _reads(process.pid, pipe), "that it reads")
        ends(process, number)


def _reads(pid: int, pipe: os.stat_result) -> bool:
    """Whether the process waits in read(2) of the pipe."""
    call, *arguments = Path(f"/proc/{pid}/syscall").read_text().split()
    if call != str(_READ):
        return False
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(Path(f"/proc/{pid}/fd/{int(arguments[0], 16)}").stat(), pipe)
    return False


_READ = {"x86_64": 0, "aarch64": 63}[os.uname().machine]


@pytest.mark.long
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("words", [["clean"], ["run", "x.toml"]], ids=["clean", "run"])
def test_what_waits_for_the_lock_of_the_journals_ends(
    tmp_path: Path, words: list[object], number: signal.Signals
) -> None:
    (tmp_path / "x.toml").write_text(VALID)
    journals = tmp_path / "state" / "journal"
    journals.mkdir(parents=True)
    held = os.open(journals, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with started("run", "x.toml", cwd=tmp_path) as process:
            wait_until(lambda: _has_open(process.pid, journals), "that it wants the lock")
            ends(process, number)
    finally:
        os.close(held)


def _has_open(pid: int, folder: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return any(os.path.realpath(entry) == str(folder) for entry in Path(f"/proc/{pid}/fd").iterdir())
    return False
