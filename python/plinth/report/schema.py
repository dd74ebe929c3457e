"""The JSON Schema of a report, made from the model: `python -m plinth.report.schema > docs/reference/report.schema.json`."""

import json
import sys
from typing import Any

from plinth.model.report import Report


def json_schema() -> dict[str, Any]:
    """JSON Schema, draft 2020-12, of `plinth report --json`."""
    schema = Report.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_without_titles(schema)}


def schema_text() -> str:
    """The published file's text."""
    return json.dumps(json_schema(), indent=2) + "\n"


def _without_titles(node: Any) -> Any:
    """Titles that only repeat a property's name; those of models stay, for types are named by them."""
    if isinstance(node, list):
        return [_without_titles(item) for item in node]
    if not isinstance(node, dict):
        return node
    is_model = node.get("type") == "object" and "properties" in node
    return {
        key: {name: _without_titles(item) for name, item in value.items()}
        if key == "properties"
        else _without_titles(value)
        for key, value in node.items()
        if key != "title" or is_model
    }


if __name__ == "__main__":
    sys.stdout.write(schema_text())
