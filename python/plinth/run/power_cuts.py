"""Power cuts of a run: the load runs, the power goes, the server recovers, and every acknowledged commit is looked for."""

import contextlib
import random
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from plinth.load import LoadDriver
from plinth.model.durability import Damage, IntegrityCheck, PlannedCut, PowerCut, cuts_left
from plinth.model.errors import Interrupted, PlinthError, RunError, StorageBroken, UsageError
from plinth.model.load import LoadResult
from plinth.model.plan import Plan, PlannedCluster, Variant
from plinth.model.progress import Progress
from plinth.model.units import format_count
from plinth.run.failures import reason_of
from plinth.run.listener import Listener
from plinth.run.load_of import STOP_TIMEOUT_S, load_of
from plinth.run.power import Lost, Power
from plinth.run.trial import MakeLoad
from plinth.server import Cluster, connect, database_errors
from plinth.server.integrity import Integrity, check_checksums, check_database
from plinth.system import cancel
from plinth.system.failures import from_os_error
from plinth.system.owner import shell_user
from plinth.system.runner import Runner
from plinth.workload import dataset_of
from plinth.workload.dataset import Dataset, Snapshot
from plinth.workload.survival import KnowsCommits

if TYPE_CHECKING:
    import psycopg

_POLL_S = 0.01
_FIRST_COMMIT_TIMEOUT_S = 60.0
_LOAD_S = 86_400.0  # the cut ends it
_WITHIN_CHECKPOINT_S = 0.2
_WITHIN_RECOVERY_S = 0.5
_NOTHING_LOST = Lost((), ())
_FOLLOWING_IT = ("lost commit", "resurrected abort")
"""Of these the database is whole: the next cut can be made on it."""


class Machine(Protocol):
    """What cuts need of what their run has made; see `Provision`."""

    runner: Runner

    def failure(self, variant: Variant) -> PlinthError | None:
        """Why nothing can be done on what a variant is stored on."""
        ...

    def server_of(self, variant: Variant) -> Cluster:
        """The running server of a variant, with its settings; every other managed one is stopped."""
        ...

    def power_of(self, variant: Variant) -> Power:
        """The power of all that a variant is stored on."""
        ...

    def make_again(self, variant: Variant) -> None:
        """Make storages and cluster of a variant anew, after damage."""
        ...


class Writer(Protocol):
    """Where cuts are kept; see `BundleWriter`."""

    def write_cut(self, cut: PowerCut) -> None:
        """Keep one."""
        ...


@dataclass
class _Findings:
    """What becomes known of a cut, step by step."""

    lost: Lost = _NOTHING_LOST
    after_s: float | None = None
    recovery_s: float | None = None
    load: LoadResult | None = None
    acknowledged: int = 0
    unanswered: int = 0
    damage: list[Damage] = field(default_factory=list)
    checks: list[IntegrityCheck] = field(default_factory=list)

    def add(self, integrity: Integrity) -> None:
        self.damage += integrity.damage
        self.checks += integrity.checks


class PowerCuts:
    """Makes the cuts of a plan, one after the other."""

    def __init__(self, plan: Plan, machine: Machine, writer: Writer, listener: Listener, make_load: MakeLoad) -> None:
        self._plan = plan
        self._machine = machine
        self._writer = writer
        self._listener = listener
        self._make_load = make_load
        self._variants = {variant.id: variant for variant in plan.variants}
        self._clusters = {cluster.id: cluster for cluster in plan.clusters}

    def run(self, made: Collection[PowerCut]) -> None:
        """Make all but those that were `made` before the run was interrupted. Each is written down when it is known."""
        durability = self._plan.experiment.durability
        if durability is None:
            return
        known = list(made)
        self._listener.phase(f"cut the power: {format_count(len(self._plan.cuts), 'time')}")
        while left := cuts_left(self._plan.cuts, known, durability.stop_after):
            cancel.check()
            planned = left[0]
            self._progress(
                planned.number - 1, f"{planned.mode} in {planned.moment}: {self._variants[planned.variant].label}"
            )
            cut = self._cut(planned)
            self._writer.write_cut(cut)
            known.append(cut)
            if cut.damage:
                self._listener.note(f"cut {cut.number}, {self._variants[cut.variant].label}: {_in_words(cut)}")
            elif cut.failure is not None:
                self._listener.note(f"cut {cut.number} failed: {cut.failure}")
        self._progress(len(self._plan.cuts), "")

    def _progress(self, done: int, what: str) -> None:
        self._listener.progress(Progress("power cuts", done, len(self._plan.cuts), "cuts", what))

    def _cut(self, planned: PlannedCut) -> PowerCut:
        variant = self._variants[planned.variant]
        started_unix_ns = time.time_ns()
        found, failure = _Findings(), None
        if error := self._machine.failure(variant):
            failure = f"not made: {reason_of(error)}"
        else:
            try:
                self._make(planned, variant, found)
            except (Interrupted, UsageError, StorageBroken):
                raise
            except PlinthError as error:
                failure = reason_of(error)
            if failure is not None or any(damage.kind not in _FOLLOWING_IT for damage in found.damage):
                self._machine.make_again(variant)
        return PowerCut(
            **planned.model_dump(),
            started_unix_ns=started_unix_ns,
            disks=found.lost.disks,
            reports=found.lost.reports,
            after_s=found.after_s,
            acknowledged=found.acknowledged,
            unanswered=found.unanswered,
            recovery_s=found.recovery_s,
            damage=tuple(found.damage),
            checks=tuple(found.checks),
            failure=failure,
        )

    def _make(self, planned: PlannedCut, variant: Variant, found: _Findings) -> None:
        """Load, cut, recovery and checks. What is raised says nothing of the storages."""
        chance = random.Random(planned.seed)
        planned_cluster = self._clusters[variant.cluster]
        dataset = dataset_of(planned_cluster.dataset, self._plan.dataset_files)
        cluster, power = self._machine.server_of(variant), self._machine.power_of(variant)
        before = _prepared(dataset, cluster, variant)
        found.load = self._load_until_cut(planned, variant, dataset, cluster, power, chance, found)
        found.acknowledged = found.load.totals.done
        found.unanswered = found.load.totals.failed + found.load.totals.open
        if planned.moment == "recovery" and not self._cut_in_recovery(planned, variant, cluster, power, chance, found):
            return
        if self._recovers(variant, cluster, power, found):
            self._check(planned_cluster, variant, dataset, cluster, before, found)

    def _load_until_cut(
        self,
        planned: PlannedCut,
        variant: Variant,
        dataset: Dataset,
        cluster: Cluster,
        power: Power,
        chance: random.Random,
        found: _Findings,
    ) -> LoadResult:
        """Drive the load until the power goes at its moment; the server is gone then."""
        experiment = self._plan.experiment
        assert experiment.durability is not None, "cuts are planned"
        config = load_of(
            variant.workload,
            variant.scripts,
            experiment.measure.model_copy(update={"warmup_s": 0.0, "duration_s": _LOAD_S}),
            to=cluster.connection,
            variables=dataset.variables(),
            cores=self._plan.host.cores,
            seed=planned.seed,
            shell=shell_user(),
        )
        load = self._make_load(variant.workload.driver, config)
        try:
            load.start()
            _await_first_commit(load)
            first_s = time.monotonic()
            _run_for(load, chance.uniform(0, experiment.durability.within_s))
            if planned.moment == "checkpoint":
                with _checkpoint_beside(cluster):
                    _run_for(load, chance.uniform(0, _WITHIN_CHECKPOINT_S))
                    found.lost = power.cut(planned.mode, planned.seed)
                    cluster.lose_power()
            else:
                found.lost = power.cut(planned.mode, planned.seed)
                cluster.lose_power()
            found.after_s = time.monotonic() - first_s
        finally:
            load.stop()
            load.wait(STOP_TIMEOUT_S)
        return load.result()

    def _cut_in_recovery(
        self,
        planned: PlannedCut,
        variant: Variant,
        cluster: Cluster,
        power: Power,
        chance: random.Random,
        found: _Findings,
    ) -> bool:
        """Let the server recover, and cut the power once more meanwhile; whether the storages came back before."""
        if not _restored(power, found):
            return False
        again: list[Lost] = []
        cutting = threading.Timer(
            chance.uniform(0, _WITHIN_RECOVERY_S), lambda: again.append(power.cut(planned.mode, planned.seed + 1))
        )
        cutting.start()
        try:
            cluster.start(variant.settings)
        except (PlinthError, OSError):
            pass  # as it must, when its disk goes away; whether it can recover is seen at the next start
        finally:
            cutting.join()
            cluster.lose_power()
        found.lost = Lost(
            found.lost.disks, (*found.lost.reports, *(report for lost in again for report in lost.reports))
        )
        return True

    def _recovers(self, variant: Variant, cluster: Cluster, power: Power, found: _Findings) -> bool:
        """Give the power back and start the server; that it does not come up is a finding."""
        started_s = time.monotonic()
        if not _restored(power, found):
            return False
        try:
            cluster.start(variant.settings)
        except Interrupted:
            raise
        except (PlinthError, OSError) as error:
            failed = (
                error
                if isinstance(error, PlinthError)
                else from_os_error(error, "start the server", cluster.layout.data_directory)
            )
            found.damage.append(
                Damage(kind="recovery refused", count=1, evidence=(failed.message, *failed.details[-10:]))
            )
            return False
        found.recovery_s = time.monotonic() - started_s
        return True

    def _check(
        self,
        planned: PlannedCluster,
        variant: Variant,
        dataset: Dataset,
        cluster: Cluster,
        before: Snapshot,
        found: _Findings,
    ) -> None:
        import psycopg

        assert planned.installation is not None and found.load is not None, "a managed server, whose load has ended"
        assert isinstance(dataset, KnowsCommits), "the plan was checked for it"
        with database_errors("check what a power cut left", variant.label), connect(cluster.connection) as control:
            checksums = control.execute("SHOW data_checksums").fetchone() == ("on",)
            try:
                survival = dataset.after_cut(control, before, found.load)
                found.acknowledged, found.unanswered = survival.acknowledged, survival.unanswered
                found.damage += survival.damage
            except psycopg.OperationalError:
                raise
            except psycopg.Error as error:  # such as a table that is not there any more, or a page that cannot be read
                found.damage.append(Damage(kind="invariant broken", count=1, evidence=(str(error).strip(),)))
            found.add(check_database(control, planned.installation.major))
        cluster.stop()
        found.add(check_checksums(cluster.layout, planned.installation, self._machine.runner, checksums))


def _prepared(dataset: Dataset, cluster: Cluster, variant: Variant) -> Snapshot:
    """The dataset as each trial begins with it, and durable."""
    with database_errors("prepare a power cut", variant.label), connect(cluster.connection) as control:
        before = dataset.before_trial(control)
        control.execute("CHECKPOINT")
    return before


def _await_first_commit(load: LoadDriver) -> None:
    deadline = time.monotonic() + _FIRST_COMMIT_TIMEOUT_S
    while load.progress().done == 0:
        cancel.check()
        if load.wait(_POLL_S):
            raise RunError("the load ended before its power was cut")
        if time.monotonic() > deadline:
            raise RunError(f"no transaction was acknowledged within {_FIRST_COMMIT_TIMEOUT_S:g} s")


def _run_for(load: LoadDriver, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while (left_s := deadline - time.monotonic()) > 0:
        cancel.check()
        if load.wait(min(left_s, 0.1)):
            raise RunError("the load ended before its power was cut")


def _restored(power: Power, found: _Findings) -> bool:
    """Whether every file system could be mounted again; that one could not is a finding."""
    try:
        power.restore()
    except Interrupted:
        raise
    except PlinthError as error:
        found.damage.append(Damage(kind="recovery refused", count=1, evidence=(error.message, *error.details)))
        return False
    return True


@contextmanager
def _checkpoint_beside(cluster: Cluster) -> Iterator[None]:
    """A checkpoint that runs meanwhile; it ends with the server."""
    import psycopg

    def work(control: "psycopg.Connection[Any]") -> None:
        with contextlib.suppress(psycopg.Error):  # the power goes while it runs
            control.execute("CHECKPOINT")

    control = connect(cluster.connection)
    thread = threading.Thread(target=work, args=(control,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        control.close()


def _in_words(cut: PowerCut) -> str:
    """What was found, in one line."""
    kinds = ", ".join(f"{damage.kind} ({damage.count}): {damage.evidence[0]}" for damage in cut.damage)
    return f"{cut.mode} in {cut.moment}, {format_count(cut.acknowledged, 'acknowledged commit')}: {kinds}"
