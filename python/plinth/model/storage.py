"""Storages as an experiment describes them, one class a kind.

Field descriptions here are the reference: the JSON Schema and docs/reference are made from them.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, get_args

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from plinth.model.base import Frozen, Name
from plinth.model.disk import Fault, Lie, Physics
from plinth.model.storage_options import DATASET, POOL, check_mkfs_options, check_mount_options, check_properties
from plinth.model.units import BytesPerSecond, SizeBytes

FilesystemName = Literal["ext4", "xfs", "btrfs"]
Role = Literal["base", "member"]
_SECTOR_BYTES = 512
_KERNEL_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$"
"""Of what the kernel offers: it loads a module by the name that it is given."""
_LEAST_OF_MD = {0: 2, 1: 2, 10: 2, 5: 3, 6: 4}
_LEAST_OF_BTRFS = {"single": 1, "dup": 1, "raid0": 2, "raid1": 2, "raid10": 4}
_LEAST_OF_ZFS = {"stripe": 1, "mirror": 2, "raidz": 2, "raidz2": 3, "raidz3": 4}


class Reference(NamedTuple):
    """Another storage that a storage names: as the `base` that its files are stored on, or as a raw `member`.

    `key` leads to the name within the storage's own table, as in ("data", 0, 1).
    """

    key: tuple[str | int, ...]
    name: str
    role: Role


class LeastMembers(NamedTuple):
    """That `what`, such as "RAID level 5", takes at least `least` members; the key `key` names them, as `names`."""

    what: str
    least: int
    names: tuple[str, ...]
    key: tuple[str | int, ...]


class QueueSpec(Frozen):
    """Knobs of a block device's queue (/sys/block/NAME/queue), set for the run and set back afterwards."""

    scheduler: str | None = Field(
        default=None, pattern=_KERNEL_NAME, description="I/O scheduler.", examples=["none", "mq-deadline"]
    )
    read_ahead_kb: int | None = Field(
        default=None, ge=0, description="Read-ahead of the page cache, in KiB.", examples=[128]
    )
    write_cache: Literal["write back", "write through"] | None = Field(
        default=None,
        description="What the kernel believes of the device's cache; with write through it sends no flushes. The cache itself is "
        "not touched: for that there is write_cache of kind device.",
    )
    nr_requests: int | None = Field(
        default=None, ge=1, description="Requests that may wait in the queue.", examples=[256]
    )
    wbt_lat_usec: int | None = Field(
        default=None,
        ge=0,
        description="Target latency of writeback throttling, in microseconds; 0 turns it off.",
        examples=[0],
    )

    def knobs(self) -> dict[str, str]:
        """Return the knobs that are asked for: file in the queue's folder -> what is written to it."""
        return {name: str(value) for name, value in self.model_dump(exclude_none=True).items()}


MountOptions = Annotated[tuple[str, ...], AfterValidator(check_mount_options)]


class StorageBase(Frozen):
    """What all kinds have."""

    not_of_this_kind: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """Keys of other kinds that this one cannot have: the reason, and what to do instead."""
    found_by: ClassVar[Mapping[str, str]] = {}
    """Keys that only the machine can tell: how to look there."""
    can_be_member: ClassVar[bool] = False
    """Whether it can be raw: a block device or a file, as a member of another storage."""
    is_mounted: ClassVar[bool] = True
    """Whether anything can be stored on it; what is not mounted is only ever a member."""

    host: Name | None = Field(
        default=None,
        description="The machine that it is on, one of [host.NAME], and with it the servers that are stored on it. Default: this one.",
        examples=["db1"],
    )

    def least_members(self) -> Iterator[LeastMembers]:
        """Return how many members its levels, profiles or layouts take at least."""
        yield from ()

    def references(self) -> Iterator[Reference]:
        """Return the other storages that it names."""
        yield from ()


class FilledStorage(StorageBase):
    """A file system of its own, of which a part may be in use before the data directory is made."""

    fill: float = Field(
        default=0.0,
        ge=0,
        lt=0.99,
        description="Share of the file system that is in use before the data directory is made, as Use% of df(1) counts it: "
        "without the blocks that ext4 keeps for root. Random bytes are written until then, and fsynced. 0 writes none.",
        examples=[0.85],
    )


class FormattedStorage(FilledStorage):
    """A block device with a file system. As a member of another storage it is left raw: no file system, no mount."""

    can_be_member: ClassVar[bool] = True

    filesystem: FilesystemName = Field(default="ext4", description="File system that is made.")
    mkfs_options: tuple[str, ...] = Field(
        default=(),
        description="Further arguments of mkfs: those that name no file and no device.",
        examples=[["-m", "reflink=0"]],
    )
    mount_options: MountOptions = Field(
        default=(), description="Mount options: those that name no file and no device.", examples=[["noatime"]]
    )
    queue: QueueSpec = Field(default_factory=QueueSpec, description="Knobs of the block device.")

    @model_validator(mode="after")
    def _mkfs_takes_its_options(self) -> "FormattedStorage":
        try:
            check_mkfs_options(self.filesystem, self.mkfs_options)
        except ValueError as error:
            raise ValueError(f"mkfs_options: {error}") from error
        return self


class PlacedStorage(StorageBase):
    """A storage whose bytes are in files, which are stored on another storage or in a directory."""

    path: str | None = Field(
        default=None,
        description="An existing directory to put its files in. Default: Plinth's work directory.",
        examples=["/mnt/nvme0"],
    )
    on: Name | None = Field(
        default=None, description="Another storage to put its files on, in place of path.", examples=["disk"]
    )

    @model_validator(mode="after")
    def _one_place(self) -> "PlacedStorage":
        if self.path is not None and self.on is not None:
            raise ValueError("give path or on, not both: its files are in one place")
        return self

    def references(self) -> Iterator[Reference]:
        """Return the storage that its files are stored on."""
        if self.on is not None:
            yield Reference(("on",), self.on, "base")


class CountedStorage(StorageBase):
    """A storage of a size of its own, of which there may be several that are alike."""

    size_bytes: SizeBytes = Field(
        alias="size", ge=2**20, multiple_of=_SECTOR_BYTES, description="Size of each.", examples=["8GiB"]
    )
    count: int = Field(
        default=1,
        ge=1,
        le=64,
        description="That many alike, as members of another storage; a member list that names it takes all.",
    )


class VolumeStorage(StorageBase):
    """Storage on a real volume, whose provider may give it credits for bursts."""

    baseline_iops: int | None = Field(
        default=None,
        ge=1,
        description="Requests a second that the provider states as the volume's baseline: the report then says which trials spent credits.",
        examples=[300],
    )
    burst_iops: int | None = Field(
        default=None, ge=1, description="The most requests a second while it has credits.", examples=[3000]
    )
    iops_credits: int | None = Field(
        default=None, ge=1, description="The most requests above the baseline that it saves up.", examples=[5400000]
    )

    @model_validator(mode="after")
    def _bursts_above_its_baseline(self) -> "VolumeStorage":
        if self.baseline_iops is None and (self.burst_iops is not None or self.iops_credits is not None):
            raise ValueError("baseline_iops is missing, above which a volume spends its credits")
        if self.burst_iops is not None and self.baseline_iops is not None and self.burst_iops <= self.baseline_iops:
            raise ValueError(f"burst_iops: got {self.burst_iops}; must be above baseline_iops, {self.baseline_iops}")
        return self


class DirectoryStorage(VolumeStorage):
    """A directory that is there, or one that Plinth makes; nothing is formatted."""

    not_of_this_kind: ClassVar[Mapping[str, tuple[str, str]]] = {
        "fill": (
            "a directory shares its file system with all else that is there, which ballast would leave no space for",
            'use kind = "loop", which is a file system in a file of its own, or kind = "device" for a whole disk',
        )
    }

    kind: Literal["directory"]
    path: str | None = Field(
        default=None,
        description="An existing directory; a new one is made inside it. Default: Plinth's own work directory.",
        examples=["/mnt/nvme0"],
    )


class TmpfsStorage(FilledStorage):
    """A file system in memory. Without the right to mount, a directory in /dev/shm is used instead, and the report says so."""

    kind: Literal["tmpfs"]
    size_bytes: SizeBytes = Field(alias="size", description="Upper limit of the mount.", examples=["2GiB"])


class LoopStorage(FormattedStorage, PlacedStorage, CountedStorage):
    """A sparse file as a block device (loop device), with a file system on it."""

    kind: Literal["loop"]
    direct_io: bool = Field(
        default=True,
        description="The loop device reads and writes its file past the page cache (O_DIRECT), so that nothing is "
        "cached twice.",
    )


class InstanceSpec(Frozen):
    """The machine that volumes are attached to, which limits what they do together, however many they are."""

    name: Name = Field(description="The same for all volumes of one machine.", examples=["m5-large"])
    iops: int | None = Field(
        default=None, ge=1, description="Reads and writes a second of all its volumes.", examples=[3600]
    )
    bytes_per_s: BytesPerSecond | None = Field(
        default=None, alias="bandwidth", description="The same in bytes.", examples=["81MB/s"]
    )

    @model_validator(mode="after")
    def _limits_something(self) -> "InstanceSpec":
        if self.iops is None and self.bytes_per_s is None:
            raise ValueError("an instance without iops and bandwidth limits nothing: give one of them")
        return self


class EmulatedStorage(FormattedStorage, PlacedStorage, CountedStorage):
    """A disk whose speed and faults are chosen: a FUSE file that behaves like a drive, as a loop device with a file system."""

    kind: Literal["emulated"]
    profile: str = Field(
        description="The drive that it behaves like: `plinth disk profiles` shows them.", examples=["hdd-10k-sas"]
    )
    physics: Physics = Field(
        default_factory=Physics, description="What of the profile is different.", examples=[{"flush_latency": "8ms"}]
    )
    lie: Lie | None = Field(
        default=None,
        description="What it does to flushes that it acknowledges: ignore-flush, late-flush=FLUSHES, "
        "drop-fraction=FRACTION.",
        examples=["ignore-flush"],
    )
    faults: tuple[Fault, ...] = Field(
        default=(),
        description="EIO on requests, counted from when the disk is made.",
        examples=[["flush,nth=300"]],
    )
    instance: InstanceSpec | None = Field(
        default=None,
        description="The limit that it shares with the other volumes of its machine. Default: none.",
        examples=[{"name": "m5-large", "iops": 3600, "bandwidth": "81MB/s"}],
    )
    seed: int = Field(default=1, ge=0, lt=2**63, description="Seed of its latencies and faults.")


class FileStorage(PlacedStorage, CountedStorage):
    """Plain sparse files, as members: for zfs as they are, for btrfs, md and lvm through loop devices."""

    can_be_member: ClassVar[bool] = True
    is_mounted: ClassVar[bool] = False

    kind: Literal["file"]


class ZramStorage(FormattedStorage, CountedStorage):
    """A compressed RAM disk, with a file system on it."""

    kind: Literal["zram"]
    algorithm: str | None = Field(
        default=None,
        pattern=_KERNEL_NAME,
        description="Compression. Default: the kernel's.",
        examples=["lzo-rle", "zstd"],
    )


class DeviceStorage(FormattedStorage, VolumeStorage):
    """A disk or a partition. What is on it is lost: it must match in id, serial and size, and --destroy must name it."""

    not_of_this_kind: ClassVar[Mapping[str, tuple[str, str]]] = {
        "path": (
            "a whole disk is taken, by its stable name, serial number and size",
            'give id instead, a link in /dev/disk/by-id; for a folder of a file system use kind = "directory"',
        )
    }
    found_by: ClassVar[Mapping[str, str]] = {
        "id": "`ls -l /dev/disk/by-id` lists the stable names of all disks, with the device that each leads to",
        "serial": "`lsblk --nodeps --output NAME,SIZE,SERIAL` shows it",
        "size": "`lsblk --nodeps --bytes --output NAME,SIZE,SERIAL` shows it in bytes, which are written as 480103981056B in quotes",
    }
    kind: Literal["device"]
    id: str = Field(
        pattern=r"^/dev/disk/(by-id|by-partuuid)/[^/]+$",
        description="Its stable name, of a partition by PARTUUID; never /dev/sdX, which changes from boot to boot.",
        examples=["/dev/disk/by-id/nvme-Samsung_SSD_980_PRO_S4EVNF0M"],
    )
    serial: str = Field(
        min_length=1,
        description="Its serial number, whole, as the kernel shows it; of a partition that of its disk.",
        examples=["S4EWNX0N123456"],
    )
    size_bytes: SizeBytes = Field(alias="size", gt=0, description="Its size, within one percent.", examples=["480GB"])
    write_cache: Literal["on", "off"] | None = Field(
        default=None,
        description="Switch the drive's own volatile write cache (hdparm -W, sdparm WCE, nvme set-feature -f 6) for the run, and "
        "set it back afterwards. Default: left as it is.",
    )

    @model_validator(mode="after")
    def _a_partition_sets_nothing_of_its_disk(self) -> "DeviceStorage":
        asked = [*(["write_cache"] if self.write_cache else []), *(f"queue.{knob}" for knob in self.queue.knobs())]
        if asked and self.id.startswith("/dev/disk/by-partuuid/"):
            raise ValueError(f"{', '.join(asked)}: of the whole disk, and so not for a partition; set it by hand")
        return self


class BtrfsStorage(FilledStorage):
    """btrfs over several members."""

    kind: Literal["btrfs"]
    members: tuple[Name, ...] = Field(min_length=1, description="Storages that it is made of.", examples=[["a", "b"]])
    data_profile: Literal["single", "raid0", "raid1", "raid10"] = Field(
        default="single", description="How data is spread over the members."
    )
    metadata_profile: Literal["single", "dup", "raid0", "raid1", "raid10"] | None = Field(
        default=None, description="How metadata is spread. Default: mkfs's own, raid1 over several members."
    )
    mkfs_options: tuple[str, ...] = Field(
        default=(),
        description="Further arguments of mkfs.btrfs: those that name no file and no device.",
        examples=[["--nodesize", "16384"]],
    )
    mount_options: MountOptions = Field(
        default=(), description="Mount options: those that name no file and no device.", examples=[["noatime"]]
    )

    @field_validator("mkfs_options")
    @classmethod
    def _mkfs_takes_its_options(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        check_mkfs_options("btrfs", words)
        return words

    def least_members(self) -> Iterator[LeastMembers]:
        """Return those of its profiles."""
        for profile in dict.fromkeys((self.data_profile, self.metadata_profile or "single")):
            yield LeastMembers(profile, _LEAST_OF_BTRFS[profile], self.members, ("members",))

    def references(self) -> Iterator[Reference]:
        """Return its members."""
        return _members("members", self.members)


class ZfsStorage(FilledStorage):
    """A ZFS pool with one dataset in it."""

    kind: Literal["zfs"]
    data: tuple[Name | tuple[Name, ...], ...] = Field(
        min_length=1,
        description="Members for data. A list in the list is a group: layout makes one of each.",
        examples=[["a", "b"], [["a", "b"], ["c", "d"]]],
    )
    layout: Literal["stripe", "mirror", "raidz", "raidz2", "raidz3"] = Field(
        default="stripe", description="What each group is, or all of data where there are no groups."
    )
    log: tuple[Name, ...] = Field(default=(), description="Members of the intent log (SLOG).", examples=[["flash"]])
    log_layout: Literal["stripe", "mirror"] = Field(default="stripe", description="What the log's members are.")
    cache: tuple[Name, ...] = Field(
        default=(), description="Members of the second-level read cache (L2ARC).", examples=[["flash"]]
    )
    special: tuple[Name, ...] = Field(
        default=(), description="Members for metadata and small blocks.", examples=[["flash"]]
    )
    pool_properties: dict[str, str | int] = Field(
        default_factory=dict, description="zpool create -o.", examples=[{"ashift": 12}]
    )
    properties: dict[str, str | int] = Field(
        default_factory=dict, description="Properties of the dataset.", examples=[{"recordsize": "8K", "atime": "off"}]
    )

    @field_validator("pool_properties", "properties")
    @classmethod
    def _may_be_given(cls, properties: dict[str, str | int], info: ValidationInfo) -> dict[str, str | int]:
        of_pool = info.field_name == "pool_properties"
        check_properties("pool" if of_pool else "dataset", POOL if of_pool else DATASET, properties)
        return properties

    def least_members(self) -> Iterator[LeastMembers]:
        """Return those of each group of data, or of all of data where there are no groups, and of the log."""
        layout, least = f"layout {self.layout}", _LEAST_OF_ZFS[self.layout]
        if loose := tuple(entry for entry in self.data if isinstance(entry, str)):
            yield LeastMembers(layout, least, loose, ("data",))
        for index, group in enumerate(self.data):
            if not isinstance(group, str):
                yield LeastMembers(layout, least, group, ("data", index))
        if self.log:
            yield LeastMembers(f"log_layout {self.log_layout}", _LEAST_OF_ZFS[self.log_layout], self.log, ("log",))

    def references(self) -> Iterator[Reference]:
        """Return its members, of every use."""
        for use in ("data", "log", "cache", "special"):
            yield from _members(use, getattr(self, use))


class MdStorage(FormattedStorage):
    """A Linux software RAID (mdadm), with a file system on it."""

    kind: Literal["md"]
    members: tuple[Name, ...] = Field(min_length=1, description="Storages that it is made of.", examples=[["a", "b"]])
    level: Literal[0, 1, 10, 5, 6] = Field(description="RAID level.")
    chunk_size_bytes: SizeBytes | None = Field(
        default=None,
        alias="chunk_size",
        multiple_of=4096,
        description="Chunk of levels 0, 10, 5 and 6. Default: mdadm's.",
        examples=["64KiB"],
    )

    def least_members(self) -> Iterator[LeastMembers]:
        """Return those of its level."""
        yield LeastMembers(f"RAID level {self.level}", _LEAST_OF_MD[self.level], self.members, ("members",))

    def references(self) -> Iterator[Reference]:
        """Return its members."""
        return _members("members", self.members)


class LvmStorage(FormattedStorage):
    """A logical volume in a volume group of its own, with a file system on it."""

    kind: Literal["lvm"]
    members: tuple[Name, ...] = Field(min_length=1, description="Its physical volumes.", examples=[["a", "b"]])
    layout: Literal["linear", "striped"] = Field(default="linear", description="How the volume uses its members.")
    stripes: int | None = Field(default=None, ge=2, description="Members of a stripe. Default: all.", examples=[2])
    stripe_size_bytes: SizeBytes | None = Field(
        default=None,
        alias="stripe_size",
        multiple_of=4096,
        description="Size of a stripe on one member. Default: LVM's.",
        examples=["64KiB"],
    )
    size_bytes: SizeBytes | None = Field(
        default=None,
        alias="size",
        gt=0,
        description="Size of the volume. Default: all of the group.",
        examples=["100GiB"],
    )

    @model_validator(mode="after")
    def _stripes_are_for_striped(self) -> "LvmStorage":
        if self.layout == "linear" and (self.stripes is not None or self.stripe_size_bytes is not None):
            raise ValueError('stripes and stripe_size need layout = "striped"')
        return self

    def least_members(self) -> Iterator[LeastMembers]:
        """Return those of its stripes."""
        if self.layout == "striped":
            yield LeastMembers("layout striped", self.stripes or 2, self.members, ("members",))

    def references(self) -> Iterator[Reference]:
        """Return its members."""
        return _members("members", self.members)


StorageSpec = Annotated[
    DirectoryStorage
    | TmpfsStorage
    | LoopStorage
    | EmulatedStorage
    | FileStorage
    | ZramStorage
    | DeviceStorage
    | BtrfsStorage
    | ZfsStorage
    | MdStorage
    | LvmStorage,
    Field(discriminator="kind"),
]

SPECS: Mapping[str, type[StorageBase]] = {
    get_args(spec.model_fields["kind"].annotation)[0]: spec for spec in get_args(get_args(StorageSpec)[0])
}
"""The class of each kind."""
MEMBER_KINDS = tuple(kind for kind, spec in SPECS.items() if spec.can_be_member)


def count_of(spec: StorageSpec) -> int:
    """Return how many members a storage is where it is named as one."""
    return spec.count if isinstance(spec, CountedStorage) else 1


def _members(key: str, names: tuple[Any, ...]) -> Iterator[Reference]:
    """Return references of a member list, whose entries are names or groups of names."""
    for index, entry in enumerate(names):
        if isinstance(entry, str):
            yield Reference((key, index), entry, "member")
        else:
            for inner, name in enumerate(entry):
                yield Reference((key, index, inner), name, "member")
