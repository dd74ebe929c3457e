"""The records of a witness on another machine, and the result of comparing them with the database after a power cut.

A load on the machine under test, or near it, sends its commit ledger to a witness while it runs: a round. When the
machine has lost its power, the witness knows what had been acknowledged.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from plinth.model.base import Frozen
from plinth.model.commit_ledger import LedgerCheck
from plinth.model.durability import Damage, IntegrityCheck
from plinth.model.figures import percent
from plinth.model.load_config import MAX_CLIENTS, MAX_THREADS
from plinth.model.units import format_count, format_duration

PROTOCOL_VERSION = 1
WITNESS_VERSION = 1
_Text = Annotated[str, Field(max_length=256)]

LoadEnd = Literal["complete", "interrupted", "load failed", "server lost"]
"""The end of a load, where it could still report it. "server lost": its connections to the server broke."""
RoundEnd = Literal[LoadEnd, "witness ended", "disconnected", "silent"]
"""The end of a round, for the witness. "disconnected", "silent": the load did not end it; its connection broke, or no
more messages came."""
POSSIBLE_CUTS: tuple[RoundEnd | None, ...] = ("server lost", "disconnected", "silent", None)
"""Ends after which the machine may have lost its power in the load. None: the witness was killed."""
RISKY_SETTINGS = {
    "fsync": "nothing is flushed, and commits are lost by design",
    "synchronous_commit": "acknowledged commits of the last moments are lost by design",
    "full_page_writes": "pages that a power cut tears are not repaired",
}
"""Settings that make a loss no fault of the drive when they are off."""


class TestedServer(Frozen):
    """The server of a round, and the machine that it runs on, as of the start of the load."""

    __test__ = False  # for pytest, which takes the name for a test's

    system_identifier: str = Field(pattern=r"^[0-9]{1,20}$", description="Of the cluster, by pg_control_system().")
    database: _Text
    database_oid: int = Field(ge=1, lt=2**32)
    schema_name: _Text = Field(description="Where the tables of the ledger are.")
    version: _Text
    started_unix_us: int = Field(ge=0, lt=2**63, description="When the postmaster was started, by its own clock.")
    began_unix_us: int = Field(ge=0, lt=2**63, description="When it was asked, before the load, by its own clock.")
    boot_id: _Text | None = Field(
        description="/proc/sys/kernel/random/boot_id of its machine; None: the role may not read it."
    )
    settings: dict[_Text, _Text] = Field(max_length=32)

    @property
    def risks(self) -> list[str]:
        """Settings by which acknowledged commits may be lost on any drive, for people."""
        return [f"{name} = off: {why}" for name, why in RISKY_SETTINGS.items() if self.settings.get(name) == "off"]


class Hello(Frozen):
    """The first message of a load to the witness."""

    protocol: int
    token: _Text = Field(repr=False)
    plinth_version: _Text
    clients: int = Field(ge=1, le=MAX_CLIENTS)
    threads: int = Field(ge=1, le=MAX_THREADS)
    server: TestedServer


class Welcome(Frozen):
    """The witness's answer: the round that it has begun."""

    number: int = Field(ge=1)
    round_id: str = Field(pattern=r"^[0-9a-f]{32}$")


class Ended(Frozen):
    """The last message of a load."""

    end: LoadEnd


class WitnessRound(Frozen):
    """A load that a witness recorded; NNNN/round.json of its folder."""

    schema_version: Literal[1] = WITNESS_VERSION
    number: int = Field(ge=1)
    round_id: str = Field(description="Also in the table plinth_ledger_round of the database.")
    peer: str = Field(description="Address of the load.")
    plinth_version: str
    clients: int = Field(ge=1, le=MAX_CLIENTS)
    threads: int = Field(ge=1, le=MAX_THREADS)
    server: TestedServer
    started_unix_ns: int
    ended_unix_ns: int | None = None
    end: RoundEnd | None = Field(default=None, description="None: the load is alive, or the witness was killed.")


class VerifiedRound(Frozen):
    """A round compared with the database after the restart; NNNN/verified.json of a witness's folder."""

    schema_version: Literal[1] = WITNESS_VERSION
    number: int = Field(ge=1)
    verified_unix_ns: int
    server_version: str | None = Field(description="None: the server did not start.")
    has_rebooted: bool | None = Field(
        description="Whether the server's machine has booted since the load began; None: not known."
    )
    not_a_cut: str | None = Field(description="Why the round does not count as a power cut; None when it does.")
    ledger: LedgerCheck | None = Field(description="None: the server, or the tables, could not be read.")
    acknowledged: int = Field(ge=0, description="Commits that the witness knows to have been acknowledged.")
    lost_time_s: float | None = Field(
        default=None,
        description="How long before the last commit that the witness knows to have been acknowledged the oldest of the lost ones "
        "was; None when none is lost.",
    )
    damage: tuple[Damage, ...] = Field(description="What else is not as it must be.")
    checks: tuple[IntegrityCheck, ...] = ()

    @property
    def lost(self) -> int:
        """Acknowledged commits that are missing."""
        return 0 if self.ledger is None else self.ledger.lost

    @property
    def is_damaged(self) -> bool:
        """Whether any damage was found."""
        return bool(self.damage) or (self.ledger is not None and not self.ledger.is_clean)

    @property
    def kinds(self) -> list[str]:
        """The kinds of all findings."""
        contradictions = {} if self.ledger is None else self.ledger.counts
        return [*contradictions, *(damage.kind for damage in self.damage)]

    @property
    def evidence(self) -> list[str]:
        """The first findings of each kind, for people."""
        findings = () if self.ledger is None else self.ledger.findings
        return [
            *(finding.sentence for finding in findings),
            *(f"{damage.kind}: {one}" for damage in self.damage for one in damage.evidence),
        ]


class WitnessVerdict(Frozen):
    """The result of all verified rounds of a witness."""

    rounds: tuple[VerifiedRound, ...]
    cuts: int = Field(description="Rounds that count as power cuts.")
    damaged_cuts: int = Field(description="Of those: the ones after which something was not as it must be.")
    acknowledged: int = Field(
        description="Commits that had been acknowledged before the cuts, in all of them whose tables could be read."
    )
    lost: int = Field(description="How many of those were not there afterwards.")
    damaged_share_at_most: float | None = Field(
        description="Upper bound of the share of cuts that do damage, with 95 % confidence; None without a cut."
    )
    notes: tuple[str, ...] = Field(description="What the reader of the verdict has to know besides.")

    @property
    def damaged(self) -> Sequence[VerifiedRound]:
        """The rounds that found damage, cuts or not."""
        return [one for one in self.rounds if one.is_damaged]

    @property
    def sentence(self) -> str:
        """The result in a sentence, with its bound."""
        others = [one for one in self.damaged if one.not_a_cut is not None]
        also = "".join(f"; {', '.join(one.kinds)} in round {one.number}, which was no power cut" for one in others)
        if self.damaged_share_at_most is None:
            return f"no power cut yet{also}"
        lost = f"lost {self.lost:,} of {self.acknowledged:,} acknowledged commits"
        cuts = format_count(self.cuts, "power cut")
        if self.damaged_cuts == 0:
            bound = f"at most {percent(self.damaged_share_at_most, 1)} of cuts"
            return f"{lost} in {cuts}: {bound} do damage, with 95 % confidence{also}"
        kinds = dict.fromkeys(kind for one in self.damaged if one.not_a_cut is None for kind in one.kinds)
        back_s = max((one.lost_time_s or 0.0 for one in self.rounds if one.not_a_cut is None), default=0.0)
        back = f", up to {format_duration(back_s)} back" if self.lost else ""
        return f"{lost} in {cuts}{back}; {self.damaged_cuts} of them did damage ({', '.join(kinds)}){also}"
