"""The bundle's manifest: what this folder is, who wrote it, and how far the run came."""

from typing import Literal

from pydantic import AliasChoices, Field

from plinth.model.base import Frozen, Gap

BUNDLE_VERSION = 1
RunStatus = Literal["running", "complete", "interrupted", "failed"]


class Failure(Gap):
    """A storage, cluster or variant that failed, and why."""

    exit_code: int = Field(default=1, description="The exit code of the command in which it failed.")


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
        validation_alias=AliasChoices("failures", "losses"),  # as earlier builds wrote it
        description="Storages, clusters and variants that failed while the rest of the run continued.",
    )
    overrides: tuple[str, ...] = ()
