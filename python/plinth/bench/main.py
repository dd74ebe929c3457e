"""`plinth bench` from arguments to an exit code: 0, 1 for bad usage and set-up, 2 for errors while clients ran, 130
for Ctrl-C."""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import TYPE_CHECKING, TextIO, cast

from plinth import __version__
from plinth.bench.failure import INTERRUPTED, BenchFailure
from plinth.bench.help import HELP
from plinth.bench.lossless import raw_of, word_of

if TYPE_CHECKING:
    from plinth.bench.options import BenchOptions

PROGRAM = "plinth bench"


_OF_CONNECTIONS = ("dbname", "host", "port", "username", "tablespace", "index_tablespace")


def _check_encoding(asked: "BenchOptions") -> None:
    """Refuse words that are not UTF-8: all that is sent to the server, except scripts, is."""
    for name in _OF_CONNECTIONS:
        value = getattr(asked, name) or ""
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise BenchFailure(f'{name}: invalid byte sequence for encoding "UTF8": {raw_of(value)!r}') from error


def _print_bytes(stream: TextIO) -> None:
    """Have `stream` print bytes that are no UTF-8 as they are."""
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="surrogateescape")


def run_bench(
    words: Sequence[str],
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
) -> int:
    """Run a command line in pgbench's manner; returns its exit code. Nothing is raised for what a user can cause."""
    out, plain_err = stdout or sys.stdout, stderr or sys.stderr
    for stream in (out, plain_err):
        _print_bytes(stream)
    if words and words[0] in ("--help", "-?"):
        print(HELP, end="", file=out)
        return 0
    if words and words[0] in ("--version", "-V"):
        print(f"{PROGRAM} (Plinth) {__version__}", file=out)
        return 0
    from plinth.bench.command_line import parse
    from plinth.bench.scripts import ListRequested
    from plinth.common.shown import shown_stream

    err = cast(TextIO, shown_stream(plain_err))
    try:
        asked = parse([word_of(word) for word in words], os.environ, lambda line: print(f"{PROGRAM}: {line}", file=err))
        _check_encoding(asked)
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
