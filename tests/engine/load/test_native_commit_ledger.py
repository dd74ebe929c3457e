"""The commit ledger: what the engine records of them, and what a comparison with a real server's tables finds."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from native_server import Finished, Load, Server
from plinth import _native
from plinth.model.commit_ledger import LedgerCheck
from plinth.model.facts import Installation
from plinth.system.owner import Owner
from plinth.workload.commit_ledger import CommitLedger, read_commit_ledger
from plinth.workload.commit_ledger_check import compare_ledger, ledger_checks, prepare_ledger_tables
from waiting import wait_until

LEDGER = {"name": "ledger", "native": {"workload": "ledger"}}
CLIENTS = 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "ledger"
    place.mkdir()
    return place


@pytest.fixture(scope="module")
def durable_server(installations: dict[str, Installation], owner: Owner) -> Iterator[Server]:
    """A server with the settings that keep what it acknowledges."""
    server = Server(
        installations["18"], owner, settings="fsync = on\nrestart_after_crash = off\nmax_prepared_transactions = 20\n"
    )
    server.start()
    yield server
    server.remove()


def prepared(server: Server, clients: int = CLIENTS) -> Server:
    with server.connect() as control:
        prepare_ledger_tables(control, clients)
    return server


def ledger_load(load: Load, server: Server, folder: Path, **changes: Any) -> _native.LoadRun:
    changes = {"scripts": [LEDGER], "clients": CLIENTS, "threads": 2, "ledger": {"folder": str(folder)}} | changes
    return load(server.connection(), **changes)


def compared(server: Server, folder: Path) -> LedgerCheck:
    with server.connect() as control:
        return compare_ledger(read_commit_ledger(folder), control)


def numbers(ledger: CommitLedger, client: int) -> list[int]:
    return ledger.records["number"][ledger.records["client"] == client].tolist()


@pytest.mark.parametrize("protocol", ["extended", "prepared"])
def test_every_commit_of_a_quiet_load_is_acknowledged_and_there(
    server: Server, load: Load, finished: Finished, folder: Path, protocol: str
) -> None:
    run = ledger_load(load, prepared(server), folder, transactions_per_client=100, protocol=protocol)
    assert finished(run).totals.done == 400
    ledger = read_commit_ledger(folder)
    assert ledger.has_ended
    for client in range(CLIENTS):
        assert numbers(ledger, client) == list(range(1, 101))
    acknowledged = ledger.of_class("acknowledged")
    assert len(acknowledged) == 400
    assert (ledger.started_ns <= acknowledged["sent_ns"]).all()
    assert (acknowledged["sent_ns"] < acknowledged["answered_ns"]).all()
    check = compared(server, folder)
    assert (check.rows, check.is_clean) == (400, True)
    assert check.summary == "0 of 400 acknowledged commits are missing"
    assert [(one.got, one.ok) for one in ledger_checks(check)] == [("0 of 400", True), ("none", True)]


def test_what_a_crash_of_the_server_must_keep_is_there(durable_server: Server, load: Load, folder: Path) -> None:
    """All its processes are killed while the clients commit; recovery has every commit that was acknowledged."""
    run = ledger_load(load, prepared(durable_server), folder, duration_s=60.0)
    run.start()
    wait_until(lambda: json.loads(run.progress())["done"] > 500)
    crash(durable_server)
    assert run.wait(30.0)
    ledger = read_commit_ledger(folder)
    assert len(ledger.of_class("acknowledged")) > 500 - CLIENTS
    assert 0 < len(ledger.of_class("indeterminate")) <= CLIENTS
    check = compared(durable_server, folder)
    assert check.is_clean, check.findings
    assert 0 <= check.indeterminate_there <= check.indeterminate


TWO_PHASES = """\
BEGIN;
INSERT INTO two_phases VALUES (:client_id);
PREPARE TRANSACTION 'client :client_id';
\\if :client_id = 0 and :plinth_ledger_number > 20
SELECT pg_sleep(1000);
\\endif
COMMIT PREPARED 'client :client_id';
"""


def crash(server: Server) -> None:
    """Kill all processes of a server, and let it recover."""
    os.kill(server.pid, signal.SIGSTOP)  # or it would end its children in order, and start others meanwhile
    processes = subprocess.run(["pgrep", "-P", str(server.pid)], capture_output=True, text=True, check=True)
    pids = [int(pid) for pid in processes.stdout.split()]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    server.stop(signal.SIGKILL)
    # What they have not yet let go of, the next postmaster takes for a server that runs.
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    (server.data / "postmaster.pid").unlink(missing_ok=True)
    server.start()


def test_a_crash_between_the_steps_of_a_two_phase_commit_loses_none(
    durable_server: Server, load: Load, folder: Path
) -> None:
    """One client waits with its transaction prepared while the others go on; recovery has that, too, and what is missing then is seen."""
    prepared(durable_server)
    durable_server.execute("CREATE TABLE two_phases (client int)")
    run = ledger_load(
        load,
        durable_server,
        folder,
        scripts=[{"name": "two", "source": TWO_PHASES}],
        protocol="simple",
        duration_s=60.0,
    )
    run.start()
    waits = (
        "select 1 from pg_prepared_xacts p, pg_stat_activity a where gid = 'client 0' and query ~ '^SELECT pg_sleep'"
    )
    wait_until(lambda: bool(durable_server.execute(waits)))
    crash(durable_server)
    assert run.wait(30.0)
    ledger = read_commit_ledger(folder)
    waiting = ledger.of_class("prepared")
    assert 0 in waiting["client"] and len(waiting) <= CLIENTS
    assert len(ledger.of_class("acknowledged")) >= 20
    check = compared(durable_server, folder)
    assert check.is_clean, check.findings
    assert durable_server.execute("select count(*) from pg_prepared_xacts") == [(0,)]
    number = int(waiting["number"][waiting["client"] == 0][0])
    durable_server.execute(f"DELETE FROM plinth_ledger_commits WHERE (client, number) = (0, {number})")
    assert compared(durable_server, folder).lost == 1


def test_commits_of_terminated_sessions_are_indeterminate_or_aborted_and_whole(
    server: Server, load: Load, folder: Path
) -> None:
    run = ledger_load(load, prepared(server), folder, duration_s=60.0)
    run.start()
    wait_until(lambda: json.loads(run.progress())["done"] > 200)
    sessions = "select pid from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend'"
    server.execute(f"select pg_terminate_backend(pid, 5000) from ({sessions}) as sessions")
    assert run.wait(30.0)
    ledger = read_commit_ledger(folder)
    assert ledger.has_ended
    not_acknowledged = len(ledger.of_class("indeterminate")) + len(ledger.of_class("aborted"))
    assert not_acknowledged <= CLIENTS
    check = compared(server, folder)
    assert check.is_clean, check.findings


def test_commits_that_fail_are_aborted_and_not_there(
    server: Server, load: Load, finished: Finished, folder: Path
) -> None:
    """Every third transaction fails when it commits, by a constraint that is checked only then; and is tried again by a new number."""
    prepared(server)
    server.execute(
        "create function fail_commits() returns trigger language plpgsql as $$ begin"
        " if new.number % 3 = 0 then raise sqlstate '40001'; end if; return null; end $$;"
        "create constraint trigger fail after insert on plinth_ledger_commits deferrable initially deferred"
        " for each row execute function fail_commits()"
    )
    try:
        result = finished(ledger_load(load, server, folder, transactions_per_client=50, max_tries=3))
        check = compared(server, folder)
    finally:
        server.execute("drop table plinth_ledger_commits; drop function fail_commits")
    assert (result.totals.done, result.totals.failed) == (200, 0)
    ledger = read_commit_ledger(folder)
    assert (ledger.of_class("aborted")["number"] % 3 == 0).all()
    assert (len(ledger.of_class("aborted")), len(ledger.of_class("acknowledged"))) == (24 * CLIENTS, 200)
    assert check.is_clean, check.findings


def damage(sql: str) -> Callable[[Server], object]:
    return lambda server: server.execute(sql)


WITHOUT_KEY = "alter table plinth_ledger_commits drop constraint plinth_ledger_commits_pkey;"
TORN = (
    "alter table plinth_ledger_commits alter column payload drop expression;"
    "update plinth_ledger_commits set payload = overlay(payload placing '!' from 40) where client = 1 and number = 7"
)


@pytest.mark.parametrize(
    ("change", "kind", "client", "number", "told"),
    [
        ("delete from plinth_ledger_commits where client = 2 and number = 17", "lost commit", 2, 17, "acknowledged"),
        ("insert into plinth_ledger_commits values (1, 4000)", "never sent", 1, 4000, None),
        ("insert into plinth_ledger_commits values (99, 3)", "never sent", 99, 3, None),
        (f"{WITHOUT_KEY} insert into plinth_ledger_commits values (3, 5)", "duplicate", 3, 5, "acknowledged"),
        (
            "update plinth_ledger_clients set last_number = 49 where client = 1",
            "partial transaction",
            1,
            50,
            "acknowledged",
        ),
        ("delete from plinth_ledger_clients where client = 0", "partial transaction", 0, 50, "acknowledged"),
        (TORN, "torn payload", 1, 7, "acknowledged"),
    ],
)
@pytest.mark.parametrize("server", ["18"], indirect=True)
def test_every_contradiction_is_found_with_its_evidence(
    server: Server,
    load: Load,
    finished: Finished,
    folder: Path,
    change: str,
    kind: str,
    client: int,
    number: int,
    told: str,
) -> None:
    """The control of the check: what it calls clean elsewhere, it would have found."""
    finished(ledger_load(load, prepared(server), folder, transactions_per_client=50))
    try:
        server.execute(change)
        check = compared(server, folder)
    finally:
        server.execute("drop table plinth_ledger_commits")
    assert check.counts[kind] == 1  # type: ignore[index]
    finding = next(one for one in check.findings if one.kind == kind)
    assert (finding.client, finding.number, finding.commit_class) == (client, number, told)
    if told is not None:
        assert finding.sent_ns is not None
        assert finding.answered_ns is not None
        assert finding.sent_ns < finding.answered_ns
    assert not check.is_clean
    assert not all(one.ok for one in ledger_checks(check))
    assert any(finding.sentence in one.got for one in ledger_checks(check))


def test_an_abort_that_is_there_is_found(server: Server, load: Load, finished: Finished, folder: Path) -> None:
    """The same row as another session's: the client's own insert fails, and its row is there all the same."""
    prepared(server)
    server.execute("insert into plinth_ledger_commits values (0, 3)")
    finished(ledger_load(load, server, folder, clients=1, transactions_per_client=5))
    check = compared(server, folder)
    assert check.counts == {"resurrected abort": 1}
    (finding,) = check.findings
    assert (finding.client, finding.number, finding.commit_class) == (0, 3, "aborted")


def test_a_commit_that_did_not_wait_for_its_standby_is_local_only(own_server: Server, load: Load, folder: Path) -> None:
    own_server.execute("alter system set synchronous_standby_names = 'nobody'")
    prepared(own_server)
    own_server.execute("select pg_reload_conf()")
    # Commits wait once the checkpointer has seen it, which it does before the next checkpoint.
    wait_until(lambda: own_server.execute("select 1 where current_setting('synchronous_standby_names') = 'nobody'"))
    own_server.execute("checkpoint")
    run = ledger_load(load, own_server, folder, clients=1, threads=1, transactions_per_client=2)
    run.start()
    waiting = "select pid from pg_stat_activity where wait_event = 'SyncRep'"
    for done in (1, 2):
        wait_until(lambda: own_server.execute(waiting))
        own_server.execute(f"select pg_cancel_backend(pid) from ({waiting}) as waiting")
        wait_until(lambda done=done: json.loads(run.progress())["done"] == done)
    assert run.wait(30.0)
    ledger = read_commit_ledger(folder)
    assert len(ledger.of_class("local_only")) == len(ledger.records) == 2
    check = compared(own_server, folder)
    assert (check.local_only, check.is_clean) == (2, True)
    own_server.execute("set synchronous_commit = local; delete from plinth_ledger_commits where number = 1")
    assert compared(own_server, folder).counts == {"local-only commit lost": 1}
    with own_server.connect() as control:
        assert compare_ledger(read_commit_ledger(folder), control, is_standby=True).is_clean


SCRIPT = """\
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :client_id + 1;
\\if :client_id = 0
COMMIT;
\\else
SELECT 1; /* two statements on a line */ END;
\\endif
"""


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_scripts_get_the_ledgers_statements_before_each_commit(
    server: Server, load: Load, finished: Finished, folder: Path, protocol: str
) -> None:
    scripts = [{"name": "own", "source": SCRIPT}, {"name": "tpcb", "source": _native.builtin_script("tpcb-like")}]
    changes = {"protocol": protocol, "variables": {"scale": "1"}, "transactions_per_client": 60}
    run = ledger_load(load, prepared(server), folder, scripts=scripts, **changes)
    result = finished(run)
    assert (result.totals.done, result.totals.failed) == (240, 0)
    assert len(read_commit_ledger(folder).of_class("acknowledged")) == 240
    check = compared(server, folder)
    assert (check.rows, check.is_clean) == (240, True), check.findings
    inserts = [
        one.count
        for one in result.histograms
        if one.scope == "statement" and "plinth_ledger_commits" in (one.text or "")
    ]
    assert sum(inserts) == 240


def test_a_block_that_is_rolled_back_leaves_no_record_and_no_row(
    server: Server, load: Load, finished: Finished, folder: Path
) -> None:
    """Its number is the next transaction's."""
    source = "\\set kind random(1, 3)\nBEGIN;\n\\if :kind = 1\nROLLBACK;\n\\else\nEND;\n\\endif\n"
    run = ledger_load(
        load, prepared(server), folder, scripts=[{"name": "s", "source": source}], transactions_per_client=60
    )
    assert finished(run).totals.done == 240
    ledger = read_commit_ledger(folder)
    assert 100 < len(ledger.of_class("acknowledged")) == len(ledger.records) < 220
    assert numbers(ledger, 0) == list(range(1, len(numbers(ledger, 0)) + 1))
    assert compared(server, folder).is_clean


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        ("SELECT 1;\nSELECT 2;", 1, "the script has no transaction block"),
        ("SELECT 1;\nCOMMIT;", 2, "there is no BEGIN before this COMMIT"),
        ("BEGIN;\nPREPARE TRANSACTION 'x';", 2, "no COMMIT PREPARED or ROLLBACK PREPARED follows"),
        ("BEGIN;\n\\startpipeline\nSELECT 1;\n\\endpipeline\nEND;", 2, "without \\\\startpipeline only"),
    ],
)
@pytest.mark.parametrize("server", ["18"], indirect=True)
def test_scripts_that_the_ledger_cannot_be_kept_of_are_refused(
    server: Server, load: Load, folder: Path, source: str, line: int, message: str
) -> None:
    with pytest.raises(_native.ScriptError, match=message) as refused:
        ledger_load(load, server, folder, scripts=[{"name": "own.sql", "source": source}])
    assert (refused.value.file, refused.value.line) == ("own.sql", line)
    assert refused.value.hint


KILLED = """\
import json, sys
from plinth import _native
run = _native.LoadRun(sys.stdin.read())
run.start()
while json.loads(run.progress())["done"] < 300:
    run.wait(0.01)
print("begun", flush=True)
run.wait(60.0)
"""


def test_a_ledger_survives_the_kill_of_its_engine(server: Server, folder: Path) -> None:
    prepared(server)
    config = {
        "connection": server.connection(application_name="killed"),
        "clients": CLIENTS,
        "threads": 2,
        "protocol": "prepared",
        "duration_s": 60.0,
        "seed": 1,
        "scripts": [LEDGER],
        "ledger": {"folder": str(folder)},
    }
    with subprocess.Popen([sys.executable, "-c", KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as engine:
        assert engine.stdin is not None and engine.stdout is not None
        engine.stdin.write(json.dumps(config).encode())
        engine.stdin.close()
        assert engine.stdout.readline() == b"begun\n"
        engine.kill()
    wait_until(lambda: not server.execute("select from pg_stat_activity where application_name = 'killed'"))
    ledger = read_commit_ledger(folder)
    assert not ledger.has_ended
    assert len(ledger.of_class("acknowledged")) >= 300
    assert len(ledger.of_class("indeterminate")) <= CLIENTS
    check = compared(server, folder)
    assert check.is_clean, check.findings
    assert not check.has_ended


def test_numbers_continue_where_another_load_has_ended(
    server: Server, load: Load, finished: Finished, tmp_path: Path
) -> None:
    prepared(server)
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder, first_number in zip(folders, (1, 11), strict=True):
        folder.mkdir()
        ledger = {"folder": str(folder), "first_number": first_number}
        finished(ledger_load(load, server, folder, ledger=ledger, transactions_per_client=10))
    both = read_commit_ledger(*folders)
    assert numbers(both, 3) == list(range(1, 21))
    with server.connect() as control:
        assert compare_ledger(both, control).is_clean
        assert compare_ledger(read_commit_ledger(folders[1]), control).counts == {"never sent": 10 * CLIENTS}


def test_a_ledger_as_of_an_instant_knows_what_was_known_then(
    server: Server, load: Load, finished: Finished, folder: Path
) -> None:
    finished(ledger_load(load, prepared(server), folder, clients=1, transactions_per_client=20))
    whole = read_commit_ledger(folder)
    instant = int(whole.records["sent_ns"][9])
    then = whole.as_of(instant)
    assert then.records["number"].tolist() == list(range(1, 11))
    assert then.of_class("indeterminate")["number"].tolist() == [10]
    assert then.of_class("indeterminate")["answered_ns"].tolist() == [0]
    assert len(whole.of_class("acknowledged")) == 20
    server.execute(
        "delete from plinth_ledger_commits where number >= 10; update plinth_ledger_clients set last_number = 9 where client = 0"
    )
    with server.connect() as control:
        assert compare_ledger(then, control).is_clean
        assert compare_ledger(whole, control).timeline is None, "nobody knows when the power went"
        answered = whole.records["answered_ns"]
        cut_ns = int(answered[-1]) + 1
        check = compare_ledger(whole, control, cut_ns=cut_ns)
    assert check.oldest_lost_ns == answered[9]
    assert check.timeline is not None and sum(check.timeline.lost) == check.lost == 11
    window_ns = len(check.timeline.lost) * check.timeline.bin_s * 1e9
    assert window_ns == pytest.approx(min(2 * (cut_ns - answered[9]), cut_ns - answered[0]))
    assert sum(check.timeline.kept) == (answered[:9] >= cut_ns - window_ns).sum()
    assert check.timeline.lost[-1] > 0, "the last bin ends at the power cut"


@pytest.mark.long
def test_a_full_place_of_the_ledger_ends_the_load_with_its_reason(server: Server, load: Load, full_place: Path) -> None:
    """1 MiB is there from the start; no commit is sent whose record finds no room behind it."""
    run = ledger_load(load, prepared(server), full_place, clients=1, threads=1, duration_s=600.0)
    run.start()
    assert run.wait(120.0), "the load has not ended"
    with pytest.raises(_native.EngineError, match=r"cannot extend the ledger .*0.ledger: No space left on device"):
        run.result()
    check = compared(server, full_place)
    assert check.acknowledged == 2**15 - 2
    assert check.is_clean, check.findings


def test_a_place_that_is_full_or_missing_or_used_is_refused_before_anything_is_sent(
    server: Server, load: Load, finished: Finished, folder: Path, full_place: Path
) -> None:
    (full_place / "ballast").write_bytes(bytes(600_000))
    with pytest.raises(_native.EngineError, match=r"cannot extend the ledger .*No space left on device"):
        ledger_load(load, server, full_place).start()
    with pytest.raises(_native.EngineError, match=r"cannot make the ledger .*No such file or directory"):
        ledger_load(load, server, folder / "nowhere").start()
    finished(ledger_load(load, prepared(server), folder, transactions_per_client=1))
    with pytest.raises(_native.EngineError, match=r"cannot make the ledger .*File exists"):
        ledger_load(load, server, folder).start()


@pytest.fixture
def full_place(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for one piece of a ledger and not for two."""
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1400k", "ledger", str(place)], check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_ledger_needs_transactions_that_it_can_be_compared_with(server: Server, load: Load, folder: Path) -> None:
    keys = {"distribution": "uniform"}
    mixed = {"name": "lookup", "native": {"workload": "account-mix", "keys": keys}}
    with pytest.raises(_native.ConfigError, match="ledger: got a ledger with transactions that are compiled in"):
        ledger_load(load, server, folder, scripts=[mixed], variables={"scale": "1"})
    with pytest.raises(_native.ConfigError, match="the workload ledger needs one"):
        ledger_load(load, server, folder, ledger=None)


def test_tables_that_cannot_be_read_are_an_error_of_the_database(
    server: Server, folder: Path, load: Load, finished: Finished
) -> None:
    finished(ledger_load(load, prepared(server), folder, transactions_per_client=1))
    server.execute("drop table plinth_ledger_commits")
    with server.connect() as control, pytest.raises(psycopg.errors.UndefinedTable):
        compare_ledger(read_commit_ledger(folder), control)
