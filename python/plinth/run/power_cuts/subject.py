"""What power cuts and errors of storage are made on: a variant with its running server, and a load without an end."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from plinth.load import LoadDriver
from plinth.model.plan import Plan, Variant
from plinth.run.power_cuts.power_cut import CutSubject
from plinth.run.provision.live_cluster import LiveCluster
from plinth.run.trial.load_config import Work, load_of
from plinth.run.trial.trial import MakeLoad
from plinth.workload import dataset_of

_LOAD_S = 86_400.0  # the cut ends it


def subject_of(plan: Plan, variant: Variant, cluster: LiveCluster, recovery_limit_s: float) -> CutSubject:
    """Return a variant with its server, which runs with the variant's settings from now on."""
    cluster.activate(variant)
    dataset = dataset_of(cluster.planned.dataset, plan.dataset_files)
    return CutSubject(variant, dataset, cluster.primary, cluster.runner, recovery_limit_s)


def endless_load(
    plan: Plan,
    seed: int,
    subject: CutSubject,
    ledger: Path | None,
    make_load: MakeLoad,
    changes: Mapping[str, object] = MappingProxyType({}),
) -> LoadDriver:
    """Return the load of a variant, which goes on until it is stopped, with `changes` of its configuration. `ledger` is the folder of its
    ledger."""
    workload = subject.variant.workload
    measure = plan.experiment.measure.model_copy(update={"warmup_s": 0.0, "warmup_max_s": None, "duration_s": _LOAD_S})
    config = load_of(
        Work.of(subject.variant),
        measure,
        to=subject.server.connection,
        variables=subject.dataset.variables(),
        cores=plan.host.cores,
        seed=seed,
        ledger=ledger,
    )
    return make_load(workload.driver, config.model_copy(update=dict(changes)))
