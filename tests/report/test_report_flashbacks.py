"""Snapshots in words."""

from plinth.model.durability import Damage, IntegrityCheck
from plinth.model.flashback import Flashback
from plinth.report.sections.flashbacks import flashback_sentence, flashback_text


def flashback(**fields: object) -> Flashback:
    known = {
        "snapshot": "snapshot at 3 s",
        "kind": "btrfs",
        "snapshot_s": 0.03,
        "restore_s": 0.02,
        "recovery_s": 0.4,
        "acknowledged": 1000,
        "undone": 1500,
        "undone_s": 7.0,
        "may_lose": None,
        "checks": (IntegrityCheck(name="amcheck"),),
    }
    return Flashback.model_validate(known | fields)


def test_the_times_are_medians_with_their_range() -> None:
    text = flashback_text("disk", [flashback(), flashback(snapshot_s=0.05, undone_s=3.0), flashback(snapshot_s=0.04)])
    assert (text.snapshots, text.kind) == (3, "btrfs")
    assert text.taken == "40 ms (30 ms to 50 ms)"
    assert text.undone == "7 s (3 s to 7 s) with 4,500 commits"
    assert flashback_sentence(flashback_text("disk", [flashback()])) == (
        "taken in 30 ms, restored in 20 ms, recovered in 400 ms; undone 7 s with 1,500 commits; "
        "lost 0 of 1,000 commits of before (none may be lost); no other damage (1 snapshot, btrfs)"
    )


def test_damage_a_loss_that_is_allowed_and_checks_that_were_not_made_are_said() -> None:
    lost = Damage(kind="lost commit", count=3, evidence=("lost commit: client 0",))
    torn = Damage(kind="torn payload", count=2, evidence=("torn payload: client 0",))
    text = flashback_text("disk", [flashback(damage=(lost, torn), may_lose="fsync = off promises nothing")])
    assert text.commits == "lost 3 of 1,000 commits of before (a loss is allowed: fsync = off promises nothing)"
    assert text.damage == "torn payload: 2"
    skipped = flashback(checks=(IntegrityCheck(name="amcheck", not_run="there is no amcheck"),))
    assert flashback_text("disk", [skipped]).damage == "no other damage (not checked: amcheck: there is no amcheck)"


def test_a_server_that_did_not_come_up_has_no_time_of_recovery() -> None:
    refused = Damage(kind="recovery refused", count=1, evidence=("PANIC: could not locate a valid checkpoint record",))
    text = flashback_text("disk", [flashback(recovery_s=None, damage=(refused,)), flashback()])
    assert text.recovered == "400 ms, not in 1 of 2"
    assert text.damage == "recovery refused: 1"
