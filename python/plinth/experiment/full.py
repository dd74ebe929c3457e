"""[full]: the published size of an experiment, which --full uses instead of the default size."""

from copy import deepcopy
from typing import Any

from pydantic import ValidationError

from plinth.experiment.matrix import check_matrix, flatten
from plinth.experiment.overrides import is_kind, set_key
from plinth.experiment.problems import problems_of
from plinth.experiment.references import check_references
from plinth.experiment.toml_document import list_of, table_at
from plinth.model.errors import Problem
from plinth.model.experiment import Experiment, factor_path
from plinth.model.level import same_level


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
