"""The conductor: the only room that knows the others and brings them together."""

from plinth.run.conduct import RunStatus, resume_bundle, run_plan
from plinth.run.listener import Listener, LiveSecond
from plinth.run.planning import make_plan
from plinth.run.results import analyse_bundle

__all__ = [
    "Listener",
    "LiveSecond",
    "RunStatus",
    "analyse_bundle",
    "make_plan",
    "resume_bundle",
    "run_plan",
]
