"""What becomes of the runs: medians, aims reached or not, and the files that keep them."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

from engine_rows import FIGURES, ROWS, Engine, Figure, Row, Run
from engine_sides import found

LOAD_AVERAGE_BEFORE = round(os.getloadavg()[0], 1)  # what else the machine was doing
BOTH: tuple[Engine, Engine] = ("pgbench", "plinth")
# By version of the server, then by name of the row.
Runs = Mapping[str, Mapping[str, Sequence[Run]]]


def summarize(row: Row, runs: Sequence[Run]) -> dict[str, object]:
    """Return medians of both, Plinth's as a multiple of pgbench's, and the aims."""
    values = {engine: {figure: _median(runs, engine, figure) for figure in FIGURES} for engine in BOTH}
    ratio: dict[Figure, float] = {figure: values["plinth"][figure] / values["pgbench"][figure] for figure in FIGURES}
    aims = [
        {"aim": str(aim), "ratio": ratio[aim.figure], "reached": aim.is_reached(ratio[aim.figure])} for aim in row.aims
    ]
    return {"medians": values, "ratio": ratio, "aims": aims}


def table(row: Row, runs: Sequence[Run]) -> str:
    """Return the medians side by side, with the lowest and the highest run, and what was aimed for."""
    lines = ["| | pgbench | Plinth | ratio | aim | |", "|---|---|---|---|---|---|"]
    aims = {aim.figure: aim for aim in row.aims}
    for figure, name in FIGURES.items():
        ratio = _median(runs, "plinth", figure) / _median(runs, "pgbench", figure)
        cells = [name, *(_cell(runs, engine, figure) for engine in BOTH), f"{ratio:.2f}"]
        aim = aims.get(figure)
        cells += [str(aim).removeprefix(f"{name} "), reported(aim.is_reached(ratio))] if aim else ["", ""]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def reported(is_reached: bool) -> str:
    """Return the outcome in words."""
    return "reached" if is_reached else "not reached"


def _median(runs: Sequence[Run], engine: Engine, figure: Figure) -> float:
    return median(getattr(run, figure) for run in runs if run.engine == engine)


def _cell(runs: Sequence[Run], engine: Engine, figure: Figure) -> str:
    digits = 0 if figure in ("tps", "latency_mean_us") else 2
    values = [getattr(run, figure) for run in runs if run.engine == engine]
    return f"{median(values):.{digits}f} [{min(values):.{digits}f}, {max(values):.{digits}f}]"


def machine_kind() -> str:
    """Return the processors, and whether they are a hypervisor's: no name that would tell one machine from another."""
    flags = found(r"flags\s*: (.*)", Path("/proc/cpuinfo").read_text()).split()
    return f"{os.cpu_count()}-core-{'vm' if 'hypervisor' in flags else 'machine'}"


def machine_facts() -> dict[str, str | float | None]:
    """Return what the figures depend on."""
    memory_kib = int(found(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text()))
    return {
        "cpu": found(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text()),
        "cpus": os.cpu_count(),
        "memory_gib": round(memory_kib / 2**20),
        "kernel": platform.release().split("-")[0],
        "nice": os.nice(0),
        "load_average_before": LOAD_AVERAGE_BEFORE,
    }


README = """\
# The load engine compared with pgbench, {day}, {kind}

{pairs} pairs of runs of {duration_s} s for each kind of work and each server, turn and turn about: scale {scale}, Unix
socket, 2 threads, synchronous_commit off. Client and server share the machine: {machine}. Medians, in brackets the
lowest and the highest run. CPU is the client's own, per transaction, its connections included. The engine's whole
recording is on (per transaction, per statement, per second); pgbench runs without `-r`. Memory is that of the whole
process: the engine's is a Python interpreter and the engine; `plinth bench` and `plinth run` have some 35 MiB of Python
modules more, however many the connections.

Not all of the difference is the engine's code: its threads run as SCHED_BATCH, which saves preemptions, and it asks
for no description of results, which libpq does, so that the server has a little less to do. Both are how it always runs.

{verdicts}

{tables}

Made by `{command}`. Every run is in raw.json, the medians are in summary.json.
"""


def write(folder: Path, kind: str, day: str, facts: Mapping[str, object], raw: Runs, command: str) -> None:
    """Write README.md, raw.json and summary.json; `facts` has scale, duration_s and pairs."""
    folder.mkdir(parents=True, exist_ok=True)
    every = {
        version: {name: [asdict(run) for run in runs] for name, runs in rows.items()} for version, rows in raw.items()
    }
    summaries = {
        version: {row.name: summarize(row, rows[row.name]) for row in ROWS if row.name in rows}
        for version, rows in raw.items()
    }
    head = {"date": day, "machine": machine_facts(), **facts}
    (folder / "raw.json").write_text(json.dumps(head | {"runs": every}, indent=1) + "\n")
    (folder / "summary.json").write_text(json.dumps(head | {"rows": summaries}, indent=1) + "\n")
    machine = ", ".join(f"{name} {value}" for name, value in machine_facts().items())
    (folder / "README.md").write_text(
        README.format(
            day=day, kind=kind, machine=machine, verdicts=verdicts(raw), tables=_tables(raw), command=command, **facts
        )
    )


def verdicts(raw: Runs) -> str:
    """Return every aim of every row, on every server."""
    lines = ["| server | work | aim, Plinth / pgbench | ratio | |", "|---|---|---|---|---|"]
    for version, rows in raw.items():
        for row in ROWS:
            for aim in row.aims if row.name in rows else ():
                runs = rows[row.name]
                ratio = _median(runs, "plinth", aim.figure) / _median(runs, "pgbench", aim.figure)
                lines.append(f"| {version} | {row.name} | {aim} | {ratio:.2f} | {reported(aim.is_reached(ratio))} |")
    return "\n".join(lines)


def _tables(raw: Runs) -> str:
    parts = []
    for version, rows in raw.items():
        parts.append(f"## PostgreSQL {version}")
        for row in ROWS:
            if row.name in rows:
                work = f"`{row.script}`, {row.protocol} protocol, {row.clients:,} clients"
                parts.append(f"### {row.name}\n\n{work}\n\n{table(row, rows[row.name])}")
    return "\n\n".join(parts)
