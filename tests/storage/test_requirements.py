"""What a kind declares that it needs is what it runs: recorded where it can be made here, planned for all kinds.

md and lvm are made and recorded inside user-mode-linux, by arrays_inside.py.
"""

from pathlib import Path

import pytest

from disks import MIB, WORD, disk, in_private_mounts
from making import Made, check_declared, declared_programs, from_toml, programs_of
from plinth.model.errors import MissingCapability
from plinth.model.storage import DeviceStorage
from plinth.observe.facts import host_facts
from plinth.run.undo import UNDO_HANDLERS, undo_step
from plinth.storage import make
from plinth.storage.registry import KINDS
from plinth.system.journal import Journal
from plinth.system.owner import server_owner
from plinth.system.paths import ensure, work_dir
from plinth.system.runner import Runner

MEMBERS = '[storage.a]\nkind = "loop"\nsize = "128MiB"\n[storage.b]\nkind = "file"\nsize = "128MiB"\n'
EXAMPLES = {
    "directory": '[storage.s]\nkind = "directory"\n',
    "tmpfs": '[storage.s]\nkind = "tmpfs"\nsize = "8MiB"\nfill = 0.5\n',
    "loop": '[storage.s]\nkind = "loop"\nsize = "64MiB"\nqueue = { read_ahead_kb = 64 }\n',
    "loop, xfs": '[storage.s]\nkind = "loop"\nsize = "512MiB"\nfilesystem = "xfs"\n',
    "loop, btrfs": '[storage.s]\nkind = "loop"\nsize = "128MiB"\nfilesystem = "btrfs"\nfill = 0.2\n',
    "file": f'{MEMBERS}[storage.s]\nkind = "btrfs"\nmembers = ["a", "b"]\n',
    "emulated": '[storage.s]\nkind = "emulated"\nprofile = "ideal"\nsize = "32MiB"\n',
    "zram": '[storage.s]\nkind = "zram"\nsize = "32MiB"\n',
    "btrfs": f'{MEMBERS}[storage.s]\nkind = "btrfs"\nmembers = ["a", "b"]\ndata_profile = "raid0"\n',
    "zfs": '[storage.a]\nkind = "file"\nsize = "64MiB"\n[storage.s]\nkind = "zfs"\ndata = ["a"]\n',
}
PLANNED = {
    "md": f'{MEMBERS}[storage.s]\nkind = "md"\nmembers = ["a", "b"]\nlevel = 1\n',
    "lvm": f'{MEMBERS}[storage.s]\nkind = "lvm"\nmembers = ["a", "b"]\n',
    "device": '[storage.s]\nkind = "device"\nid = "/dev/disk/by-id/ata-none"\nserial = "none"\nsize = "64MiB"\n',
}


@pytest.mark.long
@pytest.mark.parametrize("example", EXAMPLES)
def test_it_runs_the_programs_that_it_declares(made: Made, example: str) -> None:
    made.storages = from_toml(EXAMPLES[example])
    *below, last = made.storages.values()
    for storage in below:
        check_declared(storage, made.journal)
        storage.prepare(made.runner, made.journal)
    check_declared(last, made.journal)


def test_a_disk_runs_the_programs_that_its_kind_declares(state_dir: Path, scratch: Path) -> None:
    def attempt() -> None:
        with disk(scratch, size_bytes=64 * MIB) as target:
            spec = DeviceStorage(kind="device", id=str(target.id), serial=target.serial, size=target.size_bytes)
            storage = make(
                {"s": spec},
                run_id="t1",
                host=host_facts(),
                owner=server_owner(),
                work_root=ensure(work_dir()),
                destroy=(WORD,),
            )["s"]
            journal = Journal.create("t1", UNDO_HANDLERS)
            check_declared(storage, journal)
            journal.close()

    in_private_mounts(attempt)


@pytest.mark.parametrize("example", EXAMPLES | PLANNED)
def test_a_plan_names_no_program_that_its_kind_does_not_declare(state_dir: Path, example: str) -> None:
    for storage in from_toml((EXAMPLES | PLANNED)[example]).values():
        steps = storage.steps()
        undoing = [step for step in map(undo_step, steps) if step is not None]
        named = {program for step in (*steps, *undoing) if step.argv for program in programs_of(step.argv)}
        assert named <= declared_programs(storage), storage.spec.kind


def test_every_kind_has_an_example_here() -> None:
    assert {example.partition(",")[0] for example in EXAMPLES | PLANNED} == set(KINDS)


@pytest.mark.parametrize(("kind", "program"), [("md", "mdadm"), ("lvm", "pvremove"), ("loop", "losetup")])
def test_a_program_that_is_missing_is_named_before_anything_is_made(
    made: Made, monkeypatch: pytest.MonkeyPatch, scratch: Path, kind: str, program: str
) -> None:
    """Of all that it declares, this one is not there."""
    storage = from_toml((EXAMPLES | PLANNED)[kind])["s"]
    for declared in storage.required().programs:
        if declared != program:
            (scratch / declared).touch(0o755)
    monkeypatch.setattr("plinth.system.runner._environment", lambda owner: {"PATH": str(scratch)})
    with pytest.raises(MissingCapability, match=f"{program}: there is no such program"):
        storage.prepare(Runner(), made.journal)
    assert made.journal.entries == ()
