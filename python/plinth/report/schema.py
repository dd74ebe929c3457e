"""JSON Schemas of what the viewer reads, made from the models; published in docs/reference."""

import json
from typing import Any

from plinth.model.base import Frozen
from plinth.model.report import Report


def json_schema(model: type[Frozen] = Report) -> dict[str, Any]:
    """JSON Schema, draft 2020-12, of what is written of a model: of `plinth report --json`, unless another is named."""
    schema = model.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_as_written(schema)}


def schema_text(model: type[Frozen] = Report) -> str:
    """The published file's text."""
    return json.dumps(json_schema(model), indent=2) + "\n"


def _as_written(node: Any) -> Any:
    """The schema of what is really written: every key of an object, also those that have a default.

    Titles that only repeat a property's name are left out; those of models stay, for types are named by them.
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
