"""Fuzzing, led by coverage, for a moment; `make fuzz` runs it as long as one likes."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FUZZ = ROOT / "scripts" / "fuzz.sh"
SECONDS = 10  # of each target, enough for tens of thousands of inputs


def fuzz(seconds: int, *targets: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([FUZZ, str(seconds), *targets], capture_output=True, text=True)


pytestmark = pytest.mark.long


@pytest.mark.timeout(600)  # the targets are compiled first
def test_a_planted_defect_is_found_and_shown() -> None:
    """Six bytes that only who is led by coverage and comparisons comes upon: without it, once in 2 ** 48 inputs."""
    shutil.rmtree(ROOT / "target" / "fuzz" / "new" / "planted", ignore_errors=True)
    done = fuzz(60, "planted")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "planted: found something" in done.stderr
    assert "fuzz_targets/planted.rs" in done.stderr and "plinth" in done.stderr


def test_nothing_is_found_in_the_parsers() -> None:
    done = fuzz(SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    for target in ("scan", "startup", "bodies", "script", "log", "replay_file"):
        (line,) = [line for line in done.stdout.splitlines() if line.startswith(f"{target}: ")]
        inputs = int(line.split()[1])
        assert inputs > 1_000, f"hardly anything was tried: {line}"
