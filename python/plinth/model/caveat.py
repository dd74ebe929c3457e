"""Caveats: what a reader of a report must be warned of, by weight."""

from typing import Literal, NamedTuple, get_args

CaveatKind = Literal[
    "incomplete run",
    "lost trials",
    "bug",
    "busy machine",
    "safety",
    "flushes",
    "not compared",
    "A/A pair",
    "pattern",
    "load",
    "few trials",
    "target",
    "spread",
    "added trials",
    "state of a trial",
    "plan",
    "machine",
    "storage",
    "gaps",
]
"""From the heaviest: what makes figures wrong or absent, then what makes them mean something else, then what makes them imprecise,
then what was decided before the run, then what is worth knowing."""
_WEIGHTS: dict[CaveatKind, int] = {kind: place for place, kind in enumerate(get_args(CaveatKind))}


class Caveat(NamedTuple):
    """A warning to the reader of a report, in one sentence."""

    kind: CaveatKind
    text: str


def by_weight(caveats: list[Caveat]) -> list[Caveat]:
    """Return the caveats from the heaviest; those of one kind stay in their order."""
    return sorted(caveats, key=lambda one: _WEIGHTS[one.kind])
