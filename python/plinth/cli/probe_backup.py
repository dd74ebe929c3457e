"""The command `plinth probe backup`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from plinth.cli.changes import validated
from plinth.cli.console import error_console
from plinth.cli.options import AsJson, NoProgressBar
from plinth.cli.printing import print_result
from plinth.cli.probe_fsync import FAILED, progress

if TYPE_CHECKING:
    from rich.console import Console

    from plinth.model.probe_backup import BackupProbe, BackupResult

_WIDTHS = (16, 9, 15, 11, 11, 11, 15)


def backup(
    path: Annotated[Path, Parameter(help="Directory; the probe makes a server of its own in it, and removes it.")],
    /,
    *,
    to: Annotated[Path | None, Parameter(help="Directory that the backups are written to. Default: PATH.")] = None,
    size: Annotated[str, Parameter(help="Size of the table that is backed up.")] = "1GiB",
    repeats: Annotated[int, Parameter(help="Backups of each kind.")] = 3,
    rate: Annotated[
        str | None, Parameter(help="The most that the server sends, such as 100MB/s. Default: no limit.")
    ] = None,
    compress: Annotated[
        tuple[str, ...],
        Parameter(
            name="--compress",
            help="Kinds of backup: none, or what pg_basebackup --compress takes, as gzip, lz4, zstd:3 or server-zstd. Comma-separated, or "
            "repeated.",
        ),
    ] = ("none",),
    pg: Annotated[int, Parameter(name="--pg", help="Major version of the server.")] = 18,
    as_json: AsJson = False,
    quiet: NoProgressBar = False,
) -> int:
    """Measure how fast pg_basebackup copies a server that runs in PATH: what it takes to make a standby, or a backup.

    A managed server is made in PATH, and a table that compresses by half is loaded. Then pg_basebackup takes it, with WAL, its
    checkpoint and its fsync of all files, several times of each kind in turns. As root the page cache is dropped before each, so that
    the files come from the storage. MB/s are those of the server's files, regardless of the compression. The CPU time of the walsenders
    and of pg_basebackup is given as a share of one core.

      plinth probe backup /mnt/nvme --size 32GiB
      plinth probe backup /mnt/nvme --to /mnt/hdd --compress none,lz4,zstd
      plinth probe backup /mnt/nvme --rate 100MB/s
    """
    from plinth.cli.changes import parse_value
    from plinth.model.probe_backup import BackupOptions
    from plinth.tasks.probe_backup import probe_backup

    kinds = [part.strip() for word in compress for part in word.split(",") if part.strip()]
    asked = {
        "size_bytes": parse_value(size),
        "repeats": repeats,
        "compressions": tuple(dict.fromkeys(kinds)),
        "version": pg,
    }
    if rate is not None:
        asked["rate_bytes_per_s"] = parse_value(rate)
    options = validated(
        BackupOptions,
        asked,
        {
            "size_bytes": "--size",
            "repeats": "--repeats",
            "rate_bytes_per_s": "--rate",
            "compressions": "--compress",
            "version": "--pg",
        },
    )
    errors = error_console()
    with progress(1 + repeats * len(options.compressions), quiet) as advance:
        found = probe_backup(
            path, to, options, advance, lambda text: errors.print(f"note: {text}", markup=False, soft_wrap=True)
        )
    print_result(found, as_json, print_backup)
    return FAILED if any(result.unavailable for result in found.results) else 0


def print_backup(probe: "BackupProbe", console: "Console") -> None:
    """Print the figures of each kind of backup."""
    from plinth.model.units import format_decimal_size

    def line(text: str, style: str | None = None) -> None:
        console.print(text, style=style, markup=False, soft_wrap=True)

    places = f"{probe.path}: {probe.facts.filesystem}"
    if probe.to != probe.path:
        places += f", to {probe.to}: {probe.facts_to.filesystem}"
    size_bytes = probe.results[0].source_bytes
    line(f"{places}; PostgreSQL {probe.server_version}, files of {format_decimal_size(size_bytes)}")
    if probe.options.max_rate is not None:
        line(f"at most {probe.options.max_rate}B/s were asked for (pg_basebackup --max-rate)")
    titles = ("compression", "MB/s", "lowest-highest", "duration", "stored", "walsender", "pg_basebackup")
    line("\n" + "".join(f"{title:>{width}}" for title, width in zip(titles, _WIDTHS, strict=True)), "dim")
    for result in probe.results:
        line("".join(f"{cell:>{width}}" for cell, width in zip(_cells(result), _WIDTHS, strict=False)))
    runs = probe.options.repeats
    line(f"\nMedians of {runs} backups each." if runs > 1 else "\nOne backup each: no spread is known.")
    line("walsender, pg_basebackup: CPU time of the server's walsenders and of the client, as a share of one core.")
    for gap in probe.gaps:
        line(f"n/a: {gap.what}: {gap.reason}; files may have come from memory")


def _cells(result: "BackupResult") -> tuple[str, ...]:
    from plinth.model.units import format_decimal_size, format_duration

    if (
        result.bytes_per_s is None
        or result.duration_s is None
        or result.stored_bytes is None
        or result.walsender_cores is None
        or result.client_cores is None
    ):
        return (result.compression, f"  n/a: {result.unavailable}")
    low, high = min(result.rates) / 1e6, max(result.rates) / 1e6
    return (
        result.compression,
        f"{result.bytes_per_s / 1e6:,.1f}",
        f"{low:,.1f}-{high:,.1f}",
        format_duration(float(f"{result.duration_s:.3g}")),
        format_decimal_size(result.stored_bytes),
        f"{100 * result.walsender_cores:.0f} %",
        f"{100 * result.client_cores:.0f} %",
    )
