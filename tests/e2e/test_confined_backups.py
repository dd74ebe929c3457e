"""Backups whose triggers of logins and of DDL, settings and functions would act on Plinth's own sessions."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from hostile_dump import fired
from native_server import HBA, Server
from plinth.system.owner import server_owner
from plinth.system.runner import Runner
from servers import all_installations

FIRE = """\
CREATE FUNCTION public.fire(attack text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('COPY (SELECT 1) TO PROGRAM %L', 'cat > /dev/null; touch CANARIES/' || attack);
EXCEPTION WHEN insufficient_privilege THEN NULL;
END $$;
CREATE FUNCTION public.of_event() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM public.fire(TG_EVENT || '-of-' || current_database()); END $$;
CREATE EVENT TRIGGER of_ddl ON ddl_command_start EXECUTE FUNCTION public.of_event();
ALTER EVENT TRIGGER of_ddl ENABLE ALWAYS;
"""
OF_LOGIN = """\
CREATE EVENT TRIGGER "of ""login" ON login EXECUTE FUNCTION public.of_event();
ALTER EVENT TRIGGER "of ""login" ENABLE ALWAYS;
"""
OF_SHOP = """\
CREATE ROLE owner;
CREATE ROLE strong CREATEROLE;
CREATE ROLE stronger IN ROLE pg_execute_server_program;
CREATE ROLE strongest IN ROLE stronger;
CREATE ROLE plinth_load SUPERUSER;
GRANT pg_execute_server_program TO plinth_load;
CREATE FUNCTION public.of_trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM public.fire('trigger'); RETURN NEW; END $$;
CREATE TABLE goods (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text);
CREATE TRIGGER t BEFORE INSERT ON goods FOR EACH ROW EXECUTE FUNCTION public.of_trigger();
CREATE SCHEMA shadow;
CREATE TABLE shadow.owned (id int);
ALTER SCHEMA shadow OWNER TO owner;
ALTER TABLE shadow.owned OWNER TO owner;
CREATE VIEW shadow.pg_class AS SELECT 1 AS oid FROM (SELECT public.fire('search-path')) AS fired;
CREATE VIEW shadow.pg_settings AS SELECT 1 AS name FROM (SELECT public.fire('search-path')) AS fired;
CREATE FUNCTION public.by_definer() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1';
ALTER DATABASE shop SET search_path = shadow, pg_catalog, public;
ALTER ROLE postgres SET search_path = shadow, pg_catalog, public;
ALTER ROLE postgres IN DATABASE shop SET session_preload_libraries = 'no_such_library';
ALTER ROLE ALL SET default_transaction_read_only = on;
ALTER ROLE postgres SET statement_timeout = '1ms';
ALTER ROLE postgres SET role = 'owner';
ALTER DATABASE shop SET work_mem = '5MB';
"""
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
settings.work_mem = "7MB"
[dataset]
kind = "backup"
path = "PATH"
database = "shop"
[workload]
script = "shop.pgbench"
clients = 2
ledger = true
[measure]
warmup = "0s"
duration = "500ms"
repeats = 1
aa = false
probe = "0s"
cache = "warm"
"""
SCRIPT = """\
BEGIN;
INSERT INTO goods (name) VALUES ('new');
SELECT by_definer();
TRUNCATE shadow.owned;
SELECT 1 / (1 - (rolsuper OR rolcreaterole OR pg_has_role('pg_execute_server_program', 'MEMBER') OR pg_has_role('strong', 'MEMBER'))::int)
 FROM pg_roles WHERE rolname = current_user;
SELECT 1 / pg_has_role('owner', 'USAGE')::int;
END;
"""


@pytest.fixture
def canaries() -> Iterator[Path]:
    """A folder in which the server's user may make files."""
    folder = Path(tempfile.mkdtemp(prefix="plinth-canaries-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["debian", "18"])
def test_nothing_of_a_backup_runs_by_itself_with_the_rights_of_a_superuser(
    project, nothing_left, canaries: Path, name: str
) -> None:
    owner = server_owner()
    server = Server(all_installations(owner, Runner())[name], owner, hba=f"local replication all trust\n{HBA}")
    major = server.installation.major
    try:
        server.start()
        options = "-c search_path=public,pg_catalog -c session_preload_libraries= -c role=none -c statement_timeout=0"
        options += " -c default_transaction_read_only=off"
        string = f"host={server.folder} port={server.port} user=postgres options='{options}' dbname="
        with psycopg.connect(f"{string}postgres", autocommit=True) as session:
            session.execute(b"CREATE DATABASE shop")
        for database in ("postgres", "shop"):
            text = FIRE + (OF_SHOP if database == "shop" else "") + (OF_LOGIN if major >= 17 else "")
            with psycopg.connect(f"{string}{database}", autocommit=True) as session:
                session.execute(text.replace("CANARIES", str(canaries)).encode())
        environment = {**os.environ, "PGHOST": str(server.folder), "PGPORT": str(server.port), "PGUSER": "postgres"}
        argv = [f"{server.installation.bindir}/pg_basebackup", "-D", str(server.folder / "copy"), "-c", "fast"]
        subprocess.run(argv, env=environment, check=True, capture_output=True)
        for path in (server.folder / "copy", *(server.folder / "copy").rglob("*")):
            server.own(path)
        for one in canaries.iterdir():
            one.unlink()
        with psycopg.connect(f"{string}shop", autocommit=True) as session:
            session.execute(b"INSERT INTO public.goods (name) VALUES ('x'); CREATE TABLE public.x ()")
        sung = fired(canaries)
        assert {"trigger", "ddl_command_start-of-shop", *(["login-of-shop"] if major >= 17 else [])} <= sung, (
            "a control"
        )
        for one in sung:
            (canaries / one).unlink()
        (project.folder / "shop.pgbench").write_text(SCRIPT)
        project.write(EXPERIMENT.replace("PATH", str(server.folder / "copy")).replace("VERSION", str(major)))
        done = project.run()
        assert fired(canaries) == set()
        assert done.returncode in (0, 3), done.stderr
        (trial,) = project.trials()
        assert trial["status"] == "complete" and trial["errors"] == [], trial
        assert trial["totals"]["done"] > 0
        (loaded,) = (project.bundle / "env").glob("dataset-*.json")
        gaps = {one["what"]: one["reason"] for one in json.loads(loaded.read_text())["gaps"]}
        assert "of_ddl (on ddl_command_start)" in gaps["event triggers"]
        assert "of_ddl (on ddl_command_start)" in gaps["event triggers of database postgres"]
        assert major < 17 or 'of "login (on login)' in gaps["event triggers"]
        assert "statement_timeout=1ms (role postgres)" in gaps["settings of roles and databases"]
        assert "public.by_definer()" in gaps["functions with the rights of a superuser"]
        nothing_left()
    finally:
        server.remove()
