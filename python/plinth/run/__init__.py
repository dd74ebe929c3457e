"""The conductor: it brings the stages together, to plan an experiment and to run it.

To read in this order: `planning` and `checks`, `conduct` (the phases of a run), `provision`, `trial`; of what fails `faults` and
`power_cuts`; of a run that was cut short `resume`.

What is named here is imported when it is asked for: planning does not wait for what runs and analyses.
"""

from typing import TYPE_CHECKING

from plinth.common.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from plinth.run.checks.obstacles import find_obstacles
    from plinth.run.conduct import RunStatus, run_plan
    from plinth.run.listener import Listener, LiveSecond
    from plinth.run.planning.make_plan import make_plan
    from plinth.run.resume.resume import resume_bundle

__getattr__ = lazy_exports(
    __name__,
    {
        "Listener": "listener",
        "LiveSecond": "listener",
        "RunStatus": "conduct",
        "find_obstacles": "checks.obstacles",
        "make_plan": "planning.make_plan",
        "resume_bundle": "resume.resume",
        "run_plan": "conduct",
    },
)
__all__ = [
    "Listener",
    "LiveSecond",
    "RunStatus",
    "find_obstacles",
    "make_plan",
    "resume_bundle",
    "run_plan",
]
