"""The kind `device`: a disk taken, formatted, used, and given back as it was. The disks are loop devices dressed as such."""

import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from children import run_in_child
from disks import MIB, SERIAL, WORD, Disk, command, digest, disk, in_private_mounts
from killing import kill_after
from plinth.model.errors import Refused
from plinth.model.storage import BtrfsStorage, DeviceStorage, LoopStorage, StorageSpec
from plinth.observe.facts import host_facts
from plinth.run.undo import UNDO_HANDLERS
from plinth.storage import make
from plinth.storage.protocol import LocalStorage
from plinth.system.clean import clean
from plinth.system.journal import Journal
from plinth.system.mounts import mounts_within
from plinth.system.owner import server_owner
from plinth.system.paths import ensure, work_dir
from plinth.system.runner import CommandRecord, Runner
from typed import present

DISK_BYTES = 128 * MIB
RUN_ID = "t1"


def spec_of(target: Disk, **changes: Any) -> DeviceStorage:
    fields = {"id": str(target.id), "serial": target.serial, "size_bytes": target.size_bytes} | changes
    return DeviceStorage(kind="device", **fields)


def storages(specs: dict[str, StorageSpec], destroy: tuple[str, ...] = (WORD,)) -> dict[str, LocalStorage[Any]]:
    return make(
        specs, run_id=RUN_ID, host=host_facts(), owner=server_owner(), work_root=ensure(work_dir()), destroy=destroy
    )


def scribble(target: Disk) -> None:
    """In the middle; a disk with data at its ends is refused where some processes cannot be seen."""
    with target.node.open("r+b") as device:
        device.seek(DISK_BYTES // 2)
        device.write(b"data of no known form")


@pytest.mark.parametrize("filesystem", ["ext4", "btrfs"])
def test_a_disk_is_formatted_used_and_given_back_as_it_was(state_dir: Path, scratch: Path, filesystem: str) -> None:
    def attempt() -> None:
        with disk(scratch, size_bytes=DISK_BYTES) as target:
            ends = target.node.read_bytes()[:MIB], target.node.read_bytes()[-MIB:]
            journal, commands = Journal.create(RUN_ID, UNDO_HANDLERS), list[CommandRecord]()
            storage = storages({"nvme": spec_of(target, filesystem=filesystem)})["nvme"]
            planned = storage.steps()
            facts = storage.prepare(Runner(commands.append), journal)
            assert (facts.kind, facts.filesystem) == ("device", filesystem)
            assert target.node.name in facts.block_devices
            assert [step.destroys for step in planned if step.destroys] == [(str(target.id),)]
            changing = [record.argv for record in commands if record.argv[0].startswith(("mkfs", "mount"))]
            assert changing == [step.argv for step in planned if step.argv]
            assert not any("-f" in argv or "--force" in argv for argv in changing)
            command("runuser", "-u", server_owner().name, "--", "touch", storage.mount_point / "file")
            storage.teardown(Runner(), journal)
            journal.close()
            assert mounts_within(scratch / "state") == []
            assert list(work_dir().iterdir()) == []
            assert (target.node.read_bytes()[:MIB], target.node.read_bytes()[-MIB:]) == ends
            assert command("wipefs", "--no-act", target.node) == ""
            storages({"nvme": spec_of(target)})["nvme"].check(Runner())  # it could be taken again

    in_private_mounts(attempt)


def test_without_the_word_nothing_is_touched(state_dir: Path, scratch: Path) -> None:
    def attempt() -> str:
        with disk(scratch, size_bytes=DISK_BYTES) as target:
            scribble(target)
            before, journal = digest(target.node), Journal.create(RUN_ID, UNDO_HANDLERS)
            with pytest.raises(Refused) as refused:
                storages({"nvme": spec_of(target)}, destroy=("123456",))["nvme"].prepare(Runner(), journal)
            assert digest(target.node) == before
            assert journal.entries == ()
            journal.close()
            assert list(work_dir().iterdir()) == []
            return f"{refused.value.message}; {refused.value.hint}"

    reported = in_private_mounts(attempt)
    assert "the command line does not say that" in reported
    assert f"--destroy {WORD}" in reported


def test_the_disk_of_the_state_directory_is_not_taken(state_dir: Path, scratch: Path) -> None:
    def attempt() -> str:
        with disk(scratch, size_bytes=DISK_BYTES) as target, ExitStack() as undo:
            command("mkfs.ext4", "-q", target.node)
            state_dir.mkdir()
            command("mount", target.node, state_dir)
            undo.callback(command, "umount", state_dir)
            with pytest.raises(Refused) as refused:
                storages({"nvme": spec_of(target)})["nvme"].check(Runner())
            return "; ".join([refused.value.message, *refused.value.details])

    assert f"{state_dir} is stored on loop" in in_private_mounts(attempt)


def test_a_failure_after_the_ends_were_kept_gives_the_disk_back(state_dir: Path, scratch: Path) -> None:
    def attempt() -> None:
        with disk(scratch, size_bytes=DISK_BYTES) as target:
            scribble(target)
            before, journal = digest(target.node), Journal.create(RUN_ID, UNDO_HANDLERS)
            spec = spec_of(target, mkfs_options=("-O", "no_such_feature"))
            with pytest.raises(Exception, match=r"mkfs.ext4"):
                storages({"nvme": spec})["nvme"].prepare(Runner(), journal)
            assert journal.entries == ()
            journal.close()
            assert digest(target.node) == before

    in_private_mounts(attempt)


def test_as_a_member_it_is_guarded_by_who_takes_it(state_dir: Path, scratch: Path) -> None:
    def attempt() -> None:
        with disk(scratch, size_bytes=DISK_BYTES) as target:
            specs: dict[str, StorageSpec] = {
                "nvme": spec_of(target),
                "file": LoopStorage(kind="loop", size=DISK_BYTES),
                "pair": BtrfsStorage(kind="btrfs", members=("nvme", "file"), data_profile="raid0"),
            }
            made, journal, runner = storages(specs), Journal.create(RUN_ID, UNDO_HANDLERS), Runner()
            for name in ("nvme", "file"):
                made[name].prepare(runner, journal)
            (mkfs,) = [step for step in made["pair"].steps() if step.destroys]
            assert mkfs.destroys == (str(target.id),)
            made["pair"].check(runner)
            command("mkfs.ext4", "-q", target.node)  # another process was faster than our mkfs
            foreign = digest(target.node)
            mkfs_action = next(action for action in made["pair"].actions() if action.step == mkfs)
            with pytest.raises(Refused, match="since it was checked, it now has ext4 at byte 1080"):
                mkfs_action.do(runner)
            with pytest.raises(Refused, match="not taken for storage pair: it has ext4 at byte 1080"):
                made["pair"].prepare(runner, journal)  # which looks before it makes anything
            assert digest(target.node) == foreign
            command("wipefs", "--quiet", "--all", target.node)
            made["pair"].prepare(runner, journal)
            assert journal.undo_all(runner) == ()
            journal.close()
            assert command("wipefs", "--no-act", target.node) == ""

    in_private_mounts(attempt)


@pytest.mark.long
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.long)])
def test_clean_after_kill_at_every_call_gives_the_disk_back(state_dir: Path, scratch: Path, every: int) -> None:
    def whole(target: Disk) -> Callable[[], None]:
        def run() -> None:
            journal = Journal.create(RUN_ID, UNDO_HANDLERS)
            storage = storages({"nvme": spec_of(target)})["nvme"]
            storage.prepare(Runner(), journal)
            storage.teardown(Runner(), journal)
            journal.close()

        return run

    def attempt() -> int:
        with disk(scratch, size_bytes=16 * MIB) as target:
            for calls in range(1, 200, every):

                def dying(calls: int = calls) -> None:
                    with pytest.MonkeyPatch.context() as patch:
                        kill_after(calls, patch)
                        whole(target)()

                ended = run_in_child(dying)
                error = clean(UNDO_HANDLERS).error()
                assert error is None, f"after call {calls}: {error.details}"
                assert clean(UNDO_HANDLERS).runs == ()
                found = target.node.read_bytes()
                assert not any(found[:MIB] + found[-MIB:]), f"after call {calls}"
                assert mounts_within(state_dir) == []
                assert list(work_dir().glob("*")) == []
                if ended.signal is None:
                    return calls - 1
                assert ended.signal == signal.SIGKILL
            raise AssertionError("it never came to its end")

    assert in_private_mounts(attempt) >= 20


def test_a_serial_is_shown_only_in_part(state_dir: Path, scratch: Path) -> None:
    def attempt() -> str:
        with disk(scratch, size_bytes=DISK_BYTES) as target:
            found = storages({"nvme": spec_of(target)}, destroy=())["nvme"].destructive_target(Runner())  # type: ignore[attr-defined]
            found = present(found)
            assert (found.word, found.against, found.name) == (WORD, (), target.node.name)
            return found.model_copy(update={"id": ""}).model_dump_json()

    assert SERIAL not in in_private_mounts(attempt)
