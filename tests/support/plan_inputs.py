"""What a plan is built from: a small experiment, and facts of a machine that is made up."""

from collections.abc import Mapping, Sequence
from typing import Any

from plinth.model.dataset import DatasetSpec
from plinth.model.experiment import Experiment
from plinth.model.facts import HostFacts
from plinth.model.plan import DatasetSize, Plan, PlannedCluster, ScriptText
from plinth.model.workload import WorkloadSpec
from plinth.plan import PlanInputs, StoragePlace, build_plan, expand
from plinth.workload import dataset_of

GIB = 2**30


def experiment(**changes: Any) -> Experiment:
    document = {
        "spec": 1,
        "name": "x",
        "question": "?",
        "storage": {"disk": {"kind": "directory"}, "memory": {"kind": "tmpfs", "size": "2GiB"}},
        "dataset": {"kind": "tpcb", "scale": 10},
        "workload": {"builtin": "tpcb-like"},
        "matrix": {"storage": ["disk", "memory"]},
        **changes,
    }
    return Experiment.model_validate(document, by_alias=True, by_name=False)


def scripts(workload: WorkloadSpec, dataset: DatasetSpec) -> tuple[ScriptText, ...]:
    return (ScriptText(name=workload.builtin or ",".join(workload.script), source="SELECT 1;"),)


def places_of(available_bytes: int, memory_bytes: int) -> dict[str, StoragePlace]:
    return {
        "disk": StoragePlace("1", "/", available_bytes),
        "memory": StoragePlace("memory", "memory", memory_bytes, usable_bytes=2 * GIB),
    }


def used(places: Mapping[str, StoragePlace], clusters: Sequence[PlannedCluster]) -> dict[str, StoragePlace]:
    """Those that clusters are stored on, those that these are built on, and members."""
    names = {name for cluster in clusters for name in cluster.bytes_by_storage}
    names |= {place.on for place in places.values() if place.on is not None}
    return {name: place for name, place in places.items() if name in names or place.takes_bytes is not None}


def size_of(dataset: Any) -> DatasetSize:
    if dataset.kind == "numbers":
        return dataset_of(dataset).size()
    return DatasetSize(dataset.scale * 14_000_000, dataset.scale * 2_000_000)


def inputs(
    available_bytes: int = 100 * GIB,
    memory_bytes: int = 16 * GIB,
    places: Mapping[str, StoragePlace] | None = None,
) -> PlanInputs:
    host = HostFacts(
        cores=2,
        memory_total_bytes=memory_bytes,
        memory_available_bytes=memory_bytes,
        is_root=True,
        can_mount=True,
        kernel="test",
        os="test",
        cpu_model="test",
    )
    return PlanInputs(
        run_id="RUN",
        facts={None: host},
        places=lambda clusters: used(places or places_of(available_bytes, memory_bytes), clusters),
        installations={},
        dataset_size=size_of,
        populate_s=lambda dataset: 1.0,
        provision_steps=lambda clusters: [],
        trial_steps=lambda trial, variant, cluster: [],
        teardown_steps=lambda clusters: [],
    )


def plan_of(
    e: Experiment,
    available_bytes: int = 100 * GIB,
    memory_bytes: int = 16 * GIB,
    places: Mapping[str, StoragePlace] | None = None,
) -> Plan:
    return build_plan(e, expand(e, scripts), (), inputs(available_bytes, memory_bytes, places))
