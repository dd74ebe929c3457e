"""Commands under a limit of their address space (`ulimit -v`) end in order or in one sentence, whichever library fails."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from plinth.cli.memory_limit import is_lack_of_memory
from plinth.system.clean import pending_journals
from small_bundles import written

MIB = 2**20
LIMITS_MIB = (24, 50, 100, 150, 250, 300, 500, 1000, 4000)
COMMANDS = {
    "help": ("--help",),
    "clean": ("clean",),
    "plan": ("plan", "x.toml"),
    "run": ("run", "x.toml"),
    "report": ("report", "b"),
    "verify": ("verify", "b"),
}
EXIT_CODES = {0, 1, 2, 3, 5}
"""Those of the table that these commands may end with; no signal's, nor what OpenBLAS and the C library end a process with."""
EXPERIMENT = """\
spec = 1
name = "small"
question = "How fast is this disk?"
storage.disk.kind = "directory"
dataset = { kind = "tpcb", scale = 1 }
workload.builtin = "tpcb-like"
matrix.storage = ["disk"]
measure = { warmup = "50ms", duration = "100ms", repeats = 1, aa = false, probe = "10ms" }
"""


@pytest.fixture(scope="module")
def folder(module_scratch: Path) -> Path:
    written(module_scratch / "b")
    (module_scratch / "x.toml").write_text(EXPERIMENT)
    return module_scratch


def limited(folder: Path, limit_mib: int, *words: str) -> "subprocess.CompletedProcess[str]":
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit_mib * MIB, limit_mib * MIB))

    return subprocess.run(
        [sys.executable, "-m", "plinth", *words],
        cwd=folder,
        env={**os.environ, "PLINTH_STATE_DIR": str(folder / "state")},
        preexec_fn=limit,
        capture_output=True,
        text=True,
    )


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_ends_in_order_at_every_limit(folder: Path, name: str) -> None:
    codes = []
    for limit_mib in LIMITS_MIB:
        done = limited(folder, limit_mib, *COMMANDS[name])
        assert done.returncode in EXIT_CODES, f"{limit_mib} MiB: {done.returncode}: {done.stderr}"
        assert "Traceback" not in done.stderr and "panicked" not in done.stderr, f"{limit_mib} MiB: {done.stderr}"
        if done.returncode != 0:
            assert "error: " in done.stderr, f"{limit_mib} MiB: {done.stderr}"
        codes.append(done.returncode)
    assert codes[-1] in (0, 3), "at the highest limit it does its work"


def test_the_sentence_names_the_limit_and_what_needs_more(folder: Path) -> None:
    done = limited(folder, 300, "report", "b")
    assert done.returncode == 5
    error, limit, clean = done.stderr.splitlines()
    assert error.startswith("error: not enough memory for this command: numpy needs 512 MiB of address space, and ")
    assert limit == "  hint: raise the limit of this process: ulimit -v allows 307200 KiB"
    assert "`plinth clean`" in clean


def test_a_run_that_has_no_room_makes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLINTH_STATE_DIR", str(folder / "state"))
    done = limited(folder, 1000, "run", "x.toml", "--bundle", "new")
    assert done.returncode == 5
    assert "plinth run needs 1536 MiB of address space" in done.stderr
    assert not (folder / "new").exists() and pending_journals() == ()


def test_a_clean_does_its_work_in_100_mib(folder: Path) -> None:
    done = limited(folder, 100, "clean")
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing to clean" in done.stdout


def _caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "is_lack"),
    [
        (MemoryError(), True),
        (ImportError("libm.so.6: failed to map segment from shared object"), True),
        (ImportError("libx.so: cannot open shared object file: Cannot allocate memory"), True),
        (RuntimeError("can't start new thread"), True),
        (OSError(12, "Cannot allocate memory"), True),
        (BlockingIOError(11, "Resource temporarily unavailable"), True),
        (_caused(ValueError("x"), MemoryError()), True),
        (ImportError("No module named 'x'"), False),
        (RuntimeError("out of range"), False),
        (ValueError("out of memory"), False),
        (OSError(2, "No such file or directory"), False),
    ],
    ids=repr,
)
def test_what_lack_of_memory_looks_like(error: BaseException, is_lack: bool) -> None:
    assert is_lack_of_memory(error) is is_lack
