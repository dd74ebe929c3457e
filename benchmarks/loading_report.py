"""What becomes of the loads: medians side by side, aims reached or not, and the files that keep them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from engine_report import reported
from results import keep, machine_text

PUBLISHED_ROWS = 100_000_000_000
HOUR_S = 3600
PAGES = "plinth, pages"
OURS = ("plinth", PAGES)


@dataclass(frozen=True)
class Load:
    """One load. `indexed_s` is until rows and keys are there, `elapsed_s` until all is vacuumed and counted as well."""

    work: str
    how: str
    rows: int
    elapsed_s: float
    indexed_s: float
    client_cpu_s: float
    wal_mib: float
    peak_memory_mib: float | None = None
    parts_s: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Aim:
    """A ratio of two medians, and what it is to be."""

    text: str
    ratio: float
    is_reached: bool


def medians(loads: Sequence[Load], figure: str) -> dict[str, float]:
    """Return the medians by way of loading."""
    values: dict[str, list[float]] = {}
    for load in loads:
        value = getattr(load, figure)
        if value is not None:
            values.setdefault(load.how, []).append(value)
    return {how: median(found) for how, found in values.items()}


def aims(loads: Sequence[Load]) -> list[Aim]:
    """Return those of the works that were measured."""
    found = []
    of_tpcb = medians([load for load in loads if load.work == "tpcb"], "elapsed_s")
    for peer in of_tpcb:
        for ours in OURS if peer.startswith("pgbench") else ():
            ratio = of_tpcb[ours] / of_tpcb[peer]
            found.append(Aim(f"tpcb, {ours}: at most 0.60 of the time of {peer}", ratio, ratio <= 0.6))
    of_numbers = medians([load for load in loads if load.work == "numbers"], "indexed_s")
    for peer in of_numbers:
        for ours in OURS if peer.startswith("COPY") else ():
            ratio = of_numbers[peer] / of_numbers[ours]
            found.append(Aim(f"numbers, rows and key, {ours}: at least 1.80x the speed of {peer}", ratio, ratio >= 1.8))
    for ours in OURS:
        few, many = (
            [load for load in loads if (load.work, load.how) == (f"numbers, {size}", ours)] for size in ("few", "many")
        )
        if few and many:
            memory = medians(many, "peak_memory_mib")[ours] / medians(few, "peak_memory_mib")[ours]
            speed = _rows_per_s(many) / _rows_per_s(few)
            sizes = f"numbers, {ours}, {many[0].rows:,} rows against {few[0].rows:,}"
            found.append(Aim(f"{sizes}: memory at most 1.05x", memory, memory <= 1.05))
            found.append(
                Aim(f"{sizes}: rows/s within 15 % while they are sent or written", speed, 0.85 <= speed <= 1.15)
            )
    return found


def _rows_per_s(loads: Sequence[Load]) -> float:
    return median(load.rows / load.parts_s["write pages" if load.how == PAGES else "load rows"] for load in loads)


def estimate(loads: Sequence[Load]) -> list[str]:
    """Return how long the rows of the published study would take at the speed that was measured."""
    lines = []
    for work in dict.fromkeys(load.work for load in loads):
        own = [load for load in loads if load.work == work]
        for how, elapsed_s in medians(own, "elapsed_s").items():
            hours = PUBLISHED_ROWS / own[0].rows * elapsed_s / HOUR_S
            lines.append(f"{PUBLISHED_ROWS:,} rows as {work}, {how}: about {hours:,.0f} h at this speed")
    return lines


def table(loads: Sequence[Load]) -> str:
    """Return one row for each way of each work: medians, in brackets the least and the greatest."""
    lines = [
        "| work | how | rows | until indexed (s) | whole (s) | rows/s | client CPU (s) | WAL (MiB) | memory (MiB) | parts (s) |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for work, how in dict.fromkeys((load.work, load.how) for load in loads):
        own = [load for load in loads if (load.work, load.how) == (work, how)]
        whole = [load.elapsed_s for load in own]
        memory = medians(own, "peak_memory_mib").get(how)
        parts = ", ".join(f"{name} {seconds:.1f}" for name, seconds in own[-1].parts_s.items())
        cells = [
            work,
            how,
            f"{own[0].rows:,}",
            f"{medians(own, 'indexed_s')[how]:.1f}",
            f"{median(whole):.1f} [{min(whole):.1f}, {max(whole):.1f}]",
            f"{own[0].rows / median(whole):,.0f}",
            f"{medians(own, 'client_cpu_s')[how]:.2f}",
            f"{medians(own, 'wal_mib')[how]:,.0f}",
            "n/a: a process of the server's" if memory is None else f"{memory:.1f}",
            parts,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def text(loads: Sequence[Load]) -> str:
    """Return table, aims and estimate."""
    aim_lines = [f"- {aim.text}: {aim.ratio:.2f}, {reported(aim.is_reached)}" for aim in aims(loads)]
    return "\n".join([table(loads), "", *aim_lines, "", *(f"- {line}" for line in estimate(loads))])


def write(folder: Path, day: str, facts: Mapping[str, object], raw: Mapping[str, Sequence[Load]], command: str) -> Path:
    """Write README.md, raw.json and summary.json, and return their folder; `raw` is by version of the server."""
    every = {version: [asdict(load) for load in loads] for version, loads in raw.items()}
    summary = {
        version: {"aims": [asdict(aim) for aim in aims(loads)], "estimates": estimate(loads)}
        for version, loads in raw.items()
    }
    parts = "\n\n".join(f"## PostgreSQL {version}\n\n{text(loads)}" for version, loads in raw.items())
    readme = (
        f"# Loading compared with its peers, {day}\n\nThe same server and disk, turn and turn about; client and server share the "
        f"machine: {machine_text()}. Server: {facts['server_settings']}. Medians, in brackets the least and the greatest.\n\n{parts}\n\n"
        f"Made by `{command}`. Every load is in raw.json.\n"
    )
    head = {"date": day, **facts}
    return keep(folder, readme, raw=head | {"loads": every}, summary=head | {"servers": summary})
