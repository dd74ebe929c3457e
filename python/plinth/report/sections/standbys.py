"""The standbys of a run in words: how each was made, and how it was found before the trials of each variant."""

from collections.abc import Mapping, Sequence
from statistics import median

from plinth.model.analysis import VariantResult
from plinth.model.contents import BundleContents
from plinth.model.figures import NOT_AVAILABLE
from plinth.model.plan import PRIMARY, PlannedCluster, PlannedNode
from plinth.model.report import StandbyText
from plinth.model.standby import BaseBackup
from plinth.model.units import format_decimal_size, format_duration
from plinth.report.lags import Lag, lag_words, lags_of
from plinth.report.sections.section import Section, sentences_of, table_of


def standby_texts(
    contents: BundleContents, results: Sequence[VariantResult], lags: Sequence[Mapping[str, Lag]] | None = None
) -> tuple[StandbyText, ...]:
    """Describe every standby of every cluster, in the order of the plan. `lags`: of each trial of the bundle, by standby, if they are known."""
    if lags is None:
        has_any = any(cluster.standbys for cluster in contents.plan.clusters)
        lags = [lags_of(trial) for trial in contents.trials] if has_any else []
    return tuple(
        _text(contents, cluster, node, lags, _survival(contents, cluster, results))
        for cluster in contents.plan.clusters
        for node in cluster.standbys
    )


def standby_sentence(text: StandbyText) -> str:
    """Return what the terminal says of a standby."""
    return f"from {text.upstream}, on {text.storage}; base backup {text.backup}; {text.states}; {text.lag}; {text.survival}"


def _text(
    contents: BundleContents,
    cluster: PlannedCluster,
    node: PlannedNode,
    lags: Sequence[Mapping[str, Lag]],
    survival: str,
) -> StandbyText:
    made = next((one for one in contents.backups if (one.cluster, one.standby) == (cluster.id, node.name)), None)
    states: dict[str, list[str]] = {}
    round_trips_ns: list[int] = []
    for variant in contents.plan.variants:
        found = contents.standbys.get(f"{variant.id}.{node.name}")
        if found is not None and found.standby is not None:
            states.setdefault(found.standby.sync_state or NOT_AVAILABLE, []).append(variant.label)
            round_trips_ns += [] if found.standby.round_trip_ns is None else [found.standby.round_trip_ns]
    shown = "; ".join(f"{state} in {', '.join(labels)}" for state, labels in states.items())
    return StandbyText(
        name=f"{node.name} of {cluster.id}",
        upstream=_upstream(node, round_trips_ns),
        storage=", ".join(f"{storage} ({role})" for role, storage in node.roles.items()),
        backup=_backup(made),
        lag=lag_words(_lags_of(contents, cluster, node, lags), None if node.upstream == PRIMARY else node.upstream),
        survival=survival,
        states=shown or f"{NOT_AVAILABLE}: no trial was run with it",
    )


def _upstream(node: PlannedNode, round_trips_ns: Sequence[int]) -> str:
    """Name the upstream, with the round trip to it where that is on another machine."""
    if not round_trips_ns:
        return node.upstream or ""
    return f"{node.upstream}, {format_duration(median(round_trips_ns) / 1e9)} away (round trip by TCP)"


def _survival(contents: BundleContents, cluster: PlannedCluster, results: Sequence[VariantResult]) -> str:
    """Say what each loss leaves of commits: each sentence once, with the variants for which it is true."""
    own = {variant.id for variant in contents.plan.variants if variant.cluster == cluster.id and not variant.is_aa_twin}
    labels: dict[str, list[str]] = {}
    for result in results:
        if result.id in own:
            for said in (result.safety.power_loss, result.safety.primary_loss):
                if said is not None:
                    labels.setdefault(said, []).append(result.label)
    return "; ".join(said if len(of) == len(own) else f"{said} (in {', '.join(of)})" for said, of in labels.items())


def _lags_of(
    contents: BundleContents, cluster: PlannedCluster, node: PlannedNode, lags: Sequence[Mapping[str, Lag]]
) -> dict[str, list[Lag]]:
    """Return the lags of a standby in the completed trials, by variant."""
    own = {variant.id for variant in contents.plan.variants if variant.cluster == cluster.id}
    found: dict[str, list[Lag]] = {}
    for of_trial, by_standby in zip(contents.trials, lags, strict=True):
        trial = of_trial.trial
        if trial.variant in own and trial.status == "complete" and node.name in by_standby:
            found.setdefault(trial.variant, []).append(by_standby[node.name])
    return found


def _backup(made: BaseBackup | None) -> str:
    if made is None:
        return f"{NOT_AVAILABLE}: it was not made"
    rate = f", {format_decimal_size(made.bytes_per_s)}/s" if made.bytes_per_s is not None else ""
    return f"{format_decimal_size(made.size_bytes)} in {format_duration(round(made.duration_s, 1))}{rate}"


STANDBYS = Section(
    id="standbys",
    title="Standbys",
    note="The base backup as pg_basebackup took it, with its checkpoint and its fsync of all files. The states are those of "
    "pg_stat_replication before each trial, once the standby had replayed all WAL. Lags are the means of its columns in the measured time "
    "(lowest to highest of the variants), without the moments in which nothing was behind; the charts of the trials show them over time.",
    blocks=table_of(
        lambda report: report.standbys,
        {
            "Standby": lambda one: one.name,
            "From": lambda one: one.upstream,
            "Storage": lambda one: one.storage,
            "Base backup": lambda one: one.backup,
            "Synchronous state": lambda one: one.states,
            "Lag": lambda one: one.lag,
            "What commits survive": lambda one: one.survival,
        },
    ),
    entries=sentences_of(lambda report: report.standbys, lambda one: one.name, standby_sentence),
    nouns="standbys",
    page="storage",
)
