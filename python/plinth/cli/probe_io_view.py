"""Prints the I/O probe as a table, or as a heat map of block size and depth."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from plinth.model.choices import POSITION_SHAPES
from plinth.model.figures import percent
from plinth.model.probe_io import IoProbe, IoResult, IoSide, IoSyncs
from plinth.model.units import format_size
from plinth.report.text import latency

_LABEL, _CELL, _BAR = 41, 10, 40
_ENDED_EARLY = 0.9
"""Share of the time of its group below which a job is said to have ended early."""
_RAMP = (17, 18, 19, 25, 31, 37, 43, 77, 113, 149, 185)
"""Colours of the 256-colour palette from dark blue to yellow, which also differ in brightness for colour-blind users."""


def print_io(probe: IoProbe, console: Console) -> None:
    """Print the results, and how the kind of storage affects them."""
    devices = ", ".join(probe.facts.block_devices) or "no block device"
    console.print(
        f"{probe.path}: {probe.facts.filesystem} on {devices}; a file of {format_size(probe.file_bytes)}; {probe.fio_version}",
        markup=False,
        soft_wrap=True,
    )
    if probe.kind == "grid":
        _print_grid(probe.results, console)
    else:
        _print_table([result for result in probe.results if result.job.position is None], console)
        for shape in POSITION_SHAPES:
            _print_positions([result for result in probe.results if result.job.shape == shape], console)
    for note in probe.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    for gap in probe.gaps:
        console.print(f"n/a: {gap.what}: {gap.reason}", markup=False, soft_wrap=True)


def _print_positions(results: Sequence[IoResult], console: Console) -> None:
    """Print the throughput at each position as a bar."""
    if not results:
        return
    rates = [result.read.bytes_per_s for result in results if result.read is not None]
    what = next((f"/dev/{result.device}" for result in results if result.device), "the file")
    if results[0].job.target == "device" and not results[0].device:
        what = "the device"
    console.print(f"\nSequential reads over {what}, from its beginning to its end, MB/s", style="bold", soft_wrap=True)
    reasons = {result.unavailable for result in results}
    if not rates and len(reasons) == 1:
        console.print(f"n/a: {reasons.pop()}", markup=False, soft_wrap=True)
        return
    for result in results:
        at = f"{percent(result.job.position or 0, 0):>7}"
        if result.read is None:
            console.print(f"{at}  n/a: {result.unavailable}", markup=False, soft_wrap=True)
            continue
        bar = "#" * round(_BAR * result.read.bytes_per_s / max(rates))
        console.print(f"{at}{result.read.bytes_per_s / 1e6:>10,.1f}  {bar}", markup=False, soft_wrap=True)
    if len(rates) > 1:
        console.print(
            f"last over first: {rates[-1] / rates[0]:.2f}; slowest over fastest: {min(rates) / max(rates):.2f}"
        )


def _print_table(results: Sequence[IoResult], console: Console) -> None:
    if not results:
        return
    titles = "".join(f"{title:>10}" for title in ("IOPS", "MB/s", "p50", "p99", "max"))
    console.print(f"\n{'':<{_LABEL + 8}}{titles}", style="dim", soft_wrap=True)
    before: int | None = None
    for result in results:
        if result.job.group not in (None, before):
            console.print("at the same time, each on a file of its own:", style="dim", soft_wrap=True)
        before = result.job.group
        if result.unavailable is not None:
            console.print(f"{result.job.name:<{_LABEL}}n/a: {result.unavailable}", markup=False, soft_wrap=True)
            continue
        label = result.job.name
        for what, side in _sides(result):
            console.print(f"{label:<{_LABEL}}{what:<8}{_figures(side, result)}", markup=False, soft_wrap=True)
            label = ""
    for line in (*_untimed(results), *_alone(results)):
        console.print(line, markup=False, soft_wrap=True)


def _sides(result: IoResult) -> list[tuple[str, IoSide | IoSyncs]]:
    sides = (("reads", result.read), ("writes", result.write), ("both", result.mixed), ("syncs", result.syncs))
    return [(what, side) for what, side in sides if side is not None]


def _untimed(results: Sequence[IoResult]) -> Iterator[str]:
    """Say of which jobs there are no latencies, and why."""
    for result in results:
        reasons = {side.latency_unavailable: what for what, side in _sides(result) if side.latency_unavailable}
        yield from (f"{result.job.name}: latencies n/a: {reason}" for reason in reasons)


def _alone(results: Sequence[IoResult]) -> Iterator[str]:
    """Say which jobs ended so early that the others of their group ran without them."""
    for result in results:
        group = [other for other in results if result.job.group is not None and other.job.group == result.job.group]
        longest_s = max((other.duration_s or 0 for other in group), default=0)
        if result.duration_s is not None and result.duration_s < _ENDED_EARLY * longest_s:
            yield (
                f"{result.job.name} ended after {result.duration_s:.2g} s of {longest_s:.2g} s: for the rest of the time the "
                "jobs of its group ran without it"
            )


def _figures(side: IoSide | IoSyncs, result: IoResult) -> str:
    if isinstance(side, IoSide):
        rates = f"{side.iops:>10,.0f}{side.bytes_per_s / 1e6:>10,.1f}"
    else:
        rate = "n/a" if side.calls is None else "-"
        if side.calls is not None and result.duration_s:
            rate = f"{side.calls / result.duration_s:,.0f}"
        rates = f"{rate:>10}{'-':>10}"
    latencies = (side.percentiles_ns.get("50"), side.percentiles_ns.get("99"), side.max_ns)
    return rates + "".join(f"{'n/a' if value is None else latency(value):>10}" for value in latencies)


def _print_grid(results: Sequence[IoResult], console: Console) -> None:
    """Print IOPS by block size (rows) and depth (columns); brighter cells have more."""
    depths = list(dict.fromkeys(result.job.depth for result in results))
    rates = [rate for result in results if (rate := _iops(result)) is not None]
    console.print(f"\nIOPS, {results[0].job.title}; by block size and depth", style="bold")
    console.print(f"{'':>8}" + "".join(f"{depth:>{_CELL}}" for depth in depths), style="dim", soft_wrap=True)
    for block_bytes in dict.fromkeys(result.job.block_bytes for result in results):
        line = Text(f"{(block_bytes or 0) >> 10:>5} kB")
        for result in results:
            if result.job.block_bytes == block_bytes:
                line.append(*_cell(_iops(result), rates))
        console.print(line, soft_wrap=True)
    for result in results:
        if result.unavailable:
            console.print(f"{result.job.name}: n/a: {result.unavailable}", markup=False, soft_wrap=True)


def _cell(iops: float | None, rates: Sequence[float]) -> tuple[str, str]:
    if iops is None:
        return f"{'n/a':>{_CELL}}", ""
    share = (iops - min(rates)) / ((max(rates) - min(rates)) or 1)
    step = round(share * (len(_RAMP) - 1))
    ink = "black" if step > len(_RAMP) // 2 else "white"
    return f"{iops:>{_CELL},.0f}", f"{ink} on color({_RAMP[step]})"


def _iops(result: IoResult) -> float | None:
    sides = [side.iops for side in (result.read, result.write, result.mixed) if side is not None]
    return sum(sides) if sides else None
