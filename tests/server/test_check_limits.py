"""A check that waits for a lock ends, and names what holds it."""

from collections.abc import Callable

import pytest

from plinth.server.integrity.amcheck import check_database, check_unlogged
from plinth.server.integrity.check_limits import limited, timeout_reason
from plinth.server.server import LocalServer
from plinth.system.database import connect_unpinned

SETTINGS = {"max_prepared_transactions": 5}


@pytest.fixture
def server(make_server: Callable[..., LocalServer]) -> LocalServer:
    made = make_server()
    made.start(SETTINGS)
    with connect_unpinned(made.connection) as control:
        control.execute("CREATE TABLE t (id int PRIMARY KEY)")
        control.execute("CREATE UNLOGGED TABLE u (id int)")
        control.execute("CREATE EXTENSION amcheck")
        control.execute("CREATE EXTENSION pg_visibility")
    return made


def test_checks_that_wait_for_a_prepared_transaction_are_not_made_and_say_so(server: LocalServer):
    with connect_unpinned(server.connection) as control:
        control.execute("BEGIN")
        control.execute("INSERT INTO t VALUES (1)")
        control.execute("PREPARE TRANSACTION 'forgotten'")
        with limited(control, lock_timeout_s=0.1):
            integrity = check_database(control, server.layout.installation.major)
        assert control.execute("SHOW lock_timeout").fetchone() == ("0",)
        assert integrity.damage == (), "to wait is no damage"
        (waited,) = [check for check in integrity.checks if check.not_run]
        assert waited.name == "bt_index_parent_check"
        expected = "t_pkey: waited 100 ms (lock_timeout) for a lock that is held by prepared transaction 'forgotten' (RowExclusiveLock on t)"
        assert str(waited.not_run).startswith(expected)


def test_a_session_that_holds_the_lock_is_named_with_its_process(server: LocalServer):
    with connect_unpinned(server.connection) as other, connect_unpinned(server.connection) as control:
        other.execute("BEGIN")
        other.execute("LOCK TABLE t, u IN ACCESS EXCLUSIVE MODE")
        with limited(control, lock_timeout_s=0.1):
            checks = [
                *check_unlogged(control).checks,
                *check_database(control, server.layout.installation.major).checks,
            ]
        reasons = {check.name: check.not_run for check in checks}
        held = f"held by process {other.info.backend_pid} ("
        assert all(reasons.values()) and all(held in str(reason) for reason in reasons.values()), reasons
        other.execute("ROLLBACK")


def test_a_statement_that_takes_too_long_is_ended_and_other_errors_are_no_timeouts(server: LocalServer):
    import psycopg

    with connect_unpinned(server.connection) as control, limited(control, statement_timeout_s=0.05):
        with pytest.raises(psycopg.errors.QueryCanceled) as ended:
            control.execute("SELECT pg_sleep(60)")
        reason = timeout_reason(control, ended.value, "t")
        assert reason == "t: ended after 50 ms (statement_timeout)"
        with pytest.raises(psycopg.errors.UndefinedTable) as missing:
            control.execute("SELECT FROM missing")
        assert timeout_reason(control, missing.value, "missing") is None


def test_how_long_a_statement_may_take_depends_on_the_size_of_the_database(server: LocalServer):
    with connect_unpinned(server.connection) as control:
        small = control.execute("SELECT pg_database_size(current_database())").fetchone()
        assert small is not None
        with limited(control):
            timeout = control.execute(
                "SELECT setting::int FROM pg_settings WHERE name = 'statement_timeout'"
            ).fetchone()
        assert timeout is not None and timeout[0] == pytest.approx(60_000 + small[0] / 1e6 * 1000, rel=0.05)
        assert control.execute("SHOW statement_timeout").fetchone() == ("0",)
