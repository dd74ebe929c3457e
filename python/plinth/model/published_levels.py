"""Which variants of a plan represent which levels of a published study.

A figure belongs to a variant when all of its levels are the variant's, whether set by a factor or by the experiment. If
[full] gives a factor as many levels as [matrix], they correspond to one another in their order: a small size here to a
published one.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plinth.model.experiment import Experiment, factor_path, with_levels
from plinth.model.level import Level, level_text
from plinth.model.plan import Plan, Variant
from plinth.model.published import Levels, PublishedRatio

_ABSENT = object()


class PublishedLevels:
    """Maps published levels to variants."""

    def __init__(self, plan: Plan) -> None:
        self._matrix = plan.experiment.matrix
        self._our_levels = dict(_corresponding_levels(plan.experiment))
        self._document = plan.experiment.model_dump(by_alias=True)
        self._variants = [
            (variant, with_levels(self._document, variant.levels))
            for variant in plan.variants
            if not variant.is_aa_twin
        ]

    def covers(self, levels: Levels) -> bool:
        """Return whether the experiment covers these levels: any level of a factor, and the value of any other key."""
        return all(
            key in self._matrix or _same(_value(self._document, key), self._our_level(key, level))
            for key, level in levels.items()
        )

    def variants(self, levels: Levels) -> list[Variant]:
        """Return the variants that have all of these levels."""
        return [
            variant
            for variant, document in self._variants
            if all(_same(_value(document, key), self._our_level(key, level)) for key, level in levels.items())
        ]

    def covers_ratio(self, published: PublishedRatio) -> bool:
        """Return whether the experiment covers both sides of a ratio."""
        return self.covers(published.levels) and self.covers(published.to)

    def pairs(self, published: PublishedRatio) -> list[tuple[Variant, Variant]]:
        """Return each pair of variants that differ only in the levels of a ratio, the one that is divided first."""
        keys = {*published.levels, *published.to}
        return _alike_but_for(keys, self.variants(published.levels), self.variants(published.to))

    def stands_for(self, levels: Levels) -> Levels:
        """Return the published levels that ours represent but do not equal."""
        return {key: level for key, level in levels.items() if not _same(self._our_level(key, level), level)}

    def _our_level(self, key: str, level: Level) -> Level:
        """Return our level that represents a published one; by default the same level."""
        return self._our_levels.get((key, level_text(level)), level)


def _corresponding_levels(experiment: Experiment) -> Iterator[tuple[tuple[str, str], Level]]:
    """Yield ((factor, published level), our level) for factors with as many levels in [full]."""
    for factor, ours in experiment.matrix.items():
        published = experiment.full.get(factor)
        if isinstance(published, list) and len(published) == len(ours):
            yield from (((factor, level_text(full)), here) for full, here in zip(published, ours, strict=True))


def _alike_but_for(keys: set[str], over: Sequence[Variant], under: Sequence[Variant]) -> list[tuple[Variant, Variant]]:
    def rest(variant: Variant) -> dict[str, Level]:
        return {key: level for key, level in variant.levels.items() if key not in keys}

    return [(one, other) for one in over for other in under if one.id != other.id and rest(one) == rest(other)]


def _value(document: Mapping[str, Any], key: str) -> Any:
    table: Any = document
    for part in factor_path(key):
        table = table.get(part, _ABSENT) if isinstance(table, Mapping) else _ABSENT
    return table


def _same(value: Any, level: Level) -> bool:
    return value is not _ABSENT and value is not None and level_text(value) == level_text(level)
