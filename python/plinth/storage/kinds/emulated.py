"""Emulated disks: a daemon of ours serves a file by FUSE, which a loop device makes the disk of a file system."""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from plinth.common.nearest import nearest
from plinth.model.disk import DiskConfig, DiskCredits, DiskProfile, InstanceLimits, Physics
from plinth.model.disk_recording import ImageSource, RecordingBase, RecordingStatus
from plinth.model.errors import MissingCapability, PlinthError, Problem, Refused, RunError
from plinth.model.plan import Pace
from plinth.model.step import Step, Undo
from plinth.model.storage import EmulatedStorage
from plinth.storage.actions import Action, make_folder, make_labelled
from plinth.storage.blockstorage import BLOCK_UNDO, BlockStorage
from plinth.storage.devices.disk_control import DiskControl, LocalDiskControl
from plinth.storage.devices.disk_daemon import (
    DISK_FILE,
    abort_hung,
    complaint_about,
    daemons,
    disk_profiles,
    find_hung,
    kill_daemon,
    serve_action,
    stop_daemon,
)
from plinth.storage.devices.fuse import FUSE, FUSE_DEVICE
from plinth.storage.devices.loop_device import (
    LOOP_REQUIREMENTS,
    LOOP_UNDO,
    attach,
    check_loop_devices,
    confirm_attached,
)
from plinth.storage.disk_image import DiskImage, RecordedFilesystem
from plinth.storage.images import OnImages
from plinth.storage.preflight import check_new_directory
from plinth.storage.requirements import Requirements
from plinth.system.daemon import ANSWER_TIMEOUT_S, log_tail
from plinth.system.journal import Journal
from plinth.system.owner import current_user
from plinth.system.paths import check_socket_path
from plinth.system.runner import Runner
from plinth.system.undo import UndoHandler, UndoHandlers
from plinth.system.unmount import umount_command


class Emulated(OnImages[EmulatedStorage], BlockStorage[EmulatedStorage]):
    """Disks that are alike; each has its own daemon, seed and loop device."""

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
        "remove_limits": UndoHandler(
            lambda what, runner: _remove_limits(what), lambda what: f"remove {what.path}, the limits of an instance"
        ),
    }

    @property
    def configs(self) -> list[DiskConfig]:
        """The configuration of each daemon."""
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
                instance=self._instance(),
            )
            for index, (backing, mount, control) in enumerate(
                zip(self.images.paths, self._named("disk"), self._named("control"), strict=True)
            )
        ]

    def disks(self) -> list[DiskControl]:
        """Return the control of each daemon."""
        return [LocalDiskControl(path, timeout_s=ANSWER_TIMEOUT_S) for path in self._named("control")]

    def physics(self) -> Physics | None:
        """Return the physics of each disk: the profile's, with what the storage changes; None for an unknown profile."""
        profile = self._profile()
        return None if profile is None else self._physics_over(profile)

    def credits(self) -> DiskCredits | None:
        """Return the credits that each of its disks has when a trial begins: none of a profile without any."""
        physics = self.physics()
        if physics is None or not (physics.iops_credits or physics.bytes_credits):
            return None
        level = 1.0 if physics.credit_level is None else physics.credit_level
        return DiskCredits(
            requests=round(level * (physics.iops_credits or 0)), bytes=round(level * (physics.bytes_credits or 0))
        )

    def has_places_of_writes(self) -> bool:
        """Return whether it is one disk, with a file system other than btrfs, which does not have places on one disk."""
        return not self.is_raw and len(self.configs) == 1 and self.spec.filesystem != "btrfs"

    def power_cut_refusal(self) -> None:
        """Return None: the power of each disk can be cut, wherever its data is stored."""

    def pace(self) -> Pace | None:
        """Return the pace of the profile, with the latencies that `physics` changes; None for an unknown profile."""
        profile = self._profile()
        if profile is None:
            return None
        usual, physics = profile.physics, self._physics_over(profile)
        write_ns = (physics.write_latency_ns or 0) - (usual.write_latency_ns or 0)
        read_ns = (physics.read_latency_ns or 0) - (usual.read_latency_ns or 0)
        flush_ns = (physics.flush_latency_ns or 0) - (usual.flush_latency_ns or 0)
        return Pace(
            flush_s=max(0, profile.depth_one.log_write_ns + write_ns + flush_ns) / 1e9,
            page_write_s=max(0, profile.depth_one.random_write_ns + write_ns) / 1e9,
            write_bytes_per_s=physics.write_bytes_per_s or physics.bytes_per_s or None,
            page_read_s=max(0, profile.depth_one.random_read_ns + read_ns) / 1e9,
        )

    def device_paths(self) -> list[Path]:
        """Return links to the loop devices."""
        return self._named("device")

    def backing_files(self) -> Mapping[Path, Path]:
        """Return the file that each daemon serves."""
        served = [Path(config.mount) / DISK_FILE for config in self.configs]
        return dict(zip(self.device_paths(), served, strict=True))

    def block_actions(self) -> list[Action]:
        """Return the actions of each disk: its data file, its daemon, and the loop device of what that serves."""
        actions = self.images.folder_actions()
        if (limits := self._instance()) is not None:
            actions.append(_make_limits(self.step_id("instance"), Path(limits.file), self.label))
        for backing, config, link in zip(self.images.paths, self.configs, self.device_paths(), strict=True):
            mount = Path(config.mount)
            actions += [
                self.images.file_action(backing),
                make_folder(self.step_id(mount.name), mount),
                serve_action(self.step_id(f"serve.{mount.name}"), config, self._log(mount)),
                attach(self.step_id(f"attach.{link.name}"), mount / DISK_FILE, link, self.label, direct_io=True),
            ]
        return actions

    def check(self, runner: Runner) -> None:
        """Raise a PlinthError unless there are FUSE and loop devices, and room for the files' folder."""
        super().check(runner)
        if not FUSE.is_there():
            raise MissingCapability(
                "this system has no FUSE, by which emulated disks are served",
                where=str(FUSE_DEVICE),
                hint="modprobe fuse; a container needs --device /dev/fuse --cap-add SYS_ADMIN",
            )
        check_loop_devices()
        self.images.check(runner)
        for control in self._named("control"):
            check_socket_path(control, hint="set PLINTH_STATE_DIR to a shorter path")

    def problems(self) -> list[Problem]:
        """Check that the engine knows the profile, and takes its physics with what the experiment changes."""
        where = ["storage", self.name]
        profile = self._profile()
        if profile is None:
            known = [one.name for one in disk_profiles()]
            message = f"there is no profile {self.spec.profile!r}; allowed: {', '.join(known)}"
            return [Problem(message, path=[*where, "profile"], hint=nearest(self.spec.profile, known))]
        if complaint := self.complaint_about(Physics()):
            key = complaint.partition(":")[0]
            path = [*where, "physics", key] if key in _physics_keys() else where
            return [Problem(f"the profile {profile.name!r} with this physics: {complaint}", path=path)]
        physics = self._physics_over(profile)
        if self.spec.lie is not None and (not physics.cache_bytes or physics.cache_protected):
            message = f"nothing that the disk acknowledges can be lost: profile {profile.name!r} has no volatile cache"
            return [
                Problem(
                    message,
                    path=[*where, "lie"],
                    hint='give it one: physics = { cache_size = "64MiB", cache_protected = false }',
                )
            ]
        return []

    def complaint_about(self, change: Physics) -> str | None:
        """Return why the engine would refuse `change` for the served disks; None when it takes it, or does not know their
        profile."""
        if self._profile() is None:
            return None
        own = {**self.spec.physics.model_dump(exclude_none=True), **change.model_dump(exclude_none=True)}
        physics = self.spec.physics.model_copy(update=own)
        return complaint_about(self.configs[0].model_copy(update={"physics": physics}))

    def confirm_devices(self) -> None:
        """Raise RunError unless each daemon serves the disk that was asked for, and is attached."""
        for config, control, link in zip(self.configs, self.disks(), self.device_paths(), strict=True):
            found = control.status()
            if (found.profile, found.size_bytes, found.seed) != (config.profile, config.size_bytes, config.seed):
                raise RunError(
                    f"asked for {config.profile} of {config.size_bytes} bytes, got {found.profile} of {found.size_bytes}",
                    where=config.control,
                )
            confirm_attached(Path(config.mount) / DISK_FILE, link, config.size_bytes, direct_io=True)

    def failure(self) -> str | None:
        """Return the failure when a daemon has ended or hangs; else that of the file system."""
        for path in self._named("disk"):
            found = daemons(path, self.label)
            if not found:
                return f"the daemon of the emulated disk of storage {self.name} has died; its log: {log_tail(self._log(path))}"
            if not found[0].answers():
                return f"the daemon of the emulated disk of storage {self.name} (pid {found[0].pid}) does not answer"
        return super().failure()

    def start_recording(self, place: Path, runner: Runner, journal: Journal) -> tuple[RecordingBase, ...]:
        """Record every change of its disks from now on, in `place`, which is made, and goes when the run is undone.

        It outlives the storage's teardown, and so do images. Each disk has a separate folder there: see
        `recording_folders`. What is written becomes durable first, and each disk's data is copied, while its requests
        wait. Raises Refused for a place on the disks themselves or one that is there already, UsageError for one that a
        daemon cannot write to, RunError when a daemon does not answer.
        """
        check_new_directory(place, current_user(), runner)
        if not self.is_raw and place.parent.stat().st_dev == self.mount_point.stat().st_dev:
            raise Refused(
                f"a recording of storage {self.name} cannot be stored in it",
                where=str(place),
                hint="name another place",
            )
        folder = make_labelled(f"recording.{self.name}.{place.name}.folder", place, self.label, current_user())
        journal.record(folder.step)
        folder.do(runner)
        bases: list[RecordingBase] = []
        try:
            for control, into in zip(self.disks(), self.recording_folders(place), strict=True):
                into.mkdir(mode=0o700)
                bases.append(control.start_recording(into))
        except BaseException:
            for control in self.disks()[: len(bases)]:
                control.stop_recording()
            journal.undo_steps(folder.step.id, runner)
            raise
        return tuple(bases)

    def stop_recording(self) -> tuple[RecordingStatus, ...]:
        """Stop recording, of each disk. Raises RunError when something has not been recorded, once all have stopped."""
        stopped: list[RecordingStatus] = []
        errors: list[PlinthError] = []
        for control in self.disks():
            try:
                stopped.append(control.stop_recording())
            except PlinthError as error:
                errors.append(error)
        if errors:
            raise errors[0].during(f"stop recording storage {self.name}")
        return tuple(stopped)

    def abandon_recording(self) -> None:
        """Stop the recordings that a killed run has begun."""
        for control in self.disks():
            if control.status().recording is not None:
                with contextlib.suppress(RunError):  # something was not recorded
                    control.stop_recording()

    def recording_folders(self, place: Path) -> list[Path]:
        """Return the recording of each disk, for `read_recording`."""
        return self.numbered(place, "disk", self.spec.count)

    def image(self, name: str, sources: Sequence[ImageSource], *, profile: str = "ideal") -> DiskImage:
        """Return what a power cut left of its disks, one source for each, to be attached and mounted. Touches nothing."""
        return DiskImage(
            name=name,
            step_prefix=f"image.{self.name}.{name}.",
            folder=self.work_root / f"{self.folder_name()}-{name}",
            label=self.label,
            size_bytes=self.spec.size_bytes,
            sources=tuple(sources),
            profile=profile,
            filesystem=None
            if self.is_raw
            else RecordedFilesystem(self.spec.filesystem, self.filesystem.label, self.spec.mount_options),
        )

    def force_detach(self, runner: Runner) -> None:
        """Kill the daemons, so that processes that wait for their disks get an error."""
        for mount in self._named("disk"):
            kill_daemon(mount, self.label)

    def end_faults(self) -> None:
        """End faults as every storage does, and restore the profile's physics with the storage's own changes."""
        super().end_faults()
        if (profile := self._profile()) is not None:
            for disk in self.disks():
                disk.set_physics(self._physics_over(profile))

    def _instance(self) -> InstanceLimits | None:
        """Return the limits that it shares with the other volumes of its instance, in a file of the run."""
        if (instance := self.spec.instance) is None:
            return None
        file = self.work_root / f"{self.label}-instance-{instance.name}"
        return InstanceLimits(file=str(file), iops=instance.iops or 0, bytes_per_s=instance.bytes_per_s or 0)

    def _profile(self) -> DiskProfile | None:
        return next((profile for profile in disk_profiles() if profile.name == self.spec.profile), None)

    def _physics_over(self, profile: DiskProfile) -> Physics:
        changed = {name: value for name, value in self.spec.physics if value is not None}
        return profile.physics.model_copy(update=changed)

    def _named(self, what: str) -> list[Path]:
        return self.numbered(self.folder, what, self.spec.count)

    def _log(self, mount: Path) -> Path:
        return self.folder / f"{mount.name}.log"


def _make_limits(step_id: str, file: Path, label: str) -> Action:
    """Make the file by which the volumes of an instance share its limits, unless another of them has made it."""
    undo = Undo(kind="remove_limits", path=str(file), label=label)
    return Action(
        Step(id=step_id, title=f"make {file}, by which volumes share the limits of an instance", undo=undo),
        lambda _: file.touch(0o600),
    )


def _remove_limits(what: Undo) -> None:
    """Remove it; a volume that is still served has it open. Raises Refused for a file of another run."""
    if not Path(what.path).name.startswith(f"{what.label}-instance-"):
        raise Refused("it is not named after this run", where=what.path)
    Path(what.path).unlink(missing_ok=True)


def _physics_keys() -> list[str]:
    return [field.alias or name for name, field in Physics.model_fields.items()]
