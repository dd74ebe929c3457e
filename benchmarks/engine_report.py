"""What becomes of the runs: medians, aims reached or not, and the files that keep them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

from engine_rows import FIGURES, ROWS, Engine, Figure, Row, Run
from results import keep, machine_text

BOTH: tuple[Engine, Engine] = ("pgbench", "plinth")
# By version of the server, then by name of the row.
Runs = Mapping[str, Mapping[str, Sequence[Run]]]


def ratios(runs: Sequence[Run], figure: Figure) -> list[float]:
    """Return Plinth's figure as a multiple of pgbench's, of each pair of runs."""
    pgbench, plinth = ([getattr(run, figure) for run in runs if run.engine == engine] for engine in BOTH)
    return [ours / theirs for ours, theirs in zip(plinth, pgbench, strict=True)]


def summarize(row: Row, runs: Sequence[Run]) -> dict[str, object]:
    """Return medians of both, Plinth's figures as multiples of pgbench's (median, lowest and highest pair), and the aims."""
    values = {engine: {figure: _median(runs, engine, figure) for figure in FIGURES} for engine in BOTH}
    of_pairs = {figure: ratios(runs, figure) for figure in FIGURES}
    ratio = {figure: median(of) for figure, of in of_pairs.items()}
    aims = [
        {"aim": str(aim), "ratio": ratio[aim.figure], "reached": aim.is_reached(ratio[aim.figure])} for aim in row.aims
    ]
    ranges = {figure: [min(of), max(of)] for figure, of in of_pairs.items()}
    return {"medians": values, "ratio": ratio, "ratio_range": ranges, "aims": aims}


def table(row: Row, runs: Sequence[Run]) -> str:
    """Return the medians side by side, with the lowest and the highest run or pair, and what was aimed for."""
    lines = ["| | pgbench | Plinth | ratio of pairs | aim | |", "|---|---|---|---|---|---|"]
    aims = {aim.figure: aim for aim in row.aims}
    for figure, name in FIGURES.items():
        of_pairs = ratios(runs, figure)
        ratio = f"{median(of_pairs):.2f} [{min(of_pairs):.2f}, {max(of_pairs):.2f}]"
        cells = [name, *(_cell(runs, engine, figure) for engine in BOTH), ratio]
        aim = aims.get(figure)
        cells += [str(aim).removeprefix(f"{name} "), reported(aim.is_reached(median(of_pairs)))] if aim else ["", ""]
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


README = """\
# The load engine compared with pgbench, {day}, {kind}

{pairs} pairs of runs of {duration_s} s for each kind of work and each server, turn and turn about: scale {scale}, Unix
socket, 2 threads, synchronous_commit off. Client and server share the machine: {machine}. Medians, in brackets the
lowest and the highest run; the ratio is of the two runs of a pair. CPU is the client's own, per transaction, its
connections included. The engine's whole recording is on (per transaction, per statement, per second); pgbench runs
without `-r`. Memory is that of the whole
process: the engine's is a Python interpreter and the engine; `plinth bench` and `plinth run` have some 35 MiB of Python
modules more, however many the connections.

Not all of the difference is the engine's code: its threads run as SCHED_BATCH, which saves preemptions, and it asks
for no description of results, which libpq does, so that the server has a little less to do. Both are how it always runs.

{verdicts}

{tables}

Made by `{command}`. Every run is in raw.json, the medians are in summary.json.
"""


def write(folder: Path, kind: str, day: str, facts: Mapping[str, object], raw: Runs, command: str) -> Path:
    """Write README.md, raw.json and summary.json, and return their folder; `facts` has scale, duration_s and pairs."""
    every = {
        version: {name: [asdict(run) for run in runs] for name, runs in rows.items()} for version, rows in raw.items()
    }
    summaries = {
        version: {row.name: summarize(row, rows[row.name]) for row in ROWS if row.name in rows}
        for version, rows in raw.items()
    }
    readme = README.format(
        day=day,
        kind=kind,
        machine=machine_text(),
        verdicts=verdicts(raw),
        tables=_tables(raw),
        command=command,
        **facts,
    )
    head = {"date": day, **facts}
    return keep(folder, readme, raw=head | {"runs": every}, summary=head | {"rows": summaries})


def verdicts(raw: Runs) -> str:
    """Return every aim of every row, on every server."""
    lines = ["| server | work | aim, Plinth / pgbench | ratio | |", "|---|---|---|---|---|"]
    for version, rows in raw.items():
        for row in ROWS:
            for aim in row.aims if row.name in rows else ():
                ratio = median(ratios(rows[row.name], aim.figure))
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
