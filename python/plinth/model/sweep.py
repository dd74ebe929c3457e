"""A sweep: factors and their levels in order, what is compared with what, and curves over the levels that are numbers."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen
from plinth.model.experiment import Level

LevelUnit = Literal["count", "bytes", "bytes_per_s", "ns"]


class FactorLevel(Frozen):
    """One level of a factor."""

    level: Level
    label: str = Field(description='For people, so that it says what it is of: "16 clients", "memory".')
    text: str = Field(description='For a column or an axis under the factor\'s title: "16".')
    value: float | None = Field(description="Of a numeric factor, in its unit; None of any other.")


class Factor(Frozen):
    """What is varied: a key of [matrix] that has more than one level among the variants."""

    name: str = Field(description="The key, as the experiment has it.")
    title: str = Field(description='For people: "clients", "shared_buffers".')
    unit: LevelUnit | None = Field(description="Of the levels' values; None where the levels are no numbers.")
    levels: tuple[FactorLevel, ...] = Field(
        description="Of a numeric factor ascending, of any other in the order of the file."
    )
    is_workload: bool = Field(
        description="It changes what a transaction is, so that rates at two of its levels are of different things."
    )


class Stratum(Frozen):
    """Variants that differ in the compared factors only: one combination of levels of all others."""

    levels: dict[str, Level] = Field(description="Of the factors that are not compared.")
    label: str = Field(description='For people: "16 clients"; empty where every factor is compared.')
    baseline: str = Field(description="The variant that the others of the stratum are compared to.")
    variants: tuple[str, ...] = Field(description="The baseline among them, in the order of their levels.")


class Sweep(Frozen):
    """What the variants of an experiment with several factors, or with a numeric one, say together."""

    factors: tuple[Factor, ...]
    compared: tuple[str, ...] = Field(
        description="Names of the factors along which variants are compared, with all others held fixed."
    )
    strata: tuple[Stratum, ...]
