"""Reads the published results that an experiment names, from Plinth's own or from a file next to the experiment."""

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from plinth.common.nearest import nearest
from plinth.experiment.files import read_named
from plinth.experiment.locate import locate
from plinth.experiment.matrix import FACTOR_PARTS
from plinth.experiment.problems import problems_of
from plinth.experiment.toml_document import parse_toml
from plinth.model.errors import Problem
from plinth.model.experiment import factor_path
from plinth.model.published import Reference

_SUFFIX = ".toml"


def packaged_references() -> tuple[str, ...]:
    """Return the names of the built-in references."""
    folder = resources.files("plinth") / "reference"
    return tuple(sorted(file.name.removesuffix(_SUFFIX) for file in folder.iterdir() if file.name.endswith(_SUFFIX)))


def read_reference(name: str, folder: Path) -> Reference:
    """Load the built-in reference `name`, or the file `name`, relative to `folder`, if it ends with .toml.

    Raises Problem, located at the experiment's key, if it does not exist or is not valid.
    """
    text = read_named(folder, name, ["reference"], "reference") if name.endswith(_SUFFIX) else _packaged_text(name)
    try:
        document = parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise _problem(f"{name!r} is not valid TOML: {error}") from error
    except Problem as problem:
        raise _problem(f"{name!r} cannot be taken: {_described(problem, name)}") from problem
    try:
        reference = Reference.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        found = problems_of(error, document, Reference)
        raise _problem(
            "; ".join(_described(problem, f"{name}:{locate(text, problem.path)}") for problem in found)
        ) from error
    _check_levels(name, reference)
    return reference


def _described(problem: Problem, where: str) -> str:
    return ": ".join(filter(None, [where, problem.key, problem.message]))


def named_reference(document: dict[str, Any], folder: Path, problems: list[Problem]) -> Reference | None:
    """Load the reference of a raw document; a problem is added to `problems`."""
    name = document.get("reference")
    if not isinstance(name, str):
        return None  # other types are reported by the validation of the experiment
    try:
        return read_reference(name, folder)
    except Problem as problem:
        problems.append(problem)
        return None


def _packaged_text(name: str) -> str:
    names = packaged_references()
    if name not in names:
        raise _problem(
            f"reference {name!r} is not one of: {', '.join(names)}",
            hint=nearest(name, names) or "a file of your own ends with .toml, and is relative to the experiment file",
        )
    return (resources.files("plinth") / "reference" / f"{name}{_SUFFIX}").read_text(encoding="utf-8")


def _check_levels(name: str, reference: Reference) -> None:
    """Check that levels are keyed as in [matrix]; a key that cannot be a factor would never be shown."""
    tables = [figure.levels for figure in reference.figure]
    tables += [levels for ratio in reference.ratio for levels in (ratio.levels, ratio.to)]
    wrong = {key: None for levels in tables for key in levels if factor_path(key)[0] not in FACTOR_PARTS}
    if wrong:
        raise _problem(
            f"{name}: levels: {', '.join(wrong)} cannot be a factor; keys begin with {', '.join(FACTOR_PARTS)}"
        )


def _problem(message: str, hint: str | None = None) -> Problem:
    return Problem(message, path=["reference"], hint=hint)
