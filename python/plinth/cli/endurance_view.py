"""What a load wears of its disks, for a terminal."""

from collections.abc import Callable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from plinth.model.analysis import Estimate
from plinth.model.base import Gap
from plinth.model.endurance import Endurance, Flow, VariantEndurance, Written
from plinth.model.wear import DiskWear

_FLOWS: dict[Flow, str] = {
    "data": "data",
    "wal": "WAL, generated",
    "wal_written": "WAL, as written",
    "full_page_images": "full-page images, at most",
}
_ROOMY = 130
"""Columns from which a figure and its interval fit beside one another."""
_LEAST = 16
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def show_endurance(account: Endurance, console: Console) -> None:
    """A table for each variant, then the drives, then how to read it."""
    for variant in account.variants:
        _show_variant(variant, account, console)
    if account.drives:
        console.print(Text("Drives, as they tell themselves", style="bold"))
        for drive in account.drives:
            console.print(f"  {_drive(drive)}", soft_wrap=True)
        console.print()
    _show_gaps(account.gaps, console)
    if account.rating is not None:
        console.print(f"Life: a drive {account.rating.source}, written to at this rate day and night.", soft_wrap=True)
    else:
        console.print("Life: n/a: give --tbw 600TB, or --pe-cycles 5000 --capacity 300GB", soft_wrap=True)
    console.print(
        "Medians of the trials with their 95% intervals. Amplification: what the devices directly below the file system wrote "
        "for each byte that PostgreSQL gave to what stands on them. A disk that others use counts their writes, too; devices "
        "that stand on one another each count the same bytes."
    )


def _show_variant(variant: VariantEndurance, account: Endurance, console: Console) -> None:
    rate = (
        f" at {_figure(variant.tps, lambda value: f'{value:,.0f}')} transactions/s ({account.rate})"
        if variant.tps
        else ""
    )
    console.print(Text(variant.label, style="bold").append(rate, style="not bold"), soft_wrap=True)
    between = " " if console.width >= _ROOMY else "\n"
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("written", overflow="fold", min_width=_LEAST)
    for title in ("a transaction", "a day", "amplification; life"):
        table.add_column(title, justify="right", no_wrap=True)
    for flow in variant.flows:
        table.add_row(f"PostgreSQL: {_FLOWS[flow.flow]}", *_written(flow, between), "")
    for storage in variant.storages:
        name = f"storage {', '.join(storage.storages)} ({', '.join(storage.roles)}): {', '.join(storage.devices)}"
        ratio = _figure(storage.amplification, lambda value: f"{value:.2f}", between)
        table.add_row(name, *_written(storage, between), ratio)
    for device in variant.devices:
        uses = f"; ZFS {', '.join(device.uses)}" if device.uses else ""
        name = f"device {device.device} ({', '.join(device.roles)}{uses})"
        table.add_row(name, *_written(device, between), _figure(device.life_years, _years, between))
    console.print(table)
    _show_gaps(variant.gaps, console)
    console.print()


def _show_gaps(gaps: tuple[Gap, ...], console: Console) -> None:
    for gap in gaps:
        console.print(Text(f"  n/a {gap.what}: {gap.reason}", style="dim"))


def _written(written: Written, between: str) -> tuple[str, str]:
    """A transaction's and a day's."""
    return _figure(written.bytes_per_transaction, _bytes, between), _figure(written.bytes_per_day, _bytes, between)


def _figure(estimate: Estimate | None, text: Callable[[float], str], between: str = " ") -> str:
    if estimate is None:
        return "n/a"
    interval = estimate.interval
    return text(estimate.value) + (f"{between}[{text(interval.low)}, {text(interval.high)}]" if interval else "")


def _bytes(size_bytes: float) -> str:
    """Decimal units, as drives are rated in them."""
    for unit in _UNITS:
        if size_bytes < 1000 or unit == _UNITS[-1]:
            return f"{size_bytes:.3g} {unit}"
        size_bytes /= 1000
    raise AssertionError("the last unit takes all")


def _years(years: float) -> str:
    return f"{years:,.0f} y" if years >= 10 else f"{years:.1f} y"


def _drive(drive: DiskWear) -> str:
    reading = drive.after or drive.before
    told = "; ".join(gap.reason for gap in drive.gaps) or "it tells nothing of its wear"
    wear = f"n/a: {told}"
    if reading is not None:
        used = "n/a" if reading.percentage_used is None else f"{reading.percentage_used:g} %"
        life = (
            "" if reading.lifetime_written_bytes is None else f", {_bytes(reading.lifetime_written_bytes)} in its life"
        )
        wear = f"{used} of its endurance used{life} ({reading.source})"
    return f"{drive.disk} ({drive.model or 'model not told'}): {_bytes(drive.written_bytes)} in this run; wear: {wear}"
