"""One trial: prepare the server, drive the load while everything is observed, check what must hold afterwards, and give the result."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from plinth.load import LoadDriver
from plinth.model.base import Gap, SettingValue
from plinth.model.connection import Connection
from plinth.model.errors import Interrupted, PlinthError, StorageBroken, UsageError
from plinth.model.facts import ServerFacts, StorageFacts
from plinth.model.flashback import Flashback
from plinth.model.load import LoadProgress, LoadResult
from plinth.model.load_config import LoadConfig
from plinth.model.network import TrialNetwork
from plinth.model.outage import Outage
from plinth.model.plan import Plan, PlannedTrial, Variant
from plinth.model.standby import StandbyFacts
from plinth.model.trial import Check, DeviceIo, Event, Restored, Sample, Trial, WarmupEnd
from plinth.model.workload import Driver
from plinth.model.write_facts import WriteFacts, as_settings, settings_in_force
from plinth.observe.observer import Observation, Observer
from plinth.run.failures import reason_of
from plinth.run.faults.outage import after_faults
from plinth.run.faults.server_faults import RETRY_CONNECT_S, ServerFaults, ended_well, faults_of
from plinth.run.listener import Listener, LiveSecond
from plinth.run.provision.live_cluster import LiveCluster, Node, Topology
from plinth.run.provision.provisioner import Provisioner
from plinth.run.stall import StallWatch
from plinth.run.trial.actions import ActionSchedule
from plinth.run.trial.cache_state import Prepared, verify_cold, warm
from plinth.run.trial.checkpoint import checkpoint
from plinth.run.trial.checks import (
    EndedTransactions,
    ended_transactions,
    failure_of_checks,
    failure_of_load,
    undisturbed,
)
from plinth.run.trial.effects import Effects
from plinth.run.trial.emulation import disks_of, links_of, with_healing
from plinth.run.trial.flashback import Loaded, go_back, snapshots_of
from plinth.run.trial.load_config import STOP_TIMEOUT_S, Work, load_of
from plinth.run.trial.observed import device_io, devices_of, facts_of, observer_of
from plinth.run.trial.snapshots import TrialSnapshots
from plinth.run.trial.warmup import WarmupWatch
from plinth.run.trial.write_watch import WriteWatch
from plinth.server.external.external_server import ExternalServer
from plinth.server.node import Server
from plinth.system import cancel
from plinth.system.control_settings import with_settings
from plinth.system.database import connect, connect_unpinned, database_errors
from plinth.system.full import with_hint_at_full
from plinth.workload import Dataset, await_sessions, dataset_of
from plinth.workload.brought import OUT_OF_LOG, leave_statements_out_of_log
from plinth.workload.commit_ledger_check import prepare_ledger_tables
from plinth.workload.dataset import Snapshot

_POLL_S = 0.1


MakeLoad = Callable[[Driver, LoadConfig], LoadDriver]
MakeLedger = Callable[[PlannedTrial], Path]
"""Makes the empty folder that the ledger of a trial's commits is written to."""


class Clock:
    """The clocks of this machine."""

    def unix_ns(self) -> int:
        """Return the wall clock, in ns since 1970."""
        return time.time_ns()

    def monotonic_ns(self) -> int:
        """Return CLOCK_MONOTONIC in ns, by which samples are taken."""
        return time.monotonic_ns()


@dataclass(frozen=True)
class TrialOutput:
    """What a trial gives to the bundle."""

    trial: Trial
    load: LoadResult | None = None
    samples: Sequence[Sample] = ()
    events: Sequence[Event] = ()
    server: ServerFacts | None = None
    standbys: Mapping[str, ServerFacts] = field(default_factory=dict)


class _Subject(NamedTuple):
    """What a trial measures."""

    trial: PlannedTrial
    variant: Variant
    cluster: LiveCluster
    dataset: Dataset


@dataclass(frozen=True)
class _Prepared:
    """What a load begins with: the running servers, what is in memory, and what was read of the server before it."""

    topology: Topology
    before: Snapshot
    cache: Prepared | None
    standbys: Mapping[str, StandbyFacts]
    writes: WriteWatch
    transactions: EndedTransactions
    """Those that had ended in the database."""
    gaps: tuple[Gap, ...]


@dataclass(frozen=True)
class _Loaded:
    """What a load has done, what was observed meanwhile, and why the trial is a failure nevertheless."""

    result: LoadResult
    ledger: Path | None
    observation: Observation
    devices: tuple[DeviceIo, ...]
    events: tuple[Event, ...]
    warmup_end: WarmupEnd | None
    network: TrialNetwork | None
    failure: str | None


@dataclass(frozen=True)
class _Checked:
    """What was found on the servers after a load."""

    checks: tuple[Check, ...]
    writes: WriteFacts
    outage: Outage | None
    failure: str | None
    flashbacks: tuple[Flashback, ...] = ()


class _Measured(NamedTuple):
    restored: Restored | None
    prepared: _Prepared
    loaded: _Loaded
    checked: _Checked


@dataclass(eq=False)
class TrialRunner:
    """Runs the trials of one plan on what was provisioned: each is prepared, loaded, checked, and gives one result."""

    _plan: Plan
    _provisioner: Provisioner
    _storages: Mapping[str, StorageFacts]
    _listener: Listener
    _make_load: MakeLoad
    _clock: Clock
    _make_ledger: MakeLedger
    _running: LoadDriver | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._measure = self._plan.experiment.measure

    def run(self, trial: PlannedTrial, variant: Variant) -> TrialOutput:
        """Run one trial. A failure of server, load or storage gives a failed trial; Interrupted and UsageError pass through."""
        started_unix_ns = self._clock.unix_ns()
        if error := self._provisioner.failure(variant):
            return self._result(trial, started_unix_ns, None, f"not run: {reason_of(error)}")
        measured, failure = None, None
        try:
            with self._provisioner.in_use(variant) as cluster:
                dataset = dataset_of(cluster.planned.dataset, self._plan.dataset_files)
                measured = self._run_on_servers(_Subject(trial, variant, cluster, dataset))
            failure = measured.checked.failure
        except UsageError:
            raise
        except PlinthError as error:
            # Also what the operating system refuses, such as a file system that has become read-only.
            failure = reason_of(error)
        if failure is not None:
            failure = with_hint_at_full(self._with_cause(failure, variant), self._places(variant))
        return self._result(trial, started_unix_ns, measured, failure)

    def _with_cause(self, failure: str, variant: Variant) -> str:
        """Return `failure` with what is found out about its cause: an I/O error, which the server reports, has a cause itself."""
        if self._provisioner.failure(variant) is not None:
            return failure
        cause = self._provisioner.after_failure(variant)
        return failure if cause is None or cause in failure else f"{failure}; {cause}"

    def _places(self, variant: Variant) -> list[Path]:
        """Return where the storages of a variant are on this machine."""
        names = next(c.storages for c in self._plan.clusters if c.id == variant.cluster)
        found = [self._storages[name] for name in names if name in self._storages]
        return [Path(facts.path) for facts in found if facts.host is None]

    def _run_on_servers(self, subject: _Subject) -> _Measured:
        cluster, variant = subject.cluster, subject.variant
        restored = cluster.restore()
        topology = cluster.activate(variant, fresh=self._measure.fresh_server)
        with snapshots_of(cluster, variant) as snapshots:
            with self._stall_watch(subject.trial, topology.primary) as stalls, faults_of(cluster, variant) as faults:
                prepared = self._prepare(subject, topology, stalls)
                loaded = self._load(subject, prepared, stalls, faults, snapshots)
                checked = self._check(subject, prepared, loaded, faults)
            if snapshots is not None:
                checked = self._go_back(subject, prepared, loaded, checked, snapshots)
        return _Measured(restored, prepared, loaded, checked)

    def _stall_watch(self, trial: PlannedTrial, node: Node) -> StallWatch:
        return StallWatch(
            f"trial {trial.number}",
            node.server.control,
            self._listener.note,
            local=node.is_managed,
            stopped=node.stopped_words,
        )

    def _prepare(self, subject: _Subject, topology: Topology, stalls: StallWatch) -> _Prepared:
        """Prepare dataset, caches and standbys, and read what is compared with the server after the load."""
        variant, cluster = subject.variant, subject.cluster
        server = topology.primary.server
        with (
            database_errors("prepare the trial", variant.label),
            connect(server.control) as control,
            connect_unpinned(server.connection) as session,
        ):
            before = subject.dataset.before_trial(control if subject.dataset.is_brought else session)
            if variant.workload.keeps_ledger:
                prepare_ledger_tables(session, variant.clients)
            gaps = checkpoint(control)
        topology, cache = self._with_cache(subject, topology, stalls)
        standbys = cluster.await_standbys()
        with (
            database_errors("prepare the trial", variant.label),
            connect(server.control) as control,
            connect(server.connection) as session,
        ):
            if variant.recording is not None and subject.dataset.is_brought:
                leave_statements_out_of_log(control, server.connection.user)
            transactions = ended_transactions(control, variant.workload)
            writes = WriteWatch(
                variant,
                subject.dataset.variables(),
                facts_of(cluster.planned, self._storages),
                self._measure.actions,
                host=topology.primary.host if topology.primary.is_managed else None,
            )
            writes.begin(session)
        return _Prepared(
            topology, before, cache, standbys, writes, transactions, (*gaps, *(cache.gaps if cache else ()))
        )

    def _with_cache(
        self, subject: _Subject, topology: Topology, stalls: StallWatch
    ) -> tuple[Topology, Prepared | None]:
        """Return the servers, the primary's tables and indexes in memory as asked, and what of that was reached."""
        storages = facts_of(subject.cluster.planned, self._storages)
        match self._measure.cache:
            case "as-is":
                return topology, None
            case "warm":
                return topology, warm(topology.primary, storages, stalls.passing_on(self._listener.progress))
            case "cold":
                topology = subject.cluster.restart_cold(subject.variant)
                return topology, verify_cold(topology.primary, storages)

    def _load(
        self,
        subject: _Subject,
        prepared: _Prepared,
        stalls: StallWatch,
        faults: ServerFaults | None,
        snapshots: TrialSnapshots | None,
    ) -> _Loaded:
        """Drive the load, and do the trial's actions, while everything is observed."""
        variant, cluster, measure = subject.variant, subject.cluster, self._measure
        server = prepared.topology.primary.server
        if faults is not None:
            faults.begin()
        devices = devices_of(cluster.planned.primary, self._storages)
        observer = observer_of(prepared.topology, cluster, self._storages, tuple(devices), self._engines)
        ledger = self._make_ledger(subject.trial) if variant.workload.keeps_ledger else None
        t0_ns: int | None = None
        target = server.connection if faults is None else faults.connection
        if variant.recording is not None and not (cluster.planned.is_external or subject.dataset.is_brought):
            target = _without_statements_in_log(target)
        with links_of(cluster, variant) as links, disks_of(cluster) as disks:
            scheduled = with_healing(measure.actions, variant.network, measure.duration_s)
            actions = ActionSchedule(
                scheduled, target, server.control, Effects(links, disks, faults, snapshots), measure.duration_s
            )
            observer.start(self._clock.monotonic_ns())
            try:
                config = load_of(
                    Work.of(variant),
                    measure,
                    to=target,
                    variables=subject.dataset.variables(),
                    cores=self._plan.host.cores,
                    seed=subject.trial.seed,
                    ledger=ledger,
                )
                if faults is not None:  # clients without a connection try again
                    config = config.model_copy(update={"retry_connect_s": RETRY_CONNECT_S})
                with actions:
                    load, failure, warmup_end = self._drive(
                        config, variant.workload.driver, server, observer, stalls, actions
                    )
                t0_ns = self._monotonic_ns(load.started_unix_ns)
            finally:
                observation = observer.stop(t0_monotonic_ns=t0_ns)
            network = links.ended() if links else None
        cluster.refill_credits()
        assert t0_ns is not None, "the load has ended"
        events = sorted([*observation.events, *actions.events(t0_ns)], key=lambda event: event.t_ns)
        failure = failure or actions.failure or ended_well(faults) or failure_of_load(load, faults)
        io = device_io(observation.samples, devices)
        return _Loaded(load, ledger, observation, io, tuple(events), warmup_end, network, failure)

    def _check(self, subject: _Subject, prepared: _Prepared, loaded: _Loaded, faults: ServerFaults | None) -> _Checked:
        """Check what must hold after the load, on the server that takes writes now."""
        workload, dataset = subject.variant.workload, subject.dataset
        checks = list(prepared.cache.checks) if prepared.cache else []
        if loaded.failure is not None:
            return _Checked(tuple(checks), prepared.writes.without_end(), None, loaded.failure)
        load, outage = loaded.result, None
        server = prepared.topology.primary.server
        to, to_load = (server.control, server.connection) if faults is None else (faults.control(), faults.connection)
        with database_errors("check the trial", subject.variant.label), ExitStack() as sessions:
            control = sessions.enter_context(connect(to))
            await_sessions(control, server.connection.application_name)
            # First, since the checks are transactions, too, with those of their parallel workers.
            ended = ended_transactions(control, workload)
            # What the database looks up and calls for these is not run with the rights of a superuser where others have made it.
            session = sessions.enter_context(connect_unpinned(to_load))
            pinned = sessions.enter_context(connect(to_load))
            writes = prepared.writes.end(pinned, session, has_written=_has_written(subject.variant, load))
            if faults is not None:
                assert loaded.ledger is not None, "the experiment was checked for it"
                checks += dataset.after_cut(session, prepared.before, workload)
                in_force = _in_force(subject, prepared, writes)
                outage, found = after_faults(faults, in_force, loaded.ledger, session, load)
                checks += found
            else:
                checks += dataset.after_trial(session, prepared.before, workload, load)
                shared = loaded.observation.shares_database
                ended = ended.since(prepared.transactions)
                checks += undisturbed(workload, load, shared, loaded.ledger, ended, session)
        return _Checked(tuple(checks), writes, outage, failure_of_checks(checks))

    def _go_back(
        self, subject: _Subject, prepared: _Prepared, loaded: _Loaded, checked: _Checked, snapshots: TrialSnapshots
    ) -> _Checked:
        """Go back to the snapshots of a trial that was measured; what fails then is why the trial failed."""
        if checked.failure is not None or loaded.ledger is None:
            return checked
        in_force = _in_force(subject, prepared, checked.writes)
        of_load = Loaded(subject.variant, subject.dataset, prepared.before, loaded.ledger, in_force)
        try:
            flashbacks, checks = go_back(snapshots, of_load)
        except UsageError:
            raise
        except PlinthError as error:
            return replace(checked, failure=reason_of(error))
        failure = failure_of_checks(checks)
        return replace(checked, flashbacks=flashbacks, checks=(*checked.checks, *checks), failure=failure)

    def _engines(self) -> Sequence[int]:
        return self._running.processes if self._running is not None else ()

    def _drive(
        self,
        config: LoadConfig,
        driver: Driver,
        server: Server | ExternalServer,
        observer: Observer,
        stalls: StallWatch,
        actions: ActionSchedule,
    ) -> tuple[LoadResult, str | None, WarmupEnd | None]:
        """Drive the load to its end; return its result, why it is a failure, and how a warm-up of open length ended."""
        measure = self._measure
        failure, ended = None, 0
        load = self._make_load(driver, config)
        self._running = load
        warmup = WarmupWatch(measure, load.begin_measuring)
        try:
            load.start()
            stalls.begin()
            self._expect_measured(warmup, 0, observer, actions)
            while not load.wait(_POLL_S):
                cancel.check()
                progress = load.progress()
                warmup.follow(progress)
                self._expect_measured(warmup, progress.elapsed_ns, observer, actions)
                self._report(progress, warmup.longest_s + measure.duration_s, observer)
                if progress.done + progress.failed > ended:
                    ended = progress.done + progress.failed
                    stalls.note_progress()
                tries_again = config.retry_connect_s is not None
                gone = progress.clients_open < config.clients and not tries_again and not server.alive()
                over_s = progress.elapsed_ns / 1e9 - warmup.longest_s - measure.duration_s
                stalled = stalls.exceeds(measure, config, over_s)
                if failure is None and (gone or stalled):
                    failure = "the server died during the trial" if gone else stalled
                    load.stop()
        except (Interrupted, StorageBroken):
            load.stop()
            load.wait(STOP_TIMEOUT_S)
            raise
        result = load.result()
        return result, failure, warmup.end(result.series)

    def _expect_measured(
        self, warmup: WarmupWatch, elapsed_ns: int, observer: Observer, actions: ActionSchedule
    ) -> None:
        """Tell actions and observer when the measured phase begins and ends, as far as that is known."""
        if warmup.ends_ns is None:
            return
        left_ns = warmup.ends_ns - elapsed_ns
        actions.begin(left_ns / 1e9)
        begin_ns = self._clock.monotonic_ns() + left_ns
        observer.measure(begin_ns, begin_ns + round(self._measure.duration_s * 1e9))

    def _report(self, progress: LoadProgress, total_s: float, observer: Observer) -> None:
        for second in progress.seconds:
            figures = observer.latest() | self._provisioner.budget.figures()
            self._listener.second(LiveSecond(second, progress.elapsed_ns / 1e9, total_s, figures))

    def _monotonic_ns(self, unix_ns: int) -> int:
        """Return the instant of a wall clock on the monotonic one."""
        return self._clock.monotonic_ns() - (self._clock.unix_ns() - unix_ns)

    def _result(
        self, planned: PlannedTrial, started_unix_ns: int, measured: _Measured | None, failure: str | None
    ) -> TrialOutput:
        """Return the result of a trial; of one that has not measured anything only the reason."""
        result: dict[str, Any] = {
            "number": planned.number,
            "block": planned.block,
            "variant": planned.variant,
            "started_unix_ns": started_unix_ns,
            "status": "complete" if failure is None else "failed",
            "failure": failure,
        }
        if measured is None:
            return TrialOutput(Trial(**result))
        restored, prepared, loaded, checked = measured
        load, observation, cache = loaded.result, loaded.observation, prepared.cache
        nodes = prepared.topology.nodes
        primary = prepared.topology.primary
        trial = Trial(
            **result,
            connect_ns=load.connect_ns,
            warmup_ns=load.warmup_ns,
            warmup_end=loaded.warmup_end,
            measured_ns=load.measured_ns,
            totals=load.totals,
            measured=load.measured,
            server_transactions=load.server_transactions,
            scripts=load.scripts,
            tps=load.measured.done / (load.measured_ns / 1e9) if load.measured_ns else None,
            engine=load.engine,
            errors=load.errors,
            checks=checked.checks,
            devices=loaded.devices,
            gaps=(*prepared.gaps, *observation.gaps),
            cache=cache.state if cache else None,
            restored=restored,
            network=loaded.network,
            outage=checked.outage,
            writes=checked.writes,
            flashbacks=checked.flashbacks,
            fleet=load.fleet,
            replay=load.replay,
            excluded=None if load.fleet is None else load.fleet.excluded,
            observer_cpu_ns=observation.cost_cpu_ns,
            observer_ns=observation.duration_ns,
        )
        standbys = {
            node.name: node.facts.model_copy(update={"standby": prepared.standbys.get(node.name)})
            for node in nodes
            if node is not primary
        }
        return TrialOutput(trial, load, observation.samples, loaded.events, primary.facts, standbys)


def _without_statements_in_log(target: Connection) -> Connection:
    """Return the connection of a superuser whose sessions log none of their errors, as `leave_statements_out_of_log` does for other roles."""
    return replace(target, options=with_settings(target.options, OUT_OF_LOG))


def _has_written(variant: Variant, load: LoadResult) -> bool:
    """Return whether transactions of the load have certainly written rows: of a script only its ledger tells."""
    return load.totals.done > 0 and (variant.workload.keeps_ledger or variant.workload.is_read_only is False)


def _in_force(subject: _Subject, prepared: _Prepared, writes: WriteFacts) -> dict[str, SettingValue]:
    """Return the weakest durability settings that the load's commits had, over those that were asked for."""
    asked = subject.variant.asked
    return as_settings(settings_in_force(asked, prepared.topology.primary.facts, [writes]), asked)
