"""Files that an experiment names, by paths relative to its own."""

import re
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema


def _as_list(files: object) -> object:
    return [] if files is None else [files] if isinstance(files, str) else files


Files = Annotated[
    tuple[str, ...],
    BeforeValidator(_as_list),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
"""One path, or a list of them."""


MOST_WEIGHT = 2**31 - 1
"""The separator of path and weight, as in pgbench."""


def weighted(script: str) -> tuple[str, int]:
    """Return the path and the weight of a script that is named as pgbench has it, "PATH@WEIGHT"; a weight of 1 where none is said."""
    match = re.fullmatch(r"(.+)@(\d+)", script)
    return (match[1], int(match[2])) if match else (script, 1)
