"""Checks the names in objectives of a raw document: factors with their levels, and storages with a price."""

from collections.abc import Iterator
from typing import Any

from plinth.common.nearest import nearest
from plinth.model.errors import Problem
from plinth.model.level import same_level


def check_objectives(document: dict[str, Any], matrix: dict[str, Any], storages: dict[str, Any]) -> list[Problem]:
    """Return problems of names and levels that do not exist; other types are reported by the validation."""
    objectives = document.get("objective")
    if not isinstance(objectives, list):
        return []
    return [
        problem
        for place, objective in enumerate(objectives)
        if isinstance(objective, dict)
        for problem in (*_where(objective, matrix, place), *_prices(objective, storages, place))
    ]


def _where(objective: dict[str, Any], matrix: dict[str, Any], place: int) -> Iterator[Problem]:
    where = objective.get("where")
    for factor, wanted in where.items() if isinstance(where, dict) else ():
        path: list[str | int] = ["objective", place, "where", factor]
        levels = matrix.get(factor)
        if levels is None:
            factors = ", ".join(matrix) or "none, as there is no [matrix]"
            hint = (
                nearest(factor, matrix) or 'a dotted name needs quotes here, as in where = { "workload.clients" = 16 }'
            )
            yield Problem(f"{factor!r} is not a factor; allowed: {factors}", path=path, hint=hint)
        elif isinstance(levels, list):
            for level in [wanted] if _is_one_of(wanted, levels) or not isinstance(wanted, list) else wanted:
                if not _is_one_of(level, levels):
                    shown = ", ".join(repr(item) for item in levels)
                    hint = nearest(str(level), [str(item) for item in levels])
                    yield Problem(f"got {level!r}; allowed: {shown}", path=path, hint=hint)


def _is_one_of(level: object, levels: list[Any]) -> bool:
    return any(same_level(level, one) for one in levels)


def _prices(objective: dict[str, Any], storages: dict[str, Any], place: int) -> Iterator[Problem]:
    prices = objective.get("price_per_hour")
    for storage in prices if isinstance(prices, dict) else ():
        if storage not in storages:
            allowed = ", ".join(storages) or "none, as there is no [storage.NAME]; give one number"
            path: list[str | int] = ["objective", place, "price_per_hour", storage]
            yield Problem(f"storage {storage!r} is not one of: {allowed}", path=path, hint=nearest(storage, storages))
