"""The commit ceiling: how many transactions a second one client, and all of a variant's, can commit on its storage at best.

A model of two measurements of the fsync probe. One client waits for each of its flushes, so that it commits at most
1 / (median time of a durable WAL write). Many share flushes; the probe's writers do so by PostgreSQL's own rules, and do
nothing else, so that what they reach is what as many clients can. A transaction costs more than its flush.
"""

from collections.abc import Mapping, Sequence

from plinth.model.choices import DEFAULT_METHOD, Group
from plinth.model.commit_model import CommitCeiling
from plinth.model.facts import ServerFacts
from plinth.model.plan import DATA_ROLE, WAL_ROLE, Variant
from plinth.model.probe import FsyncFigure, FsyncProbe
from plinth.model.write_facts import SettingSeen, WriteFacts, settings_in_force, value_in_force

LEAST_COMMIT_BYTES = 34
"""Of WAL: a record's header and a commit's time (XLogRecord, XLogRecordDataHeaderShort, xl_xact_commit)."""


def commit_ceiling(
    variant: Variant,
    roles: Mapping[str, str],
    server: ServerFacts | None,
    probes: Mapping[str, FsyncProbe],
    tps: float | None,
    wal_bytes: float | None,
    writes: Sequence[WriteFacts] = (),
) -> CommitCeiling:
    """Return the ceiling of a variant whose server has its parts on `roles`; with a reason where there is none.

    `tps` and `wal_bytes`, the WAL of a transaction, are what was measured of the variant, or of one of its trials.
    """
    settings = settings_in_force(variant.asked, server, writes)
    if reason := _no_flush(variant, roles, settings, wal_bytes):
        return CommitCeiling(unavailable=reason)
    storage = roles.get(WAL_ROLE, roles[DATA_ROLE])
    probe = probes.get(storage)
    if probe is None:
        return CommitCeiling(unavailable=f"storage {storage} was not probed")
    method = value_in_force(settings, "wal_sync_method") or DEFAULT_METHOD
    flush = figure_of(probe, "preallocated", method, 1)
    if isinstance(flush, str):
        return CommitCeiling(storage=storage, method=method, unavailable=flush)
    clients = variant.workload.clients
    together = flush if clients == 1 else figure_of(probe, "group_commit", method, clients)
    if isinstance(together, str):
        return CommitCeiling(storage=storage, method=method, unavailable=together)
    of_one = 1e9 / flush.median_ns
    of_all = of_one if clients == 1 else together.ops_per_s
    return CommitCeiling(
        storage=storage,
        method=method,
        flush_median_ns=flush.median_ns,
        one_client_per_s=of_one,
        clients=clients,
        clients_per_s=of_all,
        reached=None if tps is None else tps / of_all,
    )


def _no_flush(
    variant: Variant, roles: Mapping[str, str], settings: Mapping[str, SettingSeen], wal_bytes: float | None
) -> str | None:
    """Return why commits of this variant do not wait for a flush that was measured."""
    if not roles:
        return "the server is not Plinth's, and its storage was not probed"
    for name in ("fsync", "synchronous_commit"):
        if value_in_force(settings, name) == "off":
            return f"{name} is off: no commit waits for a flush"
    if variant.workload.is_read_only:
        return "its transactions write nothing that must be flushed"
    if variant.workload.is_read_only is None and wal_bytes is not None and wal_bytes < LEAST_COMMIT_BYTES:
        return f"its transactions were seen to write {wal_bytes:.0f} bytes of WAL each, less than a commit's record"
    return None


def figure_of(probe: FsyncProbe, group: Group, method: str, writers: int) -> FsyncFigure | str:
    """Return the figure of a case, or the reason for its absence."""
    for result in probe.of(group):
        if (result.case.method, result.case.writers) == (method, writers):
            return result.figure or f"{result.case.label}: {result.unavailable}"
    if probe.gaps and not probe.results:
        return probe.gaps[0].reason
    return f"{method} of {writers} writer{'' if writers == 1 else 's'} was not measured on storage {probe.facts.name}"
