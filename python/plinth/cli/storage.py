"""The commands storage list, describe, prepare and teardown."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from plinth.cli.console import error_console, output_console, plain_table
from plinth.cli.options import AsJson, Destroy, DryRun, Overrides, Yes
from plinth.cli.printing import print_plain, print_result, print_steps

if TYPE_CHECKING:
    from plinth.model.facts import Fact, StorageFacts
    from plinth.storage.availability import Availability

storage = App(
    name="storage",
    help="""List, describe, make and remove standalone storages.

    A storage is a place where a data directory can be stored. `plinth run` makes those of its experiment and undoes them at
    its end; these commands do the same for one, and leave it in place for as long as you like.
    """,
    help_format="plaintext",
)


@storage.command(name="list")
def list_(
    file: Annotated[Path | None, Parameter(help="Experiment file whose storages are listed.")] = None,
    /,
    *,
    overrides: Overrides = (),
) -> int:
    """List the kinds of storage and what of them this machine can make; with FILE, the storages of an experiment.

    What is missing is named with its reason and, for a program, with the package that has it.

      plinth storage list
      plinth storage list mine.toml
    """
    console = output_console()
    if file is None:
        _list_kinds(console)
    else:
        _list_storages(file, overrides, console)
    return 0


@storage.command
def describe(
    path: Annotated[Path, Parameter(help="A file or directory.")],
    /,
    *,
    as_json: AsJson = False,
) -> int:
    """Show mount, file system, devices and their queue, each fact with where it was read.

    plinth storage describe /var/lib/postgresql
    """
    from plinth.storage import describe as facts_of

    facts = facts_of(path)
    print_result(facts, as_json, lambda facts, console: console.print(_tree(facts)))
    return 0


@storage.command
def prepare(
    file: Annotated[Path, Parameter(help="Experiment file.")],
    name: Annotated[str, Parameter(help="The storage, as the file names it.")],
    /,
    *,
    overrides: Overrides = (),
    destroy: Destroy = (),
    dry_run: DryRun = False,
    yes: Yes = False,
) -> int:
    """Make a storage of an experiment, with all that it is built on, and leave it in place.

    Prints where it is and what it is built on. `plinth clean` names it and leaves it; `plinth storage teardown NAME` undoes
    it. When it cannot be made, what was made of it is undone at once. The experiment of a bundle, which another user may have
    written, is shown first and must be confirmed.

      plinth storage prepare mine.toml fast --dry-run
      plinth storage prepare mine.toml fast
    """
    from plinth.cli.bundle_experiment import confirm_if_shared
    from plinth.experiment import read_experiment
    from plinth.system.runner import Runner
    from plinth.tasks.standalone import prepare_standalone, standalone_steps, standalone_storages

    loaded = read_experiment(file, overrides)
    if dry_run:
        making, undoing = standalone_steps(standalone_storages(loaded, name, destroy))
        print_steps("To make it", making)
        print_steps("To undo it", undoing)
        return 0
    confirm_if_shared(loaded, file, yes)
    notes = error_console()
    made = prepare_standalone(
        loaded,
        name,
        destroy,
        Runner(),
        lambda step: notes.print(Text(step.title, style="dim"), soft_wrap=True),
        lambda text: notes.print(Text(f"note: {text}"), soft_wrap=True),
    )
    console = output_console()
    console.print(_tree(made.facts))
    where = made.storage.mount_point if not made.storage.is_raw else made.facts.path
    console.print(f"\n{where} is there; user {made.storage.owner.name} may write to it.", soft_wrap=True)
    console.print(f"Undo it with: plinth storage teardown {name}")
    return 0


@storage.command
def teardown(
    name: Annotated[
        str | None, Parameter(help="A storage that `prepare` made, or its run. Default: list those that exist.")
    ] = None,
    /,
    *,
    dry_run: DryRun = False,
) -> int:
    """Undo what `plinth storage prepare` made: the storage and all that was made for it.

    Only what its journal names and what still has Plinth's label is touched.

      plinth storage teardown
      plinth storage teardown fast
    """
    from plinth.run.undo import undo_step
    from plinth.system.clean import kept_runs
    from plinth.system.runner import Runner
    from plinth.tasks.standalone import kept_run, teardown_standalone

    if name is None:
        there = kept_runs()
        for run in there.runs:
            print_plain(f"{run.run_id}: {run.what}")
        print_plain("Undo one with: plinth storage teardown NAME" if there.runs else "There is none.")
        for error in there.unreadable:
            print_plain(f"{error.where}: {error.message}", file=sys.stderr)
        return 0
    run = kept_run(name)
    if dry_run:
        print_steps("To undo it", [done for step in reversed(run.steps) if (done := undo_step(step)) is not None])
        return 0
    for step in teardown_standalone(run, Runner()).undone:
        if (undone := undo_step(step)) is not None:
            print_plain(undone.title)
    return 0


def _list_kinds(console: Console) -> None:
    from plinth.observe.facts import host_facts
    from plinth.storage.availability import filesystems, formatted_kinds, kinds
    from plinth.system.runner import Runner

    host, runner = host_facts(), Runner()
    console.print(_available("kind", kinds(host, runner)))
    console.print(f"\nFile systems of block devices: {', '.join(formatted_kinds())}")
    console.print(_available("file system", filesystems(host, runner)))


def _available(title: str, available: "list[Availability]") -> Table:
    described = any(one.description for one in available)
    table = plain_table(title, *(("what it is",) if described else ()), "needs", "here")
    for one in available:
        missing = "\n".join(one.missing)
        table.add_row(
            Text(one.name, style="bold"),
            *((one.description,) if described else ()),
            ", ".join(need.what for need in one.needs) or "nothing",
            Text(missing, style="yellow") if missing else Text("yes", style="green"),
        )
    return table


def _list_storages(file: Path, overrides: tuple[str, ...], console: Console) -> None:
    from plinth.experiment import read_experiment
    from plinth.tasks.standalone import storages_of

    table = plain_table("storage", "kind", "stored on", "as", "where")
    for name, made in storages_of(read_experiment(file, overrides)).items():
        table.add_row(
            Text(name, style="bold"),
            made.spec.kind,
            ", ".join(made.requires()) or _place(made),
            f"raw member of a {made.context.member_of}" if made.is_raw else "mounted",
            "" if made.is_raw else str(made.mount_point),
        )
    console.print(table)


def _place(made: Any) -> str:
    source = made.needs_from()
    return "" if source is None else str(source)


def _tree(facts: "StorageFacts") -> Tree:
    from plinth.model.units import format_size

    free = f"{format_size(facts.free_bytes)} free of {format_size(facts.total_bytes)}"
    lost = f"; volatile: {facts.volatile_reason}" if facts.volatile else ""
    root = Tree(f"{facts.path}  ({facts.filesystem}, {free}{lost})")
    above = [root]
    for node in facts.stack:
        sources = {fact.source for fact in node.facts}
        common = sources.pop() if len(sources) == 1 else None  # printed once, not for each fact
        branch = above[node.depth].add(_with_source(Text.assemble((node.kind, "bold"), f" {node.name}"), common))
        above[node.depth + 1 :] = [branch]
        for fact in node.facts:
            branch.add(_with_source(Text(f"{fact.name} = {_fact_text(fact)}"), None if common else fact.source))
    for gap in facts.gaps:
        root.add(f"{gap.what}: n/a: {gap.reason}")
    for note in facts.notes:
        root.add(f"note: {note}")
    return root


def _with_source(text: Text, source: str | None) -> Text:
    return text if source is None else text.append(f"  {source}", style="dim")


def _fact_text(fact: "Fact") -> str:
    return ", ".join(fact.value) if isinstance(fact.value, list) else str(fact.value)
