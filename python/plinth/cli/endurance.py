"""The command endurance: how much drive life a workload consumes."""

from typing import Annotated

from cyclopts import Parameter

from plinth.cli.options import AsJson, Bundle
from plinth.cli.printing import print_result
from plinth.model.errors import UsageError


def endurance(
    bundle: Bundle,
    /,
    *,
    tps: Annotated[
        float | None, Parameter(name="--tps", help="Work out a day at this rate, in place of the measured one.")
    ] = None,
    tbw: Annotated[
        str | None, Parameter(name="--tbw", help="What the drive's maker rates it for, as in --tbw 600TB.")
    ] = None,
    pe_cycles: Annotated[
        int | None, Parameter(name="--pe-cycles", help="Times that each cell may be written, with --capacity.")
    ] = None,
    capacity: Annotated[str | None, Parameter(name="--capacity", help="Of the drive, as in --capacity 300GB.")] = None,
    waf: Annotated[
        float | None,
        Parameter(
            name="--waf",
            help="Bytes that the drive writes to its cells for each of the host's, with --pe-cycles. Default: 1.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Show what a run's load wrote: per transaction and per day, to each device, and by purpose.

    PostgreSQL's own part is split into data, WAL and full-page images; what the devices wrote for each of its bytes is the
    overhead of file system and log device. With a rating of the drive, also how long it lasts: that of [drive] in the
    experiment, or --tbw 600TB, or --pe-cycles 5000 --capacity 300GB. Every figure is the median of the trials with its 95 %
    interval, or n/a with the reason.

    Works on any machine that has the bundle; nothing but the bundle is read.

      plinth endurance bundles/nvme --tbw 600TB
      plinth endurance bundles/nvme --pe-cycles 5000 --capacity 300GB --waf 2.5 --tps 1000
    """
    from plinth.cli.endurance_view import show_endurance
    from plinth.tasks.endurance import endurance_of_bundle

    account = endurance_of_bundle(bundle, tps, _size("--tbw", tbw), pe_cycles, _size("--capacity", capacity), waf)
    print_result(account, as_json, show_endurance)
    return 0


def _size(option: str, text: str | None) -> int | None:
    from plinth.model.units import parse_size

    if text is None:
        return None
    try:
        return parse_size(text)
    except ValueError as error:
        raise UsageError(f"{option} {text}: {error}") from error
