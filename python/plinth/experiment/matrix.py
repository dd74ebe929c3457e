"""Checks factors and levels by validating the experiment that results from each level."""

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from plinth.common.nearest import nearest
from plinth.experiment.problems import UNKNOWN_KEY, problems_of
from plinth.experiment.storages import check_storages, valid_storages
from plinth.experiment.toml_document import table_at
from plinth.model.errors import Problem
from plinth.model.experiment import MAX_VARIANTS, Experiment, factor_path, with_levels
from plinth.model.level import level_text, same_level
from plinth.model.storage_graph import factors_by_storage

FACTOR_PARTS = ("storage", "server", "network", "dataset", "workload")
"""Possible first parts of a factor's dotted path."""


def flatten(document: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the document with each nested key of the table `name` as one dotted key, such as "workload.clients"."""
    nested = document.get(name)
    if not isinstance(nested, dict):
        return document
    flat: dict[str, Any] = {}

    def walk(table: dict[str, Any], prefix: str) -> None:
        for key, value in table.items():
            if isinstance(value, dict) and value:
                walk(value, f"{prefix}{key}.")
            else:
                flat[f"{prefix}{key}"] = value

    walk(nested, "")
    return {**document, name: flat}


def check_matrix(document: dict[str, Any], known: list[Problem]) -> list[Problem]:
    """Return problems of factors and levels, except those that the experiment has without them (`known`)."""
    matrix = document.get("matrix")
    if not isinstance(matrix, dict):
        return []
    # Values that are not lists are reported by the validation of the experiment.
    factors = {
        factor: levels for factor, levels in matrix.items() if isinstance(levels, list) and all(map(_is_level, levels))
    }
    combinations = math.prod(map(len, factors.values()))
    if combinations > MAX_VARIANTS:
        sizes = " x ".join(f"{len(levels):,}" for levels in factors.values())
        return [
            Problem(
                f"{combinations:,} combinations of levels ({sizes}); at most {MAX_VARIANTS:,} can be compared in one report",
                path=["matrix"],
                hint="leave out levels, or ask in several experiments with fewer factors each",
            )
        ]
    together = [] if known else _check_together(document, factors)
    # Levels are examined one by one only to tell which one is wrong: what is valid in all combinations needs no more.
    is_valid = not (known or together) and all(factors.values())
    problems = _same_keys(factors)
    for factor, levels in factors.items():
        problems += _check_factor(document, factor, levels, None if is_valid else known)
    return problems or together


def _same_keys(factors: Iterable[str]) -> list[Problem]:
    """Return a problem for each pair of factors that set the same key."""
    first: dict[tuple[str, ...], str] = {}
    return [
        Problem(f"{factor!r} is the same key as {other!r}", path=["matrix", factor], hint="leave one out")
        for factor in factors
        if (other := first.setdefault(factor_path(factor), factor)) != factor
    ]


def _check_together(document: dict[str, Any], factors: Mapping[str, list[Any]]) -> list[Problem]:
    """Return the problems of the first invalid combination of levels that are valid separately."""
    for levels in itertools.product(*factors.values()):
        combination = dict(zip(factors, levels, strict=True))
        changed = with_levels(document, combination)
        try:
            Experiment.model_validate(changed, by_alias=True, by_name=False)
        except ValidationError as error:
            found = problems_of(error, changed, Experiment)
            return [
                Problem(
                    f"{_of_table(combination, problem.path[0])}: {problem.key}: {problem.message}",
                    path=["matrix"],
                    hint=problem.hint
                    or "every level is combined with all levels of the others: ask in two experiments",
                )
                for problem in found
            ]
    return []


def _of_table(combination: Mapping[str, Any], table: str | int) -> str:
    """Format the levels of a combination that belong to one table: "workload.driver = 'psycopg' with workload.rate = 100"."""
    told = {factor: level for factor, level in combination.items() if factor_path(factor)[0] == table}
    return " with ".join(f"{factor} = {level!r}" for factor, level in (told or combination).items())


def _check_factor(
    document: dict[str, Any], factor: str, levels: list[Any], known: list[Problem] | None
) -> list[Problem]:
    path: list[str | int] = ["matrix", factor]
    first, *rest = factor_path(factor)
    if first not in FACTOR_PARTS or (first == "storage" and len(rest) < 2):
        close = nearest(factor, [*FACTOR_PARTS, "workload.clients", "dataset.scale", "dataset.rows", "server.version"])
        return [
            Problem(
                f"{factor!r} cannot be a factor; allowed: storage, storage.NAME.*, server.settings.NAME, server.connection_options.NAME, "
                "server.wal_storage, server.version, server.standbys, server.standby.NAME.*, "
                "server.synchronous_standby_names, network.*, dataset.*, workload.*",
                path=path,
                hint=close,
            )
        ]
    if (barred := _barred(document, factor)) is not None:
        return [Problem(f"{barred!r} is a value, not a table", path=path)]
    if first == "storage" and (problem := _check_storage_factor(document, factor, levels, rest[0])):
        return [problem]
    if not levels:
        return [Problem("a factor needs at least one level", path=path)]
    repeated = [level for index, level in enumerate(levels) if any(same_level(level, one) for one in levels[:index])]
    problems = [Problem(f"the level {level!r} is there twice", path=path) for level in repeated[:1]]
    return problems + [problem for level in levels for problem in _check_level(document, factor, level, known)]


def _barred(document: dict[str, Any], factor: str) -> str | None:
    """Return the key on a factor's path whose value is not a table; None if there is none."""
    table: Any = document
    way = factor_path(factor)
    for place, key in enumerate(way[:-1], start=1):
        table = table.get(key, {}) if isinstance(table, dict) else table
        if not isinstance(table, dict):
            return ".".join(way[:place])
    return None


def _is_level(level: Any) -> bool:
    """Return whether a level is a single value, or a list of strings for a key that takes one."""
    return not isinstance(level, dict) and (not isinstance(level, list) or all(isinstance(word, str) for word in level))


def _check_storage_factor(document: dict[str, Any], factor: str, levels: list[Any], name: str) -> Problem | None:
    """Check that the storage `name`, and those built on it, can exist once for each level."""
    tables = table_at(document, "storage")
    if name not in tables:
        message = f"storage {name!r} is not one of: {', '.join(tables)}"
        return Problem(message, path=["matrix", factor], hint=nearest(name, tables))
    specs = valid_storages(tables)
    if len(specs) < len(tables):
        return None  # their problems are reported by the check of the storages
    for other, factors in factors_by_storage(specs, [factor]).items():
        if factors and len(levels) > 1 and specs[other].kind == "device":
            return Problem(
                f"storage {other!r} is a disk, which cannot be there once for each level of {factor!r}",
                path=["matrix", factor],
                hint=f"one run for each level, as by --set {factor}={level_text(levels[0])}",
            )
    return None


def _check_level(document: dict[str, Any], factor: str, level: Any, known: list[Problem] | None) -> list[Problem]:
    """Return the problems that a level causes, those between storages among them; `known` is None if the experiment is valid with it."""
    changed = with_levels(document, {factor: level})
    if known is not None and (problems := _problems_of_level(changed, factor, level, known)):
        return problems
    if factor_path(factor)[0] != "storage" or factor == "storage":
        return []
    before = {(tuple(found.path), found.message) for found in _between_storages(document)}
    return [
        Problem(f"level {level!r}: {found.key}: {found.message}", path=["matrix", factor], hint=found.hint)
        for found in _between_storages(changed)
        if (tuple(found.path), found.message) not in before
    ]


def _between_storages(document: dict[str, Any]) -> list[Problem]:
    return check_storages(valid_storages(document["storage"]), document["storage"])


def _is_of_level(problem: Problem, target: list[str | int]) -> bool:
    """Return whether the level is invalid rather than the factor's key, which is reported once for all levels."""
    if problem.path == target and problem.message.startswith(UNKNOWN_KEY):
        return False
    return problem.path[: len(target)] == target


def _problems_of_level(changed: dict[str, Any], factor: str, level: Any, known: list[Problem]) -> list[Problem]:
    target: list[str | int] = list(factor_path(factor))
    try:
        Experiment.model_validate(changed, by_alias=True, by_name=False)
    except ValidationError as error:
        seen = {(tuple(problem.path), problem.message) for problem in known}
        return [
            Problem(
                f"level {level!r}: {problem.message}" if _is_of_level(problem, target) else problem.message,
                path=["matrix", factor],
                hint=problem.hint,
            )
            for problem in problems_of(error, changed, Experiment)
            if (tuple(problem.path), problem.message) not in seen
        ]
    return []
