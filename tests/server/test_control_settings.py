"""The table of settings of control sessions, and sessions that begin with them regardless of those of the role and the database."""

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from plinth.model.errors import MissingCapability
from plinth.server.server import LocalServer
from plinth.system.control_settings import SETTINGS, SUPERUSER_SETTINGS, applying, as_options
from plinth.system.database import connect, connect_unpinned
from servers import new_servers
from typed import present

OTHERWISE = {
    "search_path": "shadow, public",
    "statement_timeout": "1ms",
    "lock_timeout": "1ms",
    "idle_in_transaction_session_timeout": "1ms",
    "idle_session_timeout": "1ms",
    "transaction_timeout": "1ms",
    "exit_on_error": "on",
    "constraint_exclusion": "on",
    "row_security": "off",
    "check_function_bodies": "off",
    "default_transaction_read_only": "on",
    "default_transaction_isolation": "serializable",
    "default_transaction_deferrable": "on",
    "DateStyle": "German",
    "IntervalStyle": "sql_standard",
    "TimeZone": "Asia/Tokyo",
    "bytea_output": "escape",
    "extra_float_digits": "-5",
    "standard_conforming_strings": "off",
    "backslash_quote": "on",
    "array_nulls": "off",
    "transform_null_equals": "on",
    "quote_all_identifiers": "on",
    "client_min_messages": "error",
    "default_tablespace": "pg_global",
    "temp_tablespaces": "other",
    "default_table_access_method": "other",
    "local_preload_libraries": "no_such_library",
    "role": "other",
    "session_replication_role": "replica",
    "event_triggers": "on",
    "session_preload_libraries": "no_such_library",
    "dynamic_library_path": "/nonexistent",
    "allow_system_table_mods": "on",
    "lc_messages": "C.UTF-8",
}


@pytest.fixture(params=["debian", "18"], scope="module")
def own(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    """A server that these tests may spoil."""
    with new_servers({}) as start:
        yield start(request.param)


@pytest.mark.long
def test_a_control_session_begins_with_the_table_whatever_was_set(own: LocalServer) -> None:
    wanted = applying(own.layout.installation.major, superuser=True)
    assert set(OTHERWISE) == {one.name for one in (*SETTINGS, *SUPERUSER_SETTINGS)}, "each is set otherwise"
    with closing(connect(own.control)) as control:
        control.execute("CREATE ROLE other")
        for name in wanted:
            control.execute(f"ALTER ROLE postgres SET {name} = '{OTHERWISE[name]}'".encode())
            control.execute(f"ALTER ROLE ALL SET {name} = '{OTHERWISE[name]}'".encode())
            control.execute(f"ALTER DATABASE postgres SET {name} = '{OTHERWISE[name]}'".encode())
    with closing(connect(own.control)) as control:
        control.execute("ALTER ROLE postgres RESET ALL; ALTER ROLE ALL RESET ALL; ALTER DATABASE postgres RESET ALL")
        found = dict(control.execute("SELECT name, setting FROM pg_settings").fetchall())
        found["role"] = present(control.execute("SHOW role").fetchone())[0]
    assert {name: found[name].replace(", ", ",") for name in wanted} == wanted


def test_sessions_as_they_are_set_have_what_was_set(own: LocalServer) -> None:
    """The control."""
    with closing(connect(own.control)) as control:
        control.execute("ALTER ROLE postgres SET search_path = shadow, public")
    with closing(connect_unpinned(own.connection)) as session:
        assert session.execute("SHOW search_path").fetchone() == ("shadow, public",)


def test_own_settings_of_a_session_come_after_the_table(own: LocalServer) -> None:
    with closing(connect(own.control, own={"statement_timeout": "5000"})) as control:
        assert control.execute("SHOW statement_timeout").fetchone() == ("5s",)


def test_values_with_blanks_are_escaped() -> None:
    assert as_options({"a": "read committed", "b": r"\x"}) == r"-c a=read\ committed -c b=\\x"


def test_a_place_that_drops_options_is_refused(own: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a pooler, which is played by a connection whose options are left out."""
    from plinth.system import database

    monkeypatch.setattr(database, "_takes_options", set())
    monkeypatch.setattr(database, "with_settings", lambda options, settings: options or "")
    with pytest.raises(MissingCapability) as refused:
        connect(replace(own.connection, application_name="dropped"))
    assert any(detail.startswith("search_path is ") for detail in refused.value.details)


def test_every_session_of_plinth_is_opened_in_one_place() -> None:
    package = Path(__file__).resolve().parents[2] / "python/plinth"
    opening = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if re.search(r"psycopg\.connect\b", path.read_text()) or "ControlConnection.connect(" in path.read_text()
    }
    assert opening == {"system/database.py", "system/control.py"}
