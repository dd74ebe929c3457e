"""The plan: an experiment with every default explicit, every command named, time and space estimated."""

from pydantic import Field

from plinth.model.base import Frozen
from plinth.model.experiment import DatasetSpec, Experiment, Level, ServerSpec, WorkloadSpec
from plinth.model.facts import HostFacts, Installation
from plinth.model.step import Step

PLAN_VERSION = 1


class PlannedCluster(Frozen):
    """One data directory: a storage, how it is initialised, and the dataset in it. Variants that agree in these share it."""

    id: str
    storage: str | None
    server: ServerSpec = Field(description="Without settings, which belong to a variant.")
    dataset: DatasetSpec
    installation: Installation | None
    data_bytes: int = Field(description="Estimated size when loaded and while trials write to it.")


class ScriptText(Frozen):
    """A client script: its name for people, and its text."""

    name: str
    source: str
    weight: int = 1


class Variant(Frozen):
    """One combination of levels. The A/A twin has the levels of the baseline and an id of its own."""

    id: str
    label: str = Field(description='For people: "memory", or "memory, 16 clients".')
    levels: dict[str, Level]
    cluster: str
    settings: dict[str, bool | int | float | str]
    workload: WorkloadSpec
    scripts: tuple[ScriptText, ...]
    is_baseline: bool = False
    is_aa_twin: bool = False


class PlannedTrial(Frozen):
    """The trial of `variant` in `block`; `number` is its place in the order of running, from 1."""

    number: int
    block: int
    variant: str
    seed: int


class Need(Frozen):
    """Something that the run needs of a place, against what is there."""

    what: str
    where: str
    needed_bytes: int
    available_bytes: int | None

    @property
    def met(self) -> bool | None:
        """None where what is available could not be read."""
        return None if self.available_bytes is None else self.needed_bytes <= self.available_bytes


class Plan(Frozen):
    """Everything that a run will do, known before it starts."""

    schema_version: int = PLAN_VERSION
    run_id: str = Field(description="Mark of everything that this run makes.")
    experiment: Experiment
    overrides: tuple[str, ...] = Field(
        default=(), description="KEY=VALUE of each --set, then what --scale-to-fit cut, in the same form."
    )
    host: HostFacts
    clusters: tuple[PlannedCluster, ...]
    variants: tuple[Variant, ...]
    trials: tuple[PlannedTrial, ...]
    steps: tuple[Step, ...] = Field(description="Every step in order, the trials as one step each.")
    needs: tuple[Need, ...]
    estimated_s: float
    warnings: tuple[str, ...] = ()
