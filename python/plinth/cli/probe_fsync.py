"""The command `plinth probe fsync`, and functions that the probe commands share."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from plinth.cli.console import error_console, output_console
from plinth.cli.options import AsJson, NoProgressBar, block_size_of, seconds_of
from plinth.cli.printing import print_json
from plinth.common.nearest import nearest
from plinth.model.choices import (
    GROUPS,
    LARGEST_BLOCK_BYTES,
    METHODS,
    SMALLEST_BLOCK_BYTES,
    WAL_BLOCK_BYTES,
    WRITERS,
)
from plinth.model.errors import UsageError
from plinth.model.pg_units import format_block_size

if TYPE_CHECKING:
    from plinth.model.probe import FsyncOptions, FsyncProbe

FAILED = 1
_MOST_WRITERS = 4096


def fsync(
    paths: Annotated[tuple[Path, ...], Parameter(help="Directories; several are measured in turns, and compared.")],
    /,
    *,
    seconds: Annotated[float, Parameter(help="For which each case is measured at each place.")] = 1.0,
    methods: Annotated[
        tuple[str, ...],
        Parameter(
            name="--methods",
            help=f"Only these of {', '.join(METHODS)}. Comma-separated, or repeated.",
        ),
    ] = (),
    only: Annotated[
        tuple[str, ...],
        Parameter(name="--only", help=f"Only these questions of {', '.join(GROUPS)}."),
    ] = (),
    writers: Annotated[str, Parameter(help="How many writers at once, to see what group commit can gain.")] = ",".join(
        map(str, WRITERS)
    ),
    direct: Annotated[
        bool,
        Parameter(
            help="Write past the page cache (O_DIRECT) also where pg_test_fsync does not measure.",
        ),
    ] = False,
    block_size: Annotated[
        str,
        Parameter(
            help="Length of one write, as in 64k: PostgreSQL's --with-wal-blocksize. Not of ladder, sizes and many writers."
        ),
    ] = format_block_size(WAL_BLOCK_BYTES),
    rounds: Annotated[int, Parameter(help="Rounds that the seconds are divided into; they show the noise.")] = 3,
    as_json: AsJson = False,
    quiet: NoProgressBar = False,
) -> int:
    """Measure how long PATHS take to make a write durable: what PostgreSQL waits for at each commit.

    The cases of PostgreSQL's pg_test_fsync, then WAL-like ones: onward through a segment that is there, and one that
    grows; writes of 4 to 64 kB; and many writers, with one flush for all that wait (as PostgreSQL commits) and with a flush
    of each. Latencies are percentiles of histograms. It writes to files of 16 MiB of its own, which are gone afterwards.

      plinth probe fsync /var/lib/postgresql
      plinth probe fsync /mnt/nvme /mnt/sata --seconds 5 --only one_block,group_commit
      plinth probe fsync /tank --block-size 64k --only one_block,two_blocks,other_descriptor
    """
    from plinth.model.probe import FsyncOptions

    if not paths:
        raise UsageError("no PATH to probe", hint="for example: plinth probe fsync /var/lib/postgresql")
    duration_s = seconds_of("--seconds", seconds)
    if rounds < 1:
        raise UsageError(f"--rounds: got {rounds}; it must be above 0")
    options = FsyncOptions(
        methods=selected_values("--methods", methods, METHODS),
        groups=selected_values("--only", only, GROUPS),
        writers=_numbers("--writers", writers),
        direct=direct,
        block_bytes=block_size_of("--block-size", block_size, SMALLEST_BLOCK_BYTES, LARGEST_BLOCK_BYTES),
    )
    from plinth.cli.probe_view import print_fsync

    found = _fsync(paths, options, duration_s, rounds, quiet)
    if as_json:
        print_json(json.dumps([one.model_dump(mode="json") for one in found]))
    else:
        print_fsync(found, output_console())
    failed = [one for one in found if any(result.failed for result in one.results)]
    return FAILED if failed else 0


def _fsync(
    paths: tuple[Path, ...], options: "FsyncOptions", seconds: float, rounds: int, quiet: bool
) -> "tuple[FsyncProbe, ...]":
    from plinth.probe.fsync_probe import cases
    from plinth.run.interrupt import InterruptGuard
    from plinth.tasks.probe import probe_fsync

    count = len(cases(options)) * len(paths) * rounds
    if count == 0:
        raise UsageError("these methods and questions leave nothing to measure")
    with progress(count, quiet) as advance, InterruptGuard(lambda _: None):
        return probe_fsync(
            paths, options, seconds, lambda case, path: advance(f"{case.group.replace('_', ' ')}: {case.label}"), rounds
        )


@contextmanager
def progress(count: int, quiet: bool) -> Iterator[Any]:
    """Return a function that advances a progress bar and shows the current case; on stderr, and only on a terminal."""
    console = error_console()
    if quiet or not console.is_terminal:
        yield lambda _: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=count, completed=-1)

        def advance(what: str) -> None:
            bar.update(task, description=what, advance=1)

        yield advance


def selected_values(option: str, words: tuple[str, ...], allowed: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values of a repeatable, comma-separated option in the order of `allowed`; all of them by default."""
    named = [part.strip() for word in words for part in word.split(",") if part.strip()]
    for name in named:
        if name not in allowed:
            raise UsageError(
                f"{option}: got {name!r}; allowed: {', '.join(allowed)}", hint=nearest(name, list(allowed))
            )
    return tuple(name for name in allowed if name in named) if named else allowed


def _numbers(option: str, text: str) -> tuple[int, ...]:
    try:
        numbers = sorted({int(word) for word in text.split(",")})
    except ValueError:
        raise UsageError(f"{option}: got {text!r}; numbers with commas between them are needed, as in 1,8,64") from None
    if not 1 <= numbers[0] <= numbers[-1] <= _MOST_WRITERS:
        raise UsageError(f"{option}: got {text!r}; 1 to {_MOST_WRITERS} are possible")
    return tuple(numbers)
