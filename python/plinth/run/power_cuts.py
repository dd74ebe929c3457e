"""Power cuts of a run: the load runs, the power goes, the server recovers, and every acknowledged commit is looked for."""

import time
from collections.abc import Collection
from pathlib import Path
from typing import Protocol

from plinth.model.durability import PlannedCut, PowerCut, cuts_left
from plinth.model.errors import Interrupted, PlinthError, StorageBroken, UsageError
from plinth.model.plan import Plan, Variant
from plinth.model.progress import Progress
from plinth.model.units import format_count
from plinth.run.cut_check import Findings
from plinth.run.failures import reason_of
from plinth.run.listener import Listener
from plinth.run.load_of import load_of
from plinth.run.power import Power
from plinth.run.power_cut import CutSubject, make_cut
from plinth.run.trial import MakeLoad
from plinth.server import Cluster
from plinth.system import cancel
from plinth.system.owner import shell_user
from plinth.system.runner import Runner
from plinth.workload import dataset_of

_LOAD_S = 86_400.0  # the cut ends it


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

    def make_cut_ledger(self, cut: PlannedCut) -> Path:
        """Make the empty folder for the ledger of a cut's commits."""
        ...

    def drop_cut_ledger(self, cut: PlannedCut) -> None:
        """Remove that of a cut that found nothing."""
        ...


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
        found, failure = Findings(), None
        if error := self._machine.failure(variant):
            failure = f"not made: {reason_of(error)}"
        else:
            try:
                self._make(planned, variant, found)
            except (Interrupted, UsageError, StorageBroken):
                raise
            except PlinthError as error:
                failure = reason_of(error)
            if failure is not None or not found.is_intact:
                self._machine.make_again(variant)
        return PowerCut(
            **planned.model_dump(),
            started_unix_ns=started_unix_ns,
            disks=found.lost.disks,
            reports=found.lost.reports,
            after_s=found.after_s,
            acknowledged=found.acknowledged,
            unanswered=found.unanswered,
            lost_time_s=found.lost_time_s,
            lost_wal_bytes=found.lost_wal_bytes,
            recovery_s=found.recovery_s,
            damage=tuple(found.damage),
            checks=tuple(found.checks),
            failure=failure,
        )

    def _make(self, planned: PlannedCut, variant: Variant, found: Findings) -> None:
        experiment, cluster = self._plan.experiment, self._clusters[variant.cluster]
        assert experiment.durability is not None, "cuts are planned"
        assert cluster.installation is not None, "the plan was checked for a managed server"
        dataset = dataset_of(cluster.dataset, self._plan.dataset_files)
        server, power = self._machine.server_of(variant), self._machine.power_of(variant)
        ledger = self._writer.make_cut_ledger(planned) if variant.workload.keeps_ledger else None
        config = load_of(
            variant.workload,
            variant.scripts,
            experiment.measure.model_copy(update={"warmup_s": 0.0, "duration_s": _LOAD_S}),
            to=server.connection,
            variables=dataset.variables(),
            cores=self._plan.host.cores,
            seed=planned.seed,
            shell=shell_user(),
            ledger=ledger,
        )
        subject = CutSubject(variant, cluster.installation, dataset, server, power, self._machine.runner)
        make_cut(planned, subject, experiment.durability.within_s, config, self._make_load, ledger, found)
        if ledger is not None and not found.damage:
            self._writer.drop_cut_ledger(planned)


def _in_words(cut: PowerCut) -> str:
    """What was found, in one line."""
    kinds = ", ".join(f"{damage.kind} ({damage.count}): {damage.evidence[0]}" for damage in cut.damage)
    return f"{cut.mode} in {cut.moment}, {format_count(cut.acknowledged, 'acknowledged commit')}: {kinds}"
