"""How long no commit was acknowledged after a fault, from a ledger."""

import numpy as np
import pytest

from plinth.model.commit_ledger import COMMIT_CLASSES
from plinth.run.faults.outage import gap_of
from plinth.workload.commit_ledger import RECORD, CommitLedger

MS = 1_000_000
FAULT_NS, RESUMED_NS = 100 * MS, 500 * MS


def ledger(
    acknowledged: list[tuple[float, float]], only_local: list[tuple[float, float]] | None = None
) -> CommitLedger:
    """Of commits by when they were sent and answered, in ms."""
    rows = [(sent, at, "acknowledged") for sent, at in acknowledged] + [
        (*one, "local_only") for one in only_local or []
    ]
    records = np.zeros(len(rows), dtype=np.dtype(RECORD))
    for record, (sent, at, of_class) in zip(records, rows, strict=True):
        record["sent_ns"], record["answered_ns"] = round(sent * MS), round(at * MS)
        record["class"] = COMMIT_CLASSES.index(of_class)
    return CommitLedger(records, has_ended=True, started_ns=0, started_unix_ns=0)


BEFORE = [(10.0, 20.0), (80.0, 99.0)]


@pytest.mark.parametrize(
    ("acknowledged", "resumed_ns", "gap_s", "ended_ms"),
    [
        ([*BEFORE, (510, 520), (530, 540)], RESUMED_NS, 0.421, 520),  # promoted, or started again
        ([*BEFORE, (99.5, 101), (510, 520)], RESUMED_NS, 0.419, 520),  # the last answer of the old one
        (BEFORE, RESUMED_NS, None, None),
        ([], RESUMED_NS, None, None),
        ([*BEFORE, (99.5, 100.3), (100.2, 104), (104, 105)], FAULT_NS, 0.0037, 104),  # nothing was waited for
        (BEFORE, FAULT_NS, None, None),
        ([], FAULT_NS, None, None),
    ],
)
def test_the_gap_is_between_the_commits_before_and_after(
    acknowledged: list[tuple[float, float]], resumed_ns: int, gap_s: float | None, ended_ms: float | None
) -> None:
    found = gap_of(ledger(acknowledged), FAULT_NS, resumed_ns)
    assert found == (pytest.approx(gap_s) if gap_s else None, ended_ms * MS if ended_ms else None)


def test_commits_that_wait_to_the_end_are_a_gap_to_the_end_although_one_on_its_way_was_acknowledged() -> None:
    on_its_way = [*BEFORE, (99.5, 100.3)]
    assert gap_of(ledger(on_its_way, [(101, 2000)]), FAULT_NS, FAULT_NS) == (None, None)
