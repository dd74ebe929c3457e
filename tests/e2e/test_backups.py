"""`[dataset] kind = "backup"`: servers made of base backups and of a stopped data directory, cut off from their original."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from native_server import HBA, Server
from originals import files_of
from plinth.system.owner import server_owner
from plinth.system.runner import Runner
from public_folder import PUBLIC
from servers import all_installations
from waiting import wait_until

SCHEMA = """
CREATE DATABASE shop;
CREATE TABLESPACE first LOCATION 'PLACE/first';
CREATE TABLESPACE second LOCATION 'PLACE/second';
"""
OF_SHOP = """
CREATE EXTENSION pg_trgm;
CREATE TABLE goods (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text) TABLESPACE first;
CREATE INDEX ON goods USING gin (name gin_trgm_ops) TABLESPACE second;
INSERT INTO goods (name) SELECT 'good ' || n FROM generate_series(1, 2000) n;
CREATE TABLE sold (day date, good int, count int) PARTITION BY RANGE (day);
CREATE TABLE sold_2026 PARTITION OF sold FOR VALUES FROM ('2026-01-01') TO ('2027-01-01') TABLESPACE second;
SELECT lo_from_bytea(4711, 'a large object');
SELECT pg_create_physical_replication_slot('of_the_original', true);
"""
SETTINGS = """
wal_level = logical
archive_mode = on
archive_command = 'touch PLACE/archived'
"""
EXPERIMENT = """\
spec = 1
name = "backed-up"
question = "Does the shop run here?"

[storage.memory]
kind = "tmpfs"
size = "1GiB"
[storage.disk]
kind = "directory"
[server]
storage = "memory"
version = VERSION
[dataset]
kind = "backup"
path = "PATH"
database = "shop"
[workload]
script = "shop.pgbench"
clients = 2
[matrix]
storage = ["memory", "disk"]
[measure]
warmup = "0s"
duration = "500ms"
repeats = 1
aa = false
probe = "0s"
"""
SCRIPT = """\
\\set good random(1, 2000)
BEGIN;
INSERT INTO sold VALUES ('2026-03-01', :good, 1);
SELECT 1 / (count(*) / count(*)) FROM goods WHERE name = 'good ' || :good;
SELECT convert_from(lo_get(4711), 'UTF8');
INSERT INTO goods (name) VALUES ('new');
END;
"""
BACKUPS = ("plain", "tar", "gzip", "stopped")


class Original:
    """A server with a shop in two tablespaces, its backups in every form, and what it would archive."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.archived = server.folder / "archived"

    def path(self, form: str) -> Path:
        return self.server.data if form == "stopped" else self.server.folder / form


@pytest.fixture(scope="module")
def original() -> Iterator[Original]:
    owner = server_owner()
    server = Server(all_installations(owner, Runner())["18"], owner, hba=f"local replication all trust\n{HBA}")
    folder = server.folder
    with (server.data / "postgresql.conf").open("a") as configuration:
        configuration.write(SETTINGS.replace("PLACE", str(folder)))
    try:
        for name in ("first", "second"):
            (folder / name).mkdir()
            server.own(folder / name)
        server.start()
        for database, text in (("postgres", SCHEMA), ("shop", OF_SHOP)):
            string = f"host={folder} port={server.port} user=postgres dbname={database}"
            with psycopg.connect(string, autocommit=True) as session:
                for statement in filter(str.strip, text.replace("PLACE", str(folder)).split(";\n")):
                    session.execute(statement.encode())
        environment = {**os.environ, "PGHOST": str(folder), "PGPORT": str(server.port), "PGUSER": "postgres"}
        mapped = [f"--tablespace-mapping={folder / name}={folder / f'plain-{name}'}" for name in ("first", "second")]
        for form, words in {"plain": mapped, "tar": ["-Ft"], "gzip": ["-Ft", "--gzip"]}.items():
            argv = [f"{server.installation.bindir}/pg_basebackup", "-D", str(folder / form), "-c", "fast", *words]
            subprocess.run(argv, env=environment, check=True, capture_output=True)
            give(folder / form)
        for name in ("plain-first", "plain-second"):
            give(folder / name)
        server.stop()
        yield Original(server)
    finally:
        server.remove()


def give(folder: Path) -> Path:
    """Give a folder and all that is in it to the server's user, who has to read it."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, server_owner().uid, server_owner().gid, follow_symlinks=False)
    return folder


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="plinth-test-", dir=PUBLIC))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def write(project, path: Path | str, *changes: tuple[str, str]) -> None:
    (project.folder / "shop.pgbench").write_text(SCRIPT)
    text = EXPERIMENT.replace("PATH", str(path)).replace("VERSION", "18")
    for change in changes:
        assert change[0] in text
        text = text.replace(*change)
    project.write(text)


@pytest.mark.long
@pytest.mark.parametrize(
    "form", [pytest.param(form, marks=[pytest.mark.long] if form in ("tar", "gzip") else []) for form in BACKUPS]
)
def test_servers_are_made_of_copies(project, nothing_left, original: Original, form: str) -> None:
    original.archived.unlink(missing_ok=True)
    before = files_of(original.server.folder)
    write(project, original.path(form))
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    for trial in project.trials():
        assert trial["status"] == "complete" and trial["errors"] == [], trial
        assert trial["totals"]["done"] > 0
    assert files_of(original.server.folder) == before, "the original is as it was, its tablespaces too"
    assert not original.archived.exists(), "nothing was shipped to the archive of the original"
    nothing_left()


def test_the_plan_says_what_is_copied(project, original: Original) -> None:
    write(project, original.path("plain"))
    planned = " ".join(project.plinth("plan", "x.toml").stdout.split())
    assert f"copy the backup {original.path('plain')}" in planned
    assert "and cut it off from its original" in planned


@pytest.mark.long
def test_a_link_to_a_backup_is_copied_from_where_it_leads(
    project, nothing_left, original: Original, place: Path
) -> None:
    """As with `latest`, which backup tools make: the server ran on the original itself, whose manifest and configuration were then gone."""
    backup = give(Path(shutil.copytree(original.path("plain"), place / "of-today", symlinks=True)))
    (place / "latest").symlink_to("of-today")
    before = files_of(place)
    write(project, place / "latest")
    planned = " ".join(project.plinth("plan", "x.toml").stdout.split())
    assert f"copy the backup {backup}" in planned
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    assert [trial["status"] for trial in project.trials()] == ["complete", "complete"]
    assert files_of(place) == before
    nothing_left()


def test_a_backup_that_the_server_cannot_read_is_refused_in_the_plan(project, original: Original, spoilt: Path) -> None:
    if os.geteuid() != 0:
        pytest.fail("only root runs servers as another user: run it as root")
    hidden = next(spoilt.glob("base/*/1259"))
    for path, said in (
        (hidden, "user postgres cannot read 1 files or folders of the backup"),
        (spoilt, "the user that the server runs as cannot read the backup"),
    ):
        os.chown(path, 0, 0)
        path.chmod(0o600)
        write(project, spoilt)
        planned = project.plinth("plan", "x.toml")
        assert planned.returncode in (2, 5), planned.stderr
        text = " ".join(planned.stderr.split())
        assert said.replace("postgres", server_owner().name) in text and "setfacl" in text
        assert text.count("cannot read") == 1, "said once, and not for each server"


def test_trials_begin_with_the_backup(project, nothing_left, original: Original) -> None:
    write(project, original.path("plain"), ("repeats = 1", 'repeats = 2\nrestore = "auto"'))
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    assert all(trial["restored"] is not None for trial in project.trials())
    nothing_left()


@pytest.mark.long
def test_a_copy_that_was_cut_short_is_made_again(project, nothing_left, original: Original, place: Path) -> None:
    """A backup that is large enough that the kill comes while it is copied."""
    private = Path(shutil.copytree(original.path("plain"), place / "private", symlinks=True))
    with (private / "base" / "large").open("wb") as file:
        for _ in range(300):
            file.write(bytes(2**20))
    give(private)
    before = files_of(private)
    write(
        project,
        private,
        ('database = "shop"', 'database = "shop"\nverify = false'),
        ('storage = ["memory", "disk"]', 'storage = ["disk"]'),
        ('storage = "memory"', 'storage = "disk"'),
    )
    running = project.start()
    running.wait_for("initialise cluster 1-disk")

    def is_copying() -> bool:
        return any(path.stat().st_size > 0 for path in project.state.glob("work/*/1-disk/base/large"))

    wait_until(is_copying, "the copy has begun")
    running.signal(signal.SIGKILL)
    running.end()
    resumed = project.plinth("resume", project.bundle)
    assert resumed.returncode in (0, 3), resumed.stderr
    assert [trial["status"] for trial in project.trials()] == ["complete"]
    assert files_of(private) == before
    nothing_left()


@pytest.fixture
def spoilt(original: Original, place: Path) -> Path:
    """A copy of the plain backup, to be changed."""
    return give(Path(shutil.copytree(original.path("plain"), place / "spoilt", symlinks=True)))


@pytest.mark.long
def test_a_damaged_backup_is_refused(project, nothing_left, spoilt: Path) -> None:
    with next(spoilt.glob("base/*/1259")).open("r+b") as file:
        file.write(b"spoilt")
    write(project, spoilt)
    done = project.run()
    assert done.returncode == 1, done.stderr
    assert "is not what its manifest says" in " ".join(done.stderr.split())
    nothing_left()


@pytest.mark.parametrize("target", ["/etc/passwd", "/etc"])
def test_a_link_out_of_the_backup_is_not_followed(project, nothing_left, spoilt: Path, target: str) -> None:
    (spoilt / "base" / "leads-away").symlink_to(target)
    write(project, spoilt, ('database = "shop"', 'database = "shop"\nverify = false'))
    done = project.run()
    assert done.returncode != 0
    assert "neither a file nor a directory: base/leads-away" in " ".join(done.stderr.split())
    nothing_left()


@pytest.mark.long
@pytest.mark.parametrize("target", ["/etc", "/"])
def test_a_tablespace_that_is_none_is_not_copied(project, nothing_left, spoilt: Path, target: str) -> None:
    link = next((spoilt / "pg_tblspc").iterdir())
    link.unlink()
    link.symlink_to(target)
    write(project, spoilt, ('database = "shop"', 'database = "shop"\nverify = false'))
    done = project.run()
    assert done.returncode != 0
    assert f"leads to what is no tablespace: {target}" in " ".join(done.stderr.split())
    nothing_left()


def test_what_is_no_backup_is_refused_in_the_plan(project, original: Original, spoilt: Path, place: Path) -> None:
    (place / "empty").mkdir()
    (spoilt / "PG_VERSION").write_text("12\n")
    running = place / "running"
    running.mkdir()
    (running / "PG_VERSION").write_text("18\n")
    (running / "postmaster.pid").write_text("1\n")
    for path, said in (
        (place / "absent", "it is no directory"),
        (place / "empty", "it has neither base.tar nor PG_VERSION"),
        (spoilt, "the backup is of PostgreSQL 12"),
        (running, "a server runs on"),
    ):
        write(project, path)
        planned = project.plinth("plan", "x.toml")
        assert planned.returncode != 0
        assert said in " ".join(planned.stderr.split()), planned.stderr


@pytest.mark.long
def test_a_data_directory_that_was_not_shut_down_is_refused(
    project, nothing_left, original: Original, place: Path
) -> None:
    crashed = give(Path(shutil.copytree(original.path("plain"), place / "crashed", symlinks=True)))
    (crashed / "backup_label").unlink()
    write(project, crashed, ('database = "shop"', 'database = "shop"\nverify = false'))
    done = project.run()
    assert done.returncode != 0
    assert "the data directory was not shut down" in " ".join(done.stderr.split())
    nothing_left()
