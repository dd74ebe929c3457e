"""A ZFS pool with one dataset: by the kernel's ZFS where that is loaded, else by a separate zfs-fuse.

The commands are the same for both (zpool(8), zfs(8)); zfs-fuse's are run in its mount namespace.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from plinth.model.base import Gap
from plinth.model.errors import MissingCapability, PlinthError, Problem, RunError, UsageError
from plinth.model.facts import Fact, StackNode, StorageFacts
from plinth.model.step import Step, Undo
from plinth.model.storage import ZfsStorage
from plinth.storage.actions import Action, make_folder, mount
from plinth.storage.devices.fuse import FUSE, FUSE_DEVICE
from plinth.storage.devices.zfs import (
    CACHE_MB,
    COMMAND_TIMEOUT_S,
    DATASET,
    GONE,
    PROGRAM,
    PROPERTY,
    ZFS,
    ZFS_FUSE_PROGRAMS,
    ZfsFuse,
    abort_hung,
    destroy_pool,
    find_hung,
    kernel_has_zfs,
    mount_point_in,
    stop_zfs_fuse,
)
from plinth.storage.folder import FolderStorage
from plinth.storage.inspect.stack import read_members
from plinth.storage.members import BLANK_MEMBERS, check_blank, sizes_of
from plinth.storage.requirements import Requirements
from plinth.system.action import Snapshot
from plinth.system.directory import filesystem_label
from plinth.system.mounts import mount_of
from plinth.system.runner import CommandError, Runner
from plinth.system.undo import UndoHandler, UndoHandlers

_USES = ("data", "log", "special", "cache")
_ASHIFTS = tuple(str(bits) for bits in (0, *range(9, 17)))  # zpool of zfs-fuse waits forever for others
_SET_EXPLICITLY = ("local", "received", "temporary")
_INHERITED = ["inherited", "from"]
_PARITY = {"raidz": 1, "raidz2": 2, "raidz3": 3}


class Zfs(FolderStorage[ZfsStorage]):
    """The pool has our name, and the name of the storage's folder as a property."""

    requirements = BLANK_MEMBERS.plus(
        Requirements(programs=("zpool", "zfs", "umount"), kernel=(ZFS,), optional_programs=ZFS_FUSE_PROGRAMS)
    )
    undo_handlers: ClassVar[UndoHandlers] = {
        "stop_zfs_fuse": UndoHandler(
            lambda what, runner: stop_zfs_fuse(Path(what.path), what.label),
            lambda what: f"end the zfs-fuse of {what.path}",
            abort_hung=lambda what: abort_hung(Path(what.path)),
            find_hung=lambda what: find_hung(Path(what.path)),
        ),
        "destroy_pool": UndoHandler(
            lambda what, runner: destroy_pool(Path(what.path), what.label, runner),
            lambda what: f"destroy the pool {what.label}",
            unmounts=True,
        ),
    }

    @property
    def pool(self) -> str:
        """Its name."""
        return filesystem_label(self.label, self.name)

    @property
    def dataset(self) -> str:
        """The name of the file system in it."""
        return f"{self.pool}/{DATASET}"

    @property
    def mount_point(self) -> Path:
        """Within its folder, in a mount that zfs-fuse shares with all."""
        return mount_point_in(self.folder)

    @property
    def by_fuse(self) -> bool:
        """Whether zfs-fuse serves the pool."""
        return not kernel_has_zfs()

    @property
    def inside(self) -> tuple[str, ...]:
        """The prefix of the commands zpool and zfs."""
        return ZfsFuse(self.folder).inside if self.by_fuse else ()

    def groups(self) -> list[list[str]]:
        """Return the data members by group, as the layout takes them; all in one where there are no groups."""
        entries = self.spec.data
        if all(isinstance(entry, str) for entry in entries):
            return [[entry for entry in entries if isinstance(entry, str)]]
        return [[entry] if isinstance(entry, str) else list(entry) for entry in entries]

    def vdevs(self) -> list[str]:
        """Return the vdevs of the pool, as arguments of zpool (zpool-create(8), zpoolconcepts(7))."""
        words = [word for group in self.groups() for word in (*self._layout(self.spec.layout), *self._paths(group))]
        if self.spec.log:
            words += ["log", *self._layout(self.spec.log_layout), *self._paths(self.spec.log)]
        for use in ("special", "cache"):
            if members := self._paths(getattr(self.spec, use)):
                words += [use, *members]
        return words

    def needs_from(self) -> None:
        """Return None: its members take the space."""

    def capacity_bytes(self) -> int | None:
        """Return what the data members hold, without what is kept twice and without parity; ZFS takes some of it."""
        total = 0
        for group in self.groups():
            sizes = sizes_of(self, group)
            if sizes is None:
                return None
            if self.spec.layout == "stripe":
                total += sum(sizes)
            elif self.spec.layout == "mirror":
                total += min(sizes)
            else:
                total += min(sizes) * (len(sizes) - _PARITY[self.spec.layout])
        return total

    def member_paths(self) -> list[Path]:
        """Return None: it is no member."""
        return []

    def required(self) -> Requirements:
        """Return ZFS's tools, and what zfs-fuse needs."""
        return self.requirements.plus(Requirements(programs=ZFS_FUSE_PROGRAMS)) if self.by_fuse else self.requirements

    def snapshot(self, name: str = "loaded") -> Snapshot:
        """Return how a snapshot of its dataset is taken."""
        zfs, snapshot = (*self.inside, "zfs"), f"{self.dataset}@{name}"
        return Snapshot(
            (*zfs, "snapshot", snapshot),
            (*zfs, "rollback", snapshot),
            (*zfs, "destroy", snapshot),
            (*GONE, "could not find any snapshots"),
        )

    def power_cut_refusal(self) -> str:
        """Return the reason: it is not assembled again after a power cut."""
        return f"{self.name} is of kind zfs: zfs-fuse loses what ZFS keeps, and its pool is not imported again"

    def check(self, runner: Runner) -> None:
        """Raise a PlinthError unless there is ZFS of one kind, and its members are blank and of kinds that it takes."""
        if self.by_fuse and Path("/run") in self.folder.parents:
            raise UsageError(
                f"{PROGRAM} gets a private /run, so no storage of kind zfs can be in /run",
                where=str(self.folder),
                hint="set PLINTH_STATE_DIR to another place",
            )
        if self.by_fuse and not FUSE.is_there():
            raise MissingCapability(
                "no ZFS here: its module is not loaded, and there is no FUSE for zfs-fuse",
                where=str(FUSE_DEVICE),
                hint="modprobe zfs, or modprobe fuse",
            )
        super().check(runner)
        check_blank(self, self._members(), runner)

    def problems(self) -> list[Problem]:
        """Check that its members are of kinds that it takes, and that its sectors are of a valid size."""
        where = ["storage", self.name]
        found = [
            Problem(
                f"{name} is a file; a cache needs a block device",
                path=[*where, "cache"],
                hint=f'give storage.{name} kind = "loop"',
            )
            for name in self.spec.cache
            if self.other(name).spec.kind == "file"
        ]
        ashift = self.spec.pool_properties.get("ashift")
        if ashift is not None and str(ashift) not in _ASHIFTS:
            message = f"ashift = {ashift}: sectors have 2^9 to 2^16 bytes"
            found.append(Problem(message, path=[*where, "pool_properties", "ashift"], hint="12 for 4 KiB"))
        return found

    def actions(self) -> list[Action]:
        """Return the actions that start zfs-fuse where it is needed, and make the pool and the dataset."""
        return [
            self.folder_action(),
            *(self._fuse_actions() if self.by_fuse else [self._pool_folder_action()]),
            self._pool_action(),
            self._dataset_action(),
            self.root_action(),
            *self.member_queue_actions(),
        ]

    def confirm(self) -> None:
        """Raise RunError unless what is mounted is that dataset, and its members' queues are as asked."""
        found = mount_of(self.mount_point)
        if found.source != self.dataset or found.point != str(self.mount_point):
            raise RunError(
                f"asked for {self.dataset}; {found.source} ({found.filesystem}) is mounted on {found.point}",
                where=str(self.mount_point),
            )
        self.confirm_member_queues()

    def failure(self) -> str | None:
        """Return the failure when zfs-fuse has ended or hangs."""
        fuse = ZfsFuse(self.folder)
        if self.by_fuse and not fuse.is_running():
            return f"{PROGRAM} of storage {self.name} has died; its log: {' | '.join(fuse.log_tail()) or 'nothing'}"
        if self.by_fuse and not fuse.answers(self.mount_point):
            return f"{PROGRAM} of storage {self.name} (pid {fuse.pids()[0]}) does not answer"
        return super().failure()

    def facts(self, runner: Runner) -> StorageFacts:
        """Return the facts as every storage does, with the pool and, below it, what its members are stored on. ZFS names a device by our
        link to it; what that is, is a fact too."""
        facts = super().facts(runner)
        members = [(use, path) for use in _USES for path in self._members(use)]
        asked = _Asked(self.inside, runner)
        version = Path("/sys/module/zfs/version")
        devices = [f"{use}: {path}{f' -> {path.resolve()}' if path.is_symlink() else ''}" for use, path in members]
        found = [
            Fact(name="devices", value=devices, source="zpool create"),
            asked.lines("status", ("zpool", "status", "-v", self.pool)),
            asked.lines("iostat", ("zpool", "iostat", "-v", self.pool)),
            *asked.properties("pool", ("zpool", "get", "all", self.pool)),
            *asked.properties("dataset", ("zfs", "get", "all", self.dataset)),
        ]
        if version.exists():
            found.append(Fact(name="module_version", value=version.read_text().strip(), source=str(version)))
        depth = len(facts.stack)  # below the mount and the file system
        below = read_members([path for _, path in members], depth=depth + 1)
        node = StackNode(
            kind="zfs", name=self.pool, depth=depth, facts=tuple(fact for fact in found if fact is not None)
        )
        kept = tuple(gap for gap in facts.gaps if gap.what != f"{facts.path}: the devices below")
        return facts.model_copy(
            update={
                "stack": (*facts.stack, node, *below.nodes),
                "block_devices": below.block_devices,
                "volatile": below.volatile_reason is not None,
                "volatile_reason": below.volatile_reason,
                "gaps": (*kept, *below.gaps, *asked.gaps),
            }
        )

    def notes(self) -> tuple[str, ...]:
        """Return notes on the limits of zfs-fuse."""
        if not self.by_fuse:
            return ()
        return (
            f"By zfs-fuse, a process, with a cache of {CACHE_MB} MiB: pool version 23, without lz4 and the property sync; "
            "about half as fast as ext4. When it is killed it loses renames that were acknowledged: "
            "it says nothing about the durability of ZFS.",
        )

    def _members(self, *uses: str) -> list[Path]:
        """Return the members of some uses, or of all."""
        wanted = uses or _USES
        names = [reference.name for reference in self.spec.references() if reference.key[0] in wanted]
        return self.member_paths_of(names)

    def _paths(self, names: Sequence[str]) -> list[str]:
        return list(map(str, self.member_paths_of(names)))

    @staticmethod
    def _layout(layout: str) -> tuple[str, ...]:
        return () if layout == "stripe" else (layout,)

    def _pool_folder_action(self) -> Action:
        return make_folder(self.step_id("pool_folder"), self.mount_point.parent)

    def _fuse_actions(self) -> list[Action]:
        fuse = ZfsFuse(self.folder)
        share = ("mount", "-t", "tmpfs", "-o", "size=64k,mode=0711,nosuid,nodev", "--make-shared", self.label)
        places = self._members()
        start = Step(
            id=self.step_id("zfs-fuse"),
            title=f"start {PROGRAM} in a separate mount namespace",
            argv=fuse.command(places),
            undo=Undo(kind="stop_zfs_fuse", path=str(fuse.shared), label=self.label),
        )
        return [
            self._pool_folder_action(),
            mount(
                self.step_id("share"),
                f"mount a tmpfs on {fuse.shared}, by which what {PROGRAM} mounts is seen outside",
                (*share, str(fuse.shared)),
                fuse.shared,
                self.label,
            ),
            Action(start, lambda runner: fuse.start(places, runner)),
        ]

    def _pool_action(self) -> Action:
        pool_properties = _options("-o", {"cachefile": "none", **self.spec.pool_properties})
        ours = _options("-O", {"mountpoint": "none", PROPERTY: self.folder.name})
        argv = (*self.inside, "zpool", "create", *pool_properties, *ours, self.pool, *self.vdevs())
        step = Step(
            id=self.step_id("pool"),
            title=f"make the ZFS pool {self.pool}",
            argv=argv,
            destroys=self.members_destroy(),
            undo=Undo(kind="destroy_pool", path=str(self.mount_point), label=self.pool),
        )

        def make_pool(runner: Runner) -> None:
            with self.members_held(runner):
                self._run(argv, "pool_properties", self.spec.pool_properties, runner)

        return Action(step, make_pool)

    def _dataset_action(self) -> Action:
        properties = _options("-o", {"mountpoint": str(self.mount_point), **self.spec.properties})
        argv = (*self.inside, "zfs", "create", *properties, self.dataset)
        step = Step(id=self.step_id("dataset"), title=f"make the file system {self.dataset} in it", argv=argv)
        return Action(step, lambda runner: self._run(argv, "properties", self.spec.properties, runner))

    def _run(self, argv: tuple[str, ...], table: str, properties: Mapping[str, str | int], runner: Runner) -> None:
        """Run it; where ZFS refuses a property, the error names the key of the experiment and its value."""
        try:
            runner.run(argv, timeout_s=COMMAND_TIMEOUT_S)
        except CommandError as error:
            said = error.completed.stderr.strip()
            for name, value in properties.items():
                if f"'{name}'" in said:
                    where = f"storage.{self.name}.{table}.{name}"
                    raise MissingCapability(f"{name} = {value} is refused: {said}", where=where) from error
            raise


def _options(flag: str, values: Mapping[str, str | int]) -> list[str]:
    return [word for name, value in values.items() for word in (flag, f"{name}={value}")]


class _Asked:
    """Runs ZFS's commands, and collects gaps for what could not be read."""

    def __init__(self, inside: Sequence[str], runner: Runner) -> None:
        self._inside = inside
        self._runner = runner
        self.gaps: list[Gap] = []

    def lines(self, name: str, argv: Sequence[str]) -> Fact | None:
        """Return the output of a command, as lines."""
        said = self._run(name, argv)
        lines = [line for line in (said or "").splitlines() if line.strip()]
        return None if said is None else Fact(name=name, value=lines, source=" ".join(argv))

    def properties(self, of: str, argv: Sequence[str]) -> list[Fact]:
        """Return the properties that are set on it or above it, and the version. zfs-fuse prints them as a table only."""
        facts = []
        for line in (self._run(f"{of} properties", argv) or "").splitlines()[1:]:
            _, name, *values, source = line.split()
            if inherited := values[-2:] == _INHERITED:
                values = values[:-2]
            if inherited or source in _SET_EXPLICITLY or name == "version":
                facts.append(Fact(name=f"{of}.{name}", value=" ".join(values), source=" ".join(argv)))
        return facts

    def _run(self, what: str, argv: Sequence[str]) -> str | None:
        try:
            return self._runner.run((*self._inside, *argv), timeout_s=COMMAND_TIMEOUT_S).stdout
        except PlinthError as error:
            self.gaps.append(Gap(what=f"zfs: {what}", reason=f"{error.message}: {' '.join(error.details)}"))
            return None
