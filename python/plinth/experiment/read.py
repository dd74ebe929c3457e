"""Reads an experiment file: parses it, applies its published size ([full]) and overrides, validates it and reports all problems."""

import tomllib
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from plinth.common.secrets import may_hold_secrets
from plinth.experiment.clashes import clash_at
from plinth.experiment.files import UnreadableFile, is_bundle, read_files, read_text, resolve_paths
from plinth.experiment.locate import find, locate
from plinth.experiment.matrix import check_matrix, flatten
from plinth.experiment.overrides import apply_overrides, is_kind, override_keys, override_without_secrets, set_key
from plinth.experiment.problems import problems_of
from plinth.experiment.published import named_reference
from plinth.experiment.references import check_references
from plinth.experiment.secrets import SecretsTaken
from plinth.experiment.toml_document import NotADocument, list_of, parse_toml, table_at
from plinth.experiment.toml_text import toml_text
from plinth.model.dataset import DatasetSpec
from plinth.model.errors import ExperimentError, Problem, UsageError
from plinth.model.experiment import Experiment, factor_path
from plinth.model.level import same_level
from plinth.model.published import Reference
from plinth.model.server_spec import ServerSpec
from plinth.model.storage import SPECS

_QUOTES_HINT = 'text needs quotes, as in name = "ramdisk"; true, false and numbers do not'
_ONCE_HINT = "each key and each table is given once, and nothing is added to a table that is written as { .. }"
_TWICE = ("immutable namespace", "Cannot overwrite a value", "twice", "Duplicate inline table key")


@dataclass(frozen=True)
class ParsedExperiment:
    """An experiment, its text, and the files (path as written -> text) and the reference that it names.

    `full`: at the published size, by its own [full]. `removed_factors`: those of keys that went with a table that --set replaced.
    Connection strings have no secrets in `experiment`, `overrides` and `kept_text`, which is what a bundle keeps of the text;
    `connections` has the whole strings, by what was left of them.
    """

    experiment: Experiment
    file: str
    text: str = field(repr=False)
    kept_text: str
    overrides: tuple[str, ...]
    files: dict[str, str]
    reference: Reference | None = None
    full: bool = False
    removed_factors: tuple[str, ...] = ()
    connections: dict[str, str] = field(default_factory=dict, repr=False)
    folder: Path = Path()
    """What the paths in it are relative to."""

    def error(self, problems: list[Problem]) -> ExperimentError:
        """Return an error with file and line for problems found later, such as a setting unknown to the server."""
        return _error(problems, self.text, self.file, self.overrides)


def read_experiment(path: Path, overrides: tuple[str, ...] = (), full: bool = False) -> ParsedExperiment:
    """Read and validate the experiment file at `path`, at its published size if `full`, then with `--set` overrides.

    Raises UsageError when it cannot be read and ExperimentError with every problem when it is not valid.
    """
    try:
        text = read_text(path, follow_link=not is_bundle(path.parent))
    except UnreadableFile as error:
        raise UsageError(
            f"cannot read the experiment file: {error}",
            where=str(path),
            hint="`plinth init` writes one to start from",
        ) from error
    return read_experiment_text(text, str(path), path.parent, overrides, full)


def _complete_specs() -> None:
    """Let pydantic make the schemas that experiment, clusters and plan contain once: it makes that of an incomplete class again
    for each class that contains it."""
    for spec in (*SPECS.values(), *get_args(get_args(DatasetSpec)[0]), ServerSpec):
        spec.model_rebuild()


def read_experiment_text(
    text: str, file: str, folder: Path, overrides: tuple[str, ...] = (), full: bool = False
) -> ParsedExperiment:
    """Like `read_experiment`, for a text. `file` is its name in errors; paths in it are relative to `folder`."""
    written, overrides, connections = _without_secrets(_parse(text, file), text, file, overrides)
    document = deepcopy(flatten(written, "full"))  # --set changes its tables in place
    as_written = deepcopy(flatten(document, "matrix"))
    if full:
        try:
            document = at_full_size(document)
        except Problem as problem:
            raise _error([problem], text, file, overrides) from problem
    before = deepcopy(flatten(document, "matrix"))
    removed_factors = tuple(apply_overrides(document, overrides))
    document = flatten(document, "matrix")
    keep_published_levels(document, before)
    resolve_paths(document, folder)
    problems: list[Problem] = []
    _complete_specs()
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
    kept_text = toml_text(written) if connections or may_hold_secrets(text) else text
    return ParsedExperiment(
        experiment, file, text, kept_text, overrides, files, reference, full, removed_factors, connections, folder
    )


def _without_secrets(
    document: dict[str, Any], text: str, file: str, overrides: tuple[str, ...]
) -> tuple[dict[str, Any], tuple[str, ...], dict[str, str]]:
    """Return document and overrides without secrets of connection strings, and the full strings by the reduced ones.

    Raises ExperimentError for strings that cannot be parsed; its message contains no part of them.
    """
    of_file, of_overrides = SecretsTaken(), SecretsTaken()
    document = of_file.without(document)
    overrides = tuple(override_without_secrets(override, of_overrides) for override in overrides)
    if problems := [*of_file.problems, *of_overrides.problems]:
        raise _error(problems, text, file, overrides)
    return document, overrides, of_file.connections | of_overrides.connections


def _parse(text: str, file: str) -> dict[str, Any]:
    try:
        return parse_toml(text)
    except NotADocument as problem:
        raise ExperimentError(file, [problem.at(f"{file}:{problem.line}")]) from problem
    except Problem as problem:
        raise _error([problem], text, file, ()) from problem
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).partition(" (at ")
        line = place.removeprefix("line ").partition(",")[0] if place.startswith("line ") else str(text.count("\n") + 1)
        clash = clash_at(text, int(line)) if any(words in message for words in _TWICE) else None
        if clash is not None:
            raise ExperimentError(
                file, [Problem(clash.message, path=[], where=f"{file}:{line}", hint=clash.hint)]
            ) from error
        problem = Problem(
            f"not valid TOML: {message[:1].lower()}{message[1:]} ({place.rstrip(')') or 'at the end'})",
            path=[],
            where=f"{file}:{line}",
            hint=_ONCE_HINT if any(words in message for words in _TWICE) else _QUOTES_HINT,
        )
        raise ExperimentError(file, [problem]) from error


def _error(problems: list[Problem], text: str, file: str, overrides: tuple[str, ...]) -> ExperimentError:
    placed = [_placed(problem, text, file, overrides) for problem in problems]
    reported = {(problem.where, problem.key, problem.message): problem for problem in placed}
    return ExperimentError(file, sorted(reported.values(), key=_line))


def _line(problem: Problem) -> int:
    _, _, line = (problem.where or "").rpartition(":")
    return int(line) if line.isdecimal() else 0


def _placed(problem: Problem, text: str, file: str, overrides: tuple[str, ...]) -> Problem:
    """Return the problem with file and line, or with the --set option that caused it."""
    path = problem.path
    for override in overrides:
        keys = override_keys(override)
        factor = factor_path(str(path[1])) if path[:1] == ["matrix"] and len(path) > 1 else ()
        in_matrix = bool(factor) and keys in (factor, ("matrix", *factor))
        # The override itself created the table: in "--set mesure.repeats=3" the first part is wrong.
        made = tuple(path) == keys[: len(path)] and bool(path) and find(text, path) is None
        if in_matrix or made or tuple(path[: len(keys)]) == keys:
            return problem.at(f"--set {override}")
    if path[:1] == ["matrix"] and len(path) > 1:
        nested = ["matrix", *str(path[1]).split("."), *path[2:]]
        return problem.at(f"{file}:{find(text, nested) or locate(text, path)}")
    return problem.at(f"{file}:{locate(text, path)}")


def at_full_size(document: dict[str, Any]) -> dict[str, Any]:
    """Apply every key of [full], which is flat, to the raw document. Raises Problem if there is no [full].

    A `kind` among them replaces its table, since another kind has other keys.
    """
    full = document.get("full")
    if not isinstance(full, dict) or not full:
        raise Problem(
            "--full: the experiment gives no published size",
            path=["full"],
            hint="[full] has the keys that --full replaces; --set replaces any",
        )
    changed = deepcopy(document)
    published = {factor_path(key): value for key, value in full.items()}
    emptied = {path[:-1]: {} for path in sorted(filter(is_kind, published), key=len)}
    for path, value in [*emptied.items(), *published.items()]:
        try:
            set_key(changed, path, value)
        except KeyError as barred:
            raise Problem(f"{barred.args[0]!r} is a value, not a table", path=["full", *path]) from barred
    return changed


def keep_published_levels(document: dict[str, Any], before: dict[str, Any]) -> None:
    """Keep in [full], in place, the published level of each level that --set left to a factor.

    `before` is the document without --set, which gives a factor's levels and their published ones in the same order, if as
    many. A level without a published one represents only itself. Both documents are raw and have flat tables.
    """
    full = table_at(document, "full")
    for factor, levels in table_at(document, "matrix").items():
        written = list_of(table_at(before, "matrix").get(factor))
        published = list_of(full.get(factor))
        if published and isinstance(levels, list) and levels != written:
            pairs = list(zip(written, published, strict=True)) if len(written) == len(published) else []
            full[factor] = [next((of for ours, of in pairs if same_level(ours, level)), level) for level in levels]


def check_full(document: dict[str, Any]) -> list[Problem]:
    """Return the problems of a valid raw document with flat tables at its full size."""
    if not document.get("full"):
        return []
    try:
        full = flatten(at_full_size(document), "matrix")
    except Problem as problem:
        return [problem]
    try:
        Experiment.model_validate(full, by_alias=True, by_name=False)
    except ValidationError as error:
        found = problems_of(error, full, Experiment)
    else:
        found = [*check_matrix(full, []), *check_references(full)]
    return [
        Problem(f"with --full: {problem.key}: {problem.message}", path=["full"], hint=problem.hint) for problem in found
    ]
