"""`make try-fleet` and `make try-hosts`: what they show, and that nothing is left of them."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from waiting import wait_until

pytestmark = pytest.mark.long
SCRIPTS = Path(__file__).parents[2] / "scripts"
SAID = {
    "try_fleet.py": (
        "three machines: machine1 10.120.0.1, machine2 10.120.0.2, machine3 10.120.0.3",
        "3 of 3 machines can drive a load together",
    ),
    "try_hosts.py": (
        "three hosts: 10.120.0.2, 10.120.0.3, 10.120.0.4; load from 10.120.0.1",
        "3 of 3 hosts were reached",
    ),
}
NAMED = {"try_fleet.py": "machine3", "try_hosts.py": "db3"}
"""In the report."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where bundles go, and temporary folders: near the root, since Ray's sockets are in there."""
    folder = Path(tempfile.mkdtemp(prefix="try-"))
    folder.chmod(0o755)  # servers run as another user
    yield folder
    shutil.rmtree(folder)


def _start(folder: Path, script: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, SCRIPTS / script],
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder), "PLINTH_STATE_DIR": str(folder / "state")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def _left(folder: Path) -> list[str]:
    """Processes that know of the folder, and files in it but for the bundle; what the run has not undone."""
    found = [str(path) for path in folder.iterdir() if path.name not in ("bundles", "state")]
    found += [str(path) for what in ("work", "journal") for path in folder.glob(f"state/{what}/*")]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if bytes(folder) in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text())
        except OSError:  # it has ended
            continue
    return found


@pytest.mark.parametrize("script", SAID)
def test_the_machines_do_one_run_and_are_gone(folder: Path, script: str) -> None:
    child = _start(folder, script)
    said, _ = child.communicate(timeout=280)
    assert child.returncode in (0, 3), said
    assert all(words in said for words in SAID[script]), said
    (report,) = folder.glob("bundles/*/derived/report.html")
    assert NAMED[script] in report.read_text()
    assert _left(folder) == []


@pytest.mark.parametrize("script", SAID)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_and_then_the_machines(folder: Path, script: str, number: signal.Signals) -> None:
    child = _start(folder, script)
    assert child.stdout is not None
    said: list[str] = []
    while not re.search(r"trial 1 of \d", "".join(said)):
        line = child.stdout.readline()
        assert line, "".join(said)
        said.append(line)
    if number == signal.SIGINT:  # as a terminal does
        os.killpg(child.pid, number)
    else:
        child.send_signal(number)
    rest, _ = child.communicate(timeout=60)
    assert child.returncode == 130, rest  # of the run, whichever signal interrupts it
    assert "undo what this run made" in rest
    wait_until(lambda: not _left(folder))
