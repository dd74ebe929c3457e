"""The emulated disk: its configuration (physics, lies, faults), and its answers.

Field names are those of crates/disk, which checks the values; docs/internals/emulated-disk.md says what they do.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from plinth.model.base import Frozen
from plinth.model.disk_recording import CutEffect, ImageSource, ImageStatus, RecordingStatus
from plinth.model.units import BytesPerSecond, LatencyNs, SizeBytes, format_duration, format_size, parse_size

ATOMIC_WRITE_BYTES = (512, 4096, 8192, 16384)
"""The units of drives: sectors, and what NVMe drives may promise beyond them."""


def _atomic_write_bytes(value: int) -> int:
    if value not in ATOMIC_WRITE_BYTES:
        raise ValueError("allowed are 512, 4096, 8192 and 16384 bytes, the units that drives write atomically")
    return value


AtomicWriteBytes = Annotated[SizeBytes, AfterValidator(_atomic_write_bytes)]


class Physics(Frozen):
    """Changes of a profile's physics. Latencies are medians; 0 as a limit is none."""

    read_latency_ns: LatencyNs | None = Field(
        default=None,
        alias="read_latency",
        description="Of a read in the electronics and, without a head, in the medium.",
        examples=["150us"],
    )
    write_latency_ns: LatencyNs | None = Field(
        default=None,
        alias="write_latency",
        description="Of a write: into the cache if there is one, else into the medium.",
        examples=["60us"],
    )
    flush_latency_ns: LatencyNs | None = Field(
        default=None,
        alias="flush_latency",
        description="Of a flush, after what is in the cache has been drained.",
        examples=["8ms"],
    )
    spread: float | None = Field(
        default=None,
        ge=0,
        le=2,
        description="Standard deviation of the logarithm of each latency, which is lognormal.",
        examples=[0.2],
    )
    channels: int | None = Field(
        default=None, ge=1, le=1024, description="Requests served at the same time; a head serves one.", examples=[8]
    )
    read_iops: int | None = Field(default=None, ge=0, description="Most reads a second.", examples=[48000])
    write_iops: int | None = Field(default=None, ge=0, description="Most writes a second.", examples=[20000])
    read_bytes_per_s: BytesPerSecond | None = Field(
        default=None,
        alias="read_bandwidth",
        description="Most bytes read a second; with a head, the rate of the medium under it.",
        examples=["540MB/s"],
    )
    write_bytes_per_s: BytesPerSecond | None = Field(
        default=None,
        alias="write_bandwidth",
        description="Most bytes written a second; with a head, the rate of the medium under it.",
        examples=["490MB/s"],
    )
    iops: int | None = Field(
        default=None,
        ge=0,
        description="Most reads and writes a second together: the baseline of a volume, at which its credits return.",
        examples=[3000],
    )
    burst_iops: int | None = Field(
        default=None, ge=0, description="The same as long as there are credits.", examples=[3000]
    )
    iops_credits: int | None = Field(
        default=None,
        ge=0,
        description="Requests beyond iops that a rested volume serves.",
        examples=[5400000],
    )
    bytes_per_s: BytesPerSecond | None = Field(
        default=None,
        alias="bandwidth",
        description="Most bytes read and written a second together: the baseline of a volume, at which its credits return.",
        examples=["125MiB/s"],
    )
    burst_bytes_per_s: BytesPerSecond | None = Field(
        default=None,
        alias="burst_bandwidth",
        description="The same as long as there are credits.",
        examples=["170MiB/s"],
    )
    bytes_credits: SizeBytes | None = Field(
        default=None,
        alias="bandwidth_credits",
        description="Bytes beyond bandwidth that a rested volume transfers.",
        examples=["100GiB"],
    )
    credit_level: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="The share of both credits that is there when a trial begins: 0 is an empty bucket, 1 a full one.",
        examples=[0],
    )
    request_bytes: SizeBytes | None = Field(
        default=None,
        alias="request_size",
        description="A request of up to so many bytes counts as one, a larger one as several; 0: every request is one.",
        examples=["256KiB"],
    )
    tail_share: float | None = Field(
        default=None,
        ge=0,
        le=0.5,
        description="The share of reads and writes that take longer than the lognormal distribution would have it.",
        examples=[0.01],
    )
    tail_shape: float | None = Field(
        default=None,
        ge=1,
        le=100,
        description="The shape of their Pareto distribution: the smaller, the longer the longest.",
        examples=[2],
    )
    cache_bytes: SizeBytes | None = Field(
        default=None,
        alias="cache_size",
        description="Size of the write cache; 0 is write-through.",
        examples=["64MiB"],
    )
    drain_bytes_per_s: BytesPerSecond | None = Field(
        default=None,
        alias="drain_bandwidth",
        description="Bytes that the cache drains to the medium in a second; a head drains as it can.",
        examples=["250MB/s"],
    )
    cache_protected: bool | None = Field(
        default=None, description="Whether the cache outlives a power cut (capacitors, batteries, copies)."
    )
    atomic_write_bytes: AtomicWriteBytes | None = Field(
        default=None,
        alias="atomic_write_size",
        description="A power cut tears a write only at a multiple of this: 512, 4096, 8192 or 16384 bytes.",
        examples=["4KiB"],
    )
    rpm: int | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="Revolutions a minute; 0 is a disk without a head.",
        examples=[7200],
    )
    track_seek_ns: LatencyNs | None = Field(
        default=None, alias="track_seek", description="Of a seek to the next track.", examples=["0.3ms"]
    )
    average_seek_ns: LatencyNs | None = Field(
        default=None,
        alias="average_seek",
        description="Mean of the seeks between random places of the whole disk.",
        examples=["7.8ms"],
    )

    def parts(self) -> list[tuple[str, str]]:
        """Return each value that is named: the key that sets it, and the value for people."""
        named = {name: value for name, value in self if value is not None}
        return [(type(self).model_fields[name].alias or name, _shown(name, value)) for name, value in named.items()]

    def words(self) -> str:
        """Return what is named, for people."""
        return ", ".join(f"{key} {value}" for key, value in self.parts())


def _shown(name: str, value: float) -> str:
    if name.endswith("_ns"):
        return format_duration(value / 1e9) if value else "0"
    if name.endswith("bytes_per_s"):
        return f"{value / 1e6:g} MB/s" if value else "no limit"
    if name == "cache_bytes":
        return format_size(value) if value else "0 (write-through)"
    if name in ("bytes_credits", "request_bytes"):
        return format_size(value) if value else "none"
    if name == "atomic_write_bytes":
        return f"{value} bytes"
    if name.endswith("iops"):
        return str(value) if value else "no limit"
    return str(value).lower()


class IgnoreFlush(Frozen):
    """Flushes are acknowledged at once, and do nothing."""

    kind: Literal["ignore-flush"] = "ignore-flush"

    @property
    def words(self) -> str:
        """The text form, as in an experiment file."""
        return self.kind


class LateFlush(Frozen):
    """Flushes are acknowledged at once, and cover only what the flush that many before should have covered."""

    kind: Literal["late-flush"] = "late-flush"
    flushes: int = Field(default=1, ge=1, description="How many flushes late.")

    @property
    def words(self) -> str:
        """The text form, as in an experiment file."""
        return f"{self.kind}={self.flushes}"


class DropFraction(Frozen):
    """Flushes leave out each write with this probability; such a write stays volatile for good."""

    kind: Literal["drop-fraction"] = "drop-fraction"
    fraction: float = Field(gt=0, le=1, description="The probability.", examples=[0.1])

    @property
    def words(self) -> str:
        """The text form, as in an experiment file."""
        return f"{self.kind}={self.fraction!r}"


_LIES = 'expected "ignore-flush", "late-flush=2" (flushes late) or "drop-fraction=0.1"'


def _lie(value: object) -> object:
    """Return the words of a lie, "late-flush=2", as its parts."""
    if not isinstance(value, str):
        return value
    kind, _, argument = value.partition("=")
    match kind, argument:
        case "ignore-flush", "":
            return {"kind": kind}
        case "late-flush", "":
            return {"kind": kind}
        case "late-flush", _:
            return {"kind": kind, "flushes": argument}
        case "drop-fraction", _ if argument:
            return {"kind": kind, "fraction": argument}
    raise ValueError(f"{_LIES}; got {value!r}")


Lie = Annotated[
    Annotated[IgnoreFlush | LateFlush | DropFraction, Field(discriminator="kind")],
    BeforeValidator(_lie, json_schema_input_type=str | IgnoreFlush | LateFlush | DropFraction),
]
"""What a disk does to flushes that it acknowledges; may be written "ignore-flush", "late-flush=2", "drop-fraction=0.1"."""


class EioFault(Frozen):
    """EIO on a request: the nth of its operation and place from now on, and `count` of them (None: all)."""

    operation: Literal["read", "write", "flush"]
    nth: int = Field(default=1, ge=1, description="The first that it strikes, from 1.")
    count: int | None = Field(default=1, ge=1, description="How many it strikes; none is all from then on.")
    offset_bytes: SizeBytes | None = Field(
        default=None, alias="offset", description="Only what touches this place,", examples=["1MiB"]
    )
    length_bytes: SizeBytes | None = Field(
        default=None, alias="length", description="of that many bytes.", examples=["4KiB"]
    )

    @property
    def words(self) -> str:
        """The text form, as in an experiment file."""
        place = "" if self.offset_bytes is None else f",offset={self.offset_bytes},length={self.length_bytes}"
        return f"{self.operation},nth={self.nth},count={'all' if self.count is None else self.count}{place}"

    @model_validator(mode="after")
    def _has_a_place_or_none(self) -> "EioFault":
        if (self.offset_bytes is None) != (self.length_bytes is None):
            raise ValueError("offset and length go together")
        if self.operation == "flush" and self.offset_bytes is not None:
            raise ValueError("a flush has no place: offset and length go with read and write")
        return self


def _fault(value: object) -> object:
    """Return the words of a fault, "read,nth=3,count=all", as its parts."""
    if not isinstance(value, str):
        return value
    operation, *rest = value.split(",")
    parts: dict[str, Any] = {"operation": operation.strip()}
    for part in rest:
        key, equals, text = (word.strip() for word in part.partition("="))
        if not equals or key not in ("nth", "count", "offset", "length"):
            raise ValueError(f"{part!r}: expected nth=, count=, offset= or length=, as in read,nth=3,count=all")
        if key in ("offset", "length"):
            parts[key] = int(text) if text.isdecimal() else parse_size(text)
        else:
            parts[key] = None if (key, text) == ("count", "all") else text
    return parts


Fault = Annotated[EioFault, BeforeValidator(_fault, json_schema_input_type=str | EioFault)]
"""A fault; may be written "flush,nth=3" or "read,offset=1MiB,length=4KiB,count=all"."""


class InstanceLimits(Frozen):
    """What the volumes of an instance may do together, by a file that their daemons share."""

    file: str
    iops: int = Field(default=0, ge=0, description="Reads and writes a second; 0 is no limit.")
    bytes_per_s: int = Field(default=0, ge=0, description="Bytes read and written a second; 0 is no limit.")


class DiskConfig(Frozen):
    """The disk to serve, and where: the arguments of `plinth disk serve`."""

    profile: str
    physics: Physics = Field(default_factory=Physics)
    size_bytes: SizeBytes
    backing: str = Field(description="The sparse file of the data; made when it is not there.")
    mount: str = Field(description="The directory to mount on.")
    control: str = Field(description="Path of the control socket, at most 107 bytes.")
    label: str = Field(
        pattern=r"^[A-Za-z0-9_.-]{1,100}$", description="Source of the mount, as the mount table shows it."
    )
    seed: int = Field(default=1, ge=0, lt=2**63)
    lie: Lie | None = None
    faults: tuple[Fault, ...] = ()
    image: ImageSource | None = Field(
        default=None, description="The content that the disk begins with; the backing file, empty then, is its overlay."
    )
    instance: InstanceLimits | None = Field(default=None, description="The limit that it shares with other volumes.")


class DepthOne(Frozen):
    """The speed that results from a profile's physics: medians with one request at a time, of 8 KiB each."""

    random_read_ns: int
    random_write_ns: int
    log_write_ns: int = Field(description="A write behind the one before it, and a flush.")


class DiskProfile(Frozen):
    """A disk of a kind, as shipped."""

    name: str
    stands_for: str
    physics: Physics
    sources: tuple[tuple[str, str], ...] = Field(description="What numbers, and where they are from.")
    depth_one: DepthOne


class FaultState(EioFault):
    """An armed fault, the requests of its operation and place that it has seen, and those of them that it struck."""

    seen: int
    fired: int


class DiskCredits(Frozen):
    """The credits of a volume that are left."""

    requests: int = Field(description="Requests beyond the baseline.")
    bytes: int = Field(description="Bytes beyond the baseline.")


class DiskStatus(Frozen):
    """The state of a served disk."""

    pid: int
    label: str
    profile: str
    size_bytes: int
    backing: str
    mount: str
    control: str
    seed: int
    power: Literal["on", "off"]
    physics: Physics = Field(description="In force now, all of them.")
    lie: Lie | None
    faults: tuple[FaultState, ...]
    cache_dirty_bytes: int = Field(description="Written, and lost if the power were cut now by mode drop.")
    cache_capacity_bytes: int
    credits: DiskCredits = Field(default=DiskCredits(requests=0, bytes=0), description="Of a volume that has any.")
    recording: RecordingStatus | None
    image: ImageStatus | None
    counters: dict[str, int] = Field(description="Requests, bytes, delays, faults fired, from the start.")


class CutReport(CutEffect):
    """The result of a power cut."""

    requests_failed: int = Field(description="Requests that had not ended, and got EIO.")
