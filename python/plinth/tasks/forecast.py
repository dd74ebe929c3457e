"""From a bundle to its forecast on other drives."""

from pathlib import Path

from plinth.bundle import read_bundle
from plinth.common.nearest import nearest
from plinth.model.errors import UsageError
from plinth.model.forecast import Forecast
from plinth.storage.devices.disk_daemon import disk_profiles


def forecast_of_bundle(path: Path, asked: tuple[str, ...], variant: str | None = None) -> Forecast:
    """Return the forecast of the bundle at `path` on the profiles that are asked for; none asked for means all.

    Raises UsageError when it is no bundle, for profiles that there are not, and where the run has not what a forecast needs.
    """
    from plinth.analyse.forecast import forecast  # statistics, whose libraries are slow to load

    profiles = {profile.name: profile for profile in disk_profiles()}
    for name in asked:
        if name not in profiles:
            raise UsageError(
                f"--profile {name}: there is no such profile; there are: {', '.join(profiles)}",
                hint=nearest(name, profiles) or "`plinth disk profiles` describes them",
            )
    return forecast(read_bundle(path), profiles, asked or tuple(profiles), variant)
