"""Runs experiments of bundles, which may come from others: each is shown first, and runs only when confirmed."""

import sys
from pathlib import Path

from plinth.bundle import read_manifest
from plinth.cli.printing import print_plain
from plinth.common.shown import quoted
from plinth.experiment import ParsedExperiment, confirmations, is_bundle
from plinth.model.errors import Interrupted, Refused

_LINE = "-" * 72


def bundle_of(file: Path) -> Path | None:
    """Return the bundle if `file` is a bundle's folder or the experiment in it; None for other experiment files."""
    folder = file if file.is_dir() else file.parent
    return folder if is_bundle(folder) else None


def overrides_of(bundle: Path) -> tuple[str, ...]:
    """Return the overrides that were set on the command line when the bundle was made."""
    return read_manifest(bundle).overrides


def confirm_if_shared(loaded: ParsedExperiment, file: Path, yes: bool) -> None:
    """`confirm` the experiment `file` where it is a bundle's."""
    if (bundle := bundle_of(file)) is not None:
        confirm(loaded, bundle, yes)


def confirm(loaded: ParsedExperiment, bundle: Path, yes: bool) -> None:
    """Show the whole experiment of a bundle, and ask on the terminal whether to run it, unless `yes`.

    No program that it names has been started yet. Raises Refused without a terminal, Interrupted when the answer is no.
    """
    for line in _description(loaded, bundle):
        print_plain(line, file=sys.stderr)
    if yes:
        return
    if not (sys.stdin is not None and sys.stdin.isatty()):
        raise Refused(
            "the experiment of a bundle runs only when confirmed, and there is no terminal to ask on",
            where=str(bundle),
            hint="read what is shown above, then give --yes",
        )
    print_plain("Run this here? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Interrupted("not confirmed: nothing was run", where=str(bundle))


def _description(loaded: ParsedExperiment, bundle: Path) -> list[str]:
    return [
        f"The experiment of the bundle {quoted(str(bundle))}, which may come from another user:",
        *_block("experiment.toml", loaded.kept_text),
        *(line for name, text in loaded.files.items() for line in _block(name, text)),
        *(f"set on the command line: {quoted(override)}" for override in loaded.overrides),
        *(f"It {what}." for what in confirmations(loaded.experiment)),
        "Its SQL runs as superuser of the server; \\shell, \\setshell, COPY ... PROGRAM and settings such as archive_command start "
        "commands of the system as the server's user. Storages are made with your rights.",
    ]


def _block(name: str, text: str) -> list[str]:
    """Return a text of the bundle's, each line marked, so that none passes for one of ours."""
    return [f"{_LINE[:8]} {quoted(name)}", *(f"| {line}" for line in text.rstrip("\n").split("\n")), _LINE]
