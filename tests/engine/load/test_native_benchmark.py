"""The benchmark against pgbench: that it runs, and that its words follow from its figures."""

import json
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from plinth.model.facts import Installation

PROGRAM = Path(__file__).parents[3] / "benchmarks" / "engine_vs_pgbench.py"


@pytest.mark.long
def test_the_benchmark_shows_what_was_aimed_for_and_reached(
    installations: dict[str, Installation], tmp_path: Path
) -> None:
    installation = installations["18"]
    argv = [sys.executable, str(PROGRAM), f"--bindir={installation.bindir}", f"--runs={tmp_path}", "--machine=this"]
    argv += ["--row=select-only-8", "--row=pipeline-of-10-8", "--duration=1", "--pairs=1", "--scale=1"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    (folder,) = tmp_path.iterdir()
    (summary,) = json.loads((folder / "summary.json").read_text())["rows"].values()
    (raw,) = json.loads((folder / "raw.json").read_text())["runs"].values()
    readme = (folder / "README.md").read_text()
    assert list(summary) == list(raw) == ["select-only-8", "pipeline-of-10-8"]
    assert len(summary["select-only-8"]["aims"]) == 3
    for name, row in summary.items():
        assert [run["engine"] for run in raw[name]] == ["pgbench", "plinth"]
        pgbench, plinth = raw[name]
        assert row["ratio"]["tps"] == plinth["tps"] / pgbench["tps"]
        assert row["medians"]["plinth"]["user_us"] == statistics.median([plinth["user_us"]])
        assert 0 < pgbench["peak_memory_mib"] < 1_000 and 0 < plinth["peak_memory_mib"] < 1_000
        for aim in row["aims"]:
            bound = float(aim["aim"].split()[-1])
            is_reached = aim["ratio"] <= bound if "<=" in aim["aim"] else aim["ratio"] >= bound
            assert aim["reached"] == is_reached
            reported = "reached" if is_reached else "not reached"
            assert f"| {name} | {aim['aim']} | {aim['ratio']:.2f} | {reported} |" in readme
    assert readme.count("reached |") == 2 * sum(len(row["aims"]) for row in summary.values())
    assert "`benchmarks/engine_vs_pgbench.py --duration=1 --pairs=1 --scale=1 --row=select-only-8" in readme
