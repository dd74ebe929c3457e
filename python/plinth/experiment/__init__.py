"""Reads TOML as an Experiment and reports all errors at once, with file, line, key, got and allowed."""

from plinth.experiment.examples import Example, example, example_names
from plinth.experiment.files import is_bundle
from plinth.experiment.published import packaged_references, read_reference
from plinth.experiment.read import ParsedExperiment, read_experiment, read_experiment_text
from plinth.experiment.rights import KEYS, confirmations
from plinth.experiment.template import full_template, json_schema, template

__all__ = [
    "KEYS",
    "Example",
    "ParsedExperiment",
    "confirmations",
    "example",
    "example_names",
    "full_template",
    "is_bundle",
    "json_schema",
    "packaged_references",
    "read_experiment",
    "read_experiment_text",
    "read_reference",
    "template",
]
