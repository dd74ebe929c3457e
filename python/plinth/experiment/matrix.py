"""Factors and levels: every level is checked by validating the experiment that it makes."""

from typing import Any

from pydantic import ValidationError

from plinth.experiment.problems import problems_of
from plinth.model.errors import Problem
from plinth.model.experiment import Experiment, factor_path, with_levels
from plinth.model.nearest import nearest

_FIRST_PARTS = ("storage", "server", "dataset", "workload")


def flatten_matrix(document: dict[str, Any]) -> dict[str, Any]:
    """The document with `workload.clients = [..]` of [matrix] (nested tables in TOML) as one dotted key each."""
    matrix = document.get("matrix")
    if not isinstance(matrix, dict):
        return document
    flat: dict[str, Any] = {}

    def walk(table: dict[str, Any], prefix: str) -> None:
        for key, value in table.items():
            if isinstance(value, dict):
                walk(value, f"{prefix}{key}.")
            else:
                flat[f"{prefix}{key}"] = value

    walk(matrix, "")
    return {**document, "matrix": flat}


def check_matrix(document: dict[str, Any], known: list[Problem]) -> list[Problem]:
    """What is wrong with factors and levels that is not wrong (`known`) with the experiment without them."""
    matrix = document.get("matrix")
    if not isinstance(matrix, dict):
        return []
    problems = []
    for factor, levels in matrix.items():
        if not isinstance(levels, list) or any(isinstance(level, list | dict) for level in levels):
            continue  # the type is reported with the experiment itself
        problems += _check_factor(document, factor, levels, known)
    return problems


def _check_factor(document: dict[str, Any], factor: str, levels: list[Any], known: list[Problem]) -> list[Problem]:
    path: list[str | int] = ["matrix", factor]
    first = factor_path(factor)[0]
    if first not in _FIRST_PARTS or (first == "storage" and factor != "storage"):
        close = nearest(factor, [*_FIRST_PARTS, "workload.clients", "dataset.scale", "server.version"])
        return [
            Problem(
                f"{factor!r} cannot be a factor; allowed: storage, server.settings.NAME, server.version, dataset.*, workload.*",
                path=path,
                hint=close,
            )
        ]
    if not levels:
        return [Problem("a factor needs at least one level", path=path)]
    repeated = [level for index, level in enumerate(levels) if level in levels[:index]]
    problems = [Problem(f"the level {level!r} is there twice", path=path) for level in repeated[:1]]
    return problems + [problem for level in levels for problem in _check_level(document, factor, level, known)]


def _check_level(document: dict[str, Any], factor: str, level: Any, known: list[Problem]) -> list[Problem]:
    changed = with_levels(document, {factor: level})
    target = list(factor_path(factor))
    try:
        Experiment.model_validate(changed, by_alias=True, by_name=False)
    except ValidationError as error:
        seen = {(tuple(problem.path), problem.message) for problem in known}
        return [
            Problem(
                f"level {level!r}: {problem.message}" if problem.path[: len(target)] == target else problem.message,
                path=["matrix", factor],
                hint=problem.hint,
            )
            for problem in problems_of(error, changed, Experiment)
            if (tuple(problem.path), problem.message) not in seen
        ]
    return []
