"""Emulated disks: a daemon of ours serves a file by FUSE, which stands as a loop device under a file system."""

import os
import select
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from plinth.model.disk import DiskConfig, DiskProfile
from plinth.model.errors import MissingCapability, RunError, UsageError
from plinth.model.nearest import nearest
from plinth.model.plan import Pace
from plinth.model.step import Step, Undo
from plinth.model.storage import EmulatedStorage
from plinth.model.units import format_size
from plinth.storage.actions import Action, make_folder
from plinth.storage.blockstorage import BLOCK_UNDO, BlockStorage
from plinth.storage.devices.attach import LOOP_REQUIREMENTS, LOOP_UNDO, attach, check_loop_devices, confirm_attached
from plinth.storage.devices.disk_control import DiskControl
from plinth.storage.devices.disk_daemon import (
    ANSWER_TIMEOUT_S,
    abort_hung,
    daemons,
    find_hung,
    kill_daemon,
    stop_daemon,
)
from plinth.storage.devices.fuse import FUSE, FUSE_DEVICE
from plinth.storage.images import Images
from plinth.storage.protocol import Storage
from plinth.storage.requirements import Requirements
from plinth.system import cancel
from plinth.system.log_file import LogFile
from plinth.system.process import Child
from plinth.system.runner import Runner
from plinth.system.undo import UndoHandler, UndoHandlers
from plinth.system.unix_socket import check_socket_path
from plinth.system.unmount import umount_command

_DISK_FILE = "disk.img"
_READY_TIMEOUT_S = 30.0
_LOOK_AGAIN_S = 0.01
_LOG_LINES = 5
_READY = b'"ready": true'


class Emulated(BlockStorage[EmulatedStorage]):
    """Disks that are alike, each with a daemon, a seed and a loop device of its own."""

    requirements = LOOP_REQUIREMENTS.plus(Requirements(programs=("umount",), kernel=(FUSE,)))
    undo_handlers: ClassVar[UndoHandlers] = {
        **BLOCK_UNDO,
        **LOOP_UNDO,
        "stop_process": UndoHandler(
            lambda what, runner: stop_daemon(Path(what.path), what.label, runner),
            lambda what: f"unmount the emulated disk on {what.path} and end its daemon",
            lambda what: umount_command(Path(what.path)),
            abort_hung=lambda what: abort_hung(Path(what.path), what.label),
            find_hung=lambda what: find_hung(Path(what.path), what.label),
        ),
    }

    @property
    def images(self) -> Images:
        """The files that hold their data."""
        return Images(self, self.spec, self.spec.size_bytes, self.spec.count)

    @property
    def configs(self) -> list[DiskConfig]:
        """What each daemon is told."""
        return [
            DiskConfig(
                profile=self.spec.profile,
                physics=self.spec.physics,
                size_bytes=self.spec.size_bytes,
                backing=str(backing),
                mount=str(mount),
                control=str(control),
                label=self.label,
                seed=self.spec.seed + index,
                lie=self.spec.lie,
                faults=self.spec.faults,
            )
            for index, (backing, mount, control) in enumerate(
                zip(self.images.paths, self._named("disk"), self._named("control"), strict=True)
            )
        ]

    def controls(self) -> list[DiskControl]:
        """The control of each daemon."""
        return [DiskControl(path, timeout_s=ANSWER_TIMEOUT_S) for path in self._named("control")]

    def needs_from(self) -> Path | Storage[Any]:
        """Where their data is stored."""
        return self.images.needs_from()

    def needs_bytes(self) -> int:
        """All that may be written to them."""
        return self.images.needs_bytes()

    def capacity_bytes(self) -> int:
        """The size of one, which is all there is when it is mounted."""
        return self.spec.size_bytes

    def pace(self) -> Pace | None:
        """As the profile's, with what the physics change of its latencies; None for a profile that there is not."""
        profile = next((profile for profile in _profiles() if profile.name == self.spec.profile), None)
        if profile is None:
            return None
        changed = {name: value for name, value in self.spec.physics if value is not None}
        usual, physics = profile.physics, profile.physics.model_copy(update=changed)
        write_ns = (physics.write_latency_ns or 0) - (usual.write_latency_ns or 0)
        read_ns = (physics.read_latency_ns or 0) - (usual.read_latency_ns or 0)
        flush_ns = (physics.flush_latency_ns or 0) - (usual.flush_latency_ns or 0)
        return Pace(
            flush_s=max(0, profile.depth_one.log_write_ns + write_ns + flush_ns) / 1e9,
            page_write_s=max(0, profile.depth_one.random_write_ns + write_ns) / 1e9,
            write_bytes_per_s=physics.write_bytes_per_s or None,
            page_read_s=max(0, profile.depth_one.random_read_ns + read_ns) / 1e9,
        )

    def device_paths(self) -> list[Path]:
        """Links to the loop devices."""
        return self._named("device")

    def backing_files(self) -> Mapping[Path, Path]:
        """What each daemon serves."""
        served = [Path(config.mount) / _DISK_FILE for config in self.configs]
        return dict(zip(self.device_paths(), served, strict=True))

    def block_actions(self) -> list[Action]:
        """For each: the file of its data, the daemon, and the loop device of what it serves."""
        actions = self.images.folder_actions()
        for backing, config, link in zip(self.images.paths, self.configs, self.device_paths(), strict=True):
            mount = Path(config.mount)
            actions += [
                self.images.file_action(backing),
                make_folder(self.step_id(mount.name), mount),
                self._serve(config),
                attach(self.step_id(f"attach.{link.name}"), mount / _DISK_FILE, link, self.label, direct_io=True),
            ]
        return actions

    def check(self, runner: Runner) -> None:
        """There are FUSE and loop devices, a profile of that name, and room for the files' folder."""
        super().check(runner)
        if not FUSE.is_there():
            raise MissingCapability(
                "this system has no FUSE, by which emulated disks are served",
                where=str(FUSE_DEVICE),
                hint="modprobe fuse; a container needs --device /dev/fuse --cap-add SYS_ADMIN",
            )
        check_loop_devices()
        self.images.check(runner)
        self._check_profile()
        for control in self._named("control"):
            check_socket_path(control, hint="set PLINTH_STATE_DIR to a shorter path")

    def confirm_devices(self) -> None:
        """Each daemon serves the disk that was asked for, and is attached."""
        for config, control, link in zip(self.configs, self.controls(), self.device_paths(), strict=True):
            found = control.status()
            if (found.profile, found.size_bytes, found.seed) != (config.profile, config.size_bytes, config.seed):
                raise RunError(
                    f"asked for {config.profile} of {config.size_bytes} bytes, got {found.profile} of {found.size_bytes}",
                    where=config.control,
                )
            confirm_attached(Path(config.mount) / _DISK_FILE, link, config.size_bytes, direct_io=True)

    def failure(self) -> str | None:
        """That a daemon is gone or hangs; then as of every file system."""
        for path in self._named("disk"):
            found = daemons(path, self.label)
            if not found:
                return (
                    f"the daemon of the emulated disk of storage {self.name} has died; its log: {self._log_tail(path)}"
                )
            if not found[0].answers():
                return f"the daemon of the emulated disk of storage {self.name} (pid {found[0].pid}) does not answer"
        return self.images.failure() or super().failure()

    def force_detach(self, runner: Runner) -> None:
        """Kill the daemons: what waits for their disks gets an error."""
        for mount in self._named("disk"):
            kill_daemon(mount, self.label)

    def _check_profile(self) -> None:
        profiles = [profile.name for profile in _profiles()]
        if self.spec.profile not in profiles:
            raise UsageError(
                f"there is no profile {self.spec.profile!r}; allowed: {', '.join(profiles)}",
                where=f"storage.{self.name}.profile",
                hint=nearest(self.spec.profile, profiles),
            )

    def _named(self, what: str) -> list[Path]:
        return self.numbered(self.folder, what, self.spec.count)

    def _serve(self, config: DiskConfig) -> Action:
        from plinth.storage.devices.disk_server import serve_command

        argv = serve_command(config)
        mount = Path(config.mount)
        step = Step(
            id=self.step_id(f"serve.{mount.name}"),
            title=f"serve an emulated disk {config.profile} of {format_size(config.size_bytes)} on {mount}",
            argv=argv,
            undo=Undo(kind="stop_process", path=str(mount), label=self.label),
        )

        def do(runner: Runner) -> None:
            daemon = runner.spawn(argv, log=LogFile(self._log(mount)))
            _wait_ready(daemon, self._log(mount))

        return Action(step, do)

    def _log(self, mount: Path) -> Path:
        return self.folder / f"{mount.name}.log"

    def _log_tail(self, mount: Path) -> str:
        try:
            return " | ".join(self._log(mount).read_text(errors="replace").splitlines()[-_LOG_LINES:])
        except OSError as error:
            return f"cannot be read: {error.strerror}"


def _profiles() -> tuple[DiskProfile, ...]:
    from plinth.storage.devices.disk_server import disk_profiles  # the engine's library is slow to load

    return disk_profiles()


def _wait_ready(daemon: Child, log: Path) -> None:
    """Until the daemon says in its log that it is ready. Raises what it says when it ends before."""
    pidfd = os.pidfd_open(daemon.pid)
    try:
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while _READY not in log.read_bytes():
            if cancel.poll({pidfd: select.POLLIN}, _LOOK_AGAIN_S):
                raise _not_served(daemon.wait(), log)
            if time.monotonic() > deadline:
                raise RunError(f"not ready within {_READY_TIMEOUT_S:g} s", where=str(log))
    finally:
        os.close(pidfd)


def _not_served(exit_code: int, log: Path) -> RunError | MissingCapability | UsageError:
    """The daemon's own error, with the exit code that it chose."""
    kind = {5: MissingCapability, 2: UsageError}.get(exit_code, RunError)
    lines = log.read_text(errors="replace").splitlines()
    return kind(f"the daemon ended with exit code {exit_code}", where=str(log), details=lines[-_LOG_LINES:])
