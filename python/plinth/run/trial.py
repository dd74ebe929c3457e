"""One trial: the server with its settings, the load, what is observed beside it, and what must hold afterwards."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plinth.load import LoadDriver, make_load
from plinth.model.base import Gap
from plinth.model.errors import Interrupted, PlinthError, UsageError
from plinth.model.experiment import Driver, WorkloadSpec
from plinth.model.facts import ServerFacts, StorageFacts
from plinth.model.load import LoadProgress, LoadResult
from plinth.model.load_config import LoadConfig
from plinth.model.plan import Plan, PlannedTrial, Variant
from plinth.model.trial import Check, Event, Sample, Trial
from plinth.model.units import format_count
from plinth.observe import Observation, Observer
from plinth.run.actions import ActionSchedule
from plinth.run.device_io import device_io, devices_of
from plinth.run.failures import reason_of
from plinth.run.listener import Listener, LiveSecond
from plinth.run.load_of import STOP_PATIENCE_S, load_of
from plinth.run.provision import Provision, Server
from plinth.run.stall import StallWatch
from plinth.server import connect, database_errors
from plinth.system import cancel
from plinth.system.owner import shell_user
from plinth.workload import await_sessions, dataset_of

if TYPE_CHECKING:
    import psycopg

_POLL_S = 0.1
# After one of these a client does no more, so that the load is not the one that was asked for.
_ENDS_A_CLIENT = ("connect", "timeout", "connection_lost", "protocol", "script", "client_died")
# A session's start commits some transactions of its own, and autovacuum and the control connection a few more.
_OWN_COMMITS_PER_CLIENT: dict[Driver, int] = {"plinth": 2, "psycopg": 2, "sqlalchemy": 12}
_OWN_COMMITS = 100


@dataclass
class TrialOutput:
    """What a trial gives to the bundle."""

    trial: Trial
    load: LoadResult | None = None
    samples: list[Sample] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    server: ServerFacts | None = None

    def add_cause(self, cause: str | None) -> None:
        """Write down with a failed trial what has been found out about why, unless it says so already."""
        failure = self.trial.failure or ""
        if cause is not None and cause not in failure:
            self.trial = self.trial.model_copy(update={"failure": f"{failure}; {cause}"})


class TrialRunner:
    """Runs the trials of one plan on what was provisioned."""

    def __init__(
        self, plan: Plan, provision: Provision, storages: Mapping[str, StorageFacts], listener: Listener
    ) -> None:
        self._plan = plan
        self._provision = provision
        self._storages = storages
        self._listener = listener
        self._running: LoadDriver | None = None

    def run(self, trial: PlannedTrial, variant: Variant) -> TrialOutput:
        """Run one trial. A failure of server, load or storage gives a failed trial; Interrupted and UsageError pass through."""
        started = time.time_ns()
        if error := self._provision.failure(variant):
            return TrialOutput(_trial(trial, started, status="failed", failure=f"not run: {reason_of(error)}"))
        try:
            with self._provision.looked_after(variant):
                activated = self._provision.activate(variant, self._plan.experiment.measure.fresh_server)
                with self._stall_watch(trial, variant, activated[0]) as stalls:
                    return self._measure(trial, variant, started, activated, stalls)
        except (Interrupted, UsageError):
            raise
        except (
            PlinthError
        ) as error:  # also what the operating system refuses, as a file system that is read-only by now
            return TrialOutput(_trial(trial, started, status="failed", failure=reason_of(error)))

    def _stall_watch(self, trial: PlannedTrial, variant: Variant, server: Server) -> StallWatch:
        local = self._provision.postmaster_pid(variant) is not None
        return StallWatch(f"trial {trial.number}", server.connection, self._listener.note, local=local)

    def _measure(
        self,
        trial: PlannedTrial,
        variant: Variant,
        started: int,
        activated: tuple[Server, ServerFacts],
        stalls: StallWatch,
    ) -> TrialOutput:
        server, facts = activated
        cluster = next(c for c in self._plan.clusters if c.id == variant.cluster)
        dataset = dataset_of(cluster.dataset, self._plan.dataset_files)
        devices = devices_of(cluster, self._storages)
        with database_errors("prepare the trial", variant.label), connect(server.connection) as control:
            before = dataset.before_trial(control)
            gaps = _checkpoint(control)
            ended = _ended_transactions(control, variant.workload)
        observer = Observer(
            server.connection,
            devices=tuple(devices),
            postmaster_pid=self._provision.postmaster_pid(variant),
            engine_pid=os.getpid(),
            further_engines=lambda: self._running.processes if self._running is not None else (),
            log=self._provision.log(variant),
            storages=[self._storages[name] for name in dict.fromkeys(cluster.roles.values())],
        )
        observer.start(time.monotonic_ns())
        measure = self._plan.experiment.measure
        actions = ActionSchedule(measure.actions, server.connection, measure.warmup_s)
        load, failure, t0_ns = None, "the load was not started", None
        try:
            config = load_of(
                variant.workload,
                variant.scripts,
                measure,
                to=server.connection,
                variables=dataset.variables(),
                cores=self._plan.host.cores,
                seed=trial.seed,
                shell=shell_user(),
            )
            with actions:
                load, failure = self._load(config, variant.workload.driver, server, observer, stalls, actions)
            failure = failure or actions.failure
            if load is not None:
                t0_ns = _monotonic_ns(load.started_unix_ns)
        finally:
            observation = observer.stop(t0_monotonic_ns=t0_ns)
        output = TrialOutput(
            _trial(trial, started, status="failed", failure=failure, devices=device_io(observation.samples, devices)),
            load=load,
            samples=observation.samples,
            events=sorted([*observation.events, *actions.events(t0_ns or 0)], key=lambda event: event.t_ns),
            server=facts,
        )
        if load is None:
            return output
        checks: list[Check] = []
        failure = failure or _failure_of_load(load)
        if failure is None:
            with database_errors("check the trial", variant.label), connect(server.connection) as control:
                await_sessions(control, server.connection.application_name)
                checks = dataset.after_trial(control, before, variant.workload, load)
                exclusive = variant.workload.builtin is not None and not observation.shares_database
                ended = _ended_transactions(control, variant.workload) - ended
                checks.append(_transactions_check(ended, load, variant.workload, exclusive))
            failure = _failure_of_checks(checks)
        output.trial = _measured(output.trial, load, checks, observation, failure)
        output.trial = output.trial.model_copy(update={"gaps": (*gaps, *output.trial.gaps)})
        return output

    def _load(
        self,
        config: LoadConfig,
        driver: Driver,
        server: Server,
        observer: Observer,
        stalls: StallWatch,
        actions: ActionSchedule,
    ) -> tuple[LoadResult | None, str | None]:
        """Drive the load to its end; returns its result, and why it is a failure."""
        measure = self._plan.experiment.measure
        total_s = measure.warmup_s + measure.duration_s
        failure, ended = None, 0
        load = make_load(driver, config, self._provision.runner, self._provision.context.log("drivers.log"))
        self._running = load
        try:
            load.start()
            actions.begin()
            while not load.wait(_POLL_S):
                cancel.check()
                progress = load.progress()
                self._tell(progress, total_s, observer)
                if progress.done + progress.failed > ended:
                    ended = progress.done + progress.failed
                    stalls.heard()
                if failure is None and progress.clients_open < config.clients and not server.alive():
                    failure = "the server died during the trial"
                    load.stop()
        except Interrupted:
            load.stop()
            load.wait(STOP_PATIENCE_S)
            raise
        return load.result(), failure

    def _tell(self, progress: LoadProgress, total_s: float, observer: Observer) -> None:
        for second in progress.seconds:
            figures = observer.latest() | self._provision.budget.figures()
            self._listener.second(LiveSecond(second, progress.elapsed_ns / 1e9, total_s, figures))


def _checkpoint(control: "psycopg.Connection[Any]") -> list[Gap]:
    """Begin the trial with nothing left to write; on a server of somebody else's we may not be allowed to."""
    import psycopg

    try:
        control.execute("CHECKPOINT")
    except psycopg.errors.InsufficientPrivilege as error:
        return [Gap(what="CHECKPOINT before the trial", reason=str(error).strip())]
    return []


def _ended_transactions(control: "psycopg.Connection[Any]", workload: WorkloadSpec) -> int:
    """Committed transactions of this database, with what finished sessions have reported; of a workload that rolls some
    back on purpose, those that were rolled back too."""
    row = control.execute(
        "SELECT xact_commit, xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    ).fetchone()
    assert row is not None, "the database that we are in has a row"
    commits, rollbacks = map(int, row)
    return commits + rollbacks if workload.rolls_back else commits


def _monotonic_ns(unix_ns: int) -> int:
    """The instant of a wall clock on the monotonic one."""
    return time.monotonic_ns() - (time.time_ns() - unix_ns)


def _transactions_check(ended: int, load: LoadResult, workload: WorkloadSpec, exclusive: bool) -> Check:
    """`exclusive`: each transaction of the load is one of the server, and nobody else works in this database."""
    done = load.totals.done
    most = done + load.totals.open + workload.clients * _OWN_COMMITS_PER_CLIENT[workload.driver] + _OWN_COMMITS
    counters = "xact_commit"
    if workload.rolls_back:
        counters = "xact_commit + xact_rollback"
        most += sum(error.count for error in load.errors)
    return Check(
        name=f"pg_stat_database.{counters} = transactions done, and a few of sessions' starts and maintenance",
        expected=f"{done} to {most}" if exclusive else f"at least {done}",
        got=str(ended),
        ok=ended >= done and (ended <= most or not exclusive),
    )


def _failure_of_load(load: LoadResult) -> str | None:
    """Why a load that came to its end is still a failed trial."""
    missing = [error for error in load.errors if error.kind in _ENDS_A_CLIENT]
    if missing:
        what = ", ".join(sorted({error.kind.replace("_", " ") for error in missing}))
        return f"{format_count(sum(error.count for error in missing), 'client')} did not work to the end ({what}): {missing[0].message}"
    if load.measured.done == 0:
        first = load.errors[0].message if load.errors else "no transaction ended in the measured time"
        return f"nothing was measured: {first}"
    return None


def _failure_of_checks(checks: list[Check]) -> str | None:
    """What did not hold although it must."""
    wrong = [f"{check.name}: expected {check.expected}, got {check.got}" for check in checks if not check.ok]
    return "; ".join(wrong) or None


def _trial(trial: PlannedTrial, started_unix_ns: int, **fields: Any) -> Trial:
    return Trial(
        number=trial.number, block=trial.block, variant=trial.variant, started_unix_ns=started_unix_ns, **fields
    )


def _measured(
    trial: Trial, load: LoadResult, checks: list[Check], observation: Observation, failure: str | None
) -> Trial:
    return trial.model_copy(
        update={
            "status": "complete" if failure is None else "failed",
            "failure": failure,
            "connect_ns": load.connect_ns,
            "warmup_ns": load.warmup_ns,
            "measured_ns": load.measured_ns,
            "totals": load.totals,
            "measured": load.measured,
            "tps": load.measured.done / (load.measured_ns / 1e9) if load.measured_ns else None,
            "engine": load.engine,
            "errors": load.errors,
            "checks": tuple(checks),
            "gaps": tuple(observation.gaps),
            "observer_cpu_ns": observation.cost_cpu_ns,
            "observer_ns": observation.duration_ns,
        }
    )
