"""Documents of others, such as those of a bundle or of a fleet's agents: read so that what is wrong with them stays small.

pydantic collects every error of a document: one of 64 MB in which each of millions of items lacks its keys would take 100 GB and half an
hour. So a list ends at its first wrong item here, and no table has more keys than any of ours.
"""

import json
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic_core import SchemaValidator

MOST_KEYS = 2000
"""Of one table; the largest of ours have one for each variant, of which there are at most 1,000."""
_Model = TypeVar("_Model", bound=BaseModel)
_SEQUENCES = ("list", "tuple", "set", "frozenset")
_NOT_SCHEMAS = ("cls", "metadata", "serialization", "default")


def parse_untrusted(text: str | bytes) -> Any:
    """Return the values of a JSON document. Raises ValueError, also for a table with too many keys, and RecursionError."""
    return json.loads(text, object_pairs_hook=_table)


def validate_untrusted(model: type[_Model], document: Any) -> _Model:
    """Return `document` as a model. Raises ValidationError, which has one wrong item of each list."""
    return _validator(model).validate_python(document)


@cache
def _validator(model: type[BaseModel]) -> SchemaValidator:
    model.model_rebuild()
    schema = _failing_fast(model.__pydantic_core_schema__)
    try:
        # Otherwise pydantic takes the validators that the classes have already, which go on.
        return SchemaValidator(schema, _use_prebuilt=False)
    except TypeError:  # one that always makes its own
        return SchemaValidator(schema)


def _failing_fast(schema: Any) -> Any:
    if isinstance(schema, dict):
        changed = {key: one if key in _NOT_SCHEMAS else _failing_fast(one) for key, one in schema.items()}
        return changed | {"fail_fast": True} if schema.get("type") in _SEQUENCES else changed
    if isinstance(schema, list | tuple):
        return type(schema)(map(_failing_fast, schema))
    return schema


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MOST_KEYS:
        raise ValueError(f"a table has {len(pairs):,} keys; no document of ours has one with more than {MOST_KEYS:,}")
    return dict(pairs)
