"""The table of commands: name, module of the function, and one line of help."""

from typing import NamedTuple


class Command(NamedTuple):
    """One command; `target` is imported only when it is called. None for one that reads its own command line."""

    name: str
    target: str | None
    help: str


COMMANDS = (
    Command("init", "plinth.cli.init:init", "Write an experiment file to start from, or a curated one."),
    Command("plan", "plinth.cli.plan:plan", "Show what a run will do, how long it takes and what it needs."),
    Command("run", "plinth.cli.run:run", "Run an experiment: storages, servers, load, verdict, report."),
    Command("resume", "plinth.cli.resume:resume", "Finish a run that was interrupted."),
    Command("report", "plinth.cli.report:report", "Show a bundle's results as table, HTML, Markdown, CSV or JSON."),
    Command(
        "history",
        "plinth.cli.history:history",
        "List the bundles below a directory, each with its question and answer.",
    ),
    Command("serve", "plinth.cli.serve:serve", "Show bundles in a browser: catalogue and reports."),
    Command("compare", "plinth.cli.compare:compare", "Compare runs of different days or machines, with a verdict."),
    Command(
        "endurance", "plinth.cli.endurance:endurance", "Show what a run wrote to its disks, and how long they last."
    ),
    Command(
        "forecast",
        "plinth.cli.forecast:forecast",
        "Forecast what a run would do on other drives, before one is bought.",
    ),
    Command("verify", "plinth.cli.verify:verify", "Check that a bundle was not changed after its run."),
    Command("clean", "plinth.cli.clean:clean", "Remove what a killed run left behind: mounts, servers, directories."),
    Command(
        "doctor", "plinth.cli.doctor:doctor", "Find conditions that distort measurements here, and their remedies."
    ),
    Command("storage", "plinth.cli.storage:storage", "List, describe, make and remove standalone storages."),
    Command("disk", "plinth.cli.disk:disk", "Serve an emulated disk, cut its power, change its physics and faults."),
    Command("network", "plinth.cli.network:network", "Emulate a network between network namespaces, change its links."),
    Command("host", "plinth.cli.host:host", "Make storages and start servers on other machines: check that they can."),
    Command(
        "kubernetes",
        "plinth.cli.kubernetes:kubernetes",
        "Print Kubernetes Jobs that run an experiment, one for each storage class.",
    ),
    Command("fleet", "plinth.cli.fleet:fleet", "Drive a load from several machines: check that they can."),
    Command(
        "durability",
        "plinth.cli.durability:durability",
        "Test a real machine's durability by a power cut, or open a damaged image.",
    ),
    Command("probe", "plinth.cli.probe:probe", "Measure durable writes and raw I/O of a directory, without a server."),
    Command("replay", "plinth.cli.replay:replay", "Read the statements that a server has logged."),
    Command("bench", None, "Run pgbench's command line on Plinth's load engine."),
    Command("servers", "plinth.cli.servers:servers", "List the PostgreSQL installations that can be used."),
    Command("schema", "plinth.cli.schema:schema", "Print the JSON Schema of experiment files, for editors."),
    Command("completion", "plinth.cli.completion:completion", "Print a completion script for bash, zsh or fish."),
)
