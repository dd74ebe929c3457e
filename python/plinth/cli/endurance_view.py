"""Prints how much drive life a workload consumes."""

from rich.console import Console
from rich.text import Text

from plinth.cli.console import plain_table
from plinth.model.endurance import Endurance, VariantEndurance
from plinth.model.figures import number
from plinth.model.units import format_decimal_size
from plinth.model.wear import DiskWear
from plinth.report.sections.endurance import ENDURANCE, rating_sentence, written_caveats, written_rows
from plinth.report.text import figure

_ROOMY = 130
"""Least terminal width, in columns, at which a figure and its interval fit on one line."""
_LEAST = 16


def show_endurance(account: Endurance, console: Console) -> None:
    """Print a table for each variant, the drives, and an explanation."""
    for variant in account.variants:
        _show_variant(variant, account, console)
    if account.drives:
        console.print(Text("Drive-reported data", style="bold"))
        for drive in account.drives:
            console.print(Text(f"  {_drive(drive)}"), soft_wrap=True)
        console.print()
    for gap in account.gaps:
        _show_gap(f"{gap.what}: n/a: {gap.reason}", console)
    console.print(Text(rating_sentence(account.rating)), soft_wrap=True)
    console.print(Text(ENDURANCE.note))


def _show_variant(variant: VariantEndurance, account: Endurance, console: Console) -> None:
    rate = f" at {figure(variant.tps, number)} transactions/s ({account.rate})" if variant.tps else ""
    console.print(Text(variant.label, style="bold").append(rate, style="not bold"), soft_wrap=True)
    table = plain_table(dim=True)
    table.add_column("written", overflow="fold", min_width=_LEAST)
    for title in ("per transaction", "per day", "amplification; life"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in written_rows(variant):
        figures = (row.of_transaction, row.of_day, row.amplification or row.life)
        table.add_row(Text(row.name), *(Text(_fitted(text, console)) for text in figures))
    console.print(table)
    for caveat in written_caveats(variant):
        console.print(Text(f"  caveat: {caveat}", style="yellow"))
    for gap in variant.gaps:
        _show_gap(f"{gap.what}: n/a: {gap.reason}", console)
    console.print()


def _fitted(text: str, console: Console) -> str:
    """Return a figure with its interval, on a second line if the terminal is narrow."""
    return text if console.width >= _ROOMY else text.replace(" [", "\n[")


def _show_gap(text: str, console: Console) -> None:
    console.print(Text(f"  {text}", style="dim"))


def _drive(drive: DiskWear) -> str:
    reading = drive.after or drive.before
    reason = "; ".join(gap.reason for gap in drive.gaps) or "it reports nothing about its wear"
    wear = f"n/a: {reason}"
    if reading is not None:
        used = "n/a" if reading.percentage_used is None else f"{reading.percentage_used:g} %"
        life = (
            ""
            if reading.lifetime_written_bytes is None
            else f", {format_decimal_size(reading.lifetime_written_bytes)} in its life"
        )
        wear = f"{used} of its endurance used{life} ({reading.source})"
    return f"{drive.disk} ({drive.model or 'model unknown'}): {format_decimal_size(drive.written_bytes)} in this run; wear: {wear}"
