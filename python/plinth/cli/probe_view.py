"""Prints fsync probes: a table for one place, or a comparison of several."""

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console

from plinth.model.choices import Group
from plinth.model.figures import number, percent
from plinth.model.pg_units import format_block_size
from plinth.model.probe import FsyncProbe, FsyncResult
from plinth.report.text import latency

_TITLES: dict[Group, str] = {
    "one_block": "One {block} write, made durable (as pg_test_fsync; open_* with O_DIRECT)",
    "two_blocks": "Two {block} writes, made durable (as pg_test_fsync; open_* with O_DIRECT)",
    "ladder": "16 kB by open_sync in writes of different size (as pg_test_fsync)",
    "other_descriptor": "fsync of {block} that another descriptor wrote (as pg_test_fsync): similar if it is honoured",
    "unsynced": "{block} write that is not made durable (as pg_test_fsync)",
    "preallocated": "WAL-like: {block} onward through a segment that is there",
    "extending": "WAL-like: {block} onward through a segment that grows",
    "sizes": "WAL-like: writes of different size",
    "group_commit": "Group commit: writers share a log, one flush for all that wait, as in PostgreSQL; commits",
    "independent": "Each writer flushes on its own, to one file",
}
_STYLES = {"plausible": "green", "suspicious": "bold red", "volatile": "bold red", "unknown": "yellow"}
_SHOWN = ("50", "99", "99.9")
_LABEL, _CELL, _RATIO = 28, 22, 8


def print_fsync(probes: Sequence[FsyncProbe], console: Console) -> None:
    """Print all results of one place, or a comparison of several, and then the verdicts."""
    for place, probe in enumerate(probes, 1):
        mark = f"({place}) " if len(probes) > 1 else ""
        console.print(f"{mark}{probe.path}: {_place(probe)}", markup=False, soft_wrap=True)
    rows = list(zip(*(probe.results for probe in probes), strict=True))
    line = _figures if len(probes) == 1 else _comparison
    for group, results in groupby(rows, key=lambda row: row[0].case.group):
        console.print(f"\n{_title(group, rows)}", style="bold", soft_wrap=True)
        console.print(_head(len(probes)), style="dim", soft_wrap=True)
        for row in results:
            console.print(f"  {row[0].case.label:<{_LABEL}}{line(row)}", markup=False, soft_wrap=True)
        if len(probes) > 1:
            _print_reasons(rows, group, console)
    for probe in probes:
        _print_verdict(probe, console, named=len(probes) > 1)


def _title(group: Group, rows: Sequence[Sequence[FsyncResult]]) -> str:
    block_bytes = next(row[0].case.block_bytes for row in rows if row[0].case.group == group)
    return _TITLES[group].format(block=format_block_size(block_bytes))


def _head(places: int) -> str:
    if places == 1:
        titles = "".join(f"{title:>9}" for title in (*(f"p{share}" for share in _SHOWN), "max"))
        return f"{'':<{_LABEL + 2}}{'ops/s':>12}{'spread':>7}{titles}"
    others = "".join(f"{f'({number})':>{_CELL}}{'/(1)':>{_RATIO}}" for number in range(2, places + 1))
    return f"{'':<{_LABEL + 2}}{'(1)':>{_CELL}}{others}"


def _figures(row: Sequence[FsyncResult]) -> str:
    figure = row[0].figure
    if figure is None:
        return f" n/a: {row[0].unavailable}"
    latencies = [*(figure.percentiles_ns[share] for share in _SHOWN), figure.max_ns]
    shown = "".join(f"{'-' if value is None else latency(value):>9}" for value in latencies)
    return f"{figure.ops_per_s:>12,.1f}{_spread(figure.round_ops_per_s):>7}{shown}"


def _comparison(row: Sequence[FsyncResult]) -> str:
    """Format operations per second and median latency of each place, with the ratio to the first place."""
    first = row[0].figure
    cells: list[str] = []
    for place, result in enumerate(row):
        figure = result.figure
        if figure is None:
            shown, ratio = "n/a", ""
        else:
            shown = f"{figure.ops_per_s:,.1f} ({latency(figure.median_ns)})"
            ratio = number(figure.ops_per_s / first.ops_per_s) if first else ""
        cells.append(f"{shown:>{_CELL}}" + (f"{ratio:>{_RATIO}}" if place else ""))
    return "".join(cells)


def _print_reasons(rows: Sequence[Sequence[FsyncResult]], group: Group, console: Console) -> None:
    """Print why cases of a group have no figure."""
    for row in rows:
        for place, result in enumerate(row, 1):
            if result.case.group == group and result.figure is None:
                said = f"  ({place}) {result.case.label}: n/a: {result.unavailable}"
                console.print(said, markup=False, style="dim", soft_wrap=True)


def _print_verdict(probe: FsyncProbe, console: Console, named: bool) -> None:
    verdict = probe.plausibility
    console.print()
    if named:
        console.print(probe.path, style="bold", markup=False)
    console.print(f"{verdict.verdict}: ", style=_STYLES[verdict.verdict], end="")
    console.print("; ".join(verdict.reasons), markup=False, soft_wrap=True)
    for note in probe.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    for gap in probe.gaps:
        console.print(f"{gap.what}: n/a: {gap.reason}", markup=False, soft_wrap=True)


def _place(probe: FsyncProbe) -> str:
    devices = ", ".join(probe.facts.block_devices)
    counted = f"flushes counted at {probe.flush_device}" if probe.flush_device else "flushes counted nowhere"
    return f"{probe.facts.filesystem} on {devices or 'no block device'}; {counted}"


def _spread(rates: Sequence[float]) -> str:
    """Format the range of the rounds as a share of their mean."""
    return "-" if len(rates) < 2 else percent((max(rates) - min(rates)) / (sum(rates) / len(rates)), 0)
