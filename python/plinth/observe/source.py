"""The interface of sources, which are read at each tick and return values or the reason for a gap."""

import traceback
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol

from plinth.model.base import BUG


class Reading(NamedTuple):
    """One value: `object` names what the metric is of."""

    object: str
    metric: str
    value: float


class Readout(NamedTuple):
    """The values of one reading of a source. `missing` has the parts that could not be read: part -> reason."""

    readings: list[Reading]
    missing: Mapping[str, str] = MappingProxyType({})


class Unreadable(Exception):
    """A source could not be read; the message is the reason."""


class Source(Protocol):
    """One source of samples. Read by one thread only, at most once a tick."""

    @property
    def name(self) -> str:
        """Name in the samples, such as "device"."""
        ...

    @property
    def sparse(self) -> bool:
        """Whether readings omit zeros, which the observer then adds."""
        ...

    def read(self) -> Readout:
        """Read the source once. Raises Unreadable or OSError."""
        ...


def reason_of(error: Exception) -> str:
    """Format an exception as the reason of a gap, beginning with the file if it names one.

    One that no source is to raise is a bug, named with the place in the code.
    """
    if isinstance(error, OSError) and error.strerror is not None:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, Unreadable | OSError):
        return str(error)
    raised = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(raised[-1].filename).name}:{raised[-1].lineno})" if raised else ""
    return f"{BUG}: {type(error).__name__}: {error}{place}"
