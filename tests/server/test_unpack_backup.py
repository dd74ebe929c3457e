"""Backups of versions whose pg_verifybackup reads no tar files: compared with their manifest once they are unpacked."""

import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from native_server import HBA, Server
from plinth.model.errors import RunError
from plinth.model.server_spec import ServerSpec
from plinth.server.layout import BackupSource, ServerLayout
from plinth.server.unpack_backup import unpack_backup
from plinth.system.log_file import LogFile
from plinth.system.owner import server_owner
from plinth.system.runner import Runner
from servers import all_installations


@pytest.fixture(scope="module")
def tars() -> Iterator[Server]:
    """A server of PostgreSQL 15 with a tablespace, and the folder `tar` of its backup."""
    owner = server_owner()
    server = Server(all_installations(owner, Runner())["debian"], owner, hba=f"local replication all trust\n{HBA}")
    try:
        (server.folder / "place").mkdir()
        server.own(server.folder / "place")
        server.start()
        string = f"host={server.folder} port={server.port} user=postgres dbname=postgres"
        with psycopg.connect(string, autocommit=True) as session:
            session.execute(f"CREATE TABLESPACE place LOCATION '{server.folder / 'place'}'".encode())
            session.execute("CREATE TABLE goods TABLESPACE place AS SELECT generate_series(1, 1000) AS id")
        environment = {**os.environ, "PGHOST": str(server.folder), "PGPORT": str(server.port), "PGUSER": "postgres"}
        argv = [f"{server.installation.bindir}/pg_basebackup", "-D", str(server.folder / "tar"), "-Ft", "-c", "fast"]
        subprocess.run(argv, env=environment, check=True, capture_output=True)
        for path in (server.folder / "tar", *(server.folder / "tar").iterdir()):
            server.own(path)
        server.stop()
        yield server
    finally:
        server.remove()


def unpack(server: Server, into: Path) -> None:
    layout = ServerLayout(
        run_id="unpacked",
        name="1-disk",
        installation=server.installation,
        owner=server_owner(),
        spec=ServerSpec(),
        data_directory=into,
        log=LogFile(into.with_suffix(".log")),
    )
    unpack_backup(layout, BackupSource(server.folder / "tar", "postgres"), Runner(), lambda _: None)


@pytest.mark.long
def test_a_tar_of_an_older_version_is_compared_with_its_manifest(tars: Server, tmp_path: Path) -> None:
    unpack(tars, tmp_path / "whole")
    assert [*(tmp_path / "whole").glob("pg_tblspc/*/PG_15_*/*/*")], "the tablespace is a directory of the copy"
    tar = tars.folder / "tar" / "base.tar"
    with tarfile.open(tar) as opened:
        spoilt_at = next(one.offset_data for one in opened if one.name.endswith("/1259"))
    with tar.open("r+b") as file:
        file.seek(spoilt_at)
        file.write(b"spoilt")
    with pytest.raises(RunError, match="is not what its manifest says"):
        unpack(tars, tmp_path / "spoilt")
