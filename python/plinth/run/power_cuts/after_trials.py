"""What power cuts and errors of storage are made with, once the trials have ended: a variant with its running server, and a load without an
end."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from plinth.bundle import BundleWriter
from plinth.load import LoadDriver
from plinth.model.errors import PlinthError, StorageBroken, UsageError
from plinth.model.plan import Plan, Variant
from plinth.model.units import format_count
from plinth.run.failures import reason_of
from plinth.run.faults.recovery_check import Findings
from plinth.run.listener import Listener
from plinth.run.power_cuts.power_cut import CutSubject
from plinth.run.provision.live_cluster import LiveCluster
from plinth.run.provision.provisioner import Provisioner
from plinth.run.trial.load_config import Work, load_of
from plinth.run.trial.trial import MakeLoad
from plinth.workload import dataset_of

_LOAD_S = 86_400.0  # the cut ends it
_Result = TypeVar("_Result")


@dataclass(eq=False)
class AfterTrials:
    """What a run has when its trials have ended."""

    plan: Plan
    provisioner: Provisioner
    writer: BundleWriter
    listener: Listener
    make_load: MakeLoad

    def __post_init__(self) -> None:
        self.variants = {variant.id: variant for variant in self.plan.variants}

    def attempt(
        self, variant: Variant, found: Findings, work: Callable[[], _Result]
    ) -> tuple[_Result | None, str | None]:
        """Do what may damage the storages of a variant, which are made again if it has, or if nothing was learned.

        Returns what `work` does, or why nothing was learned. Raises UsageError and StorageBroken.
        """
        if error := self.provisioner.failure(variant):
            return None, f"not made: {reason_of(error)}"
        result, failure = None, None
        try:
            result = work()
        except (UsageError, StorageBroken):
            raise
        except PlinthError as error:
            failure = reason_of(error)
        if failure is not None or not found.is_intact:
            self.provisioner.make_again(variant)
        return result, failure

    def subject_of(self, variant: Variant, recovery_limit_s: float) -> tuple[LiveCluster, CutSubject]:
        """Return a variant's cluster, and the variant with its server, which runs with the variant's settings from now on."""
        cluster = self.provisioner.switch_to(variant)
        cluster.activate(variant)
        dataset = dataset_of(cluster.planned.dataset, self.plan.dataset_files)
        return cluster, CutSubject(variant, dataset, cluster.primary, cluster.runner, recovery_limit_s)

    def endless_load(
        self, subject: CutSubject, seed: int, ledger: Path | None, changes: Mapping[str, object] = MappingProxyType({})
    ) -> LoadDriver:
        """Return the load of a variant, which goes on until it is stopped, with `changes` of its configuration."""
        measure = self.plan.experiment.measure.model_copy(
            update={"warmup_s": 0.0, "warmup_max_s": None, "duration_s": _LOAD_S}
        )
        config = load_of(
            Work.of(subject.variant),
            measure,
            to=subject.server.connection,
            variables=subject.dataset.variables(),
            cores=self.plan.host.cores,
            seed=seed,
            ledger=ledger,
        )
        return self.make_load(subject.variant.workload.driver, config.model_copy(update=dict(changes)))

    def tell_untested(self, count: int, total: int, what: str) -> None:
        """Say how many of so many could not be tested."""
        if count:
            self.listener.note(
                f"{count} of {format_count(total, what)} could not be tested; `plinth resume {self.writer.path}` tries again"
            )
