"""Options that several commands share, and parsers of their values."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from plinth.model.errors import UsageError
from plinth.model.pg_units import SIZES_BYTES, format_block_size
from plinth.system.failures import from_os_error
from plinth.system.regular_file import MOST_TEXT_BYTES, check_regular_if_there

if TYPE_CHECKING:
    from plinth.model.experiment import Experiment

_WHOLE = re.compile(r"\s*-?\d+\s*")
Overrides = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set",
        help="Replace one key, as in --set measure.repeats=3; a factor's key replaces its levels, a table's name the whole "
        "table. May be repeated.",
    ),
]
ScaleToFit = Annotated[
    bool,
    Parameter(
        name="--scale-to-fit",
        help="Cut the dataset (its scale, its rows) until the experiment fits this machine.",
    ),
]
Repeats = Annotated[int | None, Parameter(name="--repeats", help="Short for --set measure.repeats=N.")]
Duration = Annotated[
    str | None, Parameter(name="--duration", help="Short for --set measure.duration=TIME, such as 30s or 5min.")
]
Clients = Annotated[
    str | None,
    Parameter(
        name="--clients",
        help="Short for --set workload.clients=N; several, as in 1,4,16, are the levels of a factor.",
    ),
]
Full = Annotated[
    bool,
    Parameter(
        name="--full",
        help="Ask for the published size, by the experiment's own [full]; says first what hours and space that takes.",
    ),
]
Destroy = Annotated[
    tuple[str, ...],
    Parameter(
        name="--destroy",
        help="The last six characters of the serial number of a disk whose content may be destroyed. May be repeated. "
        "Nothing else takes its place: no file, no environment variable.",
    ),
]
AllowWrites = Annotated[
    bool,
    Parameter(
        name="--allow-writes",
        help="Recorded statements (workload.replay) may write to an external server. Nothing else takes its place.",
    ),
]
SshConfig = Annotated[
    Path | None,
    Parameter(
        name="--ssh-config",
        help="Configuration file of OpenSSH for hosts, and for those of a fleet. Default: ~/.ssh/config. It may start commands, so that no "
        "experiment can name one.",
    ),
]
Bundle = Annotated[Path, Parameter(help="Folder of the bundle.")]
NoProgressBar = Annotated[bool, Parameter(help="No progress bar.")]
Yes = Annotated[bool, Parameter(name="--yes", help="Take the experiment of a bundle without asking; for scripts.")]
AsJson = Annotated[bool, Parameter(name="--json", help="Print JSON on stdout.")]
DryRun = Annotated[
    bool, Parameter(name="--dry-run", help="Change nothing; print what would be done, command by command.")
]


def with_shortcuts(
    overrides: tuple[str, ...], repeats: int | None, duration: str | None, clients: str | None
) -> tuple[str, ...]:
    """Return the overrides of --set, followed by those of --repeats, --duration and --clients."""
    short = [] if repeats is None else [f"measure.repeats={repeats}"]
    if duration is not None:
        short.append(f"measure.duration={duration}")
    if clients is not None:
        if "," in clients and (wrong := [one for one in clients.split(",") if not _WHOLE.fullmatch(one)]):
            raise UsageError(
                f"--clients {clients}: got {wrong[0]!r}; must be whole numbers with commas between them",
                hint="as in --clients 1,4,16",
            )
        several = "," in clients
        short.append(f"matrix.workload.clients=[{clients}]" if several else f"workload.clients={clients}")
    return (*overrides, *short)


def checked_ssh_config(ssh_config: Path | None, experiment: "Experiment") -> Path | None:
    """Return the absolute path of --ssh-config. Raises UsageError for what is no file, and where no machine is reached by ssh."""
    if ssh_config is None:
        return None
    fleet = experiment.fleet
    if not experiment.host and (fleet is None or fleet.executor != "ssh"):
        raise UsageError(
            "--ssh-config: the experiment has no hosts that are reached by ssh",
            hint='leave it out, or add [host.NAME], or [fleet] with executor = "ssh" and hosts',
        )
    if not ssh_config.exists() or ssh_config.is_dir():
        raise UsageError("--ssh-config: there is no such file", where=str(ssh_config))
    try:
        check_regular_if_there(ssh_config, MOST_TEXT_BYTES)
    except OSError as error:  # ssh would open anything
        raise from_os_error(error, "use --ssh-config", ssh_config) from error
    return ssh_config.absolute()


def seconds_of(option: str, seconds: float) -> float:
    """Check a duration in seconds. Raises UsageError unless it is positive and finite."""
    from plinth.model.units import parse_duration

    if not seconds > 0:  # false for nan, too
        raise UsageError(f"{option}: got {seconds:g}; it must be above 0", hint="give a number of seconds, as in 2.5")
    try:
        return parse_duration(seconds)
    except ValueError as error:
        raise UsageError(f"{option}: got {seconds:g}; {error}", hint="give a number of seconds, as in 2.5") from error


_BLOCK_UNITS = {**SIZES_BYTES, "": 1, "k": 1024, "K": 1024, "KiB": 1024, "M": 1024**2, "MiB": 1024**2}
"""PostgreSQL's units, where kB is 1024 bytes, and the short ones of dd and fio."""


def block_size_of(option: str, text: str, smallest_bytes: int, largest_bytes: int) -> int:
    """Parse a block size and return bytes, a multiple of `smallest_bytes`. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+)\s*([A-Za-z]*)\s*", text)
    if match is None or match[2] not in _BLOCK_UNITS:
        raise UsageError(
            f"{option}: got {text!r}; a number and one of {', '.join(filter(None, _BLOCK_UNITS))} are needed",
            hint="for example 64k; kB is 1024 bytes, as in PostgreSQL",
        )
    block_bytes = int(match[1]) * _BLOCK_UNITS[match[2]]
    if not smallest_bytes <= block_bytes <= largest_bytes or block_bytes % smallest_bytes:
        raise UsageError(
            f"{option}: got {text!r}; multiples of {format_block_size(smallest_bytes)} up to "
            f"{format_block_size(largest_bytes)} are possible"
        )
    return block_bytes
