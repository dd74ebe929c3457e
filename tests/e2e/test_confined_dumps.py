"""Dumps that attack: nothing of theirs runs with the rights of a superuser, before, during and after the load."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from hostile_dump import SCRIPT, SHOWN, fired, loud_text, quiet_text
from native_server import Server
from plinth.system.owner import server_owner
from plinth.system.runner import Runner
from servers import all_installations

EXPERIMENT = """\
spec = 1
name = "confined"
question = "Does it stay confined?"

[storage.memory]
kind = "tmpfs"
size = "1GiB"
[server]
storage = "memory"
version = VERSION
settings.shared_preload_libraries = "SHARED"
[dataset]
kind = "dump"
path = "hostile.sql"
size = "20MiB"
vacuum = true
[workload]
script = "shop.pgbench"
clients = 2
ledger = true
[measure]
warmup = "0s"
duration = "1s"
repeats = 2
aa = false
probe = "0s"
cache = "warm"
restore = "none"
[[measure.action]]
at = "0s"
do = "checkpoint"
[[measure.action]]
at = "0s"
do = "sql"
sql = "INSERT INTO goods (name) VALUES ('by an action')"
"""


@pytest.fixture
def canaries() -> Iterator[Path]:
    """A folder in which the server's user may make files."""
    folder = Path(tempfile.mkdtemp(prefix="plinth-canaries-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def write(project, text: str, version: int) -> None:
    dump = project.folder / "hostile.sql"
    dump.write_text(text)
    dump.chmod(0o644)
    (project.folder / "shop.pgbench").write_text(SCRIPT)
    shared = "pg_stat_statements" if version == 18 else ""
    project.write(EXPERIMENT.replace("VERSION", str(version)).replace("SHARED", shared))


@pytest.mark.parametrize("version", [15, 18])
def test_no_attack_of_a_dump_has_the_rights_of_a_superuser(project, nothing_left, canaries: Path, version: int) -> None:
    write(project, quiet_text(canaries), version)
    done = project.run()
    assert fired(canaries) == set()
    assert done.returncode in (0, 3), done.stderr
    for trial in project.trials():
        assert trial["status"] == "complete" and trial["errors"] == [], trial
        assert trial["totals"]["done"] > 0
    (loaded,) = (project.bundle / "env").glob("dataset-*.json")
    gaps = {one["what"]: one["reason"] for one in json.loads(loaded.read_text())["gaps"]}
    assert "search_path=shadow, pg_catalog, public (role plinth_restore)" in gaps["settings of roles and databases"]
    nothing_left()


def test_what_a_dump_runs_while_it_is_restored_has_no_rights(project, nothing_left, canaries: Path) -> None:
    write(project, loud_text(canaries), 18)
    done = project.run()
    assert fired(canaries) == set()
    assert done.returncode == 1, done.stderr
    assert "could not be restored whole" in " ".join(done.stderr.split())
    nothing_left()


@pytest.mark.long
def test_the_canaries_sing_when_a_superuser_does_what_the_dump_does(canaries: Path) -> None:
    """The control: the same dump, restored and used by a superuser with its own search_path, fires."""
    owner = server_owner()
    server = Server(all_installations(owner, Runner())["18"], owner)
    try:
        server.start()
        string = f"host={server.folder} port={server.port} user=postgres dbname=postgres"
        string += " options='-c session_preload_libraries= -c role=none -c default_transaction_read_only=off'"
        with psycopg.connect(string, autocommit=True) as session:
            session.execute(b"CREATE ROLE plinth_restore")
            session.execute(quiet_text(canaries).encode())
            session.execute(SHOWN.encode())
        with psycopg.connect(string, autocommit=True) as session:
            for statement in (
                *SCRIPT.splitlines(),
                "SELECT count(*) FROM pg_class",
                "TRUNCATE public.goods",
                "ANALYZE public.keyed",
            ):
                session.execute(f"SET search_path = shadow, pg_catalog, public; {statement}".encode())
            session.execute(b"SET search_path = public; SELECT pg_table_size(oid) FROM pg_class WHERE oid >= 16384")
            session.execute(
                b"SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND reltuples > 0"
            )
        sung = fired(canaries)
    finally:
        server.remove()
    assert {
        "shown",
        "search-path-of-the-database",
        "functions-that-match-better",
        "operators-that-match-better",
        "casts-of-own-types",
        "keys-of-indexes",
        "predicates-of-indexes",
        "extended-statistics",
        "domains",
        "generated-columns",
        "defaults",
        "check-constraints",
        "triggers",
        "rules",
        "views",
        "event-triggers",
    } <= sung


OF_AN_OWNER = """\
SET SESSION AUTHORIZATION 'postgres';
COMMENT ON DATABASE postgres IS 'the shop';
ALTER DATABASE postgres SET work_mem = '5MB';
ALTER DATABASE postgres OWNER TO plinth_restore;
DROP DATABASE IF EXISTS shop;
CREATE DATABASE shop;
ALTER DATABASE shop SET work_mem = '5MB';
\\connect shop
ALTER ROLE plinth_restore SET work_mem = '6MB';
CREATE FUNCTION public.noted() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
CREATE EVENT TRIGGER noted ON ddl_command_end EXECUTE FUNCTION public.noted();
ALTER EVENT TRIGGER noted ENABLE ALWAYS;
CREATE TABLE public.goods (id serial, name text);
CREATE SCHEMA "of ""others";
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO PUBLIC;
SELECT lo_from_bytea(4711, 'a large object');
"""
OF_THE_LOAD = """\
BEGIN;
INSERT INTO goods (name) VALUES (current_user);
SELECT 1 / (current_user = 'plinth_restore')::int, 1 / (current_setting('work_mem') = '4MB')::int, lo_get(4711);
CREATE TEMP TABLE t ();
DROP TABLE t;
END;
"""


@pytest.mark.long
def test_what_only_the_owner_of_the_database_may_do_is_noted(project, nothing_left) -> None:
    write(project, OF_AN_OWNER, 18)
    (project.folder / "shop.pgbench").write_text(OF_THE_LOAD)
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    assert [trial["errors"] for trial in project.trials()] == [[], []]
    (loaded,) = (project.bundle / "env").glob("dataset-*.json")
    gaps = {one["what"]: one["reason"] for one in json.loads(loaded.read_text())["gaps"]}
    for noted in (
        "must be owner of database postgres (3)",
        "permission denied to create database (1)",
        'database "shop" does not exist (1)',
        "backslash commands are restricted",
        'permission denied to create event trigger "noted" (1)',
        'event trigger "noted" does not exist (1)',
        'permission denied to set session authorization "postgres" (1)',
    ):
        assert noted in gaps["parts of the dump"]
    assert "work_mem=6MB (role plinth_restore)" in gaps["settings of roles and databases"]
    nothing_left()
