"""TOML to Experiment, with errors that name file, line, key, got and allowed: all of them at once."""

from plinth.experiment.files import is_bundle
from plinth.experiment.load import LoadedExperiment, load_experiment, load_text
from plinth.experiment.published import load_reference, packaged_references
from plinth.experiment.schema import json_schema
from plinth.experiment.template import template

__all__ = [
    "LoadedExperiment",
    "is_bundle",
    "json_schema",
    "load_experiment",
    "load_reference",
    "load_text",
    "packaged_references",
    "template",
]
