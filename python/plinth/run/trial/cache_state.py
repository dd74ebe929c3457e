"""`measure.cache`: what memory holds of tables and indexes when a load begins, brought about and verified."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from plinth.model.base import Gap
from plinth.model.facts import StorageFacts
from plinth.model.place import EMULATED, NETWORK
from plinth.model.progress import Progress
from plinth.model.trial import CacheState, Check
from plinth.model.units import format_size
from plinth.run.provision.live_cluster import Node
from plinth.server.external.external_server import ExternalServer
from plinth.server.prewarm import Relation, RelationReader, relations
from plinth.system import cancel
from plinth.system.database import connect, database_errors

_IN_PAGE_CACHE = ("tmpfs", "ramfs")
_FEW = 0.01
"""The share of tables and indexes up to which nothing, or all, of them is in memory."""
_FEW_BYTES = 2**20
"""What others may read from the same devices meanwhile, while a small dataset is read."""
_STILL_FALLING = 0.5
"""A pass that reads less than this share of what the one before it read is followed by another."""


class Prepared(NamedTuple):
    """The state that was reached, with the check of one that must be reached, and why another could not be."""

    state: CacheState
    checks: tuple[Check, ...] = ()
    gaps: tuple[Gap, ...] = ()


def not_made_cold(storages: Sequence[StorageFacts]) -> str | None:
    """Return why dropping the page cache does not empty all that caches these storages; None when it does."""
    for facts in storages:
        kinds = {node.kind for node in facts.stack}
        filesystems = {facts.filesystem, *(node.name for node in facts.stack if node.kind == "filesystem")}
        if facts.filesystem in _IN_PAGE_CACHE:
            return f"storage {facts.name} is in memory: the page cache is where its files are"
        if facts.kind == "zfs" or "zfs" in filesystems:
            return f"storage {facts.name} is on ZFS, whose own cache (ARC) is not dropped with the page cache"
        if NETWORK in kinds:
            return f"storage {facts.name} is on another machine, or on this machine's host, which has its own cache"
        if facts.filesystem.startswith("fuse") and EMULATED not in kinds:
            return f"storage {facts.name} is served by a program ({facts.filesystem}), which may have its own cache"
    return None


def verify_cold(node: Node, storages: Sequence[StorageFacts]) -> Prepared:
    """Return what is in the page cache of a server that was started after the cache was dropped. Raises RunError."""
    with database_errors("list tables and indexes", _where(node)), connect(node.server.control) as control:
        found = relations(control)
    total_bytes, resident = _size_bytes(found), _resident_bytes(node, found)
    is_empty = resident <= _allowed_bytes(total_bytes)
    reason = not_made_cold(storages)
    state = CacheState(
        asked="cold",
        reached=is_empty if reason is None else False,
        evidence=_evidence(total_bytes, f"{format_size(resident)} were in the page cache before the load"),
        relation_bytes=total_bytes,
        resident_bytes=resident,
    )
    if reason is not None:
        return Prepared(state, gaps=(Gap(what="cold cache", reason=f"{reason}; only shared buffers were empty"),))
    check = Check(
        name="cold cache: bytes of tables and indexes in the page cache before the load (mincore)",
        expected=f"at most {format_size(_allowed_bytes(total_bytes))}",
        got=format_size(resident),
        ok=is_empty,
    )
    return Prepared(state, checks=(check,))


def warm(node: Node, storages: Sequence[StorageFacts], report: Callable[[Progress], None]) -> Prepared:
    """Read all tables and indexes until a pass reads no less than the one before it. Raises RunError.

    What a pass read is counted by the devices on top of each storage; of a server that is not ours, which may be on
    another machine, it is what was not in shared buffers.
    """
    local = node.is_managed
    devices = sorted({device for facts in storages for device in top_devices(facts)})
    passes: list[int] = []
    with database_errors("read tables and indexes into memory", _where(node)), connect(node.server.control) as control:
        reader = RelationReader(control, may_install=local)
        found = [one for one in relations(control, None if local else _schema_of(node)) if reader.reads(one)]
        total_bytes = _size_bytes(found)
        while len(passes) < 2 or _goes_on(passes, total_bytes):
            before = node.host.read_bytes(devices)
            missed_bytes = 0
            for done, relation in enumerate(found):
                cancel.check()
                task = f"read tables and indexes into memory, pass {len(passes) + 1}"
                report(Progress(task, done, len(found), "relations", relation.name))
                missed_bytes += reader.read(relation)
            passes.append(node.host.read_bytes(devices) - before if local else missed_bytes)
    resident = _resident_bytes(node, found) if local else None
    state = CacheState(
        asked="warm",
        reached=_is_warm(passes[-1], total_bytes, resident, counted=bool(devices), local=local),
        evidence=_evidence_of_warm(passes, total_bytes, resident, devices, reader.how, local=local),
        relation_bytes=total_bytes,
        resident_bytes=resident,
        read_bytes_by_pass=tuple(passes) if devices or not local else (),
    )
    return Prepared(state, gaps=(*reader.gaps, *_gaps_of_warm(state)))


def _schema_of(node: Node) -> str | None:
    server = node.server
    return server.schema if isinstance(server, ExternalServer) else None


def top_devices(facts: StorageFacts) -> tuple[str, ...]:
    """Return the block devices directly below the file system of a storage: those below them count the same reads once more."""
    nodes = [node for node in facts.stack if node.name in facts.block_devices]
    top = min((node.depth for node in nodes), default=0)
    return tuple(node.name for node in nodes if node.depth == top)


def _goes_on(passes: Sequence[int], total_bytes: int) -> bool:
    *_, before, last = passes
    return last > _allowed_bytes(total_bytes) and last < _STILL_FALLING * before


def _is_warm(last: int, total_bytes: int, resident: int | None, *, counted: bool, local: bool) -> bool | None:
    if counted or not local:
        few = last <= _allowed_bytes(total_bytes)
        return few if local else few or None  # what is outside of shared buffers may be in that machine's page cache
    return resident is not None and resident >= total_bytes - _allowed_bytes(total_bytes)


def _gaps_of_warm(state: CacheState) -> tuple[Gap, ...]:
    if state.reached:
        return ()
    if state.reached is None:
        reason = "what is not in shared buffers may be in the page cache of the server's machine, which is not seen from here"
    else:
        reason = "memory does not hold all tables and indexes"
    return (Gap(what="warm cache", reason=f"{reason}: {state.evidence}"),)


def _evidence_of_warm(
    passes: Sequence[int], total_bytes: int, resident: int | None, devices: Sequence[str], how: str, *, local: bool
) -> str:
    if local and not devices:
        return _evidence(
            total_bytes, f"{format_size(resident or 0)} were in the page cache after {len(passes)} passes ({how})"
        )
    source = ", ".join(devices) if local else "outside of shared buffers"
    return _evidence(
        total_bytes, f"the last of {len(passes)} passes ({how}) read {format_size(passes[-1])} from {source}"
    )


def _evidence(total_bytes: int, found: str) -> str:
    return f"of {format_size(total_bytes)} of tables and indexes, {found}"


def _allowed_bytes(total_bytes: int) -> int:
    return max(_FEW_BYTES, round(_FEW * total_bytes))


def _size_bytes(found: Sequence[Relation]) -> int:
    return sum(relation.size_bytes for relation in found)


def _resident_bytes(node: Node, found: Sequence[Relation]) -> int:
    assert node.facts.data_directory is not None, "it is a managed server"
    return node.host.resident_bytes(Path(node.facts.data_directory), found)


def _where(node: Node) -> str:
    return node.facts.data_directory or node.name
