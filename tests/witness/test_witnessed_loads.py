"""Loads that a witness hears of, and their comparison with a real server: what counts, what does not, and what is damage."""

import contextlib
import json
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from native_server import Server
from plinth.model.connection import Connection
from plinth.model.errors import PlinthError, Refused, RunError, UsageError
from plinth.witness.load import LoadEnded, WitnessedLoad, run_witnessed
from plinth.witness.protocol import MAX_RECORDS
from plinth.witness.stream import LedgerTail
from plinth.witness.verify import record_refused_recovery, verdict, verify_last_round
from plinth.workload.commit_ledger import CommitLedger
from plinth.workload.commit_ledger_check import compare_ledger
from waiting import wait_until
from witnessing import WitnessHere, round_json

CLIENTS = 3


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[WitnessHere]:
    with WitnessHere(tmp_path / "rounds", max_round_bytes=2**30) as witness:
        yield witness


def connection(server: Server, user: str = "postgres", database: str = "postgres") -> Connection:
    return Connection(host=str(server.folder), port=server.port, user=user, database=database)


def wanted(witness: WitnessHere, to: Connection, duration_s: float = 0.4) -> WitnessedLoad:
    known_by = witness.credentials
    return WitnessedLoad(to, "127.0.0.1", witness.port, known_by.fingerprint, known_by.token, CLIENTS, duration_s)


def complete(witness: WitnessHere, to: Connection, duration_s: float = 0.4) -> LoadEnded:
    return run_witnessed(wanted(witness, to, duration_s), print, lambda state: None)


def cut_short(witness: WitnessHere, server: Server, cut: Callable[[], None]) -> "LoadEnded | PlinthError":
    """How a load ends that something happens to once the witness knows of some commits."""
    ended: list[LoadEnded | PlinthError] = []

    def run() -> None:
        try:
            ended.append(run_witnessed(wanted(witness, connection(server), 60.0), print, lambda state: None))
        except PlinthError as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: len(known(witness)) > 100)
    cut()
    thread.join(30)
    return ended[0]


def known(witness: WitnessHere) -> "list[object]":
    """What the witness knows to have been acknowledged in the last round."""
    rounds = witness.folder.rounds()
    ledger = witness.folder.ledger(rounds[-1]) if rounds else None
    return [] if ledger is None else list(ledger.of_class("acknowledged"))


def ledger_of(witness: WitnessHere) -> CommitLedger:
    ledger = witness.folder.ledger(witness.folder.rounds()[-1])
    assert ledger is not None
    return ledger


def restarted(server: Server) -> None:
    server.stop(signal.SIGQUIT)  # an immediate shutdown: recovery follows, as after a crash
    server.start()


def test_the_witness_knows_all_of_a_load_that_ends_in_order(witness: WitnessHere, server: Server):
    ended = complete(witness, connection(server), duration_s=3.0)
    ledger = ledger_of(witness)
    assert ended.end == round_json(witness.folder.path)["end"] == "complete"
    assert ended.known == len(ledger.of_class("acknowledged")) > 100
    assert ledger.has_ended
    found = verify_last_round(witness.folder.path, connection(server))
    assert found.ledger is not None
    assert (found.ledger.rows, found.is_damaged, found.ledger.unheard_there) == (ended.known, False, 0)
    assert found.not_a_cut == "the load had ended before: complete"
    assert verdict(witness.folder.path).sentence == "no power cut yet"


def test_commits_unknown_to_the_witness_may_be_there_and_nothing_else(witness: WitnessHere, server: Server):
    complete(witness, connection(server))
    ledger = ledger_of(witness)
    of_first = (ledger.records["client"] == 0).nonzero()[0]
    with server.connect() as control:
        last_missing = ledger.records[[i for i in range(len(ledger.records)) if i not in of_first[-5:]]]
        check = compare_ledger(replace(ledger, records=last_missing), control)
        assert (check.is_clean, check.unheard_there) == (True, 5)
        none_known = ledger.records[ledger.records["client"] != 0]
        check = compare_ledger(replace(ledger, records=none_known), control)
        assert (check.is_clean, check.unheard_there) == (True, len(of_first))
        one_between = ledger.records[[i for i in range(len(ledger.records)) if i != of_first[3]]]
        check = compare_ledger(replace(ledger, records=one_between), control)
        assert (check.counts, check.unheard_there) == ({"never sent": 1}, 0)
        unknown_client = replace(ledger, records=none_known[none_known["client"] != 2], begins_of_clients=2)
        assert set(compare_ledger(unknown_client, control).counts) == {"never sent"}
        whole = replace(ledger, records=last_missing, begins_of_clients=None)
        assert compare_ledger(whole, control).counts == {"never sent": 5}, "an engine's own ledger has everything"


def test_a_server_that_goes_in_the_load_and_comes_back_is_a_cut_and_rows_that_vanish_are_lost(
    witness: WitnessHere, server: Server
):
    ended = cut_short(witness, server, lambda: server.stop(signal.SIGQUIT))
    assert isinstance(ended, LoadEnded)
    assert ended.end == "server lost"
    server.start()
    found = verify_last_round(witness.folder.path, connection(server))
    assert (found.not_a_cut, found.is_damaged, found.has_rebooted) == (None, False, False)
    assert found.acknowledged == ended.known
    one_cut = verdict(witness.folder.path)
    assert one_cut.sentence == (
        f"lost 0 of {ended.known:,} acknowledged commits in 1 power cut: at most 95.0 % of cuts do damage, "
        "with 95 % confidence"
    )
    server.execute("delete from plinth_ledger_commits where client = 1 and number = 7")
    damaged = verify_last_round(witness.folder.path, connection(server))
    assert [one.split(" (")[0] for one in damaged.evidence] == ["lost commit: client 1, number 7"]
    server.execute("insert into plinth_ledger_commits (client, number) values (1, 7)")
    assert not verify_last_round(witness.folder.path, connection(server)).is_damaged
    assert verdict(witness.folder.path).lost == 1, "what was found once stays found"


def test_a_witness_that_goes_ends_the_load_and_its_round_is_no_cut_regardless_of_what_follows(
    tmp_path: Path, server: Server
):
    rounds = tmp_path / "rounds"
    with contextlib.ExitStack() as left:
        witness = left.enter_context(WitnessHere(rounds, max_round_bytes=2**30))
        ended = cut_short(witness, server, left.close)
    assert isinstance(ended, RunError)
    assert "the witness was lost" in ended.message
    assert (ended.where, "durability verify" in (ended.hint or "")) == (
        f"the witness at 127.0.0.1:{witness.port}",
        True,
    )
    restarted(server)
    found = verify_last_round(rounds, connection(server))
    assert found.not_a_cut == "the load had ended before: witness ended"


def test_a_load_killed_while_the_server_runs_is_no_cut(witness: WitnessHere, server: Server):
    ended = cut_short(witness, server, lambda: server.stop(signal.SIGQUIT))
    assert isinstance(ended, LoadEnded)
    server.start()
    kept = round_json(witness.folder.path)
    started = server.execute("select (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint")[0][0]
    kept["server"]["started_unix_us"] = started
    (witness.folder.path / "0001" / "round.json").write_text(json.dumps(kept))
    found = verify_last_round(witness.folder.path, connection(server))
    assert found.not_a_cut == "the server has not been restarted since the load began"


def test_a_role_without_rights_gets_the_comparison_and_a_list_of_what_was_not_run(witness: WitnessHere, server: Server):
    with server.role("") as role:
        server.execute(f"create schema authorization {role}")
        try:
            complete(witness, connection(server, user=role))
            found = verify_last_round(witness.folder.path, connection(server, user=role))
            other = verify_last_round(witness.folder.path, connection(server))
        finally:
            server.execute(f"drop schema {role} cascade")
    assert found.ledger is not None
    assert found.ledger.is_clean
    assert {check.not_run for check in found.checks[:4]} == {f"role {role} is no superuser"}
    assert found.has_rebooted is None
    assert other.ledger == found.ledger, "another role finds the same tables with any search_path"


def test_another_server_or_database_is_refused_and_not_taken_for_a_loss(
    witness: WitnessHere, server: Server, another_server: Server
):
    complete(witness, connection(server))
    with pytest.raises(UsageError, match="this is another cluster"):
        verify_last_round(witness.folder.path, connection(another_server))
    with pytest.raises(UsageError, match="this is database template1; round 1 was of postgres"):
        verify_last_round(witness.folder.path, connection(server, database="template1"))
    assert witness.folder.verified(1) is None


def test_tables_of_another_round_are_those_of_a_round_that_was_lost(witness: WitnessHere, server: Server):
    ended = complete(witness, connection(server))
    server.execute("update plinth_ledger_round set round_id = 'of an earlier round', began_unix_us = began_unix_us - 1")
    found = verify_last_round(witness.folder.path, connection(server))
    assert found.lost == ended.known
    server.execute("drop table plinth_ledger_round")
    assert verify_last_round(witness.folder.path, connection(server)).lost == ended.known


def test_a_lost_round_is_found_although_the_clock_of_the_server_went_back(witness: WitnessHere, server: Server):
    complete(witness, connection(server))
    first = round_json(witness.folder.path)["round_id"]
    ended = complete(witness, connection(server))
    an_hour_later = "began_unix_us = began_unix_us + 3600000000"
    server.execute(f"update plinth_ledger_round set round_id = '{first}', {an_hour_later}")
    found = verify_last_round(witness.folder.path, connection(server))
    assert (found.number, found.lost) == (2, ended.known)


def test_a_later_load_for_another_witness_is_not_taken_for_a_loss(witness: WitnessHere, server: Server, tmp_path: Path):
    complete(witness, connection(server))
    with WitnessHere(tmp_path / "others", max_round_bytes=2**30) as another:
        complete(another, connection(server))
    with pytest.raises(RunError, match="another load has emptied the tables since round 1"):
        verify_last_round(witness.folder.path, connection(server))
    assert witness.folder.verified(1) is None


def test_a_server_that_does_not_start_is_a_result(witness: WitnessHere, server: Server):
    cut_short(witness, server, lambda: server.stop(signal.SIGQUIT))
    with pytest.raises(RunError, match="cannot connect") as refused:
        verify_last_round(witness.folder.path, connection(server))
    assert "--recovery-refused" in (refused.value.hint or "")
    record_refused_recovery(witness.folder.path, "PANIC: could not locate a valid checkpoint record")
    whole = verdict(witness.folder.path)
    assert (whole.cuts, whole.damaged_cuts, whole.acknowledged) == (1, 1, 0)
    assert "recovery refused" in whole.sentence
    server.start()


def test_a_folder_without_a_commit_has_nothing_to_verify(witness: WitnessHere, server: Server):
    with pytest.raises(RunError, match="there is nothing to verify"):
        verify_last_round(witness.folder.path, connection(server))
    with server.role("") as role:
        with pytest.raises(RunError, match="cannot make the tables of the ledger"):
            complete(witness, connection(server, user=role))
    wait_until(lambda: round_json(witness.folder.path)["end"] == "load failed")
    with pytest.raises(RunError, match="recorded no acknowledged commit"):
        verify_last_round(witness.folder.path, connection(server))
    complete(witness, connection(server))


def test_an_interrupted_verify_says_so_and_keeps_nothing(witness: WitnessHere, server: Server):
    complete(witness, connection(server))
    waiting = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%plinth_ledger%'"
    with server.connect() as other, other.transaction():
        other.execute("lock table plinth_ledger_commits")
        words = (str(witness.folder.path), f"host={server.folder} port={server.port} user=postgres dbname=postgres")
        verify = subprocess.Popen(
            [sys.executable, "-m", "plinth", "durability", "verify", *words], stderr=subprocess.PIPE, text=True
        )
        wait_until(lambda: bool(server.execute(waiting)))
        verify.send_signal(signal.SIGINT)
        _, errors = verify.communicate(timeout=20)
    assert (verify.returncode, errors) == (130, "interrupted\n")
    assert witness.folder.verified(1) is None


def test_a_round_that_is_going_on_is_not_verified(witness: WitnessHere, server: Server):
    load = witness.followed()
    with pytest.raises(Refused, match="round 1 is not over"):
        verify_last_round(witness.folder.path, connection(server))
    load.close()


def stored(number: int, answered_ns: int = 0, commit_class: int = 0, client: int = 1) -> bytes:
    return struct.pack("<QQQIB3x", number, 10, answered_ns, client, commit_class)


def test_the_tail_of_a_ledger_takes_nothing_that_is_half_written(tmp_path: Path):
    path = tmp_path / "0.ledger"
    path.write_bytes(bytes(64 + 32 * 8))
    tail = LedgerTail(path)

    def store(slot: int, record: bytes) -> None:
        with path.open("r+b") as file:
            file.seek(64 + 32 * slot)
            file.write(record)

    def changes(is_ended: bool = False) -> list[tuple[int, int, int]]:
        return [(index, record[0], record[28]) for index, record in tail.changes(is_ended=is_ended)]

    assert tail.header() is None
    assert changes() == []
    store(0, stored(1))
    assert changes() == [], "nothing follows it, and it has no answer: it may be half written"
    store(1, stored(2))
    assert changes() == [(0, 1, 0)]
    store(1, stored(2, answered_ns=20, commit_class=1))
    assert changes() == [(1, 2, 1)], "an answer is stored into what is whole"
    store(0, stored(1, answered_ns=20, commit_class=0))
    assert changes() == [], "its class comes last"
    store(0, stored(1, answered_ns=20, commit_class=3))
    assert changes() == [(0, 1, 3)]
    store(2, stored(3))
    assert changes(is_ended=True) == [(2, 3, 0)], "nobody writes any more"
    assert changes(is_ended=True) == []
    tail.close()


def test_the_tail_keeps_up_with_a_ledger_that_grows_fast(tmp_path: Path):
    path = tmp_path / "0.ledger"
    count = 3 * MAX_RECORDS
    path.write_bytes(bytes(64) + b"".join(stored(number, 20, 1) for number in range(1, count + 1)))
    tail = LedgerTail(path)
    taken, calls = [], 0
    while part := list(tail.changes(is_ended=False)):
        assert len(part) <= MAX_RECORDS
        taken += part
        calls += 1
    assert [index for index, _ in taken] == list(range(count))
    assert calls < 10, "few messages, each of which the witness flushes"
    tail.close()
