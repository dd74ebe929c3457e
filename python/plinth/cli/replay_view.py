"""Prints what a server's log holds, and how far the reading of it is."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.text import Text

from plinth.cli.console import error_console, plain_table
from plinth.common.shown import shown
from plinth.model.figures import percent
from plinth.model.replay import (
    NOT_REPLAYABLE,
    LeftOut,
    LogCheck,
    LogPlace,
    NotReplayable,
    OutOfReplay,
    PreparedReplay,
    advice,
)
from plinth.model.units import format_decimal_size, format_duration
from plinth.workload.server_log import LogProgress, ReadingLog

_MAX_EXAMPLE_CHARACTERS = 100
_MAX_NAMES = 5


def show_check(check: LogCheck, console: Console) -> None:
    """Print files, sessions, statements, what cannot be replayed, the classes with the most time, and which settings help."""
    for line in _summary(check):
        console.print(Text(line), soft_wrap=True)
    _show_what_is_missing(check, console)
    if check.classes:
        console.print()
        _show_classes(check, console)
    lines = advice(check)
    if lines:
        console.print()
        console.print(Text("Settings of the server that would log more", style="bold"))
        for line in lines:
            console.print(Text(f"  {line}"), soft_wrap=True)


def show_prepared(prepared: PreparedReplay, output: Path, console: Console) -> None:
    """Print what was read of a log, and what of it is in the replay file `output`."""
    check, written = prepared.check, prepared.written
    for line in _summary(check):
        console.print(Text(line), soft_wrap=True)
    _show_not_chosen(prepared.left_out, console)
    _show_what_is_missing(check, console)
    console.print()
    if not written.statements:
        console.print(Text("Nothing can be replayed: no file was written", style="bold"), soft_wrap=True)
        return
    console.print(
        Text(
            f"{shown(str(output))}: {_count(written.statements, 'statement')} of {_count(written.sessions, 'session')}, at most "
            f"{written.sessions_at_once:,} at once, in {format_duration(written.span_us / 1e6)}; {format_decimal_size(written.size_bytes)}"
        ),
        soft_wrap=True,
    )


def _summary(check: LogCheck) -> list[str]:
    statements, sessions = check.statements, check.sessions
    sizes = sum(one.content_bytes for one in check.files)
    formats = sorted({one.format for one in check.files})
    span = check.span_us
    first = min((one.first_us for one in check.files if one.first_us is not None), default=None)
    when = ""
    if first is not None and span is not None:
        began = datetime.fromtimestamp(first / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        when = f", {format_duration(span / 1e6)} from {began}"
    at_once = "" if sessions.most_at_once is None else f", at most {sessions.most_at_once:,} at once"
    lines = [
        f"{_count(len(check.files), 'file')} of {' and '.join(formats)}, {format_decimal_size(sizes)}{when}",
        f"{_count(sessions.count, 'session')}{at_once}; "
        f"{sessions.with_beginning:,} began and {sessions.with_end:,} ended in the log",
        f"{_count(statements.count, 'statement')}: {statements.simple:,} of the simple protocol, "
        f"{statements.extended:,} of the extended; {statements.failed:,} failed",
    ]
    if statements.count:
        took = f", {format_duration(statements.duration_us / 1e6)} in all" if statements.with_duration else ""
        lines.append(f"{statements.with_duration:,} have a duration{took}")
        lines.append(f"{statements.replayable:,} can be replayed: {_share(statements.replayable, statements.count)}")
    for count, what in (
        (statements.fetches, "fetches of further rows, which are replayed with their statements"),
        (statements.replication_commands, "commands of replication, which are not replayed"),
        (statements.lone_durations, "durations of statements that are not logged"),
        (statements.other_errors, "errors outside of statements"),
        (check.steps_back, "steps of the clock back by more than a second"),
    ):
        if count:
            lines.append(f"{count:,} {what}")
    for title, names in (("databases", check.databases), ("users", check.users), ("applications", check.applications)):
        named = [f"{shown(one.name)} ({one.statements:,})" for one in names if one.name]
        if named:
            more = f" and {len(named) - _MAX_NAMES} more" if len(named) > _MAX_NAMES else ""
            lines.append(f"{title}, with their statements: {', '.join(named[:_MAX_NAMES])}{more}")
    return lines


def _show_what_is_missing(check: LogCheck, console: Console) -> None:
    """Print which statements cannot be replayed, and which records were not read, each kind with its first."""
    malformed = [one for one in check.unread if one.reason is not None]
    _show_not_replayable(check.not_replayable, console)
    if malformed:
        console.print()
        console.print(Text("Not read", style="bold"))
    for one in malformed:
        console.print(Text(f"  {_count(one.count, 'record')}: {shown(one.reason or '')}"), soft_wrap=True)
        console.print(Text(f"    {_example(one)}", style="dim"), soft_wrap=True)


def _show_not_replayable(left_out: Sequence[LeftOut | NotReplayable], console: Console) -> None:
    if left_out:
        console.print()
        console.print(Text("Not replayable", style="bold"))
    for one in left_out:
        console.print(Text(f"  {one.count:,}: {NOT_REPLAYABLE[one.reason]}"), soft_wrap=True)
        console.print(Text(f"    {_example(one)}", style="dim"), soft_wrap=True)


def _show_not_chosen(statements: int, console: Console) -> None:
    if statements:
        left_out = f"{_count(statements, 'statement')} left out, of other sessions or times"
        console.print(Text(left_out), soft_wrap=True)


def show_left_out(left_out: OutOfReplay, console: Console) -> None:
    """Print what the replay of a plan leaves out of its log, as `show_prepared` does."""
    if left_out.not_chosen:
        console.print()
    _show_not_chosen(left_out.not_chosen, console)
    _show_not_replayable(left_out.not_replayable, console)


def _example(one: LogPlace) -> str:
    return f"first in {shown(one.path)}:{one.line}"


def _show_classes(check: LogCheck, console: Console) -> None:
    table = plain_table(dim=True)
    for title in ("statements", "time", "mean", "longest"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("class", overflow="fold")
    for one in check.classes:
        times = ("n/a", "n/a", "n/a")
        if one.with_duration:
            mean_us = one.duration_us / one.with_duration
            times = tuple(_time(us) for us in (one.duration_us, mean_us, one.longest_us))
        text = one.text if len(one.text) <= _MAX_EXAMPLE_CHARACTERS else f"{one.text[:_MAX_EXAMPLE_CHARACTERS]} ..."
        table.add_row(f"{one.count:,}", *times, Text(shown(text)))
    console.print(table)
    if check.further_statements:
        console.print(Text(f"in classes that are not listed: {_count(check.further_statements, 'statement')}"))


def _count(count: int, singular: str) -> str:
    return f"{count:,} {singular}{'s' * (count != 1)}"


def _share(part: int, whole: int) -> str:
    """Return a share that says "all" of all alone, never by rounding."""
    if part == whole:
        return "all"
    return percent(min(part / whole, 0.9999), 2)


def _time(duration_us: float) -> str:
    return f"{duration_us / 1e3:,.3f} ms" if duration_us < 1e6 else format_duration(duration_us / 1e6)


def reading_log(quiet: bool) -> ReadingLog:
    """Return what shows on stderr, on a terminal, how much of a log has been read."""

    @contextmanager
    def reading(files: Sequence[Path]) -> Iterator[LogProgress | None]:
        console = error_console()
        if quiet or not console.is_terminal:
            yield None
            return
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        is_compressed = any(file.suffix in (".gz", ".zst") for file in files)
        total = None if is_compressed else sum(file.stat().st_size for file in files)
        columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        with Progress(*columns, TextColumn("{task.description}"), console=console, transient=True) as bar:
            task = bar.add_task("", total=total)
            yield lambda read, number, count: bar.update(task, completed=read, description=f"file {number} of {count}")

    return reading
