"""The JSON Schema of an experiment file, made from the model; editors use it for completion."""

from typing import Any

from plinth.model.experiment import Experiment


def json_schema() -> dict[str, Any]:
    """JSON Schema, draft 2020-12, of an experiment file as written (keys by alias)."""
    schema = Experiment.model_json_schema(by_alias=True)
    # Factors may also be written as nested tables: workload.clients = [1, 16] without quotes.
    levels = schema["properties"]["matrix"]["additionalProperties"]
    schema["properties"]["matrix"]["additionalProperties"] = {"anyOf": [levels, {"type": "object"}]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
