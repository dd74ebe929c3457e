"""What would spoil a measurement on a machine: findings, each with what was read, why it matters and how to correct it."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen, Gap
from plinth.model.facts import Fact
from plinth.model.figures import Estimate

DOCTOR_VERSION = 1
Severity = Literal["ok", "note", "warning", "problem"]
"""note: know it when you read the figures; warning: it makes them noisy or other than they seem; problem: they will
not mean what they are taken for, or nothing can be measured at all."""
SEVERITIES: tuple[Severity, ...] = ("problem", "warning", "note", "ok")
"""The most severe first."""
MACHINE = "machine"


class Remedy(Frozen):
    """How to correct a finding: commands that can be typed as they are, and those that set back what they changed."""

    commands: tuple[str, ...] = ()
    undo: tuple[str, ...] = ()
    advice: str | None = Field(default=None, description="What no command does.")


class Finding(Frozen):
    """The finding of one check."""

    id: str = Field(description='The check: "cpu.governor".')
    about: str = Field(description='"machine", or the name of the storage or path that was examined.')
    severity: Severity
    saw: str = Field(description="What was found, with its figures, for people.")
    readings: tuple[Fact, ...] = Field(description="What was read, and where.")
    why: str = Field(description="Why it matters for a measurement.")
    remedy: Remedy | None = None


class Examination(Frozen):
    """One look at the machine and at places where a data directory can be stored."""

    taken_unix_ns: int
    places: tuple[str, ...] = Field(description="Paths that were examined.")
    findings: tuple[Finding, ...]
    gaps: tuple[Gap, ...] = Field(description="Checks that could not be made, and why.")

    def at_least(self, severity: Severity) -> tuple[Finding, ...]:
        """Return the findings of this severity or a higher one, the most severe first."""
        wanted = SEVERITIES[: SEVERITIES.index(severity) + 1]
        return tuple(finding for one in wanted for finding in self.findings if finding.severity == one)


class ExpectedRatio(Frozen):
    """The smallest ratio between two variants that `repeats` trials of each would be expected to show."""

    repeats: int
    ratio: float


class WorkNoise(Frozen):
    """How much one kind of work varies when nothing was changed."""

    work: str
    what: str
    rate_per_s: Estimate = Field(description="Median over all slots.")
    pair: Estimate = Field(description="Of the two sides, which are the same: median of the ratios within blocks.")
    told_apart: bool = Field(description="The sides were distinguished although they are the same.")
    expected: tuple[ExpectedRatio, ...]


class Noise(Frozen):
    """The noise of a machine and a place: fixed work, repeated in blocks of two sides that are the same (A/A)."""

    path: str
    blocks: int
    slot_s: float = Field(description="How long each side of each work lasted in each block.")
    works: tuple[WorkNoise, ...]
    gaps: tuple[Gap, ...] = ()


class DoctorRecord(Frozen):
    """The examinations by the doctor: in env/doctor.json one before the run, and one before each resume."""

    schema_version: int = DOCTOR_VERSION
    examinations: tuple[Examination, ...]
    noise: Noise | None = Field(default=None, description="Measured when it was asked for (`plinth doctor --noise`).")
