"""The table of commands: name, where its function is, and one line of help."""

from typing import NamedTuple


class Command(NamedTuple):
    """One command; `target` is imported only when it is called."""

    name: str
    target: str
    help: str


COMMANDS = (
    Command("init", "plinth.cli.experiment:init", "Write a commented experiment file to start from."),
    Command("plan", "plinth.cli.experiment:plan", "Show what a run will do, how long it takes and what it needs."),
    Command("run", "plinth.cli.measure:run", "Run an experiment: storages, servers, load, verdict, report."),
    Command("resume", "plinth.cli.measure:resume", "Finish a run that was cut short."),
    Command("report", "plinth.cli.results:report", "Show a bundle's results as table, HTML, Markdown, CSV or JSON."),
    Command("verify", "plinth.cli.results:verify", "Check that a bundle is as its run left it."),
    Command("clean", "plinth.cli.upkeep:clean", "Undo what a run that was killed left behind."),
    Command("storage", "plinth.cli.upkeep:storage", "Describe what a path stands on, down to the device."),
    Command("servers", "plinth.cli.upkeep:servers", "List the PostgreSQL installations that can be used."),
    Command("schema", "plinth.cli.experiment:schema", "Print the JSON Schema of experiment files, for editors."),
    Command("completion", "plinth.cli.upkeep:completion", "Print a completion script for bash, zsh or fish."),
)
