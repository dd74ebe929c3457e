"""Prints the findings of the doctor to a terminal."""

import textwrap

from rich.console import Console
from rich.text import Text

from plinth.cli.console import plain_table
from plinth.model.doctor import MACHINE, SEVERITIES, Examination, Finding, Noise, Severity
from plinth.model.figures import percent
from plinth.report.text import ratio

_STYLES: dict[Severity, str] = {"problem": "bold red", "warning": "yellow", "note": "cyan", "ok": "green"}
_INDENT = 9
_NARROWEST = 40
_MANY_TIMES = 2


def show_examination(examination: Examination, console: Console, verbose: bool) -> None:
    """Print findings by severity, of the machine and then of each place; the ok ones in one line unless `verbose`."""
    for about in dict.fromkeys((MACHINE, *(finding.about for finding in examination.findings))):
        console.print(Text(about, style="bold"))
        for severity in SEVERITIES:
            found = [one for one in examination.findings if (one.about, one.severity) == (about, severity)]
            if severity == "ok" and not verbose:
                _show_well(found, console)
            else:
                for before, finding in zip((None, *found), found, strict=False):
                    same_check = before is not None and before.id == finding.id
                    _show(finding, console, verbose, with_why=severity != "ok" and not same_check)
        for gap in examination.gaps:
            if gap.what.startswith(f"{about}: "):
                _line("n/a", "dim", f"{gap.what.removeprefix(f'{about}: ')}: {gap.reason}", console)
        console.print()
    console.print(_summary(examination))


def show_noise(noise: Noise, console: Console) -> None:
    """Print the rates and the smallest detectable differences by number of trials."""
    console.print(Text(f"\nNoise, in {noise.path}", style="bold"), soft_wrap=True)
    repeats = list(dict.fromkeys(one.repeats for work in noise.works for one in work.expected))
    table = plain_table(dim=True)
    for title in ("work", "a second", "A/A", *(f"{n} trials" for n in repeats)):
        table.add_column(title, justify="left" if title == "work" else "right", no_wrap=title != "work")
    for work in noise.works:
        shown = {one.repeats: _difference(one.ratio) for one in work.expected}
        apart = Text(ratio(work.pair), style="yellow" if work.told_apart else "")
        table.add_row(work.work, f"{work.rate_per_s.value:,.0f}", apart, *(shown.get(n, "n/a") for n in repeats))
    console.print(table)
    for work in noise.works:
        console.print(Text(f"{work.work}: {work.what}", style="dim"))
        if not work.expected:
            console.print(Text(f"{work.work}: {work.pair.note or 'no spread was seen'}", style="yellow"))
        elif work.told_apart:
            console.print(
                Text(
                    f"{work.work}: the two identical sides differ significantly: do not trust small differences",
                    "yellow",
                )
            )
    for gap in noise.gaps:
        console.print(Text(f"n/a {gap.what}: {gap.reason}", style="dim"))
    console.print(
        f"A/A: one side over the other, which is the same, with its 95 % interval, from {noise.blocks} blocks of slots of "
        f"{noise.slot_s:.2g} s. N trials: the smallest difference between two variants that N trials of each, as long as a slot, "
        "would be expected to show. Longer trials even out short disturbances, not a drift."
    )


def _difference(ratio: float) -> str:
    return percent(ratio - 1, 1) if ratio < _MANY_TIMES else f"{ratio:.1f}x"


def _show_well(found: list[Finding], console: Console) -> None:
    if found:
        ids = dict.fromkeys(finding.id.partition(".")[2].replace("_", " ") for finding in found)
        _line("ok", _STYLES["ok"], ", ".join(ids), console)


def _show(finding: Finding, console: Console, verbose: bool, with_why: bool) -> None:
    _line(finding.severity, _STYLES[finding.severity], finding.saw, console)
    if with_why:
        _line("", "dim", finding.why, console)
    if verbose:
        for fact in finding.readings:
            _line("", "dim", f"read: {fact.name} = {fact.value}, {fact.source}", console)
    if (remedy := finding.remedy) is None:
        return
    if remedy.advice:
        _line("", "", remedy.advice, console)
    for word, commands in (("fix", remedy.commands), ("undo", remedy.undo)):
        for command in commands:
            # Users copy commands: never wrap them.
            console.print(Text(f"{'':{_INDENT}}{word + ':':<6}").append(command, style="bold"), soft_wrap=True)


def _line(word: str, style: str, text: str, console: Console) -> None:
    """Print a word and a text with a hanging indent; without a word, the style applies to the text."""
    lines = textwrap.wrap(
        text, max(_NARROWEST, console.width - _INDENT), break_long_words=False, break_on_hyphens=False
    )
    for number, line in enumerate(lines):
        shown = Text(f"{'' if number else word:{_INDENT}}", style=style if word else "")
        console.print(shown.append(line, style="not bold default" if word else style), soft_wrap=True)


def _summary(examination: Examination) -> Text:
    counts = {one: sum(finding.severity == one for finding in examination.findings) for one in SEVERITIES}
    words = [f"{n} {one}{'s' * (n != 1)}" for one, n in counts.items() if n and one != "ok"]
    text = Text(", ".join(words) if words else "nothing was found that would distort a measurement")
    if examination.gaps:
        text.append(f"; {len(examination.gaps)} not available")
    return text
