"""What the power cuts of a variant found, and those of the variants that must lose commits."""

from pydantic import Field

from plinth.model.base import Frozen, Gap
from plinth.model.choices import CutMode
from plinth.model.durability import CutMoment, DamageKind, PowerCut
from plinth.model.figures import percent
from plinth.model.units import format_count, format_decimal_size, format_duration


class CutControl(Frozen):
    """A variant that must lose commits, by facts, settings or a disk that lies, and what its power cuts found."""

    variant: str
    label: str
    expected: str = Field(description="Why it must lose commits.")
    made: int = Field(description="Power cuts of which something was learned.")
    damaged: int = Field(description="Those of them that found damage.")


class CutControls(Frozen):
    """The controls of a run with power cuts."""

    controls: tuple[CutControl, ...] = Field(description="None where the run has no variant that must lose commits.")
    sentence: str = Field(description="What they found, or that they were not run.")


class CutCount(Frozen):
    """The outcomes of the cuts of one mode at one moment."""

    moment: CutMoment
    mode: CutMode
    made: int = Field(description="Those of which something was learned.")
    damaged: int


class RecoveryFigures(Frozen):
    """How the server recovered after the power cuts of a variant: medians, by its log."""

    cuts: int = Field(description="Those of which the log says it.")
    mounted_s: float | None = Field(
        description="Until all file systems were mounted; None: only images were recovered."
    )
    before_redo_s: float
    redo_s: float
    redo_bytes: float
    redo_bytes_per_s: float | None = Field(description="None: no WAL was replayed, or in no measurable time.")
    after_redo_s: float
    session_s: float | None = Field(
        default=None,
        description="The rest of the time without connections: the server's process starts, and its first session reads the catalogs. None: "
        "only images were recovered.",
    )


class DurabilityTest(Frozen):
    """The results of the power cuts of a variant. A cut whose check failed counts neither way."""

    planned: int
    made: int = Field(description="Those of which something was learned.")
    failed: int = Field(description="Those of which nothing was; `gaps` say why.")
    dropped: int = Field(description="Of those made: the ones in which a disk lost something that it had taken.")
    damaged: int = Field(description="Of those made: the ones after which something was not as it must be.")
    images: int = Field(default=0, description="Of those made: images of an atlas; the rest are live cuts.")
    independent: int = Field(
        default=0,
        description="Live cuts and recordings: the images of one recording are not independent of one another. The bound counts these.",
    )
    grid: tuple[CutCount, ...] = Field(
        default=(),
        description="The cuts by where they fell and what was lost, in the order in which they were planned.",
    )
    kinds: dict[DamageKind, int] = Field(description="In how many cuts each kind of damage was found.")
    acknowledged: int = Field(description="Commits that had been acknowledged before the power went, in all of them.")
    lost_commits: int = Field(description="How many of those were not there afterwards.")
    most_lost_commits: int = Field(description="In one cut.")
    most_lost_time_s: float | None = Field(
        default=None,
        description="How long before a power cut the oldest of its lost commits had been acknowledged, at most; None when none "
        "was lost, and without a commit ledger.",
    )
    lost_time_bound_s: float | None = Field(
        default=None,
        description="With synchronous_commit = off: three times wal_writer_delay, which PostgreSQL's manual gives as the time whose "
        "commits a crash may lose. None with another value.",
    )
    most_lost_wal_bytes: int | None = Field(
        default=None,
        description="WAL inserted before a power cut and not there afterwards, at most, of the cuts that lost commits.",
    )
    damaged_share_at_most: float | None = Field(
        description="Upper bound of the share of cuts that do damage, with 95 % confidence, by live cuts and recordings; None "
        "without a cut."
    )
    recovery_median_s: float | None
    recovery_max_s: float | None
    recovery: RecoveryFigures | None = Field(default=None, description="None: of no cut is it known.")
    examples: tuple[PowerCut, ...] = Field(description="The first ten that found damage; the bundle has all.")
    not_checked: tuple[Gap, ...] = Field(
        description="Checks that could not be made, on which the outcome does not rest, by their reason."
    )
    gaps: tuple[Gap, ...]

    @property
    def outcome(self) -> str:
        """The outcome in a few words."""
        return f"damage in {self.damaged} of {self._cuts}"

    @property
    def _cuts(self) -> str:
        """How many cuts were made, and of how many recordings: "30 power cuts"."""
        if not self.images:
            return format_count(self.made, "power cut")
        live = self.made - self.images
        recordings = format_count(self.independent - live, "recording")
        images = f"{format_count(self.images, 'image')} of {recordings}"
        return f"{format_count(self.made, 'power cut')} ({live} live, {images})" if live else images

    @property
    def sentence(self) -> str:
        """The result in a sentence, with its bound."""
        commits = format_count(self.acknowledged, "acknowledged commit")
        if self.made == 0:
            reason = f": {self.gaps[0].reason}" if self.gaps else ""
            return f"Not tested: nothing was learned from {format_count(self.failed, 'power cut')}{reason}"
        if self.damaged == 0:
            assert self.damaged_share_at_most is not None, "cuts were made"
            return (
                f"Tested: all of {commits} were there after {self._cuts}; at most {percent(self.damaged_share_at_most, 1)} of cuts "
                f"do damage, with 95 % confidence{self._without}"
            )
        kinds = ", ".join(f"{kind} in {count}" for kind, count in self.kinds.items())
        lost = f"; {self.lost_commits} of {commits} were lost, {self.most_lost}" if self.lost_commits else ""
        return f"Tested: {self.outcome} ({kinds}){lost}{self._without}"

    @property
    def _without(self) -> str:
        """The checks on which the outcome does not rest."""
        return "".join(f"; not checked by {gap.what}: {gap.reason}" for gap in self.not_checked)

    @property
    def most_lost(self) -> str:
        """The recovery point: how much one cut lost, as "up to 312 commits, 640 ms, 1.2 MB of WAL in one cut"."""
        most = [format_count(self.most_lost_commits, "commit")]
        if self.most_lost_time_s is not None:
            most.append(format_duration(self.most_lost_time_s))
        if self.most_lost_wal_bytes is not None:
            most.append(f"{format_decimal_size(self.most_lost_wal_bytes)} of WAL")
        return f"up to {', '.join(most)} in one cut{self._and_bound}"

    @property
    def _and_bound(self) -> str:
        """The longest time of lost commits with its bound, for synchronous_commit = off."""
        if self.lost_time_bound_s is None or self.most_lost_time_s is None:
            return ""
        side = "within" if self.most_lost_time_s <= self.lost_time_bound_s else "more than"
        return f" ({side} the bound of synchronous_commit = off, 3 x wal_writer_delay = {format_duration(self.lost_time_bound_s)})"
