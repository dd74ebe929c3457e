"""How long a run takes, estimated before it starts: on a common SSD, unless a storage is known to be slower.

What is slow then: bytes that are loaded go at the disk's bandwidth; a checkpoint, which each trial begins and each
server's stop ends with, writes the pages that the trial has changed, and waits for some flushes.
"""

from collections.abc import Mapping, Sequence

from plinth.model.choices import IoShape, WriteGroup
from plinth.model.dataset import NumbersDataset
from plinth.model.experiment import Experiment, MeasureSpec
from plinth.model.flashback import SnapshotAction
from plinth.model.io_error import Holds
from plinth.model.plan import Pace, PlannedCluster, PlannedTrial, Variant
from plinth.plan.needs import StoragePlace
from plinth.plan.preparation import bytes_without_copy, cache_s, restore_s

_INITDB_S = 3.0
_COMMIT_CASES = 3
"""Of the fsync probe on one storage, with one method and one number of clients: commits, and writes into a segment that is there."""
_CASES_OF_GROUP: dict[WriteGroup, int] = {
    "one_block": 5,
    "two_blocks": 5,
    "ladder": 5,
    "other_descriptor": 2,
    "unsynced": 1,
}
JOBS_OF_SHAPE: dict[IoShape, int] = {
    "random_read": 7,
    "sequential": 5,
    "checkpoint": 1,
    "wal": 1,
    "mix": 4,
    "depth_128": 2,
    "positions": 20,
    "device_positions": 20,
}
"""Of `plinth probe io` (probe/io_jobs.py), which the plan does not import; a test compares them."""
_START_STOP_S = 2.0
_STANDBY_START_STOP_S = 0.5
"""Of each standby, which has little to recover: with two of them a trial took 2 s more than its load."""
_PATRONI_START_S = 8.0
"""etcd and the Patronis, which have the lock and their servers then."""
_FLEET_START_S = 4.0
"""Agents start and connect, clocks are compared, and all begin 2 s after that."""
_RAY_START_S = 7.0
"""The same on Ray, whose package is loaded, and which starts a worker on each machine first: of three raylets on two cores."""
_UNDO_STORAGE_S = 0.5
_ANALYSIS_S = 2.0
_ANALYSIS_TRIAL_S = 0.1
"""Reading one trial from the bundle, its statistics, and its part of the report."""
_ERROR_S = 6.0
"""Around an error of a storage: a load before it, the way back, a power cut, recovery and checks."""
_RECOVERY_AND_CHECKS_S = 3.0
_RECORDING_S = 2.0  # prepared, read and removed again, in addition to its load
_IMAGE_S = 1.0
"""Of a small dataset: file systems and server recover, every table and index is checked."""
_BALLAST_BYTES_PER_S = 300e6
"""Random bytes made by one core and written to a common SSD."""
_PAGE_BYTES = 8192
_FLUSHES_OF_A_RESTART = 30
_PAGES_CHANGED_BY_A_COMMIT = 2
_PAGES_READ_BY_AN_UPDATE = 2
"""The key's leaf and the row's; the levels above are in memory."""
_LEAST_COMMIT_S = 0.5e-3
"""Of one client: a transaction takes that long where a flush takes next to nothing."""


def _fleet_start_s(experiment: Experiment) -> float:
    if experiment.fleet is None:
        return 0.0
    return _RAY_START_S if experiment.fleet.executor == "ray" else _FLEET_START_S


def estimated_s(
    experiment: Experiment,
    clusters: Sequence[PlannedCluster],
    populate_s: Sequence[float],
    variants: Mapping[str, Variant],
    trials: Sequence[PlannedTrial],
    places: Mapping[str, StoragePlace],
    memory_bytes: int,
) -> float:
    """Return the time of the whole run.

    It has ballast and a probe of each storage, `populate_s` of each cluster's dataset, then start, warm-up and load of each
    trial, and finally undoing, analysis and report.

    `variants` are by id; `places` has every storage that is used; `memory_bytes` is what is free.
    """
    paces = {cluster.id: _paces(cluster, places) for cluster in clusters}
    by_id = {cluster.id: cluster for cluster in clusters}
    loading_s = sum(
        _INITDB_S * len(cluster.nodes)
        + max(usual_s, _writing_s(cluster, paces[cluster.id]))
        + _updating_s(cluster, paces[cluster.id], memory_bytes)
        + restore_s(cluster, places)
        for cluster, usual_s in zip(clusters, populate_s, strict=True)
    )
    storages = {storage for cluster in clusters for storage in cluster.storages}
    filling_s = sum(map(_filling_s, places.values()))
    probe_cases = _COMMIT_CASES + sum(_CASES_OF_GROUP[group] for group in experiment.measure.probe_only)
    probing_s = len(storages) * probe_cases * experiment.measure.probe_s
    trial_s = experiment.measure.longest_trial_s
    measure = experiment.measure
    snapshots = sum(isinstance(action, SnapshotAction) for action in measure.actions)
    io_s = measure.probe_io_s * sum(JOBS_OF_SHAPE[shape] for shape in set(measure.probe_io))
    probing_s += len(storages) * len(set(measure.probe_io_at)) * io_s
    planned = (variants[trial.variant] for trial in trials)
    trials_s = sum(
        trial_s
        + _fleet_start_s(experiment)
        + _START_STOP_S
        + _STANDBY_START_STOP_S * len(by_id[variant.cluster].standbys)
        + _checkpoint_s(by_id[variant.cluster], paces[variant.cluster], variant, trial_s)
        + restore_s(by_id[variant.cluster], places)
        + cache_s(measure, by_id[variant.cluster], _data_pace(by_id[variant.cluster], paces[variant.cluster]))
        + snapshots * _RECOVERY_AND_CHECKS_S
        + (0.0 if variant.patroni is None else _PATRONI_START_S)
        for variant in planned
    )
    ending_s = len(storages) * _UNDO_STORAGE_S + _ANALYSIS_S + len(trials) * _ANALYSIS_TRIAL_S
    return (
        filling_s
        + probing_s
        + loading_s
        + _cutting_s(experiment, variants)
        + _failing_s(experiment, variants)
        + ending_s
        + _within_budget_s(measure, trials, trials_s)
    )


def _within_budget_s(measure: MeasureSpec, trials: Sequence[PlannedTrial], trials_s: float) -> float:
    """Return the time of the trials, which end with the last block that fits in `measure.budget`, after the first at the earliest.

    Blocks that are added later, by their number, are run regardless of the budget.
    """
    blocks = len({trial.block for trial in trials})
    if measure.budget_s is None or trials[0].block > 1:
        return trials_s
    return min(trials_s, max(measure.budget_s, trials_s / blocks))


def _failing_s(experiment: Experiment, variants: Mapping[str, Variant]) -> float:
    """Return the time of the errors of storages, of which some have the cluster made again."""
    spec = experiment.io_errors
    if spec is None:
        return 0.0
    filesystems: dict[Holds, str] = {"data": ""}
    if experiment.server.wal_storage is not None or "server.wal_storage" in experiment.matrix:
        filesystems["wal"] = ""
    if experiment.server.tablespaces:
        filesystems["tablespace"] = ""
    kinds = list(spec.kinds(filesystems))
    errors = len(kinds) * sum(not variant.is_aa_twin for variant in variants.values())
    return errors * (spec.lasts_s + _ERROR_S)


def _cutting_s(experiment: Experiment, variants: Mapping[str, Variant]) -> float:
    """Return the time of the power cuts if none finds damage."""
    durability = experiment.durability
    if durability is None:
        return 0.0
    tested = sum(not variant.is_aa_twin for variant in variants.values())
    cuts_s = durability.cuts * (durability.within_s / 2 + _RECOVERY_AND_CHECKS_S)
    recordings = min(durability.recordings, durability.atlas)
    return tested * (cuts_s + recordings * (durability.record_s + _RECORDING_S) + durability.atlas * _IMAGE_S)


def _filling_s(place: StoragePlace) -> float:
    """Return the time to write the ballast of a storage."""
    limit = place.pace.write_bytes_per_s if place.pace is not None else None
    return place.ballast_bytes / min(limit or _BALLAST_BYTES_PER_S, _BALLAST_BYTES_PER_S)


def _paces(cluster: PlannedCluster, places: Mapping[str, StoragePlace]) -> dict[str, Pace]:
    """Return the paces of those of its storages for which they are known."""
    found = {name: places[name].pace for name in cluster.bytes_by_storage}
    return {name: pace for name, pace in found.items() if pace is not None}


def _data_pace(cluster: PlannedCluster, paces: Mapping[str, Pace]) -> Pace | None:
    return paces.get(cluster.primary.server.storage or "")


def _writing_s(cluster: PlannedCluster, paces: Mapping[str, Pace]) -> float:
    """Return the time to write what is loaded to each storage at its bandwidth, one storage after another."""
    return sum(
        bytes_without_copy(cluster)[name] / pace.write_bytes_per_s
        for name, pace in paces.items()
        if pace.write_bytes_per_s is not None
    )


def _updating_s(cluster: PlannedCluster, paces: Mapping[str, Pace], memory_bytes: int) -> float:
    """Return the time that random updates after loading wait for pages that are not in memory, one after another."""
    data = _data_pace(cluster, paces)
    if data is None or not isinstance(cluster.dataset, NumbersDataset):
        return 0.0
    updates = cluster.dataset.rows * cluster.dataset.updates_per_row
    missing = max(0.0, 1 - memory_bytes / max(1, cluster.data_bytes))
    return updates * _PAGES_READ_BY_AN_UPDATE * missing * data.page_read_s


def _checkpoint_s(cluster: PlannedCluster, paces: Mapping[str, Pace], variant: Variant, trial_s: float) -> float:
    """Return the time of the checkpoint after a trial: its pages are sorted, so at most that of writing all data once."""
    server = cluster.primary.server
    if server.storage is None or not paces:
        return 0.0
    wal = paces.get(server.wal_storage or server.storage)
    data = paces.get(server.storage)
    flush_s = max(pace.flush_s for pace in paces.values())
    if data is None or variant.workload.is_read_only:
        return _FLUSHES_OF_A_RESTART * flush_s
    at_random_s = data.page_write_s * cluster.data_bytes / _PAGE_BYTES
    if wal is not None and wal.flush_s > 0:
        commits = variant.clients * trial_s / max(wal.flush_s, _LEAST_COMMIT_S)
        at_random_s = min(at_random_s, data.page_write_s * commits * _PAGES_CHANGED_BY_A_COMMIT)
    limit_s = cluster.data_bytes / data.write_bytes_per_s if data.write_bytes_per_s else at_random_s
    return min(at_random_s, limit_s) + _FLUSHES_OF_A_RESTART * flush_s
