"""Estimates the time and bytes written to prepare each trial: cache state and restored data."""

from collections.abc import Iterator, Mapping, Sequence

from plinth.model.dataset import NoDataset
from plinth.model.errors import Problem
from plinth.model.experiment import MeasureSpec
from plinth.model.fault import server_actions
from plinth.model.flashback import SnapshotAction
from plinth.model.plan import Pace, PlannedCluster, PlannedTrial, Variant
from plinth.plan.needs import StoragePlace
from plinth.plan.variants import Expanded

_RESTART_COLD_S = 3.0
"""Time of one more restart of the server, whose catalogs are read from the device."""
_READ_BYTES_PER_S = 500e6
"""Bandwidth of pg_prewarm on a common SSD."""
_COPIED_BYTES_PER_S = 300e6
"""Bandwidth of a copy within a common SSD."""
_SHARING_S = 0.5
"""Of a copy by reflinks, and of a snapshot."""
_PASSES = 2
_FROM_MEMORY_BYTES_PER_S = 2e9


def cache_s(measure: MeasureSpec, cluster: PlannedCluster, pace: Pace | None) -> float:
    """Return the time of `measure.cache` before one trial, in seconds; `pace` is that of the data's storage, if known."""
    match measure.cache:
        case "as-is":
            return 0.0
        case "cold":
            return _RESTART_COLD_S
        case "warm":
            known = pace.write_bytes_per_s if pace is not None else None
            first_s = cluster.data_bytes / min(known or _READ_BYTES_PER_S, _READ_BYTES_PER_S)
            return first_s + (_PASSES - 1) * cluster.data_bytes / _FROM_MEMORY_BYTES_PER_S


def is_restored(measure: MeasureSpec, variants: Sequence[Variant]) -> bool:
    """Return whether the data of a cluster are restored before each trial: if any of its `variants` may write."""
    return measure.restore != "none" and not all(variant.workload.is_read_only for variant in variants)


def restore_problems(measure: MeasureSpec, expanded: Expanded) -> Iterator[Problem]:
    """Yield a problem for each reason that `measure.restore` has no effect."""
    changed = server_actions(measure.actions) or any(isinstance(one, SnapshotAction) for one in measure.actions)
    if measure.restore == "none" or changed:
        return
    if all(isinstance(cluster.dataset, NoDataset) for cluster in expanded.clusters):
        reason, hint = "there is no dataset that could be restored", "leave it out, or give a [dataset] to load"
    elif all(variant.workload.is_read_only for variant in expanded.variants):
        reason, hint = "no workload changes the data", "leave it out"
    else:
        return
    yield Problem(f'restore: got "{measure.restore}"; {reason}', path=["measure", "restore"], hint=hint)


def bytes_without_copy(cluster: PlannedCluster) -> dict[str, int]:
    """Return the bytes of a cluster's files by storage, without the copy that they are restored from."""
    kept = 2 if cluster.restored else 1
    return {name: size_bytes // kept for name, size_bytes in cluster.bytes_by_storage.items()}


def restore_s(cluster: PlannedCluster, places: Mapping[str, StoragePlace]) -> float:
    """Return the time of one copy of a cluster's files, in seconds, either to make it or to restore from it."""
    if not cluster.restored:
        return 0.0
    return sum(
        _SHARING_S if places[name].shares_blocks else _copy_s(places[name], size_bytes)
        for name, size_bytes in bytes_without_copy(cluster).items()
    )


def restored_bytes(
    clusters: Sequence[PlannedCluster],
    trials: Sequence[PlannedTrial],
    variants: Mapping[str, Variant],
    places: Mapping[str, StoragePlace],
) -> int:
    """Return the bytes written by making the copies and by restoring from them; none if blocks are shared."""
    written = 0
    for cluster in clusters:
        if cluster.restored:
            copies = 1 + sum(variants[trial.variant].cluster == cluster.id for trial in trials)
            files = bytes_without_copy(cluster)
            written += copies * sum(files[name] for name in files if not places[name].shares_blocks)
    return written


def _copy_s(place: StoragePlace, size_bytes: float) -> float:
    limit = place.pace.write_bytes_per_s if place.pace is not None else None
    return size_bytes / min(limit or _COPIED_BYTES_PER_S, _COPIED_BYTES_PER_S)
