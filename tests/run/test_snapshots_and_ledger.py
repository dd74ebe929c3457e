"""What a snapshot has to have, from the ledger of a load, and what is said of it."""

import numpy as np
import pytest

from plinth.model.commit_ledger import COMMIT_CLASSES
from plinth.model.durability import Damage
from plinth.model.flashback import Flashback, may_lose_by_snapshot
from plinth.run.trial.flashback import flashback_checks, ledger_of_snapshot
from plinth.workload.commit_ledger import RECORD, CommitLedger

BEGAN_NS, ENDED_NS = 1000, 2000


def ledger(*commits: tuple[int, int]) -> CommitLedger:
    """Of acknowledged commits, by when they were sent and answered."""
    records = np.zeros(len(commits), dtype=np.dtype(RECORD))
    for number, (record, (sent, answered)) in enumerate(zip(records, commits, strict=True), 1):
        record["number"], record["sent_ns"], record["answered_ns"] = number, sent, answered
        record["class"] = COMMIT_CLASSES.index("acknowledged")
    return CommitLedger(records, has_ended=True, started_ns=0, started_unix_ns=0)


@pytest.mark.parametrize(
    ("sent_ns", "answered_ns", "found"),
    [
        (100, 900, "acknowledged"),
        (900, 1000, "acknowledged"),
        (900, 1001, "indeterminate"),  # on its way when the snapshot was begun
        (1500, 1600, "indeterminate"),  # while it was taken
        (2000, 2100, "indeterminate"),
        (2001, 2100, None),  # it may not be there
    ],
)
def test_what_has_to_be_in_a_snapshot(sent_ns: int, answered_ns: int, found: str | None) -> None:
    known = ledger_of_snapshot(ledger((sent_ns, answered_ns)), BEGAN_NS, ENDED_NS).records
    assert [COMMIT_CLASSES[record["class"]] for record in known] == ([found] if found else [])


def flashback(*damage: Damage, may_lose: str | None = None) -> Flashback:
    return Flashback(
        snapshot="snapshot at 3 s",
        kind="btrfs",
        snapshot_s=0.01,
        restore_s=0.02,
        recovery_s=0.3,
        acknowledged=1000,
        undone=50,
        undone_s=2.0,
        may_lose=may_lose,
        damage=damage,
    )


LOST = Damage(kind="lost commit", count=2, evidence=("lost commit: client 0, number 7",))
TORN = Damage(kind="torn payload", count=1, evidence=("torn payload: client 1, number 3",))


@pytest.mark.parametrize(
    ("one", "ok"),
    [
        (flashback(), [True, True]),
        (flashback(LOST), [False, True]),
        (flashback(TORN), [True, False]),
        (flashback(LOST, may_lose="synchronous_commit = off"), [True, True]),
        (flashback(TORN, may_lose="synchronous_commit = off"), [True, False]),
    ],
)
def test_a_lost_commit_fails_where_none_may_be_lost_and_other_damage_always(one: Flashback, ok: list[bool]) -> None:
    assert [check.ok for check in flashback_checks(one)] == ok


def test_evidence_and_counts_are_in_the_checks() -> None:
    lost, other = flashback_checks(flashback(LOST, TORN))
    assert (lost.expected, lost.got) == ("0, of 1,000", "2; lost commit: client 0, number 7")
    assert (other.expected, other.got) == ("none", "torn payload: 1: torn payload: client 1, number 3")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, None),
        ({"synchronous_commit": "local"}, None),
        ({"Synchronous_Commit": False}, "does not wait for the local flush"),
        ({"fsync": "off"}, "fsync = off promises nothing"),
    ],
)
def test_when_commits_of_before_may_be_missing(settings: dict[str, str | bool], words: str | None) -> None:
    reason = may_lose_by_snapshot(settings)
    assert reason is None if words is None else reason is not None and words in reason
