"""What a run needs of space, memory and time, estimated before it starts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plinth.model.experiment import Experiment, SettingValue, TmpfsStorage
from plinth.model.facts import HostFacts
from plinth.model.pg_units import SIZES_BYTES
from plinth.model.plan import Need, PlannedCluster, PlannedTrial, Variant

EMPTY_CLUSTER_BYTES = 48 * 2**20
"""A data directory after initdb, with its first WAL segments."""

_DEFAULT_MAX_WAL_BYTES = 2**30
_WAL_BYTES_PER_S = 25e6
_DEFAULT_SHARED_BUFFERS_BYTES = 128 * 2**20

_INITDB_S = 3.0
_START_STOP_S = 2.0
_WAL_LOAD_FACTOR = 1.5


@dataclass(frozen=True)
class Place:
    """Where a storage takes its space from: places that share `key` share what is available."""

    key: str
    where: str
    available_bytes: int | None


def setting_bytes(value: SettingValue, unit_bytes: int) -> int | None:
    """Bytes of a PostgreSQL size setting such as "1GB", or 16384 of its own `unit_bytes`; None when it is none."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kMGT]?B)?\s*", str(value))
    return round(float(match[1]) * (SIZES_BYTES[match[2]] if match[2] else unit_bytes)) if match else None


def cluster_bytes(dataset_bytes: int, variants: Sequence[Variant], trial_s: float) -> int:
    """Size of a data directory with its dataset and the WAL that load and trials leave, up to max_wal_size."""
    limits = [
        setting_bytes(v.settings["max_wal_size"], SIZES_BYTES["MB"]) for v in variants if "max_wal_size" in v.settings
    ]
    limit = max([size for size in limits if size is not None], default=_DEFAULT_MAX_WAL_BYTES)
    wal = min(limit, dataset_bytes * _WAL_LOAD_FACTOR + trial_s * _WAL_BYTES_PER_S)
    return round(EMPTY_CLUSTER_BYTES + dataset_bytes * 1.1 + wal)


def needs_of(
    experiment: Experiment,
    host: HostFacts,
    clusters: Sequence[PlannedCluster],
    variants: Sequence[Variant],
    places: Mapping[str, Place],
) -> list[Need]:
    """Space by place, the limit of each tmpfs, and memory."""
    by_place: dict[str, tuple[Place, int, list[str]]] = {}
    needs = []
    in_memory = 0
    for cluster in clusters:
        if cluster.storage is None:
            continue
        place = places[cluster.storage]
        _, total, names = by_place.get(place.key, (place, 0, []))
        by_place[place.key] = (place, total + cluster.data_bytes, [*names, cluster.id])
    for name, spec in experiment.storage.items():
        if isinstance(spec, TmpfsStorage):
            used = sum(cluster.data_bytes for cluster in clusters if cluster.storage == name)
            in_memory += used
            needs.append(
                Need(what=f"size of storage {name}", where="tmpfs", needed_bytes=used, available_bytes=spec.size_bytes)
            )
    for place, total, names in by_place.values():
        if place.key != "memory":
            what = f"space for {', '.join(names)}"
            needs.append(Need(what=what, where=place.where, needed_bytes=total, available_bytes=place.available_bytes))
    buffers = [
        setting_bytes(variant.settings.get("shared_buffers", "128MB"), 8 * SIZES_BYTES["kB"])
        or _DEFAULT_SHARED_BUFFERS_BYTES
        for variant in variants
    ]
    managed = any(cluster.storage is not None for cluster in clusters)
    if managed:
        needs.append(
            Need(
                what="memory for shared_buffers" + (" and tmpfs" if in_memory else ""),
                where="memory",
                needed_bytes=in_memory + max(buffers),
                available_bytes=host.memory_available_bytes,
            )
        )
    return needs


def estimated_s(experiment: Experiment, load_s: Sequence[float], trials: Sequence[PlannedTrial]) -> float:
    """Time of the whole run: `load_s` of each cluster's dataset, then start, warm-up and load of each trial."""
    trial_s = experiment.measure.warmup_s + experiment.measure.duration_s + _START_STOP_S
    return sum(_INITDB_S + seconds for seconds in load_s) + len(trials) * trial_s
