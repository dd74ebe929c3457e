"""Compares the space and memory that a run needs with those available, through layers of storages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from plinth.model.facts import HostFacts
from plinth.model.pg_units import SIZES_BYTES
from plinth.model.plan import Need, Pace, PlannedCluster, Variant
from plinth.model.units import format_size
from plinth.plan.sizes import DEFAULT_SHARED_BUFFERS_BYTES, setting_bytes

_MEMORY = "memory"
_FEW_CONNECTIONS = 100
"""PostgreSQL's default of max_connections; memory is counted for connections beyond it."""
_CONNECTION_BYTES = 2 * 2**20
"""Memory of a backend that has prepared tpcb-like's statements, with page tables and its share of the lock table: 1.7 MiB with
128 MB of shared_buffers."""


@dataclass(frozen=True)
class StoragePlace:
    """A storage, and the source of its space.

    That is another storage (`on`), or a file system or memory, which storages of the same `key` share. It takes
    `takes_bytes` for any content, or as much as is stored. `usable_bytes` is what can be stored in it at most.
    `ballast_bytes` of that are written before anything is stored.
    `pace` is how fast it is, where that is known, as of an emulated disk. `shares_blocks`: the copy that
    `measure.restore` asks for is known to share its blocks with the files.
    """

    key: str | None = None
    where: str = ""
    available_bytes: int | None = None
    on: str | None = None
    takes_bytes: int | None = None
    usable_bytes: int | None = None
    ballast_bytes: int = 0
    pace: Pace | None = None
    shares_blocks: bool = False


@dataclass
class _Taken:
    """Space that clusters and storages take of one file system, or of memory."""

    place: StoragePlace
    names: dict[str, None]
    by_storage: dict[str, int]

    @property
    def size_bytes(self) -> int:
        return sum(self.by_storage.values())

    def too_much(self, available_bytes: int | None, else_bytes: int = 0) -> tuple[str, ...]:
        """Return the largest storages that must be left out for the others (and `else_bytes`) to fit."""
        left = dict(sorted(self.by_storage.items(), key=lambda item: item[1]))
        dropped = []
        while left and available_bytes is not None and sum(left.values()) + else_bytes > available_bytes:
            dropped.append(left.popitem()[0])
        return tuple(dropped)


def memory_of(host: str | None) -> str:
    """Return what the memory of a host is called."""
    return _MEMORY if host is None else f"{_MEMORY} of host {host}"


def needs_of(
    facts: Mapping[str | None, HostFacts],
    clusters: Sequence[PlannedCluster],
    servers_on: Mapping[str | None, Mapping[str, int]],
    variants: Sequence[Variant],
    places: Mapping[str, StoragePlace],
) -> list[Need]:
    """Return the needs: sizes of storages that have one, space by file system, and memory.

    `facts` are of each host, and `servers_on` has how many servers of each managed cluster are on it; `places` has every storage that
    is used, each after those that it is built on.
    """
    stored = dict.fromkeys(places, 0)
    for cluster in clusters:
        for storage, size_bytes in cluster.bytes_by_storage.items():
            stored[storage] += size_bytes
    taken: dict[str, _Taken] = {}
    needs = []
    for name, place in reversed(list(places.items())):
        in_it_bytes = stored[name] + place.ballast_bytes
        takes_bytes = in_it_bytes if place.takes_bytes is None else place.takes_bytes
        if place.on is not None:
            stored[place.on] += takes_bytes
        elif place.key is not None:
            sum_of = taken.setdefault(place.key, _Taken(place, {}, {}))
            sum_of.names |= dict.fromkeys(_takers(name, place, clusters))
            sum_of.by_storage[name] = takes_bytes
        if place.usable_bytes is not None and stored[name]:
            ballast = f" after {format_size(place.ballast_bytes)} of ballast" if place.ballast_bytes else ""
            what = f"capacity of storage {name}{ballast}"
            needs.append(
                Need(
                    what=what,
                    where=f"storage.{name}",
                    needed_bytes=stored[name],
                    available_bytes=place.usable_bytes - place.ballast_bytes,
                    storages=(name,),
                )
            )
    needs.reverse()
    in_memory = {host: taken.pop(memory_of(host), None) for host in facts}
    for sum_of in reversed(taken.values()):
        needs.append(
            Need(
                what=f"space for {', '.join(reversed(sum_of.names))}",
                where=sum_of.place.where,
                needed_bytes=sum_of.size_bytes,
                available_bytes=sum_of.place.available_bytes,
                storages=sum_of.too_much(sum_of.place.available_bytes),
            )
        )
    for host, servers in servers_on.items():
        own = [variant for variant in variants if variant.cluster in servers]
        most = max(servers.values())  # the servers of one cluster run at a time
        needs.append(_memory(host, facts[host], own, in_memory[host], most))
    return needs


def _takers(name: str, place: StoragePlace, clusters: Sequence[PlannedCluster]) -> Iterator[str]:
    """Yield what takes space of a file system: a storage of fixed size, else the clusters that are stored on it."""
    users = [cluster.id for cluster in reversed(clusters) if name in cluster.bytes_by_storage]
    yield from users if place.takes_bytes is None and users else [f"storage {name}"]


def _memory(
    host: str | None, facts: HostFacts, variants: Sequence[Variant], in_memory: _Taken | None, servers: int
) -> Need:
    buffers_bytes = max(
        setting_bytes(variant.settings.get("shared_buffers", "128MB"), 8 * SIZES_BYTES["kB"])
        or DEFAULT_SHARED_BUFFERS_BYTES
        for variant in variants
    )
    clients = max(variant.clients for variant in variants)
    many = clients if clients > _FEW_CONNECTIONS else 0
    server_bytes = servers * buffers_bytes + many * _CONNECTION_BYTES
    taken = in_memory or _Taken(StoragePlace(), {}, {})
    enough = server_bytes <= facts.memory_available_bytes
    connections = [f"{many:,} connections"] if many else []
    buffers = "memory for shared_buffers" + (f" of {servers} servers" if servers > 1 else "")
    storages = [f"storage {name}" for name in reversed(taken.by_storage)]
    return Need(
        what=" and ".join([buffers, *connections, *storages]),
        where=memory_of(host),
        needed_bytes=server_bytes + taken.size_bytes,
        available_bytes=facts.memory_available_bytes,
        storages=taken.too_much(facts.memory_available_bytes, server_bytes) if enough else (),
    )
