"""Prints profiles of emulated disks as text."""

from collections.abc import Sequence

from rich.table import Table

from plinth.cli.console import output_console
from plinth.model.disk import DiskProfile, Physics
from plinth.model.units import format_duration, format_size


def profile_table(profiles: Sequence[DiskProfile]) -> None:
    """Print the resulting figures of each profile, one line each."""
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for title in ("profile", "read", "write", "log", "IOPS r/w", "MB/s r/w", "cache"):
        table.add_column(title, no_wrap=True, justify="left" if title in ("profile", "cache") else "right")
    for profile in profiles:
        physics, medians = profile.physics, profile.depth_one
        bandwidths = [
            (rate or physics.bytes_per_s or 0) // 10**6
            for rate in (physics.read_bytes_per_s, physics.write_bytes_per_s)
        ]
        table.add_row(
            profile.name,
            *map(_latency, (medians.random_read_ns, medians.random_write_ns, medians.log_write_ns)),
            f"{_limit(physics.read_iops or physics.iops)}/{_limit(physics.write_iops or physics.iops)}",
            f"{_limit(bandwidths[0])}/{_limit(bandwidths[1])}",
            cache_text(physics),
        )
    console = output_console()
    console.print(table)
    console.print(
        "\nMedians of random reads and writes with one request at a time, of 8 KiB each; log is a write behind the one before it, and a "
        "flush. Limits of volumes are of reads and writes together, and those of their baseline. The machine adds up to 60 us a request. `plinth disk profiles NAME` shows every number and its source."
    )


def profile_text(profile: DiskProfile) -> str:
    """Return all parameters of a profile with their sources."""
    sources = [f"  {what}: {source}" for what, source in profile.sources]
    return "\n".join([f"{profile.name}: {profile.stands_for}", physics_text(profile.physics), "from", *sources])


def cache_text(physics: Physics) -> str:
    """Describe a write cache and whether it survives a power cut."""
    if not physics.cache_bytes:
        return "write-through"
    return f"{format_size(physics.cache_bytes).replace('.0 ', ' ')} {'protected' if physics.cache_protected else 'volatile'}"


def physics_text(physics: Physics) -> str:
    """Return all parameters, each by the key that sets it."""
    return "\n".join(f"  {key:<17} {value}" for key, value in physics.parts())


def _latency(latency_ns: int) -> str:
    return format_duration(latency_ns / 1e9) if latency_ns else "0"


def _limit(limit: int | None) -> str:
    if not limit:
        return "-"
    return str(limit) if limit < 10_000 else f"{limit / 1000:g}k"
