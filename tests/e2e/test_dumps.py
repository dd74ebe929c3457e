"""`[dataset] kind = "dump"`: dumps of a real database in every format, and dumps that want more than to be restored."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from hosts_here import host_here
from native_server import Server
from originals import files_of
from own_sshd import own_sshd
from plinth.system.owner import server_owner
from plinth.system.runner import Runner
from servers import all_installations

SCHEMA = """
CREATE ROLE shopkeeper;
CREATE TABLESPACE other LOCATION 'PLACE';
CREATE EXTENSION pg_trgm;
CREATE TABLE goods (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL) TABLESPACE other;
CREATE INDEX ON goods USING gin (name gin_trgm_ops);
CREATE TABLE sold (day date NOT NULL, good int REFERENCES goods, count int) PARTITION BY RANGE (day);
CREATE TABLE sold_2025 PARTITION OF sold FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE sold_2026 PARTITION OF sold FOR VALUES FROM ('2026-01-01') TO ('2027-01-01') TABLESPACE other;
INSERT INTO goods (name) SELECT 'good ' || n FROM generate_series(1, 1000) n;
INSERT INTO sold SELECT date '2025-06-01' + n % 400, 1 + n % 1000, n FROM generate_series(1, 5000) n;
SELECT lo_from_bytea(4711, 'a large object');
CREATE FUNCTION total() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT sum(count) FROM sold; END;
CREATE MATERIALIZED VIEW best AS SELECT good, sum(count) AS count FROM sold GROUP BY good;
CREATE PUBLICATION everything FOR ALL TABLES;
ALTER TABLE goods OWNER TO shopkeeper;
GRANT SELECT ON sold TO shopkeeper;
COMMENT ON EXTENSION pg_trgm IS 'similar words';
"""
FORMATS = {
    "custom": ["-Fc", "-f", "shop.dump"],
    "directory": ["-Fd", "-j", "2", "-f", "shop.dir"],
    "tar": ["-Ft", "-f", "shop.tar"],
    "plain": ["-f", "shop.sql"],
}
EXPERIMENT = """\
spec = 1
name = "dumped"
question = "Does the shop run here?"

[storage.memory]
kind = "tmpfs"
size = "1GiB"
[server]
storage = "memory"
[dataset]
kind = "dump"
path = "PATH"
size = "20MiB"
[workload]
script = "shop.pgbench"
clients = 2
[measure]
warmup = "0s"
duration = "500ms"
repeats = 1
aa = false
probe = "0s"
"""
SCRIPT = """\
\\set good random(1, 1000)
BEGIN;
INSERT INTO sold VALUES ('2026-03-01', :good, 1);
SELECT name FROM goods WHERE name LIKE 'good ' || :good;
SELECT convert_from(lo_get(4711), 'UTF8'), total(), (SELECT count(*) FROM best), (SELECT max(id) FROM goods) / (1000 / 1000);
INSERT INTO goods (name) VALUES ('new');
END;
"""


@pytest.fixture(scope="module")
def dumps() -> Iterator[Path]:
    """The folder with dumps of one database in every format."""
    owner = server_owner()
    server = Server(all_installations(owner, Runner())["18"], owner)
    try:
        server.start()
        place = server.folder / "other"
        place.mkdir()
        server.own(place)
        string = f"host={server.folder} port={server.port} user=postgres dbname=postgres"
        with psycopg.connect(string, autocommit=True) as session:
            for statement in SCHEMA.replace("PLACE", str(place)).split(";\n"):
                if statement.strip():
                    session.execute(statement.encode())
        for words in FORMATS.values():
            environment = {**os.environ, "PGHOST": str(server.folder), "PGPORT": str(server.port), "PGUSER": "postgres"}
            argv = [f"{server.installation.bindir}/pg_dump", *words, "postgres"]
            subprocess.run(argv, cwd=server.folder, env=environment, check=True)
        (server.folder / "shop.dir").chmod(0o755)  # pg_dump makes it for its owner alone
        server.stop()  # its files are compared, and its background writer would change them
        yield server.folder
    finally:
        server.remove()


def run(project, path: Path | str):
    (project.folder / "shop.pgbench").write_text(SCRIPT)
    project.write(EXPERIMENT.replace("PATH", str(path)))
    return project.run()


def own(project, text: str) -> Path:
    """A plain dump that the server's user may read."""
    path = Path(project.folder) / "hostile.sql"
    path.write_text(text)
    path.chmod(0o644)
    return path


@pytest.mark.parametrize(
    "form", [pytest.param(form, marks=[pytest.mark.long] if form in ("tar", "directory") else []) for form in FORMATS]
)
def test_a_database_is_restored_whole(project, nothing_left, dumps: Path, form: str) -> None:
    before = files_of(dumps)
    done = run(project, dumps / FORMATS[form][-1])
    assert done.returncode in (0, 3), done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete" and trial["errors"] == [], trial
    assert trial["totals"]["done"] > 0
    (loaded,) = (project.bundle / "env").glob("dataset-*.json")
    (gap,) = [one for one in json.loads(loaded.read_text())["gaps"] if one["what"] == "parts of the dump"]
    expected = "PUBLICATION (1)" if form != "plain" else "must be superuser to create FOR ALL TABLES publication (1)"
    assert expected in gap["reason"]
    assert files_of(dumps) == before
    nothing_left()


def test_one_is_restored_by_tcp_with_the_password_of_the_run(project, nothing_left, dumps: Path) -> None:
    (project.folder / "shop.pgbench").write_text(SCRIPT)
    over_tcp = '[server]\nlisten = "tcp"\nsettings.log_statement = "all"\n'
    project.write(EXPERIMENT.replace("PATH", str(dumps / "shop.sql")).replace("[server]\n", over_tcp))
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete" and trial["errors"] == [], trial
    (log,) = (project.bundle / "logs").glob("postgresql-*.log")
    passwords = re.findall("ALTER ROLE .* PASSWORD (.*)", log.read_text())
    assert len(passwords) == 1 and passwords[0].startswith("'SCRAM-SHA-256$"), "hashed before it is sent"
    nothing_left()


@pytest.mark.long
@pytest.mark.parametrize("form", ["custom", pytest.param("plain", marks=pytest.mark.long)])
def test_one_is_restored_into_a_server_on_a_host(
    project, nothing_left, dumps: Path, tmp_path, monkeypatch, form
) -> None:
    (project.folder / "shop.pgbench").write_text(SCRIPT)
    with own_sshd(tmp_path / "own", ("db1",)) as sshd:
        host = host_here("db1", sshd, project.folder)
        monkeypatch.setenv("PATH", host.environment["PATH"])
        there = EXPERIMENT.replace("PATH", str(dumps / FORMATS[form][-1])).replace("tmpfs", 'tmpfs"\nhost = "db1')
        project.write(there + host.toml)
        done = project.run()
        assert done.returncode in (0, 3), done.stderr
        (trial,) = project.trials()
        assert trial["status"] == "complete" and trial["errors"] == [], trial
        assert host.left() == [] and host.agents() == []
    nothing_left()


def test_the_programs_that_restore_one_into_a_host_are_here(project, dumps: Path, tmp_path, monkeypatch) -> None:
    (project.folder / "shop.pgbench").write_text(SCRIPT)
    bindir = next(one.bindir for one in all_installations(server_owner(), Runner()).values() if one.major == 17)
    with own_sshd(tmp_path / "own", ("db1",)) as sshd:
        host = host_here("db1", sshd, project.folder)
        monkeypatch.setenv("PATH", host.environment["PATH"])
        there = EXPERIMENT.replace("PATH", str(dumps / "shop.dump")).replace("tmpfs", 'tmpfs"\nhost = "db1')
        project.write(there.replace("[server]\n", f'[server]\nversion = 17\nbindir = "{bindir}"\n') + host.toml)
        planned = project.plinth("plan", "x.toml")
    assert planned.returncode == 5, planned.stdout
    said = " ".join(planned.stderr.split())
    assert "restored by psql and pg_restore of this machine" in said and "no PostgreSQL 17" in said


@pytest.mark.long
def test_a_restore_that_was_cut_short_is_done_again(project, nothing_left, dumps: Path) -> None:
    (project.folder / "shop.pgbench").write_text(SCRIPT)
    project.write(EXPERIMENT.replace("PATH", str(dumps / "shop.dump")))
    running = project.start()
    running.wait_for("load dump into 1-memory")
    running.signal(signal.SIGKILL)
    running.end()
    resumed = project.plinth("resume", project.bundle)
    assert resumed.returncode in (0, 3), resumed.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete" and trial["errors"] == [], trial
    nothing_left()


def test_the_plan_says_how_it_is_restored(project, dumps: Path) -> None:
    (project.folder / "shop.pgbench").write_text(SCRIPT)
    project.write(EXPERIMENT.replace("PATH", str(dumps / "shop.dump")))
    planned = " ".join(project.plinth("plan", "x.toml").stdout.split())
    assert "make role plinth_restore, without rights of a superuser, and the extensions of the dump" in planned
    assert "(custom) by pg_restore, without owners and rights" in planned


GLOBALS = """\
CREATE ROLE postgres;
CREATE ROLE shopkeeper;
ALTER ROLE shopkeeper WITH SUPERUSER LOGIN PASSWORD 'secret';
CREATE ROLE "odd ""name";
GRANT shopkeeper TO "odd ""name" WITH INHERIT TRUE GRANTED BY postgres;
GRANT pg_read_server_files TO shopkeeper;
COPY pg_roles TO PROGRAM 'touch MARK';
"""
OF_GLOBALS = """\
SET ROLE "odd ""name";
SELECT 1 / count(*) FROM goods;
INSERT INTO goods VALUES (2);
RESET ROLE;
SELECT 1 / (1 - count(*)) FROM pg_roles WHERE rolname = 'shopkeeper' AND (rolsuper OR rolcanlogin);
SELECT 1 / count(*) FROM pg_policies WHERE policyname = 'own' AND roles = '{shopkeeper}';
SELECT 1 / (1 - pg_has_role('shopkeeper', 'pg_read_server_files', 'MEMBER')::int);
"""


@pytest.mark.long
def test_roles_of_the_globals_are_there_without_their_rights(project, nothing_left) -> None:
    mark = Path("/tmp") / f"plinth-hostile-{os.getpid()}"
    dump = """\
CREATE TABLE goods (id int);
INSERT INTO goods VALUES (1);
ALTER TABLE goods ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON goods TO shopkeeper USING (id > 0);
"""
    own(project, dump)
    globals_ = project.folder / "globals.sql"
    globals_.write_text(GLOBALS.replace("MARK", str(mark)))
    globals_.chmod(0o644)
    (project.folder / "shop.pgbench").write_text(OF_GLOBALS)
    project.write(EXPERIMENT.replace('path = "PATH"', 'path = "hostile.sql"\nglobals = "globals.sql"'))
    planned = " ".join(project.plinth("plan", "x.toml").stdout.split())
    assert f"without rights of a superuser, the roles of {globals_}, and the extensions" in planned
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    (trial,) = project.trials()
    assert trial["status"] == "complete" and trial["errors"] == [], trial
    assert not mark.exists()
    (loaded,) = (project.bundle / "env").glob("dataset-*.json")
    assert [one["what"] for one in json.loads(loaded.read_text())["gaps"]] == ["globals of the dump"]
    nothing_left()


HOSTILE = {
    "a command of psql": ("\\! touch MARK\n", "backslash commands are restricted"),
    "a program of the server": (
        "COPY goods FROM PROGRAM 'touch MARK';\n",
        "permission denied to COPY to or from an external program",
    ),
    "a file of the server": ("COPY goods TO 'MARK';\n", "permission denied to COPY to a file"),
    "rights of a superuser": ("RESET ROLE; ALTER ROLE plinth_restore SUPERUSER;\n", "permission denied"),
    "a setting of the server": (
        "ALTER SYSTEM SET archive_command = 'touch MARK';\n",
        "permission denied to set parameter",
    ),
    "the end of the refusal": ("\\unrestrict plinth\n\\! touch MARK\n", "wrong key"),
}


@pytest.mark.long
@pytest.mark.parametrize("what", HOSTILE)
def test_a_dump_gets_nothing_but_its_database(project, nothing_left, what: str) -> None:
    line, _ = HOSTILE[what]
    mark = Path("/tmp") / f"plinth-hostile-{os.getpid()}"
    text = f"CREATE TABLE goods (id int);\n{line.replace('MARK', str(mark))}SELECT no_such_function();\n"
    done = run(project, own(project, text))
    assert not mark.exists()
    assert done.returncode == 1, done.stderr
    said = " ".join(done.stderr.split())
    assert "could not be restored whole" in said and "no_such_function() does not exist" in said
    nothing_left()


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'CREATE EXTENSION IF NOT EXISTS "no such thing" WITH SCHEMA public;\n',
            "the server does not have: no such thing",
        ),
        ("CREATE TABLE a (b no_such_type);\n", 'type "no_such_type" does not exist (first in line 1)'),
        ("SELECT E'\\x1b[31m'::int;\n", "could not be restored whole"),
    ],
)
def test_what_cannot_be_restored_has_its_reason(project, nothing_left, text: str, said: str) -> None:
    done = run(project, own(project, text))
    assert done.returncode == 1, done.stderr
    assert said in " ".join(done.stderr.split())
    assert "\x1b[31m" not in done.stderr
    nothing_left()


def test_a_path_that_is_no_dump_is_refused_in_the_plan(project) -> None:
    for name, content, said in (
        ("absent.dump", None, "cannot read the dump"),
        ("packed.sql.gz", b"\x1f\x8b\x08", "neither an archive of pg_dump nor SQL"),
    ):
        if content is not None:
            (project.folder / name).write_bytes(content)
        (project.folder / "shop.pgbench").write_text(SCRIPT)
        project.write(EXPERIMENT.replace("PATH", name))
        planned = project.plinth("plan", "x.toml")
        assert planned.returncode == 2, planned.stderr
        assert said in " ".join(planned.stderr.split())


def test_a_dump_that_the_server_cannot_read_is_named(project, nothing_left) -> None:
    path = own(project, "CREATE TABLE a (b int);\n")
    path.chmod(0o600)
    done = run(project, path)
    if os.geteuid() == 0:
        assert done.returncode == 5, done.stderr
        assert "the user that the server runs as cannot read the dump" in " ".join(done.stderr.split())
        assert project.plinth("plan", "x.toml").returncode == 5
    nothing_left()
