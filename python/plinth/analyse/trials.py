"""The trials of each variant: which count, and what each one shows alone."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from plinth.analyse.attribution import SOURCES as ATTRIBUTION_SOURCES
from plinth.analyse.attribution import attribute, wait_shares
from plinth.analyse.bootstrap import estimate, stated
from plinth.analyse.ceiling import commit_ceiling
from plinth.analyse.latency import percentiles, percentiles_of, statement_latencies
from plinth.analyse.machine_cpu import machine_cpu
from plinth.analyse.machine_load import machine_load
from plinth.analyse.postgres_writes import SOURCES as WRITES_SOURCES
from plinth.analyse.postgres_writes import PostgresWrites, postgres_writes
from plinth.analyse.server_work import process_io, server_work, trial_work
from plinth.analyse.steady import Steadiness, steadiness
from plinth.analyse.transactions import nopm_of, transaction_results, trial_nopm, trial_transactions
from plinth.analyse.window import Window, measured_phase
from plinth.model.analysis import (
    LatencyPercentiles,
    OpenLoop,
    ProcessIo,
    ServerWork,
    StatementLatency,
    TransactionResult,
    TrialPoint,
    TrialTransactions,
    TrialWork,
)
from plinth.model.bottleneck import Bottleneck, BottleneckKind, VariantBottleneck, WaitShare
from plinth.model.commit_model import CommitCeiling
from plinth.model.contents import BundleContents, TrialContents
from plinth.model.errors import RunError
from plinth.model.figures import Estimate
from plinth.model.histogram import Buckets
from plinth.model.load import Totals
from plinth.model.plan import Variant
from plinth.model.trial import Trial

MANY_MISSED = 0.01
"""Share of an open loop's schedule that may be missed before the server is said not to keep up."""


def keeps_up(due: Totals | OpenLoop, clients: int) -> bool:
    """Return whether at most MANY_MISSED of the transactions due were skipped, or left waiting at the end of each trial.

    As many as there are clients may be under way at the end, which is no waiting.
    """
    return due.skipped + max(0, due.open - clients) <= MANY_MISSED * due.scheduled


def log_share_in_time(done: Totals | None) -> float:
    """Return the log of the share of what was done that was within the latency limit; of none in time, as of one, which has a logarithm."""
    return math.log(max(done.done - done.late, 1) / done.done) if done is not None and done.late else 0.0


_CONFIDENCE = ("high", "medium", "low")


@dataclass(frozen=True)
class JudgedTrial:
    """A trial with what the analysis makes of it; `excluded` names the rule by which it does not count.

    `seen`, `bottleneck`, `work` and `writes` are None of a trial that was not completed.
    """

    contents: TrialContents
    excluded: str | None
    latency: Buckets
    steadiness: Steadiness
    seen: Window | None
    bottleneck: Bottleneck | None
    work: TrialWork | None
    writes: PostgresWrites | None
    transactions: tuple[TrialTransactions, ...]
    nopm: float | None
    log_in_time: float | None
    """Of transactions a second: of an open loop those done within its latency limit, of a closed one all; None where none was done."""
    kept: bool | None
    """Whether it kept up with the schedule of an open loop; None of a closed one, and where what was due is not known."""
    neighbours_cores: float | None

    @property
    def number(self) -> int:
        """The trial's place in the order of running."""
        return self.contents.trial.number

    @property
    def counts(self) -> bool:
        """Complete, and left out by no rule."""
        return self.contents.trial.status == "complete" and self.excluded is None

    def point(self) -> TrialPoint:
        """Return the trial for tables and dots, whether it counts or not."""
        trial = self.contents.trial
        latency = percentiles(self.latency) if self.latency else None
        totals = trial.measured or trial.totals
        load = machine_load(self.seen)
        return TrialPoint(
            number=trial.number,
            block=trial.block,
            tps=trial.tps,
            latency_p50_ns=latency.p50_ns if latency else None,
            latency_p95_ns=latency.p95_ns if latency else None,
            latency_p99_ns=latency.p99_ns if latency else None,
            latency_max_ns=latency.max_ns if latency else None,
            failed=totals.failed if totals else 0,
            steady=self.steadiness.steady,
            excluded=self.excluded,
            failure=trial.failure,
            bottleneck=self.bottleneck,
            work=self.work,
            transactions=self.transactions,
            nopm=self.nopm,
            others_cpu=load.others_cpu,
            steal=load.steal,
            in_time_tps=None if self.kept is None or self.log_in_time is None else math.exp(self.log_in_time),
            kept=self.kept,
            observer_cores=trial.observer_cpu_ns / trial.observer_ns
            if trial.observer_ns and trial.observer_cpu_ns is not None
            else None,
            neighbours_cores=self.neighbours_cores,
        )


@dataclass(frozen=True)
class Measured:
    """A variant and its trials in order of running."""

    variant: Variant
    trials: tuple[JudgedTrial, ...]

    @cached_property
    def counted(self) -> tuple[JudgedTrial, ...]:
        """The trials that the statistics rest on."""
        return tuple(judged for judged in self.trials if judged.counts)

    @cached_property
    def log_tps(self) -> dict[int, float]:
        """log(tps) of the counted trials, by block."""
        done = ((judged.contents.trial.block, judged.contents.trial.tps) for judged in self.counted)
        return {block: math.log(tps) for block, tps in done if tps}

    @cached_property
    def log_in_time(self) -> dict[int, float]:
        """What variants are compared by: as log_tps, of open loops without the transactions that were late."""
        return {one.contents.trial.block: one.log_in_time for one in self.counted if one.log_in_time is not None}

    @cached_property
    def log_p99(self) -> dict[int, float]:
        """log(p99 latency in ns) of the counted trials, by block."""
        known = ((one.contents.trial.block, one.latency) for one in self.counted if one.latency)
        return {block: math.log(max(latency.percentile_ns(0.99), 1)) for block, latency in known}

    def tps(self, seed: int) -> Estimate | None:
        """Return the median of the counted trials with its interval."""
        return stated(*estimate(list(self.log_tps.values()), seed, "median of the trials")) if self.counted else None

    def latency(self) -> LatencyPercentiles | None:
        """Return the percentiles of the counted trials; see `percentiles_of`."""
        return percentiles_of(judged.latency for judged in self.counted)

    def transactions(self, seed: int) -> tuple[TransactionResult, ...]:
        """Return each type of transaction, where the workload has several."""
        return transaction_results([judged.contents for judged in self.counted], self.variant, seed)

    def nopm(self, seed: int) -> Estimate | None:
        """Return new orders committed per minute; None of other workloads than tpcc."""
        return nopm_of((judged.nopm for judged in self.counted), seed)

    def statements(self) -> tuple[StatementLatency, ...]:
        """Return the same for each statement."""
        return statement_latencies(judged.contents.histograms for judged in self.counted)

    def engine_cpu_ns_per_transaction(self) -> float | None:
        """Return the clients' CPU over the transactions of the counted trials, both of the measured phase; None if not known."""
        known = [(trial.engine, trial.measured) for trial in self._counted_trials() if trial.engine and trial.measured]
        done = sum(measured.done for _, measured in known)
        return sum(engine.user_cpu_ns + engine.system_cpu_ns for engine, _ in known) / done if done else None

    def failed(self) -> int:
        """Return failed transactions of the counted trials, measured phase."""
        return sum(trial.measured.failed for trial in self._counted_trials() if trial.measured)

    def retried(self) -> int:
        """Return transactions tried more than once in the counted trials, measured phase."""
        return sum(trial.measured.retried for trial in self._counted_trials() if trial.measured)

    def open_loop(self) -> OpenLoop | None:
        """Return what became of the schedule; None in a closed loop."""
        if not self.variant.workload.is_open_loop:
            return None
        totals = [trial.measured for trial in self._counted_trials() if trial.measured]
        return OpenLoop(
            scheduled=sum(one.scheduled for one in totals),
            done=sum(one.done for one in totals),
            skipped=sum(one.skipped for one in totals),
            late=sum(one.late for one in totals),
            open=sum(one.open for one in totals),
            service=self._of_scope("service"),
            schedule_lag=self._of_scope("schedule_lag"),
        )

    def _of_scope(self, scope: str) -> LatencyPercentiles | None:
        each = (judged.contents.histograms for judged in self.counted)
        return percentiles_of(Buckets.of(one for one in of_trial if one.scope == scope) for of_trial in each)

    def bottleneck(self) -> VariantBottleneck | None:
        """Return the most frequent bottleneck of the counted trials; its sentence is that of the trial with the highest
        confidence."""
        found = [(judged.number, judged.bottleneck) for judged in self.counted if judged.bottleneck is not None]
        if not found:
            return None
        counts: dict[BottleneckKind, int] = {}
        for _, bottleneck in found:
            counts[bottleneck.kind] = counts.get(bottleneck.kind, 0) + 1
        kind = max(counts, key=lambda kind: (kind != "not known", counts[kind]))
        number, finding = min(
            ((number, one) for number, one in found if one.kind == kind),
            key=lambda pair: (_CONFIDENCE.index(pair[1].confidence), pair[0]),
        )
        return VariantBottleneck(kind=kind, trials=counts[kind], of=len(found), trial=number, finding=finding)

    def waits(self) -> tuple[WaitShare, ...]:
        """Return the wait profile of the counted trials."""
        return wait_shares(judged.seen for judged in self.counted if judged.seen is not None)

    def work(self, seed: int) -> ServerWork:
        """Return what PostgreSQL counted of the counted trials' transactions."""
        return server_work([judged.work for judged in self.counted if judged.work is not None], seed)

    def process_io(self, seed: int) -> ProcessIo:
        """Return what each process group read and wrote in the counted trials."""
        return process_io([(one.contents.trial, one.seen) for one in self.counted if one.seen is not None], seed)

    def _counted_trials(self) -> Iterator[Trial]:
        return (judged.contents.trial for judged in self.counted)


def judge_trials(contents: BundleContents) -> dict[str, Measured]:
    """Return every variant of the plan by id, in its order, with its trials. Raises RunError for one of another variant."""
    by_variant: dict[str, list[JudgedTrial]] = {variant.id: [] for variant in contents.plan.variants}
    variants = {variant.id: variant for variant in contents.plan.variants}
    for trial in sorted(contents.trials, key=lambda trial: trial.trial.number):
        if trial.trial.variant not in variants:
            raise RunError(
                f"trial {trial.trial.number} is of variant {trial.trial.variant}, which the plan does not have",
                where=contents.path,
                hint="the bundle was altered after its run; `plinth verify` names the files",
            )
        by_variant[trial.trial.variant].append(_judge(trial, variants[trial.trial.variant], contents))
    return {variant.id: Measured(variant, tuple(by_variant[variant.id])) for variant in contents.plan.variants}


def ceiling_of(contents: BundleContents, variant: Variant, tps: float | None, wal_bytes: float | None) -> CommitCeiling:
    """Return what the storage of a variant's WAL lets commit at best, and how much of it `tps` is; see `commit_ceiling`."""
    roles, server = contents.cluster_of(variant).primary.roles, contents.servers.get(variant.id)
    return commit_ceiling(variant, roles, server, contents.probes, tps, wal_bytes, contents.writes_of(variant))


def _judge(contents: TrialContents, variant: Variant, bundle: BundleContents) -> JudgedTrial:
    trial, workload = contents.trial, variant.workload
    excluded = trial.excluded
    if excluded is None and trial.status == "complete" and not trial.tps:
        excluded = "no transaction was done in the measured phase"
    seen = work = bottleneck = writes = log_in_time = kept = machine = None
    due, is_open = trial.measured, workload.is_open_loop
    if trial.tps:
        log_in_time = math.log(trial.tps) + (log_share_in_time(due) if is_open else 0.0)
    if is_open and due is not None and due.scheduled:
        kept = keeps_up(due, variant.clients)
    if trial.status == "complete":
        phase = measured_phase(trial, contents.read_samples())
        seen = phase.of_sources(ATTRIBUTION_SOURCES)
        writes = postgres_writes(trial, phase.of_sources(WRITES_SOURCES))
        work = trial_work(trial, seen)
        ceiling = ceiling_of(bundle, variant, trial.tps, work.wal_bytes)
        cores = bundle.host_of(variant).cores
        machine = machine_cpu(seen, cores)
        bottleneck = attribute(
            trial, seen, cores, variant.clients, is_open, ceiling, bundle.as_in_force(variant).settings
        )
    return JudgedTrial(
        contents,
        excluded,
        Buckets.transactions(contents.histograms),
        steadiness(contents.series),
        seen,
        bottleneck,
        work,
        writes,
        trial_transactions(contents, variant),
        trial_nopm(trial, workload),
        log_in_time,
        kept,
        machine.neighbours if machine else None,
    )


def name_trials(judged: Iterable[JudgedTrial]) -> str:
    """Name trials for people: "trial 4", "trials 4, 7"."""
    numbers = sorted(one.number for one in judged)
    return f"trial{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
