"""The command history: lists bundles with their answers."""

from datetime import datetime
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from plinth.cli.options import AsJson
from plinth.cli.printing import print_result
from plinth.common.shown import shown

if TYPE_CHECKING:
    from plinth.model.history import History, ListedBundle

_MAX_REASON_CHARACTERS = 300
_STYLES = {"complete": "green", "running": "cyan", "unreadable": "red"}


def history(
    directory: Annotated[Path, Parameter(help="Where to look. Default: bundles, where runs write to.")] = Path(
        "bundles"
    ),
    /,
    *,
    no_answers: Annotated[bool, Parameter(name="--no-answers", help="Analyse nothing, which is much quicker.")] = False,
    as_json: AsJson = False,
) -> int:
    """List the bundles below a directory, the newest first: question, answer, machine, date and status.

    Bundles are looked for up to 6 folders deep; symbolic links are not followed. One that is truncated, corrupted, half-written,
    of a newer Plinth or not a bundle at all is listed with the reason. Nothing is written into bundles: answers are kept in
    Plinth's cache until a bundle changes.

      plinth history
      plinth history results --json
    """
    from plinth.tasks.history import history_of

    found = history_of(directory, with_answers=not no_answers)
    print_result(found, as_json, _show)
    return 0


def _show(found: "History", console: Console) -> None:
    # Escape text here: rich drops some control characters, which would misrepresent names.
    for bundle in found.bundles:
        head = Text(f"{_date(bundle.created_unix_ns)}  ").append(
            bundle.status, style=_STYLES.get(bundle.status, "yellow")
        )
        console.print(head.append(f"  {shown(bundle.folder)}", style="bold"), soft_wrap=True)
        for line in _lines(bundle):
            console.print(Padding(line, (0, 0, 0, 2)))
    count = len(found.bundles)
    console.print(
        Text(f"{count} {'bundle' if count == 1 else 'bundles'} below {shown(found.directory)}"), soft_wrap=True
    )


def _lines(bundle: "ListedBundle") -> list[Text]:
    lines = []
    if bundle.reason:
        lines.append(_shortened(bundle.reason))
    if bundle.question:
        lines.append(Text(shown(bundle.question), style="italic"))
    if bundle.answer:
        lines.append(Text(shown(bundle.answer)))
    elif bundle.answer_missing:
        lines.append(_shortened(f"n/a: {bundle.answer_missing}"))
    if bundle.machine:
        lines.append(Text(shown(bundle.machine), style="dim"))
    return lines


def _shortened(reason: str) -> Text:
    return Text(shown(shorten(reason, _MAX_REASON_CHARACTERS, placeholder=" ...")))


def _date(unix_ns: int | None) -> str:
    """Format local time; a bundle may contain an invalid time."""
    if unix_ns is None:
        return f"{'date n/a':16}"
    try:
        return f"{datetime.fromtimestamp(unix_ns // 10**9):%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):
        return f"{'not a date':16}"
