"""The tests have the same surroundings however they are started: each odd one is set here for a pytest of its own."""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from surroundings import ROOT

LOOK = """\
import json, os, resource, signal, subprocess, sys
from pathlib import Path

def test_look():
    status = subprocess.run(["cat", "/proc/self/status"], capture_output=True, text=True, check=True).stdout
    # Signals 32 and 33 are those of glibc's threads, whose disposition no program can set.
    of_programs = ~(1 << 31 | 1 << 32)
    masks = [
        f"{{int(line.split()[1], 16) & of_programs:016x}}"
        for line in status.splitlines()
        if line.startswith(("SigBlk", "SigIgn"))
    ]
    umask = subprocess.run(["sh", "-c", "umask"], capture_output=True, text=True, check=True).stdout.strip()
    Path({answer!r}).write_text(json.dumps({{
        "masks": masks,
        "umask": umask,
        "folder": str(Path.cwd()),
        "environment": {{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}},
        "files": resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 1024,
    }}))
"""


def nothing() -> None:
    """As they are started here."""


def signals_ignored() -> None:
    """As nohup(1) does with the first, and a shell without job control with the next two for what is in the background."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)


def signals_blocked() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD))


def no_terminal() -> None:
    os.setsid()


def files_for_the_owner_only() -> None:
    os.umask(0o077)


def few_open_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 4096))


def another_folder() -> None:
    os.chdir("/")


ODD_ENVIRONMENT = {
    "HOME": "/nonexistent",
    "TMPDIR": "/tmp/a folder with blanks " + "x" * 100,
    "COLUMNS": "40",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "CI": "true",
    "LC_ALL": "tr_TR.UTF-8",
    "PGHOST": "db.example.invalid",
    "PGSERVICE": "nowhere",
    "PGOPTIONS": "-c search_path=other",
    "PYTHONWARNINGS": "error",
    "http_proxy": "http://127.0.0.1:1",
    "SUDO_UID": "4711",
    "SUDO_GID": "4711",
    "PLINTH_STATE_DIR": "/nonexistent/state",
    "XDG_STATE_HOME": "/nonexistent",
    "POSIXLY_CORRECT": "1",
}


PIN = "from surroundings import pin_surroundings\npin_surroundings()\n"


@pytest.fixture(scope="module")
def as_usual(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is seen here."""
    return surroundings(tmp_path_factory.mktemp("usual"), nothing, {})


def surroundings(tmp_path: Path, set_up: Callable[[], None], environment: dict[str, str], pin: str = PIN) -> str:
    """Return what a test sees, and what a process sees that it starts."""
    (tmp_path / "surroundings_plugin.py").write_text(pin)
    answer = tmp_path / "answer"
    test = tmp_path / "test_look.py"
    test.write_text(LOOK.format(answer=str(answer)))
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", ROOT / "pyproject.toml"]
    done = subprocess.run(
        [*argv, "--rootdir", ROOT, "-p", "surroundings_plugin", "--basetemp", tmp_path / "base", test],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT / 'tests/support'}", **environment},
        preexec_fn=set_up,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return answer.read_text()


@pytest.mark.parametrize(
    ("set_up", "environment"),
    [
        (signals_ignored, {}),
        (signals_blocked, {}),
        (no_terminal, {}),
        (files_for_the_owner_only, {}),
        (few_open_files, {}),
        (another_folder, {}),
        (nothing, ODD_ENVIRONMENT),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_tests_see_the_same_however_they_are_started(
    tmp_path: Path, as_usual: str, set_up: Callable[[], None], environment: dict[str, str]
) -> None:
    assert '"masks": ["0000000000000000", "0000000000000000"], "umask": "0022"' in as_usual
    assert surroundings(tmp_path, set_up, environment) == as_usual


@pytest.mark.long
@pytest.mark.parametrize(
    "set_up", [signals_ignored, signals_blocked, files_for_the_owner_only, few_open_files, another_folder]
)
def test_without_the_pin_they_would_not(tmp_path: Path, as_usual: str, set_up: Callable[[], None]) -> None:
    """The control: what is pinned is seen."""
    assert surroundings(tmp_path, set_up, {}, pin="") != as_usual


def test_without_the_pin_they_would_see_the_environment(tmp_path: Path) -> None:
    seen = json.loads(surroundings(tmp_path, nothing, ODD_ENVIRONMENT, pin=""))["environment"]
    assert seen.items() >= ODD_ENVIRONMENT.items()


def test_tests_outlive_their_terminal_and_what_they_start_does_not() -> None:
    script = (
        "import os, signal, subprocess, sys\n"
        "from surroundings import pin_surroundings\n"
        "pin_surroundings()\n"
        "os.kill(os.getpid(), signal.SIGHUP)\n"
        "child = subprocess.run([sys.executable, '-c', 'import os, signal; os.kill(os.getpid(), signal.SIGHUP)'])\n"
        "sys.exit(0 if child.returncode == -signal.SIGHUP else 1)\n"
    )
    done = subprocess.run(
        ["nohup", sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests/support")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
