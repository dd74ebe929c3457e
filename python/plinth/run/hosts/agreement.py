"""What an answer of a host has to have in common with the question, beyond its type."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from plinth.model.facts import Installation, StorageFacts
from plinth.model.loaded import LoadedDataset
from plinth.model.plan import DestructiveTarget
from plinth.run.hosts.answers import shown_value
from plinth.run.hosts.limits import LOG_PIECE_BYTES

_LEAST_COUNTERS = 11
"""Of a block device, since Linux 2.6."""


class Asked(NamedTuple):
    """A call: what it is of, and its arguments."""

    on: tuple[str, ...]
    arguments: Mapping[str, Any]


def disagreement(asked: Asked, method: str, result: Any) -> str | None:
    """Return why a result is no answer to what was asked; None if it is one."""
    agrees = _AGREEMENTS.get((asked.on[0], method))
    return None if agrees is None else agrees(asked, result)


def _same(what: str, got: object, asked: object) -> str | None:
    return None if got == asked else f"{what}: got {shown_value(got)}; asked was for {shown_value(asked)}"


def _of_storage(asked: Asked, facts: StorageFacts) -> str | None:
    return _same("name", facts.name, asked.on[1])


def _of_target(asked: Asked, target: DestructiveTarget | None) -> str | None:
    return None if target is None else _same("storage", target.storage, asked.on[1])


def _of_cluster(asked: Asked, loaded: LoadedDataset) -> str | None:
    return _same("cluster", loaded.cluster, asked.arguments["cluster"])


def _of_version(asked: Asked, found: Installation) -> str | None:
    return _same("major", found.major, asked.arguments["version"])


def _among_storages(asked: Asked, found: str | StorageFacts) -> str | None:
    names = [one.name for one in asked.arguments["storages"]]
    if isinstance(found, StorageFacts) or found in names:
        return None
    return f"got {shown_value(found)}; asked was for one of {', '.join(names) or 'no storage'}"


def _counters(_: Asked, found: Mapping[str, list[int]]) -> str | None:
    short = next((name for name, counters in found.items() if len(counters) < _LEAST_COUNTERS), None)
    if short is None:
        return None
    return f"{shown_value(short)}: got {len(found[short])} counters; allowed are {_LEAST_COUNTERS} or more"


def _processes(_: Asked, found: tuple[list[int], int]) -> str | None:
    stopped, all_of_them = found
    if len(stopped) <= all_of_them:
        return None
    return f"got {len(stopped):,} processes that are stopped, of {all_of_them:,}"


def _piece(_: Asked, piece: bytes) -> str | None:
    return None if len(piece) <= LOG_PIECE_BYTES else f"got {len(piece):,} bytes; allowed are {LOG_PIECE_BYTES:,}"


_AGREEMENTS: Mapping[tuple[str, str], Callable[[Asked, Any], str | None]] = {
    ("storage", "prepare"): _of_storage,
    ("storage", "facts"): _of_storage,
    ("storage", "destructive_target"): _of_target,
    ("run", "populate"): _of_cluster,
    ("host", "installation"): _of_version,
    ("host", "storage_of"): _among_storages,
    ("host", "diskstats"): _counters,
    ("host", "stopped_processes"): _processes,
    ("server", "log_piece"): _piece,
    ("rejoined", "log_piece"): _piece,
}
"""By the kind of object and the method."""
