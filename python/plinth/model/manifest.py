"""The bundle's manifest: what this folder is, who wrote it, and how far the run came."""

from typing import Literal

from pydantic import Field

from plinth.model.base import Frozen, Gap

BUNDLE_VERSION = 1
RunStatus = Literal["running", "complete", "interrupted", "failed"]


class Loss(Gap):
    """A storage or cluster that a run could not make, or that broke, and why."""

    exit_code: int = Field(default=1, description="What the command that lost it ended with.")


class Manifest(Frozen):
    """manifest.json. Whether a trial counts is told by its folder, not by this file."""

    schema_version: int = BUNDLE_VERSION
    plinth_version: str
    run_id: str
    experiment: str
    created_unix_ns: int
    ended_unix_ns: int | None = None
    status: RunStatus
    reason: str | None = None
    losses: tuple[Loss, ...] = Field(
        default=(), description="Storages and clusters that could not be made or that broke, while the rest went on."
    )
    overrides: tuple[str, ...] = ()
