"""The curated experiments, as a package has them: those of experiments/, with the scripts that they name."""

import json
from functools import cache
from importlib import resources
from typing import NamedTuple

from plinth.common.nearest import nearest
from plinth.model.errors import UsageError

EXAMPLES_FILE = "examples.json"


class Example(NamedTuple):
    """A curated experiment."""

    question: str
    text: str
    files: dict[str, str]
    """Scripts and SQL that it names: path relative to it -> text."""


def example_names() -> tuple[str, ...]:
    """Return the names of all, in alphabetical order."""
    return tuple(sorted(_examples()))


def example(name: str) -> Example:
    """Return the experiment of this name, whose first line names the installed schema.

    Raises UsageError with all names and questions if there is none.
    """
    from plinth.experiment.template import schema_line

    found = _examples().get(name)
    if found is None:
        listed = "".join(f"\n  {one}: {_examples()[one].question}" for one in example_names())
        raise UsageError(
            f"--example {name}: there is no such experiment; there are:{listed}",
            hint=nearest(name, example_names()) or "give one of these names",
        )
    _, _, text = found.text.partition("\n")
    return found._replace(text=f"{schema_line()}\n{text}")


@cache
def _examples() -> dict[str, Example]:
    kept = json.loads((resources.files("plinth.experiment") / EXAMPLES_FILE).read_text(encoding="utf-8"))
    return {name: Example(**fields) for name, fields in kept.items()}
