"""Errors of storage in a run: how an experiment asks for them, which are planned, and what the server and its commits made of each."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen
from plinth.model.durability import Damage, IntegrityCheck
from plinth.model.units import DurationS

IO_ERROR_VERSION = 1
IoErrorKind = Literal["read", "write", "flush", "bad-sectors", "full", "quota", "hang", "shutdown"]
"""read, write, flush: the disk answers such requests with EIO. bad-sectors: it answers writes to the largest table or index that it
holds, or to the segments of WAL, so, and no others, such as those of the file system itself. full: no space is left (ENOSPC). quota: a quota is used up (EDQUOT). hang: the disk
answers nothing.
shutdown: the file system gives up, as after an error in its own metadata: it writes nothing more, and answers with EIO."""
HowOften = Literal["once", "always"]
"""once: one request; always: every one until the storage works again."""
Holds = Literal["data", "wal", "tablespace"]
_HELD: dict[Holds, str] = {"data": "the data", "wal": "the WAL", "tablespace": "a tablespace"}
_LARGEST: dict[Holds, str] = {"data": "the largest table", "tablespace": "the largest file of a tablespace"}
_ALWAYS: tuple[HowOften, ...] = ("always",)
ServerAnswer = Literal["PANIC", "FATAL", "ERROR", "waits", "nothing"]
"""The most severe message that the server has logged about the storage; "waits": none, and no transaction ended; "nothing": none, and
transactions ended."""
CameBack = Literal["went on", "recovered", "restarted", "remounted", "never"]
"""How transactions were done again once the storage worked: the server went on; it recovered from a crash; it was ended and
started again; its file systems were mounted again, too; or never."""
_OF_REQUESTS: tuple[IoErrorKind, ...] = ("read", "write", "flush", "bad-sectors")
_NOT_ON_BTRFS: tuple[IoErrorKind, ...] = ("bad-sectors", "shutdown")
"""It does not say where on a disk a file is, and cannot be told to give up."""
_ONLY_ON_BTRFS: tuple[IoErrorKind, ...] = ("quota",)
"""Its quotas can be switched on while it is mounted, and need no support in the kernel but its own."""


class IoErrorSpec(Frozen):
    """Errors of the storages of each variant, after its trials: what the server does, whether it comes back, which commits are lost."""

    errors: tuple[IoErrorKind, ...] = Field(
        default=("read", "write", "flush", "bad-sectors", "full", "quota", "hang", "shutdown"),
        min_length=1,
        description="In turn: read, write, flush, the disk answers such requests with EIO; bad-sectors, it answers writes to the largest "
        "table or index there, or to the segments of WAL, so, and no others; full, no space is left (ENOSPC); quota, a quota is used up (EDQUOT); hang, the disk "
        "answers nothing; shutdown, the file system gives up, as after an error in its own metadata. bad-sectors and shutdown are not made "
        "on btrfs, and quota only there.",
        examples=[["write", "flush"]],
    )
    times: tuple[HowOften, ...] = Field(
        default=("once", "always"),
        min_length=1,
        description="Of errors of requests: once, one request fails; always, every one fails until the storage works again.",
        examples=[["always"]],
    )
    holds: tuple[Holds, ...] = Field(
        default=("data", "wal", "tablespace"),
        min_length=1,
        description="The storage of the data directory, that of the WAL, and that of the first of server.tablespaces that has one of "
        "its own; each where it is another.",
        examples=[["wal"]],
    )
    lasts_s: DurationS = Field(
        default=3.0,
        alias="lasts",
        gt=0,
        le=600,
        description="How long it takes until the storage works again. Default: 3 s.",
        examples=["10s"],
    )
    back_within_s: DurationS = Field(
        default=10.0,
        alias="back_within",
        gt=0,
        le=3600,
        description="How long the server may take to commit again once the storage works, before it is ended and started again; as long "
        "again after that, before its file systems are mounted again. Default: 10 s.",
        examples=["1min"],
    )
    recovery_limit_s: DurationS = Field(
        default=60.0,
        alias="recovery_limit",
        gt=0,
        description="How long the recovery at the end may take. Default: 1 min.",
        examples=["5min"],
    )

    def kinds(self, filesystems: Mapping[Holds, str]) -> Iterator[tuple[IoErrorKind, HowOften, Holds]]:
        """Yield what is done to one variant, in order. `filesystems` are those of its storages; what is missing is with the data."""
        places: list[Holds] = [one for one in self.holds if one in filesystems] or ["data"]
        for error, holds in product(self.errors, places):
            if not can_be_made(error, filesystems[holds]):
                continue
            for times in self.times if error in _OF_REQUESTS else _ALWAYS:
                yield error, times, holds


def can_be_made(error: IoErrorKind, filesystem: str) -> bool:
    """Return whether a storage with this file system can have such an error."""
    return error not in (_NOT_ON_BTRFS if filesystem == "btrfs" else _ONLY_ON_BTRFS)


class PlannedIoError(Frozen):
    """One error of a storage of `variant`; `number` is its place in the order of running, from 1."""

    number: int
    variant: str
    seed: int = Field(ge=0, lt=2**63, description="Of the load.")
    error: IoErrorKind
    times: HowOften
    holds: Holds = Field(description="What the storage holds: the data directory, the WAL, or a tablespace.")

    @property
    def words(self) -> str:
        """What happens, for people."""
        where = f"the storage of {_HELD[self.holds]}"
        match self.error:
            case "full":
                return f"no space on {where}"
            case "quota":
                return f"a quota is used up on {where}"
            case "hang":
                return f"{where} answers nothing"
            case "shutdown":
                return f"the file system of {where} gives up"
            case "bad-sectors":
                if self.times == "once":
                    what = "segment of WAL" if self.holds == "wal" else f"part of {_LARGEST[self.holds]}"
                    return f"EIO on the first write to each {what}"
                return f"EIO on every write to {'segments of WAL' if self.holds == 'wal' else _LARGEST[self.holds]}"
            case _:
                return f"EIO on {'one' if self.times == 'once' else 'every'} {self.error} of {where}"


class IoErrorResult(PlannedIoError):
    """One error of a storage, and what came of it; io-errors/NNNNN.json of a bundle.

    At the end the disks lose what no flush had made durable, so that a page that was lost in the kernel is not read from its page cache.
    """

    schema_version: int = IO_ERROR_VERSION
    started_unix_ns: int
    struck: int | None = Field(
        default=None, description="Requests that failed; None where the error is not of single requests."
    )
    server: ServerAnswer | None = Field(default=None, description="What the server did; None where it was not seen.")
    said: tuple[str, ...] = Field(
        default=(), description="The first lines of its log about the storage, each kind once."
    )
    clients: tuple[str, ...] = Field(default=(), description="What clients were answered, with how often.")
    came_back: CameBack | None = None
    back_s: float | None = Field(
        default=None,
        description="From the storage working again until a transaction was committed; None: it never was.",
    )
    acknowledged: int = Field(default=0, ge=0, description="Transactions whose commit had been acknowledged.")
    damage: tuple[Damage, ...] = ()
    checks: tuple[IntegrityCheck, ...] = ()
    failure: str | None = Field(default=None, description="Why nothing was learned from it.")

    @property
    def was_tested(self) -> bool:
        """Whether something was learned."""
        return self.failure is None or bool(self.damage)

    @property
    def lost_commits(self) -> int:
        """Acknowledged transactions that are not there."""
        return sum(one.count for one in self.damage if one.kind == "lost commit")


class IoErrorText(Frozen):
    """One error of a storage in words."""

    variant: str
    error: str
    server: str
    said: str
    back: str
    commits: str
    damage: str


_SEED_STRIDE = 1_000_037


def order_io_errors(
    variants: Mapping[str, Mapping[Holds, str]], spec: IoErrorSpec | None, seed: int
) -> list[PlannedIoError]:
    """Return the errors in the order in which they are made. `variants` have the file systems of their storages; errors of one round are
    alike."""
    if spec is None:
        return []
    asked = [(variant, kind) for variant, filesystems in variants.items() for kind in spec.kinds(filesystems)]
    rounds = list(dict.fromkeys(kind for _, kind in asked))
    in_order = [(variant, kind) for kind in rounds for variant, own in asked if own == kind]
    return [
        PlannedIoError(
            number=number,
            variant=variant,
            seed=(seed * _SEED_STRIDE + rounds.index(kind)) % 2**63,
            error=kind[0],
            times=kind[1],
            holds=kind[2],
        )
        for number, (variant, kind) in enumerate(in_order, start=1)
    ]
