"""A connection pooler before an external server: what cannot work through it is refused before anything is made."""

import psycopg
import pytest

from plinth.model.errors import MissingCapability
from plinth.run.undo import UNDO_HANDLERS
from plinth.server.external.external_server import ExternalServer
from plinth.server.external.session_check import check_sessions, option_names
from plinth.system import conninfo
from plinth.system.database import connect_unpinned
from plinth.system.journal import Journal
from poolers import made_in, pgbouncer

EXTERNAL = """\
spec = 1
name = "pooled"
question = "What does this server do?"
[server]
connection = "{string}"
[dataset]
kind = "tpcb"
scale = 1
[workload]
builtin = "tpcb-like"
[matrix]
workload.clients = [2]
[measure]
warmup = "100ms"
duration = "400ms"
repeats = 1
aa = false
"""
NOT_TAKEN = "sessions do not take the startup options"
NO_OPTIONS = "the server takes no startup options"
SHARED = "sessions share their server processes"


@pytest.mark.long
@pytest.mark.parametrize(
    ("mode", "ignores_options", "said"),
    [
        ("session", True, NOT_TAKEN),
        ("transaction", False, NO_OPTIONS),
        pytest.param("transaction", True, NOT_TAKEN, marks=pytest.mark.long),
        pytest.param("session", False, NO_OPTIONS, marks=pytest.mark.long),
    ],
)
def test_a_run_through_a_pooler_is_refused_and_makes_nothing(
    project, service, nothing_left, mode, ignores_options, said
):
    string, _ = service
    with psycopg.connect(string, autocommit=True) as control:
        control.execute("CREATE TABLE pgbench_accounts AS SELECT 'precious' AS aid")
    before = made_in(string)
    with pgbouncer(string, project.folder / "pooler", mode, ignores_options=ignores_options) as pooled:
        with psycopg.connect(pooled) as control:
            assert control.execute("SELECT aid FROM pgbench_accounts").fetchall() == [("precious",)]
        project.write(EXTERNAL.format(string=pooled))
        refused = project.run()
    assert refused.returncode == 5, refused.stderr
    assert said in refused.stderr and "name the server itself in server.connection" in refused.stderr
    assert made_in(string) == before
    nothing_left()
    assert project.trials() == []


@pytest.mark.long
def test_the_server_behind_a_pooler_is_measured_when_it_is_named_as_the_hint_says(project, service, nothing_left):
    string, _ = service
    before = made_in(string)
    with pgbouncer(string, project.folder / "pooler", "session", ignores_options=True):
        project.write(EXTERNAL.format(string=string))
        done = project.run()
    assert done.returncode in (0, 3), done.stderr
    assert [trial["status"] for trial in project.trials()] == ["complete"]
    assert made_in(string) == before
    nothing_left()


def test_each_option_that_is_not_taken_is_named(service, scratch):
    string, _ = service
    with pgbouncer(string, scratch / "pooler", "session", ignores_options=True) as pooled:
        external = ExternalServer(f"{pooled} options='-c work_mem=3MB --statement-timeout=5s'", "r")
        with pytest.raises(MissingCapability) as refused:
            check_sessions(external.connection, "here", f'"{external.schema}","$user",public')
    assert [detail.split(" is ")[0] for detail in refused.value.details] == [
        "work_mem",
        "statement_timeout",
        "search_path",
    ]


@pytest.mark.long
@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_sessions_that_share_server_processes_are_seen_though_their_options_are_right(service, scratch, mode):
    """The search path is the role's here, so that it is the one that is asked for."""
    string, _ = service
    with psycopg.connect(string, autocommit=True) as control:
        control.execute("ALTER ROLE bench SET search_path = public")
    with pgbouncer(string, scratch / "pooler", mode, ignores_options=True) as pooled:
        connection = conninfo.resolve(pooled)
        if mode == "session":
            check_sessions(connection, "here", "public")
            return
        with pytest.raises(MissingCapability, match=SHARED):
            check_sessions(connection, "here", "public")


def test_a_session_that_makes_tables_elsewhere_is_refused_regardless_of_what_it_took_before(
    service, tmp_path, monkeypatch
):
    string, _ = service
    monkeypatch.setenv("PLINTH_STATE_DIR", str(tmp_path))
    journal = Journal.create("r", UNDO_HANDLERS)
    external = ExternalServer(string, "r")
    external.open(journal)
    try:
        with connect_unpinned(external.connection) as control:
            external.check_makes_in_schema(control)
        with (
            connect_unpinned(conninfo.resolve(string)) as control,
            pytest.raises(MissingCapability, match=r"in the schema public, not in plinth_r"),
        ):
            external.check_makes_in_schema(control)
    finally:
        external.close(journal)
        journal.close()


def test_a_server_without_a_pooler_takes_its_options(service):
    string, _ = service
    connection = conninfo.resolve(
        f"{string} options='-c search_path=\"a\\\\ b\",public -cwork_mem=1MB --geqo=off -c my.own=1'"
    )
    check_sessions(connection, "here", '"a b",public')


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ("", []),
        ("-c a=1", ["a"]),
        ("-ca=1  --b-c=2 -c D=3", ["a", "b_c", "d"]),
        (r"-c a=1\ -c\ b=2 -c c=\\ -c d=4", ["a", "c", "d"]),
        ("-B 16 -c a=1 -c", ["a", ""]),
    ],
)
def test_names_of_startup_options(options, names):
    assert option_names(options) == names
