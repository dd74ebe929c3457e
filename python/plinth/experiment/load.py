"""Reading an experiment file: parse, override, validate, and say everything that is wrong."""

import tomllib
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from plinth.experiment.files import read_files
from plinth.experiment.full import at_full_size, check_full
from plinth.experiment.locate import find, locate
from plinth.experiment.matrix import check_matrix, flatten
from plinth.experiment.overrides import apply_overrides, override_keys
from plinth.experiment.problems import problems_of
from plinth.experiment.published import named_reference
from plinth.experiment.references import check_references
from plinth.model.errors import ExperimentError, Problem, UsageError
from plinth.model.experiment import Experiment, factor_path
from plinth.model.published import Reference

_QUOTES_HINT = 'text needs quotes, as in name = "ramdisk"; true, false and numbers do not'
_TWICE = ("immutable namespace", "Cannot overwrite a value")
_TWICE_HINT = (
    "a key cannot be both a list and a table: beside storage = [..], quote the other, "
    'as in "storage.slow.profile" = [..]'
)


@dataclass(frozen=True)
class LoadedExperiment:
    """An experiment, the text that it was read from, and what it names: files (path as written -> text), a reference.

    `full`: at the published size, by its own [full]. `removed_factors`: those of keys that went with a table that --set replaced.
    """

    experiment: Experiment
    file: str
    text: str
    overrides: tuple[str, ...]
    files: dict[str, str]
    reference: Reference | None = None
    full: bool = False
    removed_factors: tuple[str, ...] = ()

    def error(self, problems: list[Problem]) -> ExperimentError:
        """Findings that came later, such as a setting that the server does not know, with file and line."""
        return _error(problems, self.text, self.file, self.overrides)


def load_experiment(path: Path, overrides: tuple[str, ...] = (), full: bool = False) -> LoadedExperiment:
    """Read and validate the experiment file at `path`, at its published size if `full`, then with `--set` overrides.

    Raises UsageError when it cannot be read and ExperimentError with every problem when it is not valid.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(
            f"cannot read the experiment file: {reason}",
            where=str(path),
            hint="`plinth init` writes a commented one to start from",
        ) from error
    return load_text(text, str(path), path.parent, overrides, full)


def load_text(
    text: str, file: str, folder: Path, overrides: tuple[str, ...] = (), full: bool = False
) -> LoadedExperiment:
    """As `load_experiment`, of a text; `file` names it in errors, the files that it names are relative to `folder`."""
    document = flatten(_parse(text, file), "full")
    as_written = deepcopy(flatten(document, "matrix"))  # --set changes the tables of `document` in place
    if full:
        try:
            document = at_full_size(document)
        except Problem as problem:
            raise _error([problem], text, file, overrides) from problem
    removed_factors = tuple(apply_overrides(document, overrides))
    document = flatten(document, "matrix")
    problems: list[Problem] = []
    try:
        experiment = Experiment.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        experiment = None
        problems += problems_of(error, document, Experiment)
    problems += check_matrix(document, problems)
    problems += check_references(document)
    files = read_files(document, folder, problems)
    reference = named_reference(document, folder, problems)
    if not problems:
        problems += check_full(as_written)
    if problems or experiment is None:
        raise _error(problems, text, file, overrides)
    return LoadedExperiment(experiment, file, text, overrides, files, reference, full, removed_factors)


def _parse(text: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).partition(" (at ")
        line = place.removeprefix("line ").partition(",")[0] if place.startswith("line ") else str(text.count("\n") + 1)
        problem = Problem(
            f"not valid TOML: {message[:1].lower()}{message[1:]} ({place.rstrip(')') or 'at the end'})",
            path=[],
            where=f"{file}:{line}",
            hint=_TWICE_HINT if any(words in message for words in _TWICE) else _QUOTES_HINT,
        )
        raise ExperimentError(file, [problem]) from error


def _error(problems: list[Problem], text: str, file: str, overrides: tuple[str, ...]) -> ExperimentError:
    placed = [_placed(problem, text, file, overrides) for problem in problems]
    told = {(problem.where, problem.key, problem.message): problem for problem in placed}
    return ExperimentError(file, sorted(told.values(), key=_line))


def _line(problem: Problem) -> int:
    _, _, line = (problem.where or "").rpartition(":")
    return int(line) if line.isdecimal() else 0


def _placed(problem: Problem, text: str, file: str, overrides: tuple[str, ...]) -> Problem:
    """The problem with file and line, or with the --set that brought it."""
    path = problem.path
    for override in overrides:
        keys = override_keys(override)
        in_matrix = path[:1] == ["matrix"] and len(path) > 1 and factor_path(str(path[1])) == keys
        # A table that only this override made: "--set mesure.repeats=3" is an error of its first part.
        made = tuple(path) == keys[: len(path)] and bool(path) and find(text, path) is None
        if in_matrix or made or tuple(path[: len(keys)]) == keys:
            return problem.at(f"--set {override}")
    if path[:1] == ["matrix"] and len(path) > 1:
        nested = ["matrix", *str(path[1]).split("."), *path[2:]]
        return problem.at(f"{file}:{find(text, nested) or locate(text, path)}")
    return problem.at(f"{file}:{locate(text, path)}")
