"""Generates JSON Schemas of the documents that the viewer reads; they are published in docs/reference."""

import json
from typing import Any

from plinth.model.base import Frozen
from plinth.model.report import Report


def json_schema(model: type[Frozen] = Report) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a serialised model, by default of `plinth report --json`."""
    schema = model.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_as_written(schema)}


def schema_text(model: type[Frozen] = Report) -> str:
    """Return the text of the published file."""
    return json.dumps(json_schema(model), indent=2) + "\n"


def _as_written(node: Any) -> Any:
    """Adapt a schema to serialised documents, in which every key is present, also those with a default.

    Titles that repeat a property's name are removed; those of models stay, since they name types.
    """
    if isinstance(node, list):
        return [_as_written(item) for item in node]
    if not isinstance(node, dict):
        return node
    properties = node.get("properties")
    if properties is None:
        return {key: _as_written(value) for key, value in node.items() if key != "title"}
    keys = {name: _as_written(value) for name, value in properties.items()}
    return {**{k: _as_written(v) for k, v in node.items()}, "properties": keys, "required": list(keys)}
