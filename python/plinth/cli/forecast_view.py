"""Prints what a run would do on other drives."""

from rich.console import Console
from rich.text import Text

from plinth.cli.console import plain_table
from plinth.model.figures import number, percent
from plinth.model.forecast import DriveForecast, Forecast
from plinth.report.text import figure, latency

_NOTE = "90 % intervals of one transaction's parts scaled by the drives' speeds: docs/guides/forecast.md. In the long run, without credits."


def show_forecast(of: Forecast, console: Console) -> None:
    """Print what was measured, a line for each drive, and what is not forecast with its reason."""
    measured = f"{of.variant}: {figure(of.measured_tps, number)} transactions/s of {of.clients} clients"
    console.print(Text(measured, style="bold"), soft_wrap=True)
    parts = ", ".join(f"{name} {percent(share)}" for name, share in of.parts.items() if share >= 0.005)
    console.print(Text(f"  a transaction's time: {parts}"), soft_wrap=True)
    table = plain_table(dim=True)
    for title in ("drive", "transactions/s", "p99"):
        table.add_column(title, no_wrap=True)
    table.add_column("limit", overflow="fold")
    known = [one for one in of.drives if one.unavailable is None]
    for one in known:
        table.add_row(*map(Text, _cells(one)))
    if known:
        console.print(table)
    for one in of.drives:
        if one.unavailable is not None:
            console.print(Text(f"{one.profile}: n/a: {one.unavailable}", style="yellow"), soft_wrap=True)
        for note in one.notes:
            console.print(Text(f"{one.profile}: {note}", style="dim"), soft_wrap=True)
    console.print(Text(_NOTE))


def _cells(one: DriveForecast) -> tuple[str, str, str, str]:
    return one.profile, figure(one.tps, number), figure(one.latency_p99_ns, latency), one.limit or ""
