"""Images of recorded disks: what a power cut left of them, served, attached and mounted next to each other.

Every step is in the journal, so that nothing is left of an image, however the process ends. Nothing is formatted, and
the recording is never written to.
"""

from dataclasses import dataclass
from pathlib import Path

from plinth.model.disk import DiskConfig
from plinth.model.disk_recording import ImageSource
from plinth.model.errors import PlinthError, Refused
from plinth.model.step import Step, Undo
from plinth.model.storage import FilesystemName
from plinth.storage.actions import Action, make_folder, make_labelled
from plinth.storage.devices.block_device import filesystem_uuid
from plinth.storage.devices.disk_control import DiskControl, LocalDiskControl
from plinth.storage.devices.disk_daemon import DISK_FILE, serve_action
from plinth.storage.devices.loop_device import attach, confirm_attached
from plinth.storage.filesystem import run_with_kernel_log
from plinth.system.daemon import ANSWER_TIMEOUT_S
from plinth.system.journal import Journal
from plinth.system.owner import current_user
from plinth.system.paths import check_socket_path
from plinth.system.runner import Runner

_BTRFS = Path("/sys/fs/btrfs")


@dataclass(frozen=True)
class RecordedFilesystem:
    """The file system on recorded disks."""

    kind: FilesystemName
    label: str
    """The file system's label, which marks it as ours."""
    mount_options: tuple[str, ...]


@dataclass(frozen=True)
class DiskImage:
    """One image, of one or several disks. Constructing it touches nothing."""

    name: str
    """The name of the image, unique in a run."""
    step_prefix: str
    """The prefix of the ids of its steps."""
    folder: Path
    """A folder made for it, with overlays, sockets, logs and mount points."""
    label: str
    """The label of the run."""
    size_bytes: int
    """The name of each disk."""
    sources: tuple[ImageSource, ...]
    """The source of each disk's content."""
    profile: str
    """The profile of the disks that serve it."""
    filesystem: RecordedFilesystem | None
    """The file system; None for disks that are members of another storage."""

    @property
    def mount_point(self) -> Path:
        """Where the file system is, once `mount` has been called."""
        return self.folder / "mount"

    @property
    def devices(self) -> list[Path]:
        """Links to the block devices, in the order of the disks."""
        return self._each("device")

    def disks(self) -> list[DiskControl]:
        """Return the control of each disk: an image can be cut, too, as in the middle of recovery."""
        return [LocalDiskControl(path, timeout_s=ANSWER_TIMEOUT_S) for path in self._each("control")]

    def attach(self, runner: Runner, journal: Journal) -> None:
        """Serve the disks as block devices. A failure undoes what was done.

        Raises RunError when a recording or point cannot be served, with the daemon's own words.
        """
        for path in self._each("control"):
            check_socket_path(path)
        with journal.ending_hung_daemons() as ended:
            try:
                for action in self._attach_actions():
                    _do(action, runner, journal)
                for config, link in zip(self._configs(), self.devices, strict=True):
                    confirm_attached(Path(config.mount) / DISK_FILE, link, self.size_bytes, direct_io=True)
            except PlinthError as error:
                error.details += tuple(ended)
                journal.undo_steps(self.step_prefix, runner)
                raise error.during(f"serve the image {self.name}") from None

    def mount(self, runner: Runner, journal: Journal) -> Path:
        """Mount the file system, which replays its journal, and return where.

        Raises CommandError, with the kernel's words as details, when the kernel does not mount what the cut has left:
        that is a result. The image stays attached, to be looked at, until `teardown`.
        """
        assert self.filesystem is not None, "members of another storage are mounted by that"
        if self.filesystem.kind == "btrfs":
            self._refuse_second_btrfs(runner)
        for action in self._mount_actions(self.filesystem):
            _do(action, runner, journal)
        return self.mount_point

    def teardown(self, runner: Runner, journal: Journal) -> None:
        """Unmount and detach it, and end its daemons. Raises the first error; what is left stays in the journal."""
        for kept in journal.undo_steps(self.step_prefix, runner):
            raise kept.error

    def _each(self, what: str) -> list[Path]:
        return [self.folder / f"{what}-{number}" for number in range(1, len(self.sources) + 1)]

    def _configs(self) -> list[DiskConfig]:
        return [
            DiskConfig(
                profile=self.profile,
                size_bytes=self.size_bytes,
                backing=str(overlay),
                mount=str(mount),
                control=str(control),
                label=self.label,
                seed=source.seed,
                image=source,
            )
            for source, overlay, mount, control in zip(
                self.sources, self._each("overlay"), self._each("disk"), self._each("control"), strict=True
            )
        ]

    def _attach_actions(self) -> list[Action]:
        actions = [make_labelled(self._step_id("folder"), self.folder, self.label, current_user(), 0o711)]
        for config, link in zip(self._configs(), self.devices, strict=True):
            mount = Path(config.mount)
            actions += [
                make_folder(self._step_id(mount.name), mount),
                serve_action(self._step_id(f"serve.{mount.name}"), config, self.folder / f"{mount.name}.log"),
                attach(self._step_id(link.name), mount / DISK_FILE, link, self.label, direct_io=True),
            ]
        return actions

    def _mount_actions(self, filesystem: RecordedFilesystem) -> list[Action]:
        first, *others = map(str, self.devices)
        options = [*filesystem.mount_options, *(f"device={device}" for device in others)]
        if filesystem.kind == "xfs":
            options.append("nouuid")  # the recorded disk, and other images of it, may be mounted
        argv = ("mount", "-t", filesystem.kind, *(("-o", ",".join(options)) if options else ()))
        argv = (*argv, first, str(self.mount_point))
        step = Step(
            id=self._step_id("mount"),
            title=f"mount the image {self.name} on {self.mount_point}",
            argv=argv,
            undo=Undo(kind="unmount_filesystem", path=str(self.mount_point), label=filesystem.label),
        )
        return [
            make_folder(self._step_id("mount_point"), self.mount_point),
            Action(step, lambda runner: run_with_kernel_log(argv, runner, self.devices)),
        ]

    def _refuse_second_btrfs(self, runner: Runner) -> None:
        """Raise Refused for a second btrfs of one identity: btrfs takes both for one, and would write to the wrong one."""
        identity = filesystem_uuid(self.devices[0], runner)
        if identity is not None and (_BTRFS / identity).exists():
            raise Refused(
                f"a btrfs of the same identity ({identity}) is mounted",
                where=str(self.mount_point),
                hint="take the recorded storage down, and mount one image of it at a time",
            )

    def _step_id(self, what: str) -> str:
        return self.step_prefix + what


def _do(action: Action, runner: Runner, journal: Journal) -> None:
    entry = journal.record(action.step)
    try:
        action.do(runner)
    except Refused:
        if entry.step.undo is not None and entry.step.undo.kind == "remove_directory":
            journal.mark_undone(entry)  # what is there is not ours to remove
        raise
