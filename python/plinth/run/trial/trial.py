"""One trial: the server with its settings, the load, what is observed beside it, and what must hold afterwards."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from plinth.load import LoadDriver
from plinth.model.base import Gap, SettingValue
from plinth.model.errors import Interrupted, PlinthError, StorageBroken, UsageError
from plinth.model.facts import ServerFacts, StorageFacts
from plinth.model.flashback import Flashback
from plinth.model.load import LoadProgress, LoadResult
from plinth.model.load_config import LoadConfig
from plinth.model.network import TrialNetwork
from plinth.model.outage import Outage
from plinth.model.plan import Plan, PlannedCluster, PlannedTrial, Variant
from plinth.model.standby import StandbyFacts
from plinth.model.trial import CacheState, Check, DeviceIo, Event, Restored, Sample, Trial, WarmupEnd
from plinth.model.workload import Driver
from plinth.model.write_facts import WriteFacts, as_settings, settings_in_force
from plinth.observe import Observation, Observer, RunProcesses
from plinth.run.faults.emulated_disks import TrialDisks
from plinth.run.faults.failures import reason_of
from plinth.run.faults.full_storage import with_hint_at_full
from plinth.run.faults.outage import after_faults
from plinth.run.faults.server_faults import RETRY_CONNECT_S, ServerFaults, ended_well
from plinth.run.faults.stall import StallWatch
from plinth.run.listener import Listener, LiveSecond
from plinth.run.provision.network import TrialLinks, with_healing
from plinth.run.provision.topology import Node, Topology
from plinth.run.trial.actions import ActionSchedule
from plinth.run.trial.cache_state import Prepared, verify_cold, warm
from plinth.run.trial.checks import ended_transactions, failure_of_checks, failure_of_load, undisturbed
from plinth.run.trial.clock import Clock
from plinth.run.trial.device_io import device_io, devices_of
from plinth.run.trial.effects import Effects
from plinth.run.trial.flashback import Loaded, go_back
from plinth.run.trial.load_config import STOP_TIMEOUT_S, load_of
from plinth.run.trial.snapshots import TrialSnapshots
from plinth.run.trial.warmup import WarmupWatch
from plinth.run.trial.write_watch import WriteWatch, storages_at
from plinth.server import ExternalServer, Server, connect, database_errors
from plinth.system import cancel
from plinth.system.owner import shell_user
from plinth.workload import Dataset, await_sessions, dataset_of
from plinth.workload.commit_ledger_check import prepare_ledger_tables

if TYPE_CHECKING:
    import psycopg

_POLL_S = 0.1


class Provisioned(Protocol):
    """What a trial needs of what its run has made; see `Provision`."""

    def failure(self, variant: Variant) -> PlinthError | None:
        """Why the trials of a variant cannot be run."""
        ...

    def looked_after(self, variant: Variant) -> AbstractContextManager[None]:
        """While it is entered, StorageBroken is raised when a storage of the variant no longer works."""
        ...

    def activate(self, variant: Variant, fresh: bool) -> Topology:
        """The servers of a variant, with their settings."""
        ...

    def restore(self, variant: Variant) -> Restored | None:
        """Put the variant's data back to what they were after loading, where that is planned."""
        ...

    def await_standbys(self, variant: Variant) -> Mapping[str, StandbyFacts]:
        """Wait until the standbys of a variant have replayed all that there is; how each is then, by name."""
        ...

    def faults(self, variant: Variant) -> AbstractContextManager[ServerFaults | None]:
        """What does the faults of the experiment's actions; None without any. Left, it sets the servers right again."""
        ...

    def snapshots(self, variant: Variant) -> AbstractContextManager[TrialSnapshots | None]:
        """What takes the snapshots that the experiment's actions ask for; None without any. Left, it removes them."""
        ...

    def disks(self, variant: Variant) -> AbstractContextManager[TrialDisks | None]:
        """What changes the variant's emulated disks, as actions ask for; None without any. Left, it changes them back."""
        ...

    def links(self, variant: Variant) -> AbstractContextManager[TrialLinks | None]:
        """While it is entered, the links of the emulated network are as the variant asks."""
        ...

    def restart_cold(self, variant: Variant) -> Topology:
        """The servers of a variant, started again after the page cache was dropped."""
        ...

    def after_failure(self, variant: Variant) -> str | None:
        """Clean up after a failed trial; returns what caused it, where that is known: a storage, or a crash of the server."""
        ...

    def figures(self) -> dict[str, float]:
        """Figures of the run for the live display."""
        ...


MakeLoad = Callable[[Driver, LoadConfig], LoadDriver]
MakeLedger = Callable[[PlannedTrial], Path]
"""Makes the empty folder that the ledger of a trial's commits is written to."""


@dataclass(frozen=True)
class TrialOutput:
    """What a trial gives to the bundle."""

    trial: Trial
    load: LoadResult | None = None
    samples: Sequence[Sample] = ()
    events: Sequence[Event] = ()
    server: ServerFacts | None = None
    standbys: Mapping[str, ServerFacts] = field(default_factory=dict)


@dataclass(frozen=True)
class _Measured:
    """What was measured in a trial, and why it is a failure nevertheless."""

    load: LoadResult
    observation: Observation
    devices: tuple[DeviceIo, ...]
    events: Sequence[Event]
    checks: tuple[Check, ...]
    gaps: tuple[Gap, ...]
    server: ServerFacts
    warmup_end: WarmupEnd | None
    failure: str | None
    writes: WriteFacts
    cache: CacheState | None
    standbys: Mapping[str, ServerFacts]
    network: TrialNetwork | None
    outage: Outage | None
    loaded: Loaded | None
    restored: Restored | None = None
    flashbacks: tuple[Flashback, ...] = ()


class TrialRunner:
    """Runs the trials of one plan on what was provisioned."""

    def __init__(
        self,
        plan: Plan,
        provision: Provisioned,
        storages: Mapping[str, StorageFacts],
        listener: Listener,
        make_load: MakeLoad,
        clock: Clock,
        make_ledger: MakeLedger,
    ) -> None:
        self._plan = plan
        self._provision = provision
        self._storages = storages
        self._listener = listener
        self._make_load = make_load
        self._clock = clock
        self._make_ledger = make_ledger
        self._running: LoadDriver | None = None

    def run(self, trial: PlannedTrial, variant: Variant) -> TrialOutput:
        """Run one trial. A failure of server, load or storage gives a failed trial; Interrupted and UsageError pass through."""
        started_unix_ns = self._clock.unix_ns()
        if error := self._provision.failure(variant):
            return _output(trial, started_unix_ns, None, f"not run: {reason_of(error)}")
        measured, failure = None, None
        try:
            measured = self._run_on_server(trial, variant)
            failure = measured.failure
        except UsageError:
            raise
        except PlinthError as error:
            # Also what the operating system refuses, such as a file system that has become read-only.
            failure = reason_of(error)
        if failure is not None:
            failure = with_hint_at_full(self._with_cause(failure, variant), self._places(variant))
        return _output(trial, started_unix_ns, measured, failure)

    def _with_cause(self, failure: str, variant: Variant) -> str:
        """`failure` with what is found out about its cause: an I/O error, which the server reports, has a cause itself."""
        if self._provision.failure(variant) is not None:
            return failure
        cause = self._provision.after_failure(variant)
        return failure if cause is None or cause in failure else f"{failure}; {cause}"

    def _places(self, variant: Variant) -> list[Path]:
        """Where the storages of a variant are."""
        names = next(c.storages for c in self._plan.clusters if c.id == variant.cluster)
        return [Path(self._storages[name].path) for name in names if name in self._storages]

    def _run_on_server(self, trial: PlannedTrial, variant: Variant) -> _Measured:
        with self._provision.looked_after(variant):
            restored = self._provision.restore(variant)
            topology = self._provision.activate(variant, self._plan.experiment.measure.fresh_server)
            with self._provision.snapshots(variant) as snapshots:
                with self._stall_watch(trial, topology.primary) as stalls, self._provision.faults(variant) as faults:
                    measured = self._measure(trial, variant, topology, stalls, faults, snapshots)
                measured = replace(measured, restored=restored)
                return measured if snapshots is None else self._go_back(measured, snapshots)

    def _go_back(self, measured: _Measured, snapshots: TrialSnapshots) -> _Measured:
        """Go back to the snapshots of a trial that was measured; what fails then is why the trial failed."""
        if measured.failure is not None or measured.loaded is None:
            return measured
        try:
            flashbacks, checks = go_back(snapshots, measured.loaded)
        except UsageError:
            raise
        except PlinthError as error:
            return replace(measured, failure=reason_of(error))
        failure = failure_of_checks(checks)
        return replace(measured, flashbacks=flashbacks, checks=(*measured.checks, *checks), failure=failure)

    def _stall_watch(self, trial: PlannedTrial, node: Node) -> StallWatch:
        local = node.postmaster_pid is not None
        return StallWatch(
            f"trial {trial.number}",
            node.server.connection,
            self._listener.note,
            local=local,
            postmaster_pid=node.postmaster_pid,
        )

    def _measure(
        self,
        trial: PlannedTrial,
        variant: Variant,
        topology: Topology,
        stalls: StallWatch,
        faults: ServerFaults | None,
        snapshots: TrialSnapshots | None,
    ) -> _Measured:
        server = topology.primary.server
        cluster = next(c for c in self._plan.clusters if c.id == variant.cluster)
        dataset = dataset_of(cluster.dataset, self._plan.dataset_files)
        devices = devices_of(cluster.primary, self._storages)
        with database_errors("prepare the trial", variant.label), connect(server.connection) as control:
            before = dataset.before_trial(control)
            if variant.workload.keeps_ledger:
                prepare_ledger_tables(control, variant.workload.clients)
            gaps = _checkpoint(control)
        topology, cached = self._with_cache(variant, topology, cluster, stalls)
        primary = topology.primary
        standbys = self._provision.await_standbys(variant)
        with database_errors("prepare the trial", variant.label), connect(server.connection) as control:
            ended = ended_transactions(control, variant.workload)
            writes = self._write_watch(variant, dataset, primary, cluster)
            writes.begin(control)
        written = writes.without_end()
        if faults is not None:
            faults.begin()
        observer = self._observer(topology, cluster, devices)
        measure = self._plan.experiment.measure
        ledger = self._make_ledger(trial) if variant.workload.keeps_ledger else None
        t0_ns, outage = None, None
        target = server.connection if faults is None else faults.connection
        with self._provision.links(variant) as links, self._provision.disks(variant) as disks:
            scheduled = with_healing(measure.actions, variant.network, measure.duration_s)
            actions = ActionSchedule(scheduled, target, Effects(links, disks, faults, snapshots), measure.duration_s)
            observer.start(self._clock.monotonic_ns())
            try:
                config = load_of(
                    variant.workload,
                    variant.scripts,
                    measure,
                    to=target,
                    variables=dataset.variables(),
                    cores=self._plan.host.cores,
                    seed=trial.seed,
                    shell=shell_user(),
                    ledger=ledger,
                    retry_connect_s=None if faults is None else RETRY_CONNECT_S,
                )
                with actions:
                    load, failure, warmup_end = self._load(
                        config, variant.workload.driver, server, observer, stalls, actions
                    )
                t0_ns = self._monotonic_ns(load.started_unix_ns)
            finally:
                observation = observer.stop(t0_monotonic_ns=t0_ns)
            network = links.ended() if links else None
        assert t0_ns is not None, "the load has ended"
        checks = list(cached.checks) if cached else []
        failure = failure or actions.failure or ended_well(faults) or failure_of_load(load, faults)
        if failure is None:
            to = server.connection if faults is None else faults.control()
            with database_errors("check the trial", variant.label), connect(to) as control:
                await_sessions(control, server.connection.application_name)
                written = writes.end(control, has_written=_has_written(variant, load))
                if faults is not None:
                    assert ledger is not None, "the experiment was checked for it"
                    checks += dataset.after_cut(control, before, variant.workload)
                    in_force = _in_force(variant, primary.facts, written)
                    outage, found = after_faults(faults, in_force, ledger, control, load)
                    checks += found
                else:
                    checks += dataset.after_trial(control, before, variant.workload, load)
                    ended = ended_transactions(control, variant.workload) - ended
                    checks += undisturbed(variant.workload, load, observation.shares_database, ledger, ended, control)
            failure = failure_of_checks(checks)
        if cached is not None:
            gaps += cached.gaps
        return _Measured(
            load=load,
            observation=observation,
            devices=device_io(observation.samples, devices),
            events=sorted([*observation.events, *actions.events(t0_ns)], key=lambda event: event.t_ns),
            checks=tuple(checks),
            gaps=(*gaps, *observation.gaps),
            server=primary.facts,
            warmup_end=warmup_end,
            failure=failure,
            writes=written,
            cache=cached.state if cached else None,
            network=network,
            outage=outage,
            loaded=None
            if ledger is None
            else Loaded(variant, dataset, before, ledger, _in_force(variant, primary.facts, written)),
            standbys={
                node.name: node.facts.model_copy(update={"standby": standbys.get(node.name)})
                for node in topology.nodes
                if node is not primary
            },
        )

    def _write_watch(self, variant: Variant, dataset: Dataset, primary: Node, cluster: PlannedCluster) -> WriteWatch:
        storages = storages_at(cluster.storages, self._storages)
        actions, is_local = self._plan.experiment.measure.actions, primary.postmaster_pid is not None
        return WriteWatch(variant, dataset.variables(), storages, actions, is_local=is_local)

    def _with_cache(
        self, variant: Variant, topology: Topology, cluster: PlannedCluster, stalls: StallWatch
    ) -> tuple[Topology, Prepared | None]:
        """The servers, the primary's tables and indexes in memory as asked, and what of that was reached."""
        storages = [self._storages[name] for name in cluster.storages]
        match self._plan.experiment.measure.cache:
            case "as-is":
                return topology, None
            case "warm":
                return topology, warm(topology.primary, storages, stalls.passing_on(self._listener.progress))
            case "cold":
                topology = self._provision.restart_cold(variant)
                return topology, verify_cold(topology.primary, storages)

    def _observer(self, topology: Topology, cluster: PlannedCluster, devices: Mapping[str, Sequence[str]]) -> Observer:
        node = topology.primary
        others = [one.postmaster_pid for one in topology.nodes if one is not node]
        return Observer(
            node.server.connection,
            devices=tuple(devices),
            processes=RunProcesses(
                node.postmaster_pid,
                further_engines=lambda: self._running.processes if self._running is not None else (),
                other_servers=[pid for pid in others if pid is not None],
            ),
            log=node.log,
            storages=[self._storages[name] for name in cluster.storages],
        )

    def _load(
        self,
        config: LoadConfig,
        driver: Driver,
        server: Server | ExternalServer,
        observer: Observer,
        stalls: StallWatch,
        actions: ActionSchedule,
    ) -> tuple[LoadResult, str | None, WarmupEnd | None]:
        """Drive the load to its end; returns its result, why it is a failure, and how a warm-up of open length ended."""
        measure = self._plan.experiment.measure
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
        """Tell those who act when the measured phase begins and ends, as far as that is known."""
        if warmup.ends_ns is None:
            return
        left_ns = warmup.ends_ns - elapsed_ns
        actions.begin(left_ns / 1e9)
        begin_ns = self._clock.monotonic_ns() + left_ns
        observer.measure(begin_ns, begin_ns + round(self._plan.experiment.measure.duration_s * 1e9))

    def _report(self, progress: LoadProgress, total_s: float, observer: Observer) -> None:
        for second in progress.seconds:
            figures = observer.latest() | self._provision.figures()
            self._listener.second(LiveSecond(second, progress.elapsed_ns / 1e9, total_s, figures))

    def _monotonic_ns(self, unix_ns: int) -> int:
        """The instant of a wall clock on the monotonic one."""
        return self._clock.monotonic_ns() - (self._clock.unix_ns() - unix_ns)


def _has_written(variant: Variant, load: LoadResult) -> bool:
    """Whether transactions of the load have certainly written rows: of a script only its ledger tells."""
    return load.totals.done > 0 and (variant.workload.keeps_ledger or variant.workload.is_read_only is False)


def _in_force(variant: Variant, server: ServerFacts, writes: WriteFacts) -> dict[str, SettingValue]:
    """The weakest durability settings that the load's commits had, over those that were asked for."""
    return as_settings(settings_in_force(variant.asked, server, [writes]), variant.asked)


def _checkpoint(control: "psycopg.Connection[Any]") -> list[Gap]:
    """Begin the trial with nothing left to write; on a server of somebody else's we may not be allowed to."""
    import psycopg

    try:
        control.execute("CHECKPOINT")
    except psycopg.errors.InsufficientPrivilege as error:
        return [Gap(what="CHECKPOINT before the trial", reason=str(error).strip())]
    return []


def _output(
    planned: PlannedTrial, started_unix_ns: int, measured: _Measured | None, failure: str | None
) -> TrialOutput:
    """The result of a trial; of one that has not measured anything only the reason."""
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
    load, observation = measured.load, measured.observation
    trial = Trial(
        **result,
        connect_ns=load.connect_ns,
        warmup_ns=load.warmup_ns,
        warmup_end=measured.warmup_end,
        measured_ns=load.measured_ns,
        totals=load.totals,
        measured=load.measured,
        server_transactions=load.server_transactions,
        scripts=load.scripts,
        tps=load.measured.done / (load.measured_ns / 1e9) if load.measured_ns else None,
        engine=load.engine,
        errors=load.errors,
        checks=measured.checks,
        devices=measured.devices,
        gaps=measured.gaps,
        cache=measured.cache,
        restored=measured.restored,
        network=measured.network,
        outage=measured.outage,
        writes=measured.writes,
        flashbacks=measured.flashbacks,
        fleet=load.fleet,
        excluded=None if load.fleet is None else load.fleet.excluded,
        observer_cpu_ns=observation.cost_cpu_ns,
        observer_ns=observation.duration_ns,
    )
    return TrialOutput(trial, load, observation.samples, measured.events, measured.server, measured.standbys)
