"""`plinth bench` from words to an exit code: 0, 1 for bad usage and set-up, 2 for errors while clients ran, 130 for Ctrl-C."""

import os
import sys
from collections.abc import Sequence
from typing import TextIO, cast

from plinth import __version__
from plinth.bench.failure import INTERRUPTED, BenchFailure
from plinth.bench.help import HELP

PROGRAM = "plinth bench"


def _check_encoding(words: Sequence[str]) -> None:
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            raise BenchFailure(f'invalid byte sequence for encoding "UTF8": {os.fsencode(word)!r}') from error


def run_bench(
    words: Sequence[str],
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
) -> int:
    """Run a command line in pgbench's manner; returns its exit code. Nothing is raised for what a user can cause."""
    out = stdout or sys.stdout
    if words and words[0] in ("--help", "-?"):
        print(HELP, end="", file=out)
        return 0
    if words and words[0] in ("--version", "-V"):
        print(f"{PROGRAM} (Plinth) {__version__}", file=out)
        return 0
    from plinth.bench.options import parse
    from plinth.bench.scripts import ListRequested
    from plinth.model.shown import shown_stream

    err = cast(TextIO, shown_stream(stderr or sys.stderr))
    try:
        _check_encoding(words)
        asked = parse(words, os.environ, lambda line: print(f"{PROGRAM}: {line}", file=err))
        from plinth.bench.conduct import conduct

        return conduct(asked, out, err)
    except KeyboardInterrupt:
        return INTERRUPTED
    except ListRequested as listed:
        print(listed.text, end="", file=err)
        return 0
    except BenchFailure as failure:
        out.flush()
        print(failure.text(PROGRAM), file=err)
        return failure.exit_code
