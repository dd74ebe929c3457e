"""Which variants of a stratum differ significantly from one another."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen


class Grouping(Frozen):
    """Variants of a stratum by throughput: all pairs compared, corrected together with those of all other strata."""

    stratum: str = Field(description='For people: "16 clients"; empty where there is only one.')
    letters: dict[str, str] = Field(
        description="Of each variant: two that share a letter were not told apart. a is of the fastest."
    )
    told_apart: Literal["none", "some", "all"] = Field(
        default="some",
        description="Which pairs of those that have letters. Only of some do letters say more than a sentence.",
    )
    fastest: tuple[str, ...] = Field(
        description="The variant with the highest throughput, then those that were not told apart from it: the one that is "
        "the fastest in truth is among them with 95 % confidence."
    )
    missing: str | None = Field(description="Why the variants are not grouped, or some of them not.")
