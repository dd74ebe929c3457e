"""Facts about the host, a storage and a server, each with its source."""

from pydantic import Field

from plinth.model.base import Frozen, Gap
from plinth.model.standby import StandbyFacts


class Fact(Frozen):
    """One fact: its value as text, number or list, and the file, system call or query that it was read from."""

    name: str
    value: str | int | float | bool | list[str] | None
    source: str


class HostFacts(Frozen):
    """The facts about the machine that an experiment runs on, which planning needs."""

    cores: int
    memory_total_bytes: int
    memory_available_bytes: int
    is_root: bool
    can_mount: bool
    kernel: str
    os: str
    cpu_model: str
    facts: tuple[Fact, ...] = ()
    gaps: tuple[Gap, ...] = ()


class StackNode(Frozen):
    """One layer below a storage, the top first: mount, file system, partition, device."""

    kind: str = Field(description="mount, filesystem, partition, disk, loop, md, dm, memory, ...")
    name: str
    depth: int = Field(
        default=0, description="How many layers it is below the top: those directly below one are one deeper."
    )
    facts: tuple[Fact, ...] = ()


class StorageFacts(Frozen):
    """A storage as it was found after it was made. `stack[0]` is the mount."""

    name: str
    kind: str
    host: str | None = Field(default=None, description="The machine that it is on, by its name; None: this one.")
    path: str
    filesystem: str
    mount_options: tuple[str, ...]
    total_bytes: int
    free_bytes: int
    volatile: bool = Field(
        description="Loses at a power cut what it has acknowledged, regardless of what PostgreSQL does."
    )
    volatile_reason: str | None = None
    flushes_withheld: str | None = Field(
        default=None,
        description="Why the kernel sends no flushes to a device of it that has a cache, because it was configured so.",
    )
    block_devices: tuple[str, ...] = Field(
        default=(), description="Kernel names, as in /proc/diskstats, of every device of the stack."
    )
    stack: tuple[StackNode, ...] = ()
    notes: tuple[str, ...] = Field(
        default=(), description="What a reader must know, such as a substitute for what was asked."
    )
    gaps: tuple[Gap, ...] = ()


class Installation(Frozen):
    """A PostgreSQL installation: its programs and where it was found."""

    bindir: str
    version: str = Field(description='As `postgres --version` says it: "18.6".')
    major: int
    origin: str = Field(description="wheel, debian, bindir, path, ...")


class Setting(Frozen):
    """One row of pg_settings that was asked for or that differs from its default."""

    name: str
    asked: str | None
    value: str
    unit: str | None
    source: str
    boot_value: str | None = None


PLACES = {
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "hosts_file",
    "ident_file",
    "listen_addresses",
    "port",
    "unix_socket_directories",
}
"""Settings that Plinth makes itself and that only say where a server is: that they differ means nothing."""


class ServerFacts(Frozen):
    """A server as read from itself after it started."""

    version: str
    version_num: int
    installation: Installation | None
    run_as: str
    run_as_reason: str
    data_directory: str | None
    data_checksums: bool | None
    wal_directory: str | None = Field(
        default=None, description="Where pg_wal leads; none when the WAL is within the data directory, or not known."
    )
    tablespaces: dict[str, str] = Field(
        default_factory=dict, description="Directory of each tablespace outside of the data directory."
    )
    settings: tuple[Setting, ...]
    preloaded: tuple[str, ...] = Field(
        default=(),
        description="Libraries that LD_PRELOAD or /etc/ld.so.preload put before the server's own, of one that Plinth started.",
    )
    memory_limit_bytes: int | None = Field(
        default=None,
        description="Of its processes and their page cache, read back from the control group that they are in; None: no limit.",
    )
    standby: StandbyFacts | None = Field(default=None, description="None of a server that is no standby.")
    on_this_machine: bool | None = Field(
        default=None,
        description="Of an external server, whether it is on the machine that conducted the run: reached by a socket, by a loopback "
        "address, or with the same address at both ends. None of a managed server.",
    )
    gaps: tuple[Gap, ...] = ()
