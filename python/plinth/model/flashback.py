"""Snapshots of a server's storage that are taken while the load runs, and what going back to them restored."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from plinth.model.action_base import TimedAction
from plinth.model.base import Frozen, SettingValue
from plinth.model.durability import Damage, IntegrityCheck
from plinth.model.write_facts import UNKNOWN, canonical


class SnapshotAction(TimedAction):
    """A snapshot of all files of the primary, taken by their storage while the load runs. When the load has ended the files go back to
    it, the server recovers, and the commit ledger is compared with what is there."""

    do: Literal["snapshot"]

    def what(self) -> str:
        """Return a description of the action."""
        return "snapshot"


class Flashback(Frozen):
    """One snapshot, and what was found when the files had gone back to it. What going back is meant to undo is no loss."""

    snapshot: str = Field(description='The action and its time, as "snapshot at 3 s".')
    kind: Literal["btrfs", "ZFS"] = Field(
        description="btrfs: of the subvolume that the data directory is; ZFS: of the dataset that everything is stored on."
    )
    snapshot_s: float = Field(ge=0, description="How long taking it took, while the load ran.")
    restore_s: float = Field(ge=0, description="From the stopped server until its files were those of the snapshot.")
    recovery_s: float | None = Field(
        description="From there to a server that takes connections; None: it did not come up."
    )
    acknowledged: int = Field(ge=0, description="Commits that were acknowledged before the snapshot was begun.")
    undone: int = Field(ge=0, description="Commits that were acknowledged later, before the load ended.")
    undone_s: float = Field(ge=0, description="The time between the snapshot and the last commit of the load.")
    may_lose: str | None = Field(
        description="Why commits from before the snapshot may be missing; None: none of them may be."
    )
    damage: tuple[Damage, ...] = Field(
        default=(),
        description="What contradicts the ledger as it was when the snapshot was taken (never sent: sent after it), and what the "
        "checks of the database found.",
    )
    checks: tuple[IntegrityCheck, ...] = ()

    @property
    def lost(self) -> int:
        """Commits that were acknowledged before the snapshot and are missing."""
        return sum(one.count for one in self.damage if one.kind == "lost commit")


class FlashbackText(Frozen):
    """The snapshots of the trials of a variant, in words; times are medians."""

    variant: str
    snapshots: int
    kind: str
    taken: str = Field(description="How long taking one took.")
    restored: str = Field(description="How long the files took to go back.")
    recovered: str = Field(description="How long the server took to recover.")
    undone: str = Field(description="How far that was: commits that were undone, as meant.")
    commits: str = Field(description="Commits of before that are missing, and whether any may be.")
    damage: str = Field(description="Everything else that was found.")


def may_lose_by_snapshot(settings: Mapping[str, SettingValue]) -> str | None:
    """Return why commits that were acknowledged before a snapshot may be missing in it, with these settings; None: they may not be."""
    found = {name.lower(): canonical(value) for name, value in settings.items()}
    if found.get("fsync") == "off":
        return "fsync = off promises nothing after a crash"
    if found.get("synchronous_commit") == "off":
        return "synchronous_commit = off does not wait for the local flush"
    if found.get("synchronous_commit") == UNKNOWN:
        return "synchronous_commit is set to a value that only shows while it runs"
    return None
