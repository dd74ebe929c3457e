"""Power cuts of a run: how an experiment asks for them, which are planned, and what each of them found."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from plinth.model.base import Frozen
from plinth.model.choices import CutMode
from plinth.model.commit_ledger import CommitTimeline, FindingKind
from plinth.model.disk import AtomicWriteBytes, CutReport
from plinth.model.recovery import Recovery
from plinth.model.units import DurationS
from plinth.model.write_facts import SettingSeen

POWER_CUT_VERSION = 1
CutMoment = Literal["load", "checkpoint", "recovery", "extension", "segment-switch", "control-file"]
"""What the server does when the power is cut: it serves the load; while serving the load it writes a checkpoint, extends a table,
switches to the next WAL segment, or has just written pg_control; or it recovers from the cut before."""
CutPoint = Literal["flush", "change"]
"""Where an image of a recording is taken: just after a flush was answered, or just after any write, discard or flush."""
DamageKind = Literal[
    FindingKind,
    "invariant broken",
    "heap damaged",
    "index and heap disagree",
    "visibility map wrong",
    "untouched rows changed",
    "page set back",
    "sequence set back",
    "checksum failure",
    "torn page",
    "unlogged table not reset",
    "server crashed",
    "recovery refused",
]
"""What a power cut did to the database: what contradicts the commits that were acknowledged to clients, and what the checks found.
"untouched rows changed": of rows that were there before the load and that no transaction has touched. "page set back", "sequence set back":
to what it was before then. "server crashed": while it was checked. "recovery refused": the server, or the file system below it, did not come up again."""
_ATTEMPT = "-attempt-"


class DurabilitySpec(Frozen):
    """Cuts of the power of a variant's storages, after its trials: the server recovers, and every commit is looked for."""

    cuts: int = Field(
        default=0, ge=0, le=100_000, description="Power cuts of each variant, live. Default: none.", examples=[30]
    )
    atlas: int = Field(
        default=0,
        ge=0,
        le=100_000,
        description="Images of each variant's recorded disks, each as a power cut at some moment would have left them, which are served "
        "as copies on write, recovered and checked. They need kind emulated and a commit ledger. Default: none.",
        examples=[1000],
    )
    recordings: int = Field(
        default=10,
        ge=1,
        le=10_000,
        description="Recordings of each variant, over which the images of the atlas are spread: the images of one are not independent "
        "of one another. Default: 10, and never more than images.",
        examples=[30],
    )
    record_s: DurationS = Field(
        default=2.0,
        alias="record",
        gt=0,
        le=600,
        description="How long the load of a recording runs, from the first acknowledged transaction. Default: 2 s.",
        examples=["5s"],
    )
    modes: tuple[CutMode, ...] = Field(
        default=("drop", "subset", "prefix", "torn"),
        min_length=1,
        description="What becomes of the writes that no flush has made durable, in turn: drop, all are lost; subset, each is lost or "
        "kept at random; prefix, the last ones are lost; torn, as prefix, and one is kept in part.",
        examples=[["drop", "torn"]],
    )
    moments: tuple[CutMoment, ...] = Field(
        default=("load", "checkpoint", "recovery", "extension", "segment-switch", "control-file"),
        min_length=1,
        description="When the power goes, in turn: load, at a random moment of the load; while the load runs, checkpoint, in a checkpoint, "
        "extension, while a table is extended, segment-switch, while WAL switches to the next segment, control-file, when a checkpoint "
        "has just written pg_control; recovery, once more while the server recovers from a cut in the load (live cuts only).",
        examples=[["load"]],
    )
    points: tuple[CutPoint, ...] = Field(
        default=("flush", "change"),
        min_length=1,
        description="Where the images of an atlas are taken, in turn: flush, just after a flush was answered, with all that no flush had "
        "made durable lost: at every one of a recording where there are as many images, otherwise at a seeded sample; change, just "
        "after a write, discard or flush, at random, with what `modes` say lost.",
        examples=[["flush"]],
    )
    tear_sizes: tuple[AtomicWriteBytes, ...] = Field(
        default=(512, 4096, 8192),
        min_length=1,
        description="At multiples of which bytes the images of mode torn tear a write, in turn; at those of the drive's atomic unit where "
        "that is more. 512 and 4096 tear pages, 8192 tears between the pages of one write.",
        examples=[["4KiB"]],
    )
    disks: Literal["all", "one"] = Field(
        default="all",
        description="all: every emulated disk of the variant loses its power; one: one of them, chosen at random, while the others "
        "keep what they were given.",
    )
    within_s: DurationS = Field(
        default=2.0,
        alias="within",
        gt=0,
        description="The power goes at a random moment of this time, which begins with the first acknowledged transaction.",
        examples=["5s"],
    )
    recovery_limit_s: DurationS = Field(
        default=300.0,
        alias="recovery_limit",
        gt=0,
        description="How long a recovery may take. One that takes longer is ended; nothing was learned then, and such a cut counts "
        "neither way. Default: 5 min.",
        examples=["20min"],
    )
    stop_after: int | None = Field(
        default=3,
        ge=1,
        description="Cuts of a variant that find damage, after which no more of its cuts are made. Default: 3.",
    )

    @model_validator(mode="after")
    def _tests_something(self) -> Self:
        if not self.cuts and not self.atlas:
            raise ValueError("cuts: 0 power cuts, and no image of an atlas: nothing would be tested")
        return self


class PlannedCut(Frozen):
    """One power cut of `variant`; `number` is its place in the order of running, from 1."""

    number: int
    variant: str
    seed: int = Field(ge=0, lt=2**63, description="Of the moment, of what the disks lose, and of the load.")
    mode: CutMode
    moment: CutMoment
    recording: int | None = Field(
        default=None,
        description="The recording of the variant whose image it is, from 1; None for a live cut of the disks themselves.",
    )
    attempt: int = Field(default=1, ge=1, description="As in PowerCut.")
    point: CutPoint | None = Field(default=None, description="Where the image is taken; None for a live cut.")
    tear_bytes: int = Field(
        default=0, ge=0, description="Of an image of mode torn: the write is torn at a multiple of this."
    )


class Damage(Frozen):
    """An inconsistency after a recovery."""

    kind: DamageKind
    count: int = Field(ge=1, description="Commits, rows, pages or objects, as `evidence` says.")
    evidence: tuple[str, ...] = Field(
        description="The first of them: which rows, pages, indexes, with the server's own words."
    )


class IntegrityCheck(Frozen):
    """A check of the database after a recovery."""

    name: str
    not_run: str | None = Field(default=None, description="Why it could not be made; None when it was.")


class PowerCut(Frozen):
    """One power cut and what was found after the recovery; cuts/NNNNN.json of a bundle."""

    schema_version: int = POWER_CUT_VERSION
    number: int
    variant: str
    seed: int
    mode: CutMode
    moment: CutMoment
    recording: int | None = Field(
        default=None, description="The recording of which it is an image; None for a live cut."
    )
    attempt: int = Field(
        default=1,
        ge=1,
        description="Of an image: which recording of that number it is of. A run that was interrupted while it checked the images "
        "of one makes another one for those that are left.",
    )
    point: CutPoint | None = Field(default=None, description="Where the image is taken; None for a live cut.")
    tear_bytes: int = Field(
        default=0, ge=0, description="Of an image of mode torn: the write is torn at a multiple of this."
    )
    points: tuple[int, ...] = Field(
        default=(),
        description="Of an image: the records of each disk that come before the cut (docs/internals/disk-recording.md).",
    )
    started_unix_ns: int
    disks: tuple[str, ...] = Field(
        description="The storages whose disks lost their power, each with the disk's number."
    )
    after_s: float | None = Field(description="When the power went, counted from the first acknowledged transaction.")
    reports: tuple[CutReport, ...] = Field(default=(), description="What each disk lost; none of a storage in memory.")
    acknowledged: int = Field(ge=0, description="Transactions whose commit had been acknowledged.")
    unanswered: int = Field(ge=0, description="Transactions that had no answer: each may be there or not, but whole.")
    lost_time_s: float | None = Field(
        default=None,
        description="How long before the power cut the oldest of the lost commits was acknowledged, as the commit ledger "
        "says; None when none was lost, and without a ledger.",
    )
    lost_wal_bytes: int | None = Field(
        default=None,
        description="WAL that had been inserted before the power cut and was not there for the recovery, acknowledged or not.",
    )
    timeline: CommitTimeline | None = Field(
        default=None, description="When the lost commits, and those around them, were acknowledged; as lost_time_s."
    )
    recovery_s: float | None = Field(description="From the power's return to a server that takes connections.")
    mounted_s: float | None = Field(
        default=None,
        description="Of that: until all devices were attached and all file systems mounted; None of images.",
    )
    recovery: Recovery | None = Field(
        default=None, description="What the server did meanwhile. None: its log does not say, or it did not recover."
    )
    before: dict[str, int] = Field(
        default={}, description="Figures of the dataset when the load began, which its invariants are compared with."
    )
    prepared: tuple[str, ...] = Field(
        default=(),
        description="Identifiers of the prepared transactions (PREPARE TRANSACTION) that recovery found unfinished; they were "
        "committed before the checks.",
    )
    damage: tuple[Damage, ...] = ()
    checks: tuple[IntegrityCheck, ...] = ()
    settings: tuple[SettingSeen, ...] = Field(
        default=(),
        description="The durability settings of a session after the recovery, and of the scripts' commits before.",
    )
    failure: str | None = Field(
        default=None,
        description="Why nothing was learned from this cut; such a cut counts neither way, and `plinth resume` makes it again.",
    )

    @property
    def was_tested(self) -> bool:
        """Whether something was learned: damage counts also when the checks could not be completed."""
        return self.failure is None or bool(self.damage)

    @property
    def lost_commits(self) -> int:
        """Acknowledged transactions that are not there."""
        return sum(damage.count for damage in self.damage if damage.kind == "lost commit")

    @property
    def bytes_dropped(self) -> int:
        """Bytes that the disks had accepted and lost."""
        return sum(report.bytes_dropped for report in self.reports)


def recording_name(cut: PlannedCut | PowerCut) -> str:
    """Return the folder of the recording of which a cut is an image, in recordings/ and ledgers/ of a bundle."""
    return _of_first_attempt(cut) + (f"{_ATTEMPT}{cut.attempt}" if cut.attempt > 1 else "")


def attempt_of(name: str, cut: PlannedCut | PowerCut) -> int | None:
    """Return the attempt at the recording of a cut that a folder is of, by its name; None for other folders."""
    first = _of_first_attempt(cut)
    further = name.removeprefix(first + _ATTEMPT)
    if name == first:
        return 1
    return int(further) if further != name and further.isdecimal() else None


def _of_first_attempt(cut: PlannedCut | PowerCut) -> str:
    return f"{cut.variant}-recording-{cut.recording:04d}"


def cuts_left(planned: Sequence[PlannedCut], made: Collection[PowerCut], stop_after: int | None) -> list[PlannedCut]:
    """Return the remaining cuts: none of a variant after as many as `stop_after` that found damage.

    Of an earlier run `made` are those of which something was learned (`was_tested`): the others are left.
    """
    numbers = {cut.number for cut in made}
    damaged = Counter(cut.variant for cut in made if cut.damage)
    return [
        cut
        for cut in planned
        if cut.number not in numbers and (stop_after is None or damaged[cut.variant] < stop_after)
    ]
