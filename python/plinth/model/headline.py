"""The effect that an answer tells first."""

from pydantic import Field

from plinth.model.base import Frozen
from plinth.model.estimate import Estimate


class Headline(Frozen):
    """The effect that the answer tells first, which the HTML page shows as its largest figure."""

    title: str = "Effect"
    variant: str | None = Field(default=None, description="The id of the variant whose effect it is.")
    ratio: Estimate | None = None
    figure: str | None = Field(
        default=None, description="In the place of a ratio: the highest rate of a schedule that is kept."
    )
    note: str = Field(default="", description="What the figure is of, and why it is undecided where it is.")
    missing: str | None = Field(
        default=None, description="Why there is none: no comparison is decided, and for what reasons."
    )
