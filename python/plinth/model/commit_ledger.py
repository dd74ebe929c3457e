"""The result of comparing the commit ledger with the database."""

from typing import Literal, get_args

from pydantic import Field

from plinth.model.base import Frozen
from plinth.model.units import format_count

CommitClass = Literal["indeterminate", "acknowledged", "local_only", "aborted", "prepared"]
"""The answer to a client that sent COMMIT or PREPARE TRANSACTION: nothing; COMMIT; that it has committed without its standby;
ROLLBACK or an error; PREPARE TRANSACTION. In the order of their numbers in the file."""
COMMIT_CLASSES: tuple[CommitClass, ...] = get_args(CommitClass)

FindingKind = Literal[
    "lost commit",
    "local-only commit lost",
    "resurrected abort",
    "partial transaction",
    "duplicate",
    "torn payload",
    "never sent",
]
FINDING_KINDS: tuple[FindingKind, ...] = get_args(FindingKind)


class LedgerFinding(Frozen):
    """A transaction whose state in the database contradicts the ledger. Times are of CLOCK_MONOTONIC."""

    kind: FindingKind
    client: int
    number: int
    commit_class: CommitClass | None = Field(
        description="The answer that the client got; None: it never sent the commit."
    )
    sent_ns: int | None = Field(default=None, description="When the message with the commit was about to be sent.")
    answered_ns: int | None = Field(default=None, description="When the answer had been read; None without one.")
    detail: str = Field(description="What the database has, for people.")

    @property
    def sentence(self) -> str:
        """A sentence that names the transaction and what is wrong with it."""
        told = "never sent" if self.commit_class is None else self.commit_class.replace("_", " ")
        sent = "" if self.sent_ns is None else f", sent at {self.sent_ns} ns"
        answered = "" if self.answered_ns is None else f", answered at {self.answered_ns} ns"
        return f"{self.kind}: client {self.client}, number {self.number} ({told}{sent}{answered}): {self.detail}"


class CommitTimeline(Frozen):
    """Acknowledged commits by when they were acknowledged, in bins of one width of which the last one ends at the power cut."""

    bin_s: float = Field(gt=0)
    kept: tuple[int, ...] = Field(description="By bin, those that are there.")
    lost: tuple[int, ...] = Field(description="By bin, those that are missing.")


class LedgerCheck(Frozen):
    """A ledger compared with the tables of a database."""

    acknowledged: int = Field(
        description="Transactions that were acknowledged without a warning, by COMMIT, PREPARE TRANSACTION or COMMIT PREPARED."
    )
    local_only: int
    aborted: int
    indeterminate: int
    indeterminate_there: int = Field(description="Of the indeterminate ones, those that have committed.")
    unheard_there: int = Field(
        default=0,
        description="Rows of transactions that were sent after the last of their client that a witness recorded: as good as "
        "indeterminate.",
    )
    rows: int = Field(description="Rows that were found.")
    counts: dict[FindingKind, int] = Field(
        description="Everything that was found, by kind; without kinds of which nothing was."
    )
    oldest_lost_ns: int | None = Field(
        default=None,
        description="CLOCK_MONOTONIC when the first of the lost commits had been acknowledged; None when none is lost.",
    )
    timeline: CommitTimeline | None = Field(
        default=None,
        description="The time in which commits were lost, and as long before it; None when none is lost, and where it is "
        "not known when the power went.",
    )
    findings: tuple[LedgerFinding, ...] = Field(description="The first findings of each kind, by client and number.")
    has_ended: bool = Field(description="Whether the load wrote its ledger to the end, or was killed.")

    @property
    def lost(self) -> int:
        """Acknowledged commits that are missing."""
        return self.counts.get("lost commit", 0)

    @property
    def is_clean(self) -> bool:
        """Whether the database has what the ledger demands, and nothing that it rules out."""
        return not self.counts

    @property
    def summary(self) -> str:
        """A summary for people: lost commits first, then all other findings."""
        lost = f"{self.lost:,} of {format_count(self.acknowledged, 'acknowledged commit')} are missing"
        others = [f"{kind}: {count:,}" for kind, count in self.counts.items() if kind != "lost commit"]
        return "; ".join([lost, *others])
