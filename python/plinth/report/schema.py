"""The JSON Schema of a report, made from the model; published as docs/reference/report.schema.json."""

import json
from typing import Any

from plinth.model.report import Report


def json_schema() -> dict[str, Any]:
    """JSON Schema, draft 2020-12, of `plinth report --json`."""
    schema = Report.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_as_written(schema)}


def schema_text() -> str:
    """The published file's text."""
    return json.dumps(json_schema(), indent=2) + "\n"


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
