"""Whether a run's power cuts find what is known to lose commits: without it a clean result is worth little."""

from pydantic import Field

from plinth.model.base import Frozen


class CutControl(Frozen):
    """A variant that must lose commits, by facts, settings or a disk that lies, and what its power cuts found."""

    variant: str
    label: str
    expected: str = Field(description="Why it must lose commits.")
    made: int = Field(description="Power cuts of which something was learned.")
    damaged: int = Field(description="Those of them that found damage.")


class CutControls(Frozen):
    """The controls of a run with power cuts."""

    controls: tuple[CutControl, ...] = Field(description="None where the run has no variant that must lose commits.")
    sentence: str = Field(description="What they found, or that they were not run.")
