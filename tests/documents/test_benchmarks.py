"""What the pages say of Plinth's own speed follows from the newest runs of its benchmarks in the repository."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"(?P<day>\d{4}-\d\d-\d\d)-\d+-core-(?:vm|machine)(?:-(?P<of>loading|tpcc))?(?:-\d+)?")


def newest(of: str | None, file: str) -> list[dict[str, Any]]:
    """Return that file of every run of the newest day on which this benchmark was run."""
    folders = [path for path in (ROOT / "benchmarks" / "runs").iterdir() if path.is_dir()]
    named = {folder: found for folder in folders if (found := NAME.fullmatch(folder.name))}
    assert len(named) == len(folders), "a folder of benchmarks/runs is not named by day and machine"
    own = {folder: found["day"] for folder, found in named.items() if found["of"] == of}
    assert own, f"benchmarks/runs has no run of {of or 'the engine'}"
    return [json.loads((folder / file).read_text()) for folder in sorted(own) if own[folder] == max(own.values())]


def words(page: str) -> str:
    """Return a page without line breaks."""
    return " ".join((ROOT / page).read_text().split())


def rows_of(page: str) -> list[list[str]]:
    """Return the cells of every line of a page's tables."""
    lines = (ROOT / page).read_text().splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]


@pytest.mark.parametrize(("figure", "what"), [("user_us", "user CPU per transaction"), ("cpu_us", "total")])
def test_the_readme_says_what_the_engine_takes_of_the_cpu_of_pgbench(figure: str, what: str) -> None:
    rows = [row for run in newest(None, "summary.json") for rows in run["rows"].values() for row in rows.values()]
    ratios = [row["ratio"][figure] for row in rows]
    assert re.search(f"{what}[^.]* {min(ratios):.2f} to {max(ratios):.2f}", words("README.md")), (
        f"README.md: of the {what}, the newest runs have {min(ratios):.2f} to {max(ratios):.2f}"
    )


def test_the_runs_of_the_newest_day_began_on_an_idle_machine() -> None:
    runs = [run for of in (None, "loading", "tpcc") for run in newest(of, "raw.json")]
    assert [run["machine"]["load_average_before"] for run in runs if run["machine"]["load_average_before"] >= 0.5] == []


HOW = ("pgbench -I dtgvp", "pgbench -I dtGvp", "COPY from a file", "plinth", "plinth, 8 partitions", "plinth, pages")


def test_the_guide_of_datasets_says_how_long_loads_took() -> None:
    *_, run = newest("loading", "raw.json")
    rows = [row[1:] for row in rows_of("docs/guides/datasets.md")]
    for version, loads in run["loads"].items():
        for work in ("tpcb", "numbers"):
            took = {
                how: [load["elapsed_s"] for load in loads if (load["work"], load["how"]) == (work, how)] for how in HOW
            }
            expected = [version.partition(".")[0], *(f"{median(of):.1f}" if of else "" for of in took.values())]
            assert expected in rows, f"docs/guides/datasets.md: {work}: {' | '.join(expected)}"


def test_the_page_about_plinth_itself_says_what_the_tpcc_client_takes() -> None:
    *_, run = newest("tpcc", "raw.json")
    rows = {row[0]: row[1:] for row in rows_of("docs/studies/plinth-itself.md")}

    def cpu_us(one: dict[str, Any]) -> float:
        return 1e6 * (one["user_s"] + one["system_s"]) / one["transactions"]

    def of_servers(shown: Callable[[dict[str, Any]], str]) -> list[str]:
        return [shown(server) for server in run["servers"].values()]

    def client_us(of: str) -> list[str]:
        return of_servers(lambda server: f"{median(map(cpu_us, server['runs'][of])):.0f} us")

    def ratios(server: dict[str, Any]) -> str:
        pairs = zip(server["runs"]["statements"], server["runs"]["go-tpc"], strict=True)
        return ", ".join(f"{cpu_us(ours) / cpu_us(theirs):.2f}" for ours, theirs in pairs)

    assert rows["client CPU per transaction, statements"] == client_us("statements")
    assert rows["the same, go-tpc"] == client_us("go-tpc")
    assert rows["ratio, of each round"] == of_servers(ratios)
    assert rows["client CPU per transaction, procedures"] == client_us("procedures")


def test_the_page_about_plinth_itself_says_what_observation_took_in_the_kept_reports() -> None:
    took: dict[str, list[float]] = {}
    for path in (ROOT / "docs/studies/data").glob("*.json"):
        report = json.loads(path.read_text())
        (percent,) = re.findall(r"^Observation took ([\d.]+) %", report["observation"])
        (processors,) = [name for name in ("AMD EPYC", "Intel Xeon") if name.split()[1] in report["host"]["cpu_model"]]
        took.setdefault(processors, []).append(float(percent))
    page = (ROOT / "docs/studies/plinth-itself.md").read_text()
    assert f"of each of the {sum(map(len, took.values()))}\nkept reports" in page
    rows = {row[0]: row[1:3] for row in rows_of("docs/studies/plinth-itself.md")}
    for processors, of in took.items():
        assert rows[processors] == [str(len(of)), f"{min(of)} to {max(of)} %"]


IMPORT_EACH = """import importlib, sys
path = [*sys.path]
for name in sys.argv[1:]:
    sys.path[:] = path
    importlib.import_module(name)
    for used in [key for key, module in sys.modules.items() if "/tests/" in (getattr(module, "__file__", None) or "")]:
        del sys.modules[used]  # the next one has to find it, too
"""


def test_every_benchmark_finds_what_it_imports() -> None:
    folder = ROOT / "benchmarks"
    # loading_once reads what to load when it is imported.
    names = sorted(path.stem for path in folder.glob("*.py") if path.stem != "loading_once")
    assert "observer_cost" in names
    done = subprocess.run([sys.executable, "-c", IMPORT_EACH, *names], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
