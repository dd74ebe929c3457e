"""The bundle's manifest: what this folder is, who wrote it, and how far the run came."""

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen, Gap
from plinth.model.plan import PlannedTrial

BUNDLE_VERSION = 1
RunStatus = Literal["running", "complete", "interrupted", "failed"]


class Failure(Gap):
    """A storage, cluster or variant that failed, and why."""

    exit_code: int = Field(default=1, description="The exit code of the command in which it failed.")


class TrialsEnd(Frozen):
    """Why the trials of an experiment with measure.target ended before the last one planned."""

    block: int = Field(
        ge=1, description="The last block that was run; the trials planned for later ones are not missing."
    )
    reason: Literal["decided", "budget"] = Field(
        description="decided: every comparison was; budget: the next block would have exceeded measure.budget."
    )
    open_comparisons: int = Field(default=0, ge=0, description="How many were not decided.")


class Manifest(Frozen):
    """manifest.json. Whether a trial counts is recorded in its folder, not in this file."""

    schema_version: int = BUNDLE_VERSION
    plinth_version: str
    run_id: str
    experiment: str
    created_unix_ns: int
    ended_unix_ns: int | None = None
    status: RunStatus
    reason: str | None = None
    failures: tuple[Failure, ...] = Field(
        default=(),
        description="Storages, clusters and variants that failed while the rest of the run continued.",
    )
    overrides: tuple[str, ...] = ()
    trials_end: TrialsEnd | None = Field(default=None, description="None where all planned trials were to be run.")

    def expected_trials(self, planned: Iterable[PlannedTrial]) -> list[PlannedTrial]:
        """Return the planned trials that a complete run has."""
        return [one for one in planned if self.trials_end is None or one.block <= self.trials_end.block]
