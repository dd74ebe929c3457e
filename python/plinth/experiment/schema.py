"""Generates the JSON Schema of experiment files from the model; editors use it for completion."""

from typing import Any

from plinth.model.experiment import Experiment


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of an experiment file, with keys by alias."""
    schema = Experiment.model_json_schema(by_alias=True)
    # Dotted keys may also be written as nested tables: workload.clients = [1, 16] without quotes.
    for name in ("matrix", "full"):
        values = schema["properties"][name]["additionalProperties"]
        schema["properties"][name]["additionalProperties"] = {"anyOf": [values, {"type": "object"}]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
