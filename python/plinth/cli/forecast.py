"""The command forecast: what a run would do on other drives."""

from typing import Annotated

from cyclopts import Parameter

from plinth.cli.options import AsJson, Bundle
from plinth.cli.printing import print_result


def forecast(
    bundle: Bundle,
    /,
    *,
    profile: Annotated[
        tuple[str, ...],
        Parameter(
            name="--profile",
            help="A profile of `plinth disk profiles`; several with commas between them, or repeated. Default: all.",
        ),
    ] = (),
    variant: Annotated[
        str | None, Parameter(name="--variant", help="The variant to begin from, by its label. Default: the baseline.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Forecast throughput and p99 latency of a measured variant on other drives, before one is bought.

    Each part of a transaction's time changes with the drive in its own way: waits for flushes, reads, writes and locks, and work. The rates
    of the drive bound the result. Intervals are of 90 %. Refused where the processors, locks or the clients held back what was measured.

      plinth forecast bundles/mine --profile gp3,nvme
      plinth forecast bundles/mine --variant "disk, 16 clients" --profile hdd-7200 --json

    See docs/guides/forecast.md for what it rests on, and how far it was off.
    """
    from plinth.cli.forecast_view import show_forecast
    from plinth.tasks.forecast import forecast_of_bundle

    asked = tuple(name.strip() for listed in profile for name in listed.split(",") if name.strip())
    found = forecast_of_bundle(bundle, asked, variant)
    print_result(found, as_json, show_forecast)
    return 0
