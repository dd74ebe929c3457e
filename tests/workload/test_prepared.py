"""Prepared transactions after a crash: which must be there, which may be, and what becomes of those that nobody has finished."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from native_server import Server
from plinth.model.facts import Installation
from plinth.system.owner import Owner
from plinth.workload.commit_ledger import COMMIT_PREPARED, RECORD, ROLLBACK_PREPARED, CommitLedger
from plinth.workload.commit_ledger_check import compare_ledger, prepare_ledger_tables
from plinth.workload.prepared import unfinished

INDETERMINATE, ACKNOWLEDGED, _, _, PREPARED = range(5)


@pytest.fixture(scope="module")
def server(installations: dict[str, Installation], owner: Owner) -> Iterator[Server]:
    made = Server(installations["18"], owner, settings="max_prepared_transactions = 10\n")
    made.start()
    yield made
    made.remove()


WRITE = (
    "INSERT INTO plinth_ledger_commits (client, number) VALUES (0, {n})",
    "UPDATE plinth_ledger_clients SET last_number = {n} WHERE client = 0",
)


def planted(control: Any, number: int, state: str) -> None:
    """Transaction `number` of client 0 as a crash may have left it: missing, prepared or committed."""
    if state == "missing":
        return
    control.execute("BEGIN")
    for statement in WRITE:
        control.execute(statement.format(n=number))
    control.execute("COMMIT" if state == "committed" else f"PREPARE TRANSACTION 'ours {number}'")


def ledger_of(answer: int, second: tuple[int, int] | None) -> CommitLedger:
    """One transaction with the answer to PREPARE TRANSACTION, and then what was sent to finish it, with its answer."""
    records = np.zeros(1, np.dtype(RECORD))
    records["number"], records["sent_ns"], records["class"] = 1, 10, answer
    records["answered_ns"] = 20 if answer else 0
    finishes = np.zeros(0 if second is None else 1, np.dtype(RECORD))
    if second is not None:
        finishes["number"], finishes["sent_ns"], finishes["step"], finishes["class"] = 1, 30, *second
        finishes["answered_ns"] = 40 if second[1] else 0
    return CommitLedger(records, True, 1, 1, finishes=finishes)


@pytest.mark.parametrize(
    ("answer", "second", "wrong"),
    [
        (INDETERMINATE, None, {}),
        (PREPARED, None, {"missing": "lost commit", "committed": "never sent"}),
        (PREPARED, (COMMIT_PREPARED, INDETERMINATE), {"missing": "lost commit"}),
        (PREPARED, (COMMIT_PREPARED, ACKNOWLEDGED), {"missing": "lost commit", "prepared": "lost commit"}),
        (PREPARED, (ROLLBACK_PREPARED, INDETERMINATE), {"committed": "never sent"}),
        (
            PREPARED,
            (ROLLBACK_PREPARED, ACKNOWLEDGED),
            {"prepared": "resurrected abort", "committed": "resurrected abort"},
        ),
    ],
)
@pytest.mark.parametrize("state", ["missing", "prepared", "committed"])
def test_each_step_of_a_two_phase_commit_is_kept_to_what_was_answered(server, answer, second, wrong, state):
    with server.connect() as control:
        prepare_ledger_tables(control, 1)
        planted(control, 1, state)
        check = compare_ledger(ledger_of(answer, second), control, cut_ns=50)
        assert unfinished(control) == ()
    assert set(check.counts) == ({wrong[state]} if state in wrong else set()), check.findings
    assert check.acknowledged >= check.lost


def test_what_was_known_at_an_earlier_instant_is_prepared_or_in_doubt(server):
    ledger = ledger_of(PREPARED, (COMMIT_PREPARED, ACKNOWLEDGED))
    classes = [
        [len(ledger.as_of(at).of_class(one)) for one in ("indeterminate", "prepared", "acknowledged")]
        for at in (15, 25, 35, 45)
    ]
    assert classes == [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]]


def test_transactions_of_others_are_left_alone_and_ours_do_not_stop_the_next_load(server):
    with server.connect() as control:
        prepare_ledger_tables(control, 1)
        control.execute("CREATE TABLE IF NOT EXISTS theirs (n int)")
        control.execute("BEGIN")
        control.execute("INSERT INTO theirs VALUES (1)")
        control.execute("PREPARE TRANSACTION 'theirs'")
        planted(control, 1, "prepared")
        prepare_ledger_tables(control, 1)  # it would wait for the locks of ours
        assert unfinished(control) == ("theirs",)
        control.execute("ROLLBACK PREPARED 'theirs'")
