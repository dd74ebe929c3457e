"""The conductor: it brings the stages together, to plan an experiment and to run it.

To read in this order: `planning`, `conduct` (the phases of a run), `provision` with `storages` and `loading`, `trial`
with `actions`; of what fails `watch`, `stall`, `health`, `failures`; of a run that was cut short `resume`, `recovery`.

What is named here is imported when it is asked for: who only plans does not wait for what runs and analyses.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plinth.run.conduct import RunStatus, run_plan
    from plinth.run.listener import Listener, LiveSecond
    from plinth.run.planning import make_plan
    from plinth.run.resume import resume_bundle

_HOMES = {
    "Listener": "listener",
    "LiveSecond": "listener",
    "RunStatus": "conduct",
    "make_plan": "planning",
    "resume_bundle": "resume",
    "run_plan": "conduct",
}

__all__ = [
    "Listener",
    "LiveSecond",
    "RunStatus",
    "make_plan",
    "resume_bundle",
    "run_plan",
]


def __getattr__(name: str) -> Any:
    """One of the names above. Raises AttributeError for any other, as a module does."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
