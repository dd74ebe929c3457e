"""What a bundle holds, as values: the only input of analysis and report."""

from collections.abc import Callable
from dataclasses import dataclass

from plinth.model.facts import HostFacts, ServerFacts, StorageFacts
from plinth.model.load import Histogram, Second
from plinth.model.manifest import Manifest
from plinth.model.plan import Plan
from plinth.model.trial import Event, Sample, Trial


@dataclass(frozen=True)
class TrialContents:
    """One trial with its tables. Samples are many, and read only when asked for."""

    trial: Trial
    series: tuple[Second, ...]
    histograms: tuple[Histogram, ...]
    events: tuple[Event, ...]
    read_samples: Callable[[], list[Sample]]


@dataclass(frozen=True)
class BundleContents:
    """A bundle as read. `storages` by storage name; `servers` by variant id, as first read back in a trial."""

    path: str
    manifest: Manifest
    experiment_toml: str
    plan: Plan
    host: HostFacts
    storages: dict[str, StorageFacts]
    servers: dict[str, ServerFacts]
    trials: tuple[TrialContents, ...]
