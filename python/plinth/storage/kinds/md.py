"""Linux software RAID over the devices of several storages (md(4), mdadm(8)).

An array is known by the name in its members' superblocks, and stopped only while that name is ours.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from plinth.model.errors import Refused, RunError
from plinth.model.step import Step, Undo
from plinth.model.storage import MdStorage
from plinth.storage.actions import Action
from plinth.storage.blockstorage import BLOCK_UNDO
from plinth.storage.members import BLANK_MEMBERS, StorageOfMembers, sizes_of
from plinth.storage.requirements import DRIVER_PROGRAMS, Requirements, driver_feature, require_driver
from plinth.system.runner import Runner
from plinth.system.undo import UndoHandler, UndoHandlers, read_undo_state, write_undo_state

_NODES = Path("/dev/md")
_SYSFS = Path("/sys/class/block")
_SIGN = Path("/proc/mdstat")
_MODULE = "md_mod"
_MODULES = {0: "raid0", 1: "raid1", 10: "raid10", 5: "raid456", 6: "raid456"}
_NOTHING_TO_WAIT_FOR = 1


def array_node(name: str) -> Path:
    """Return the node of the array called `name`: a link that mdadm makes."""
    return _NODES / name


def save_array(path: Path, name: str, members: Sequence[Path]) -> None:
    """Record an array that is about to be made, and its members."""
    write_undo_state(path, {"name": name, "members": [str(member) for member in members]})


def stop_array(undo_state: Path, label: str, runner: Runner) -> None:
    """Stop the array that `undo_state` names, and take its name off its members; nothing when nothing was saved.

    The name is removed so that nothing assembles the array again. Members of another name are left alone; mdadm refuses to
    stop an array that is in use.
    """
    content = read_undo_state(undo_state, label)
    if content is None:
        return
    name, members = content["name"], [Path(member) for member in content["members"]]
    ours = [member for member in members if member.exists() and member_name(member, runner) == name]
    for device in _held_by(ours):
        runner.run(("mdadm", "--stop", str(device)))
    if left := _held_by(ours):
        raise RunError("still running after mdadm --stop", where=str(left[0]))
    if ours:
        runner.run(("mdadm", "--zero-superblock", *map(str, ours)))
    node = array_node(name)
    if node.is_symlink():
        node.unlink(missing_ok=True)  # udev does it, where there is one


def member_name(device: Path, runner: Runner) -> str | None:
    """Return the name of the array that a block device belongs to by its superblock; None when it belongs to none."""
    completed = runner.run(("mdadm", "--examine", "--export", str(device)), allowed_exit_codes=(0, 1))
    for line in completed.stdout.splitlines():
        key, _, value = line.partition("=")
        if key == "MD_NAME":
            return value.rpartition(":")[2]  # it may begin with the host's name
    return None


def _held_by(members: Sequence[Path]) -> list[Path]:
    """Return the arrays that hold one of `members`."""
    holders = {link.name for member in members for link in (_SYSFS / member.resolve().name / "holders").iterdir()}
    return [Path("/dev") / name for name in sorted(holders) if (_SYSFS / name / "md").is_dir()]


class Md(StorageOfMembers[MdStorage]):
    """One array, of which every member is taken whole."""

    requirements = BLANK_MEMBERS.plus(
        Requirements(
            programs=("mdadm",),
            kernel=(driver_feature(_MODULE, _SIGN),),
            optional_programs=DRIVER_PROGRAMS,
        )
    )
    undo_handlers: ClassVar[UndoHandlers] = {
        **BLOCK_UNDO,
        "stop_array": UndoHandler(
            lambda what, runner: stop_array(Path(what.path), what.label, runner),
            lambda what: f"stop the array that is named in {what.path}",
        ),
    }

    def capacity_bytes(self) -> int | None:
        """Return the smallest member's size, times the number of members that the level leaves for data."""
        sizes = sizes_of(self, self.spec.members)
        if sizes is None:
            return None
        count = len(sizes)
        return min(sizes) * {0: count, 1: 1, 10: count // 2, 5: count - 1, 6: count - 2}[self.spec.level]

    def device_paths(self) -> list[Path]:
        """Return the node that mdadm makes for that name."""
        return [array_node(self.mark)]

    def power_cut_refusal(self) -> str:
        """Return the reason: it is not assembled again after a power cut."""
        return f"{self.name} is of kind md: its array would have to be assembled again, which Plinth does not do yet"

    def check(self, runner: Runner) -> None:
        """Raise a PlinthError unless the kernel has the driver and the level, and there is no array of that name."""
        require_driver("md driver", _MODULE, _SIGN, runner)
        level = f"raid{self.spec.level}"
        require_driver(f"md driver for {level}", _MODULES[self.spec.level], _SIGN, runner, word=f"[{level}]")
        super().check(runner)
        node = self.device_paths()[0]
        if node.is_symlink() or node.exists():
            raise Refused("an array of that name is there already", where=str(node), hint=f"mdadm --detail {node}")

    def block_actions(self) -> list[Action]:
        """Make the array, and wait until its members agree."""
        node = str(self.device_paths()[0])
        chunk_bytes = self.spec.chunk_size_bytes
        chunk = () if chunk_bytes is None else (f"--chunk={chunk_bytes // 1024}",)
        members = tuple(map(str, self.members))
        shape = (f"--level={self.spec.level}", f"--raid-devices={len(members)}", *chunk, f"--name={self.mark}")
        # --run only answers what mdadm asks of every level 1, whether it is to boot from; that the members have
        # nothing of others has been checked.
        create = ("mdadm", "--create", node, "--run", *shape, *members)
        wait = ("mdadm", "--wait", node)
        undo_state = self.undo_state_folder / "array.json"

        def make_array(runner: Runner) -> None:
            save_array(undo_state, self.mark, self.members)
            with self.members_held(runner):
                runner.run(create)

        return [
            Action(
                Step(
                    id=self.step_id("create"),
                    title=f"make a RAID {self.spec.level} of {' and '.join(members)}",
                    argv=create,
                    destroys=self.members_destroy(),
                    undo=Undo(kind="stop_array", path=str(undo_state), label=self.label),
                ),
                make_array,
            ),
            Action(
                Step(id=self.step_id("resync"), title="wait until its members agree (resync)", argv=wait),
                lambda runner: runner.run(wait, allowed_exit_codes=(0, _NOTHING_TO_WAIT_FOR)),
            ),
        ]

    def confirm_devices(self) -> None:
        """Raise RunError unless level, chunk and members are as asked, and no member is missing or being rebuilt."""
        folder = Path("/sys/block") / self.device_paths()[0].resolve().name
        array = folder / "md"
        asked = {"level": f"raid{self.spec.level}", "raid_disks": str(len(self.members))}
        if self.spec.chunk_size_bytes is not None:
            asked["chunk_size"] = str(self.spec.chunk_size_bytes)
        if self.spec.level != 0:
            asked |= {"degraded": "0", "sync_action": "idle"}
        found = {file: (array / file).read_text().strip() for file in asked}
        if found != asked:
            raise RunError(f"asked for {asked}, got {found}", where=str(array))
        members = sorted(path.resolve().name for path in self.members)
        slaves = sorted(link.name for link in (folder / "slaves").iterdir())
        if slaves != members:
            raise RunError(f"asked for {members} as members, got {slaves}", where=str(folder / "slaves"))
