"""Steps together with how Plinth does them; every kind of storage is made of these."""

from pathlib import Path

from plinth.model.step import Step, Undo
from plinth.system.action import Action as Action
from plinth.system.action import make_labelled as make_labelled
from plinth.system.directory import label_directory
from plinth.system.failures import from_os_error
from plinth.system.owner import Owner


def make_folder(step_id: str, path: Path) -> Action:
    """Make a directory in a labelled directory of ours, with which it is removed."""
    step = Step(id=step_id, title=f"make the directory {path}")
    return Action(step, lambda runner: _make_folder(path))


def label_root(
    step_id: str, path: Path, label: str, owner: Owner, mode: int = 0o700, *, lost_without_power: bool = False
) -> Action:
    """Put our label into the root of a new file system, and hand it to `owner`. It is gone when that is unmounted."""
    step = Step(id=step_id, title=f"label {path} and hand it to user {owner.name}")
    return Action(step, lambda runner: label_directory(path, label, owner, mode), lost_without_power)


def mount(step_id: str, title: str, argv: tuple[str, ...], path: Path, label: str) -> Action:
    """Mount something on `path` by the command `argv`, with `label` as the source of the mount."""
    step = Step(id=step_id, title=title, argv=argv, undo=Undo(kind="unmount", path=str(path), label=label))
    return Action(step, lambda runner: runner.run(argv), lost_without_power=True)


def make_link(link: Path, device: Path) -> None:
    """Let `link`, in a folder of ours, lead to a device whose name was not known before; also instead of another one."""
    try:
        link.unlink(missing_ok=True)
        link.symlink_to(device)
    except OSError as error:
        raise from_os_error(error, f"link to {device}", link) from error


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(mode=0o700)
    except OSError as error:
        raise from_os_error(error, "make the directory", path) from error
