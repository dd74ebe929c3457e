"""Bundles of runs that were killed, for tests of who may resume them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from plinth import __version__
from plinth.bundle import BundleWriter
from plinth.model.plan import Plan, PlannedTrial
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
    plan = Plan(
        run_id="r1",
        experiment={  # type: ignore[arg-type]
            "spec": 1,
            "name": "x",
            "question": "?",
            "storage": {"disk": {"kind": "directory"}},
            "dataset": {"kind": "none"},
            "workload": {"builtin": "select-only"},
        },
        host=host.model_copy(update={name: change(getattr(host, name)) for name, change in changes.items()}),
        clusters=(),
        variants=(),
        trials=tuple(trials),
        steps=(),
        needs=(),
        estimated_s=1.0,
    )
    BundleWriter.create(path, plan, "", version, create_key("r1"))
