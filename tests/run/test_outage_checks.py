"""A trial with faults fails where a commit is missing that may not be, or the tables contradict the ledger; and only there."""

import pytest

from plinth.model.commit_ledger import LedgerCheck
from plinth.model.outage import Outage
from plinth.run.faults.outage import outage_checks
from plinth.run.trial.checks import failure_of_checks


def failure(lost: int, may_lose: str | None, **others: int) -> str | None:
    counts = {"lost commit": lost} | {kind.replace("_", " "): count for kind, count in others.items()}
    compared = LedgerCheck.model_validate(
        {
            "acknowledged": 1000,
            "local_only": 0,
            "aborted": 0,
            "indeterminate": 0,
            "indeterminate_there": 0,
            "rows": 1000 - lost,
            "counts": {kind: count for kind, count in counts.items() if count},
            "findings": (),
            "has_ended": True,
        }
    )
    outage = Outage(
        faults=("kill primary",),
        primary="a",
        gap_s=0.5,
        recovered_s=0.0,
        acknowledged=1000,
        lost=lost,
        lost_s=0.1 if lost else None,
        lost_wal_bytes=0,
        may_lose=may_lose,
        attempts_failed=0,
        connections_lost=0,
    )
    return failure_of_checks(outage_checks(outage, compared))


@pytest.mark.parametrize("may_lose", [None, "synchronous_commit = off waits for no standby"])
def test_nothing_lost_is_no_failure(may_lose):
    assert failure(0, may_lose) is None


def test_one_lost_commit_fails_a_trial_where_none_may_be_lost_and_is_a_result_where_one_may():
    assert "acknowledged commits that are missing after the faults" in (failure(1, None) or "")
    assert failure(1, "synchronous_commit = off waits for no standby") is None


def test_a_contradiction_fails_a_trial_even_where_commits_may_be_lost():
    said = failure(0, "synchronous_commit = off waits for no standby", resurrected_abort=2)
    assert "other contradictions of ledger and tables" in (said or "")
