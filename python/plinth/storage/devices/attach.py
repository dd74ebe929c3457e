"""Files as block devices: attached to a loop device, which a link in our folder leads to."""

import os
from pathlib import Path

from plinth.model.errors import MissingCapability, RunError
from plinth.model.step import Step, Undo
from plinth.storage.actions import Action, make_link
from plinth.storage.devices.loop_device import detach_loops, loops_of
from plinth.storage.requirements import Requirements, kernel_feature
from plinth.system.runner import CommandError, Runner
from plinth.system.undo import UndoHandler, UndoHandlers

LOOP_UNDO: UndoHandlers = {
    "detach_loop": UndoHandler(
        lambda what, runner: detach_loops(Path(what.path), what.label, runner),
        lambda what: f"detach the loop device of {what.path}",
    )
}
_CONTROL = Path("/dev/loop-control")
LOOP_REQUIREMENTS = Requirements(root=True, programs=("losetup",), kernel=(kernel_feature("loop", _CONTROL),))
_SYSFS = Path("/sys/block")
_DIRECT_IO = "--direct-io=on"
# The last is what losetup says when the kernel has one to give, but /dev has no node for it.
_NONE_LEFT = (
    "could not find any free loop device",
    "cannot find an unused loop device",
    "failed to set up loop device: No such file or directory",
)


def check_loop_devices() -> None:
    """Raise MissingCapability where there are no loop devices."""
    if not _CONTROL.exists():
        raise MissingCapability(
            f"no loop devices here: {_CONTROL} is missing",
            where=str(_CONTROL),
            hint="modprobe loop; a container needs the device, as docker run --privileged gives it",
        )


def attach(step_id: str, image: Path, link: Path, label: str, *, direct_io: bool) -> Action:
    """Attach `image` to a loop device that the kernel chooses, and let `link` lead there."""
    argv = ("losetup", "--show", "-f", *((_DIRECT_IO,) if direct_io else ()), str(image))
    step = Step(
        id=step_id,
        title=f"attach {image} to a loop device",
        argv=argv,
        undo=Undo(kind="detach_loop", path=str(image), label=label),
    )

    return Action(step, lambda runner: make_link(link, _attach(argv, runner)), lost_without_power=True)


def confirm_attached(image: Path, link: Path, size_bytes: int, *, direct_io: bool) -> None:
    """Raise RunError unless `link` leads to a loop device of `image`, of that size, with direct I/O as asked."""
    device = Path(os.path.realpath(link))
    if device not in loops_of(image):
        raise RunError(f"{link} leads to {device}, which is not attached to {image}", where=str(device))
    folder = _SYSFS / device.name
    got = int((folder / "size").read_text()) * 512
    if got != size_bytes:
        raise RunError(f"asked for a device of {size_bytes} bytes, got {got}", where=str(device))
    if direct_io and (folder / "loop/dio").read_text().strip() != "1":
        raise RunError(
            "direct_io = true, but the loop device goes through the page cache",
            where=str(folder / "loop/dio"),
            hint=_hint_for_direct_io(image),
        )


def _attach(argv: tuple[str, ...], runner: Runner) -> Path:
    try:
        return Path(runner.run(argv).stdout.strip())
    except CommandError as error:
        said = error.completed.stderr
        if any(words in said for words in _NONE_LEFT):
            raise MissingCapability(
                "no loop device is available",
                where=" ".join(argv),
                details=error.details,
                hint="losetup -l shows who has them; a container also needs their nodes in /dev, as --privileged and "
                "--volume /dev:/dev give them",
            ) from error
        if _DIRECT_IO in argv and "Invalid argument" in said:
            error.hint = _hint_for_direct_io(Path(argv[-1]))
        raise


def _hint_for_direct_io(image: Path) -> str:
    return f"if the file system of {image} cannot do direct I/O, set direct_io = false, or choose another place"
