"""Makes storages for tests as an experiment describes them, with all that they must know of their run."""

import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from plinth.model.facts import HostFacts, StorageFacts
from plinth.model.storage import StorageSpec
from plinth.run.undo import UNDO_HANDLERS
from plinth.storage import make
from plinth.storage.protocol import LocalStorage
from plinth.system.journal import Journal
from plinth.system.owner import server_owner
from plinth.system.paths import work_dir
from plinth.system.runner import CommandRecord, Runner

RUN_ID = "t1"


def host(*, can_mount: bool = True, memory_bytes: int = 2**40) -> HostFacts:
    return HostFacts(
        cores=1,
        memory_total_bytes=memory_bytes,
        memory_available_bytes=memory_bytes,
        is_root=can_mount,
        can_mount=can_mount,
        kernel="",
        os="",
        cpu_model="",
    )


def make_all(specs: Mapping[str, StorageSpec], **options: Any) -> dict[str, LocalStorage[Any]]:
    return make(specs, run_id=RUN_ID, host=host(**options), owner=server_owner(), work_root=work_dir())


def from_toml(text: str, **options: Any) -> dict[str, LocalStorage[Any]]:
    """The storages of an experiment's [storage] tables, each after those that it is built on."""
    adapter: TypeAdapter[StorageSpec] = TypeAdapter(StorageSpec)
    tables = tomllib.loads(text)["storage"]
    return make_all({name: adapter.validate_python(table) for name, table in tables.items()}, **options)


class Made:
    """The storages of a test, prepared one after the other; undone at its end in any case."""

    def __init__(self) -> None:
        self.runner = Runner()
        self.journal = Journal.create(RUN_ID, UNDO_HANDLERS)
        self.storages: dict[str, LocalStorage[Any]] = {}

    def prepare(self, toml: str, **options: Any) -> dict[str, StorageFacts]:
        self.storages = from_toml(toml, **options)
        return {name: storage.prepare(self.runner, self.journal) for name, storage in self.storages.items()}

    def undo(self) -> None:
        kept = self.journal.undo_all(self.runner)
        assert kept == (), [(each.error.message, each.error.details) for each in kept]


def node_facts(facts: StorageFacts, kind: str, index: int = 0) -> dict[str, object]:
    """Return what is known of one of the nodes of a kind in the stack of a storage."""
    node = [node for node in facts.stack if node.kind == kind][index]
    return {fact.name: fact.value for fact in node.facts}


def write_as_owner(path: Path) -> None:
    """Make a folder and a file in a storage as the user who runs servers."""
    Runner().run(["sh", "-c", 'mkdir "$0/pgdata" && echo 18 > "$0/pgdata/file"', str(path)], owner=server_owner())


def programs_of(argv: Sequence[str]) -> set[str]:
    """The programs that a command runs: its own, and one that it starts in another namespace; Plinth itself is none."""
    name = Path(argv[0]).name
    started_by_it = argv[argv.index("--") + 1 :] if name == "nsenter" or "plinth.system.private_run" in argv else ()
    return ({name} if argv[0] != sys.executable else set()) | (programs_of(started_by_it) if started_by_it else set())


def declared_programs(storage: LocalStorage[Any]) -> set[str]:
    """Every program that a storage of its kind may run; the last two are on every system, so that no kind declares them."""
    required = storage.required().plus(storage.requirements)
    return {*required.programs, *required.optional_programs, "test", "sync"}


def programs_run(storage: LocalStorage[Any], journal: Journal) -> set[str]:
    """Make a storage, look at it and undo it; what it ran for that. Those that it is built on are there."""
    commands: list[CommandRecord] = []
    runner = Runner(commands.append)
    storage.prepare(runner, journal)
    storage.facts(runner)
    storage.teardown(runner, journal)
    return {program for command in commands for program in programs_of(command.argv)}


def check_declared(storage: LocalStorage[Any], journal: Journal) -> None:
    """It runs nothing that its kind does not declare, and all that its kind says that none can be made without."""
    ran = programs_run(storage, journal)
    assert ran <= declared_programs(storage), f"{storage.spec.kind} runs what it does not declare"
    assert ran >= set(storage.required().programs), f"{storage.spec.kind} declares as required what it does not run"
