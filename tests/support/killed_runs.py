"""Bundles of runs that were killed, for tests of who may resume them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bundle_parts import PLAN
from plinth import __version__
from plinth.bundle import BundleWriter
from plinth.model.plan import PlannedTrial
from plinth.observe.facts import host_facts
from plinth.system.run_key import create_key

MISSING = (PlannedTrial(number=1, block=1, variant="disk", seed=1),)


def begun(
    path: Path,
    version: str = __version__,
    trials: Sequence[PlannedTrial] = (),
    **changes: Callable[[Any], Any],
) -> None:
    """Write the bundle of a run that was killed before its first trial; `changes` are of this machine's facts."""
    host = host_facts()
    changed = host.model_copy(update={name: change(getattr(host, name)) for name, change in changes.items()})
    plan = PLAN.model_copy(update={"run_id": "r1", "host": changed, "trials": tuple(trials)})
    BundleWriter.create(path, plan, "", version, create_key("r1"))
