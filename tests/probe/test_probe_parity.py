"""The fsync probe gives what pg_test_fsync gives, case by case, on a disk that is slow enough to be what decides."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks/fsync_vs_pg_test_fsync.py"
BINDIR = Path("/usr/lib/postgresql/15/bin")
DURABLE, IN_THE_CACHE = 0.03, 0.10
"""How far they may differ: where a flush of 2 ms decides, and where the processor does."""


@pytest.mark.long
def test_each_case_is_as_fast_as_pg_test_fsync_has_it() -> None:
    command = [sys.executable, str(BENCHMARK), "--rounds", "9", "--bindir", str(BINDIR)]
    reported = subprocess.run(command, check=True, capture_output=True, text=True, timeout=1200).stdout
    compared = json.loads(reported)
    assert len(compared) == 16, "every case of pg_test_fsync that Linux has"
    apart = {
        case: figures
        for case, figures in compared.items()
        if abs(figures["ratio"] - 1) > (IN_THE_CACHE if case.startswith("unsynced") else DURABLE)
    }
    assert not apart, json.dumps(apart, indent=1)
