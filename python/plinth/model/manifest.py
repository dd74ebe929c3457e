"""The bundle's manifest: what this folder is, who wrote it, and how far the run came."""

from typing import Literal

from plinth.model.base import Frozen

BUNDLE_VERSION = 1
RunStatus = Literal["running", "complete", "interrupted", "failed"]


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
    overrides: tuple[str, ...] = ()
