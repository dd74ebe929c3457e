"""Commands about this machine: clean, storage, servers, completion."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table
from rich.tree import Tree

from plinth.cli.experiment import AsJson
from plinth.model.facts import Fact, StorageFacts
from plinth.model.units import format_size

storage = App(name="storage", help="Describe what a path stands on, down to the device.", help_format="plaintext")


def clean(
    run_id: Annotated[
        str | None, Parameter(help="Id of the run, as in its plan. Default: every run that is not alive.")
    ] = None,
    /,
) -> int:
    """Undo what a run that was killed left behind: mounts, servers, directories.

    Only what a journal names and what still bears Plinth's label is touched. Safe to run twice.
    """
    from plinth.system.clean import clean as clean_runs

    result = clean_runs(run_id)
    for run in result.runs:
        print(f"run {run.run_id}: {len(run.undone)} steps undone")
        for step in run.undone:
            print(f"  undone: {step.title}")
    for living in result.living:
        print(f"run {living.run_id}: left alone, it is still going (pid {living.pid})")
    if not result.runs and not result.living:
        print("nothing to clean")
    if error := result.error():
        raise error
    return 0


@storage.command
def describe(
    path: Annotated[Path, Parameter(help="A file or directory.")],
    /,
    *,
    as_json: AsJson = False,
) -> int:
    """Show mount, file system, devices and their queue, each fact with where it was read."""
    from plinth.storage import describe as facts_of

    facts = facts_of(path)
    if as_json:
        print(facts.model_dump_json(indent=1))
    else:
        Console(highlight=False).print(_tree(facts))
    return 0


def _tree(facts: StorageFacts) -> Tree:
    free = f"{format_size(facts.free_bytes)} free of {format_size(facts.total_bytes)}"
    lost = f"; volatile: {facts.volatile_reason}" if facts.volatile else ""
    root = Tree(f"{facts.path}  ({facts.filesystem}, {free}{lost})")
    branch = root
    for node in facts.stack:
        branch = branch.add(f"[bold]{node.kind}[/] {node.name}")
        for fact in node.facts:
            branch.add(f"{fact.name} = {_shown(fact)}  [dim]{fact.source}[/]")
    for gap in facts.gaps:
        root.add(f"{gap.what}: n/a: {gap.reason}")
    for note in facts.notes:
        root.add(f"note: {note}")
    return root


def _shown(fact: Fact) -> str:
    return ", ".join(fact.value) if isinstance(fact.value, list) else str(fact.value)


def servers(*, as_json: AsJson = False) -> int:
    """List the PostgreSQL installations that can be used, and those that were found but do not run."""
    from plinth.server import find_installations
    from plinth.system.owner import server_owner
    from plinth.system.runner import Runner

    survey = find_installations(server_owner(), Runner())
    if as_json:
        print("[" + ",".join(installation.model_dump_json() for installation in survey.installations) + "]")
        return 0
    table = Table(box=None, pad_edge=False)
    for title in ("version", "origin", "bindir"):
        table.add_column(title, no_wrap=title == "version", overflow="fold")
    for installation in survey.installations:
        table.add_row(installation.version, installation.origin, installation.bindir)
    for place, reason in survey.rejected:
        table.add_row("n/a", place.origin, f"{place.bindir}: {reason}")
    Console(highlight=False).print(table)
    return 0


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="Your shell.")], /) -> int:
    """Print a completion script: `plinth completion bash > /etc/bash_completion.d/plinth`."""
    from plinth.cli.app import application

    print(application().generate_completion(shell=shell))
    return 0
