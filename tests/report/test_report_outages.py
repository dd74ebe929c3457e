"""Faults of servers in words."""

import pytest

from plinth.model.outage import Failover, Outage
from plinth.model.recovery import Recovery
from plinth.report.sections.outages import outage_text


def outage(**fields: object) -> Outage:
    steps = Failover(to="a", detect_s=0.4, promote_s=0.1, first_write_s=0.02)
    known = {
        "faults": ("kill primary",),
        "primary": "a",
        "gap_s": 0.52,
        "recovered_s": 1.5,
        "failover": steps,
        "acknowledged": 1000,
        "lost": 0,
        "lost_s": None,
        "lost_wal_bytes": 0,
        "may_lose": None,
        "attempts_failed": 8,
        "connections_lost": 8,
    }
    return Outage.model_validate(known | fields)


@pytest.mark.parametrize(
    ("recovered_s", "words"),
    [
        ((1.5, 2.5), "90 % of throughput 2 s later"),
        ((0.0, 0.0), "90 % of throughput at once"),
        ((1.5, None), "90 % of throughput 1.5 s later, not by the end of the load in 1 trial"),
        ((None, None), "90 % of throughput not by the end of the load in 2 trials"),
    ],
)
def test_a_trial_whose_throughput_does_not_come_back_is_counted(
    recovered_s: tuple[float | None, float | None], words: str
) -> None:
    parts = outage_text("disk", [outage(recovered_s=one) for one in recovered_s]).parts
    assert parts == f"detect 400 ms, promote 100 ms, first write 20 ms; {words}"


def test_a_primary_that_was_started_again_says_what_it_replayed() -> None:
    recovery = Recovery(before_redo_s=0.25, redo_s=1.5, redo_bytes=16_000_000, after_redo_s=0.25)
    restarted = [outage(failover=None, recovery=recovery), outage(failover=None)]
    parts = outage_text("disk", restarted).parts
    assert parts.startswith("no failover, recovery 2 s, of which 1.5 s replayed 16 MB of WAL; 90 %")
    assert outage_text("disk", restarted[1:]).parts.startswith("no failover; 90 %")


def test_a_loss_has_its_age_only_where_it_has_one() -> None:
    allowed = "synchronous_standby_names names no standby to wait for"
    lost = outage_text("disk", [outage(lost=1, lost_s=0.0, lost_wal_bytes=352, may_lose=allowed)]).lost
    assert lost == f"lost 1 of 1,000 commits, WAL of 352 B (a loss is allowed: {allowed})"
    lost = outage_text("disk", [outage(lost=3, lost_s=0.25, lost_wal_bytes=900, may_lose=allowed), outage()]).lost
    assert lost.startswith("lost 3 of 2,000 commits, of the last 250 ms, WAL of 900 B (")
    assert outage_text("disk", [outage()]).lost == "lost 0 of 1,000 commits (none may be lost)"


def test_standbys_that_could_not_follow_are_named_with_how_often() -> None:
    rejoin = outage_text("disk", [outage(strayed=("b", "c")), outage(strayed=("b",)), outage()]).rejoin
    assert rejoin == (
        "no server came back as a standby; b had more WAL than a and could not follow it (in 2 of 3); "
        "c had more WAL than a and could not follow it (in 1 of 3)"
    )
