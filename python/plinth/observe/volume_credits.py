"""The credits of emulated volumes, as their disks say."""

from collections.abc import Callable, Mapping

from plinth.model.disk import DiskCredits
from plinth.model.errors import PlinthError
from plinth.observe.source import Reading, Readout, Unreadable

SOURCE = "volume_credits"


class VolumeCredits:
    """Reads the credits that are left, by volume, as they are in the samples: `requests` and `bytes`. `read` is a way to ask each of
    them."""

    name = SOURCE
    sparse = False

    def __init__(self, volumes: Mapping[str, Callable[[], DiskCredits]]) -> None:
        self._volumes = volumes

    def read(self) -> Readout:
        """Ask every volume. Raises Unreadable when none answers."""
        readings: list[Reading] = []
        missing: dict[str, str] = {}
        for name, ask in self._volumes.items():
            try:
                left = ask()
            except PlinthError as error:
                missing[name] = error.message
                continue
            readings += [Reading(name, "requests", left.requests), Reading(name, "bytes", left.bytes)]
        if missing and not readings:
            raise Unreadable(next(iter(missing.values())))
        return Readout(readings, missing)
