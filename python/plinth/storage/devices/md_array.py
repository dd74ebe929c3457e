"""Linux software RAID: arrays known by the name in their members' superblocks, and stopped while it is ours (md(4))."""

from collections.abc import Sequence
from pathlib import Path

from plinth.model.errors import RunError
from plinth.system.runner import Runner
from plinth.system.undo import read_undo_state, write_undo_state

_NODES = Path("/dev/md")
_SYSFS = Path("/sys/class/block")


def array_node(name: str) -> Path:
    """The node of the array called `name`: a link that mdadm makes."""
    return _NODES / name


def save_array(path: Path, name: str, members: Sequence[Path]) -> None:
    """Record an array that is about to be made, and its members."""
    write_undo_state(path, {"name": name, "members": [str(member) for member in members]})


def stop_array(undo_state: Path, label: str, runner: Runner) -> None:
    """Stop the array that `undo_state` names, and take its name off its members; nothing when nothing was saved.

    Off the members, so that nobody assembles it anew. Members that have another name are left alone; mdadm refuses to
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
    """The name of the array that a block device belongs to by its superblock; None when it belongs to none."""
    completed = runner.run(("mdadm", "--examine", "--export", str(device)), allowed_exit_codes=(0, 1))
    for line in completed.stdout.splitlines():
        key, _, value = line.partition("=")
        if key == "MD_NAME":
            return value.rpartition(":")[2]  # it may begin with the host's name
    return None


def _held_by(members: Sequence[Path]) -> list[Path]:
    """The arrays that hold one of `members`."""
    holders = {link.name for member in members for link in (_SYSFS / member.resolve().name / "holders").iterdir()}
    return [Path("/dev") / name for name in sorted(holders) if (_SYSFS / name / "md").is_dir()]
