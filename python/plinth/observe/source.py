"""What a source is: something that is read at each tick and gives values, or a reason why not."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol


class Reading(NamedTuple):
    """One value: `object` names what the metric is of."""

    object: str
    metric: str
    value: float


class Readout(NamedTuple):
    """All that one reading of a source gave. `missing` has the parts that could not be read: part -> reason."""

    readings: list[Reading]
    missing: Mapping[str, str] = MappingProxyType({})


class Unreadable(Exception):
    """A source that gives nothing this time; the text is the reason."""


class Source(Protocol):
    """One source of samples. Read by one thread only, at most once a tick."""

    @property
    def name(self) -> str:
        """Name in the samples, such as "device"."""
        ...

    @property
    def sparse(self) -> bool:
        """What a readout leaves out is zero in it, so that the observer may fill it in."""
        ...

    def read(self) -> Readout:
        """Read the source once. Raises Unreadable or OSError when it gives nothing."""
        ...


class RepeatedlySampled(Source, Protocol):
    """A source that is sampled several times for each reading, which summarises these samples."""

    def sample(self) -> None:
        """Take one more sample. Raises Unreadable or OSError when the source gives nothing."""
        ...


def reason_of(error: Exception) -> str:
    """An exception as the reason of a gap: the file first where one is named."""
    if isinstance(error, OSError) and error.strerror is not None:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, Unreadable | OSError):
        return str(error)
    return f"{type(error).__name__}: {error}"
