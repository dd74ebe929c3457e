"""Predicts what a commit takes that waits for standbys: local + round trip + the standby's flush, and what sharing flushes makes of it.

A primary sends WAL once it has flushed it, and a standby answers once it has flushed it, so that the three follow one another. Each was
measured separately: the commit of a variant that waits for no standby, the round trip of the link, and the fsync probe of the storage. With
several clients flushes are shared, on both sides; what that makes of the sum is simulated (commit_queue). That remote_apply waits for the
replay is not in the model, nor that all share the processors of a machine: its error shows what that makes.
"""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from plinth.analyse.ceiling import figure_of
from plinth.analyse.commit_queue import Clients, Remote, Waits, commit_median_ns, flush_behind
from plinth.model.analysis import VariantResult
from plinth.model.choices import DEFAULT_METHOD
from plinth.model.commit_model import CommitModel
from plinth.model.contents import BundleContents
from plinth.model.plan import DATA_ROLE, PRIMARY, WAL_ROLE, PlannedNode, Variant
from plinth.model.synchronous_standby_names import Quorum, quorum_of
from plinth.model.write_facts import canonical

_COMMITS = {"end", "commit"}
_NAMES = "server.synchronous_standby_names"
_LEVEL = "server.settings.synchronous_commit"
_REMOTE: dict[str, Waits] = {"on": "on", "remote_write": "remote_write", "remote_apply": "remote_apply"}


class _Deciding(NamedTuple):
    """The standby that a commit waits for the longest."""

    name: str
    round_trip_ns: float
    flush_ns: int


def commit_models(contents: BundleContents, results: Sequence[VariantResult]) -> tuple[CommitModel, ...]:
    """Return the model of each variant whose commits wait for standbys, in the order of `results`."""
    planned = {variant.id: contents.as_in_force(variant) for variant in contents.plan.variants}
    found = {result.id: result for result in results}
    return tuple(
        _model(planned[result.id], quorum, contents, found)
        for result in results
        if (quorum := _waits_for(planned[result.id])) is not None and not result.is_aa_twin
    )


def _waits_for(variant: Variant) -> Quorum | None:
    """Return the quorum that commits of a variant wait for; None where they wait for no standby."""
    quorum = quorum_of(_setting(variant, "synchronous_standby_names", ""))
    if quorum is None or not quorum.needed or _setting(variant, "synchronous_commit", "on") not in _REMOTE:
        return None
    return quorum


def _model(
    variant: Variant, quorum: Quorum, contents: BundleContents, results: Mapping[str, VariantResult]
) -> CommitModel:
    measured_ns = _commit_ns(results[variant.id])
    if measured_ns is None:
        reason = "its transactions have no statement END or COMMIT, or none was done"
        return CommitModel(variant=variant.label, unavailable=reason)
    model = CommitModel(variant=variant.label, measured_ns=measured_ns)
    local = _local_of(variant, [contents.as_in_force(one) for one in contents.plan.variants], results)
    if local is None:
        reason = "no variant that waits for its local flush only is like it otherwise"
        return model.model_copy(update={"unavailable": reason})
    local_ns = _commit_ns(results[local.id]) or 0
    model = model.model_copy(update={"local": local.label, "local_ns": local_ns})
    decides = _deciding(variant, quorum, contents)
    probed_ns = _flush(contents.cluster_of(local).primary, local, contents)
    for unknown in (decides, probed_ns):
        if isinstance(unknown, str):
            return model.model_copy(update={"unavailable": unknown})
    assert not isinstance(decides, str) and not isinstance(probed_ns, str)
    flush_ns = 0 if _waits(variant) == "remote_write" else decides.flush_ns
    together_ns = _together_ns(results[local.id], local, probed_ns, _waits(variant), decides)
    return model.model_copy(
        update={
            "standby": decides.name,
            "round_trip_ns": decides.round_trip_ns,
            "flush_ns": flush_ns,
            "sharing_ns": together_ns - (local_ns + decides.round_trip_ns + flush_ns),
        }
    )


def _together_ns(result: VariantResult, local: Variant, probed_ns: int, waits: Waits, decides: _Deciding) -> float:
    """Return a commit of clients that share flushes, by simulation; `result` is of the variant `local`.

    The standby's flushes take as much longer than the probe's as the primary's do: more is written than a page, along with other work.
    """
    _, local_ns, mean_ns = max(_commits(result))
    count = local.workload.clients
    cycle_ns = 1e9 * count / result.tps.value if result.tps is not None and result.tps.value else mean_ns
    clients = Clients(count, max(0.0, cycle_ns - mean_ns))
    flush_ns = flush_behind(clients, local_ns)
    there_ns = decides.flush_ns + max(0.0, flush_ns - probed_ns)
    return commit_median_ns(clients, flush_ns, Remote(waits, decides.round_trip_ns, there_ns))


def _local_of(variant: Variant, others: Sequence[Variant], results: Mapping[str, VariantResult]) -> Variant | None:
    """Return the variant that flushes locally and waits for no standby, and is like `variant` in all but that and the network; of several
    the one that is most like it."""

    def is_of_replication(factor: str) -> bool:
        return factor in (_NAMES, _LEVEL) or factor.startswith("network.")

    def alike(other: Variant) -> int:
        return sum(other.levels.get(factor) == level for factor, level in variant.levels.items())

    candidates = [
        other
        for other in others
        if not other.is_aa_twin
        and _waits_for(other) is None
        and _setting(other, "synchronous_commit", "on") in {*_REMOTE, "local"}
        and all(is_of_replication(f) or other.levels.get(f) == level for f, level in variant.levels.items())
        and other.id in results
        and _commit_ns(results[other.id]) is not None
    ]
    return max(candidates, key=alike, default=None)


def _deciding(variant: Variant, quorum: Quorum, contents: BundleContents) -> _Deciding | str:
    """Return the standby that a commit waits for the longest; or why it is not known."""
    nodes = {node.name: node for node in contents.cluster_of(variant).standbys if node.upstream == PRIMARY}
    found: list[_Deciding] = []
    for name in quorum.possible(list(nodes)):
        flush_ns = _flush(nodes[name], variant, contents)
        if isinstance(flush_ns, str):
            return flush_ns
        round_trip_ns = _round_trip_ns(name, variant, contents)
        if round_trip_ns is None:
            return f"no packet came back on the link to {name}"
        found.append(_Deciding(name, round_trip_ns, flush_ns))
    if len(found) < quorum.needed:
        return "the standbys that it names do not stream from the primary"
    is_written_only = _waits(variant) == "remote_write"

    def takes_ns(one: _Deciding) -> float:
        return one.round_trip_ns + (0 if is_written_only else one.flush_ns)

    names = _setting(variant, "synchronous_standby_names", "")
    if names.strip().startswith("any"):
        found.sort(key=takes_ns)
    elif "*" not in quorum.candidates:
        listed = [name.lower() for name in quorum.candidates]
        found.sort(key=lambda one: listed.index(one.name))
    return max(found[: quorum.needed], key=takes_ns)


def _flush(node: PlannedNode, variant: Variant, contents: BundleContents) -> int | str:
    """Return the flush of one writer: a standby's WAL receiver flushes alone, as does the backend of the primary that flushes for all."""
    storage = node.roles.get(WAL_ROLE, node.roles[DATA_ROLE])
    probe = contents.probes.get(storage)
    if probe is None:
        return f"storage {storage} was not probed"
    own = {name.lower(): str(value) for name, value in variant.standby_settings.get(node.name, {}).items()}
    method = own.get("wal_sync_method", _setting(variant, "wal_sync_method", DEFAULT_METHOD))
    found = figure_of(probe, "preallocated", method, 1)
    return found if isinstance(found, str) else found.median_ns


def _round_trip_ns(standby: str, variant: Variant, contents: BundleContents) -> float | None:
    """Return the round trip of the link in the variant's trials, or that between machines; 0 where the servers talk over sockets of one
    machine."""
    if variant.network is None:
        of_variant = contents.standbys.get(f"{variant.id}.{standby}")
        facts = None if of_variant is None else of_variant.standby
        return 0.0 if facts is None or facts.round_trip_ns is None else float(facts.round_trip_ns)
    found = [
        link.round_trip_ns
        for of_trial in contents.trials
        if of_trial.trial.variant == variant.id and of_trial.trial.network is not None
        for link in of_trial.trial.network.links
        if (link.upstream, link.standby) == (PRIMARY, standby) and link.round_trip_ns is not None
    ]
    return median(found) if found else None


def _commit_ns(result: VariantResult) -> int | None:
    """Return the median of its commits; of several scripts that of those with the most."""
    return max(_commits(result), default=(0, None))[1]


def _commits(result: VariantResult) -> Iterator[tuple[int, int, float]]:
    """Return number, median and mean."""
    for one in result.statements:
        if one.text.strip().rstrip(";").strip().lower() in _COMMITS:
            yield one.latency.count, one.latency.p50_ns, one.latency.mean_ns


def _waits(variant: Variant) -> Waits:
    return _REMOTE[_setting(variant, "synchronous_commit", "on")]


def _setting(variant: Variant, name: str, default: str) -> str:
    return canonical({key.lower(): value for key, value in variant.asked.items()}.get(name, default))
