"""Checks and measurements of a database whose objects are the work of others: none of their code runs with a superuser's rights."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from hostile_dump import fired, quiet_text
from plinth.server.integrity.amcheck import check_database, check_unlogged
from plinth.server.integrity.fingerprint import compare_fingerprint, take_fingerprint
from plinth.server.integrity.page_pointers import read_pointers
from plinth.server.integrity.transaction_status import check_transaction_status
from plinth.server.prewarm import RelationReader, relations
from plinth.server.server import LocalServer
from plinth.system.conninfo import keywords
from plinth.system.database import connect
from plinth.system.foreign_code import NOT_READ
from plinth.workload.brought import (
    RESTORING_ROLE,
    leave_statements_out_of_log,
    make_role,
    reset_settings,
)
from plinth.workload.loaded import loaded_tables
from servers import new_servers


@pytest.fixture
def canaries() -> Iterator[Path]:
    """A folder in which the server's user may make files."""
    folder = Path(tempfile.mkdtemp(prefix="plinth-canaries-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(params=["debian", "18"], scope="module")
def own(request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    """A server that these tests may spoil."""
    with new_servers({}) as start:
        yield start(request.param)


@pytest.mark.long
def test_no_check_runs_code_of_others_as_a_superuser(own: LocalServer, canaries: Path) -> None:
    major = own.layout.installation.major
    with closing(connect(own.control)) as control:
        make_role(control, RESTORING_ROLE, None)
        control.execute("CREATE EXTENSION dblink SCHEMA public")
        control.execute(f"GRANT CREATE, TEMPORARY ON DATABASE postgres TO {RESTORING_ROLE}".encode())
        control.execute(f"ALTER SCHEMA public OWNER TO {RESTORING_ROLE}".encode())
    others = replace(own.connection, user=RESTORING_ROLE)
    with psycopg.connect(**keywords(others), autocommit=True) as session:
        session.execute(quiet_text(canaries).encode())
    with closing(connect(own.control)) as control, closing(connect(others)) as lookups:
        reset_settings(control)
        before = take_fingerprint(control, own.layout.data_directory)
        integrity = check_database(control, major)
        compared = compare_fingerprint(control, own.layout.data_directory, before)
        pointers = read_pointers(control)
        check_unlogged(control)
        assert check_transaction_status(control).damage == ()
        reader = RelationReader(control, may_install=True)
        assert reader.how == "pg_prewarm"
        for relation in relations(control):
            reader.read(relation)
        tables, gaps = loaded_tables(control, lookups, all_schemas=True)
        control.execute("VACUUM ANALYZE")
        control.execute("REINDEX DATABASE postgres")
    assert fired(canaries) == set()
    assert integrity.damage == () and compared.damage == () and gaps == ()
    assert {"public.keyed", "public.moods"} <= {table.name for table in tables}
    assert [check.not_run for check in pointers.others if "keep" in check.name] == [NOT_READ]
    unique = [check.not_run for check in integrity.checks if check.name.startswith("unique keys are unique: ")]
    assert set(unique) == (set() if major >= 17 else {NOT_READ})
    assert all(check.not_run is None for check in integrity.checks if check.name.startswith(("verify", "bt_index")))


@pytest.mark.long
def test_errors_of_replayed_statements_are_not_logged_by_a_role_without_rights(own: LocalServer) -> None:
    with closing(connect(own.control)) as control:
        make_role(control, RESTORING_ROLE, None)
        leave_statements_out_of_log(control, RESTORING_ROLE)
    log = own.layout.log.to_read()
    assert log is not None
    with log as opened:
        opened.seek(0, 2)
        for user, text in ((RESTORING_ROLE, "a secret"), ("postgres", "a control")):
            with psycopg.connect(**keywords(replace(own.connection, user=user)), autocommit=True) as session:
                with pytest.raises(psycopg.Error):
                    session.execute(f"SELECT '{text}'::int".encode())
        logged = opened.read().decode()
    assert "a control" in logged and "a secret" not in logged
