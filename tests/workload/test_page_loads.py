"""Datasets that are written as pages into a stopped server: what COPY, keys and VACUUM leave, and nothing else."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from children import run_in_child
from plinth.model.connection import Connection
from plinth.model.dataset import DatasetSpec
from plinth.model.errors import Interrupted, Refused, RunError
from plinth.model.facts import Installation
from plinth.model.progress import Progress
from plinth.model.server_spec import ServerSpec
from plinth.model.tpcc_tables import INDEXES as TPCC_INDEXES
from plinth.model.tpcc_tables import TABLES as TPCC_TABLES
from plinth.model.trial import Check
from plinth.run.loading import DatasetSession
from plinth.run.local_host import HOST
from plinth.run.undo import UNDO_HANDLERS
from plinth.server.layout import ServerLayout
from plinth.server.processes import KILL, end_server
from plinth.server.server import LocalServer
from plinth.system.database import connect_unpinned
from plinth.system.journal import Journal
from plinth.system.log_file import LogFile
from plinth.system.owner import Owner
from plinth.system.runner import Runner
from plinth.workload import dataset_of
from plinth.workload.tpcc_conditions import check_conditions

WITH_AMCHECK = ("debian", "17", "18")
SETTINGS = {"shared_buffers": "64MB"}
COLUMNS = {
    "level": {"kind": "gaussian", "min": -100, "max": 100, "type": "smallint"},
    "short": {"kind": "text", "size": 11},
    "id": {"kind": "sequence", "first": -50, "step": 5, "type": "int"},
    "Note": {"kind": "text", "size": 200, "compressibility": 0.75},
    "customer": {"kind": "zipfian", "min": 1, "max": 1000},
    "at": {"kind": "timestamp", "first": "1969-01-01 00:00:00", "last": "2020-12-31 23:59:59.5"},
}
EVENTS = {"kind": "generated", "table": "My-events", "rows": 10_000, "columns": COLUMNS}
NUMBERS = {"kind": "numbers", "rows": 150_000}
DATASETS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "tpcb": (
        {"kind": "tpcb", "scale": 1, "fillfactor": 90},
        ["pgbench_accounts", "pgbench_tellers", "pgbench_branches"],
    ),
    "numbers": (NUMBERS, ["numbers"]),
    "partitions": ({**NUMBERS, "partitions": 3}, ["numbers_1", "numbers_2", "numbers_3"]),
    "upsert": ({"kind": "upsert", "rows": 5_000}, ["upserted"]),
    "generated": ({**EVENTS, "key": "id", "fillfactor": 70}, ['"My-events"']),
    "without a key": (EVENTS, ['"My-events"']),
}
ROWS = "SELECT count(*), md5(string_agg(ctid::text || t::text, ';' ORDER BY ctid)) FROM {} t"
KEY = "(SELECT indexrelid FROM pg_index WHERE indrelid = '{}'::regclass)"
FIGURES = (
    "SELECT c.relpages, c.reltuples, c.relallvisible, i.relpages, i.reltuples, pg_relation_size(c.oid),"
    " pg_relation_size(i.oid), pg_relation_size(c.oid, 'vm'), c.relhasindex FROM pg_class c"
    " LEFT JOIN pg_class i ON i.oid = {key} WHERE c.oid = '{table}'::regclass"
)
FROZEN = "SELECT count(*) FILTER (WHERE all_frozen AND pd_all_visible), count(*) FROM pg_visibility('{}')"
HARM = "SELECT count(*) FROM verify_heapam('{}')"
HARM_OF_KEYS = (
    "SELECT count(bt_index_parent_check(indexrelid, heapallindexed => true, rootdescend => true)::text)"
    " FROM pg_index WHERE indrelid = '{}'::regclass"
)


def layout_in(folder: Path, installation: Installation, owner: Owner, **server: Any) -> ServerLayout:
    storage = folder / "storage"
    storage.mkdir(exist_ok=True)
    os.chown(storage, owner.uid, owner.gid)
    spec = ServerSpec.model_validate(server)
    return ServerLayout(
        "pages", "one", installation, owner, spec, storage / "data", LogFile(folder / "postgres.log"), folder
    )


@contextmanager
def cluster_of(layout: ServerLayout) -> Iterator[LocalServer]:
    """Made if it is not there yet; it runs, and is ended as by a crash."""
    journal = Journal.create(f"pages-{os.getpid()}", UNDO_HANDLERS)
    cluster = LocalServer(layout, Runner(), journal)
    try:
        if not layout.data_directory.exists():
            cluster.initdb()
        cluster.start(SETTINGS)
        yield cluster
    finally:
        cluster.crash()
        journal.close()


def load(cluster: LocalServer, spec: dict[str, Any], session: type[DatasetSession] = DatasetSession) -> list[Progress]:
    reported: list[Progress] = []
    with session(connect_unpinned(cluster.connection), cluster.connection, HOST, cluster) as server:
        dataset_of(TypeAdapter(DatasetSpec).validate_python(spec)).populate(server, reported.append)
    return reported


def row(to: Connection, query: str) -> tuple[Any, ...]:
    with closing(connect_unpinned(to)) as control:
        found = control.execute(query.encode()).fetchone()
    assert found is not None
    return found


def looked_at(to: Connection, table: str) -> list[tuple[Any, ...]]:
    """Rows and where each is, sizes and statistics."""
    figures = FIGURES.format(table=table, key=KEY.format(table))
    return [row(to, ROWS.format(table)), row(to, figures)]


def check_unharmed(to: Connection, table: str, keys: int) -> None:
    frozen, pages = row(to, FROZEN.format(table))
    assert frozen == pages > 0
    assert row(to, HARM.format(table)) == (0,)
    assert row(to, HARM_OF_KEYS.format(table)) == (keys,)


@pytest.mark.long
@pytest.mark.parametrize(
    ("version", "checksums", "names"),
    [
        ("debian", True, ["numbers", "upsert", "generated"]),
        ("18", False, ["tpcb", "partitions", "without a key"]),
        *(pytest.param(version, True, list(DATASETS), marks=pytest.mark.long) for version in WITH_AMCHECK),
    ],
    ids=lambda of: of if isinstance(of, str) else None,
)
def test_pages_are_what_one_frozen_copy_leaves(
    folder: Path, installations: dict[str, Installation], owner: Owner, version: str, checksums: bool, names: list[str]
) -> None:
    layout = layout_in(folder, installations[version], owner, data_checksums=checksums)
    with cluster_of(layout) as cluster:
        to = cluster.connection
        with closing(connect_unpinned(to)) as control:
            control.execute("CREATE EXTENSION amcheck; CREATE EXTENSION pg_visibility")
        for name in names:
            spec, tables = DATASETS[name]
            load(cluster, {**spec, "streams": 1})
            copied = [looked_at(to, table) for table in tables]
            drop(to)
            reported = load(cluster, {**spec, "loader": "pages"})
            assert [looked_at(to, table) for table in tables] == copied, name
            for table in tables:
                check_unharmed(to, table, keys=int(name != "without a key"))
            assert [one for one in reported if one.task == "write pages"][-1].done == sum(
                found[0][0] for found in copied
            )
            assert load(cluster, {**spec, "loader": "pages"}) == []
            assert list(layout.data_directory.rglob("*.plinth")) == []
            drop(to)
        cluster.shutdown()
        if checksums:
            checker = f"{installations[version].bindir}/pg_checksums"
            Runner().run((checker, "--check", "-D", str(layout.data_directory)), owner=owner)


TPCC = {"kind": "tpcc", "warehouses": 2, "fillfactor": 95}
TPCC_ROWS = "SELECT count(*), sum(hashtextextended(t::text, 0)) FROM {} t"
TPCC_KEYS = "SELECT count(*) FILTER (WHERE indisprimary), count(*), bool_and(indisvalid) FROM pg_index i JOIN pg_class c ON c.oid = indrelid WHERE relkind = 'r' AND relname <> 'plinth_load' AND relnamespace = 'public'::regnamespace"


@pytest.mark.long
@pytest.mark.parametrize("version", ["18", "debian"])
def test_pages_of_tpcc_have_the_rows_and_keys_of_copy(
    folder: Path, installations: dict[str, Installation], owner: Owner, version: str
) -> None:
    """Its rows differ in width, and its keys have several columns: the server builds them."""
    with cluster_of(layout_in(folder, installations[version], owner, data_checksums=True)) as cluster:
        to = cluster.connection
        load(cluster, TPCC)
        copied = {table.name: row(to, TPCC_ROWS.format(table.name)) for table in TPCC_TABLES}
        keys = row(to, TPCC_KEYS)
        drop(to)
        reported = load(cluster, {**TPCC, "loader": "pages", "maintenance_work_mem": "128MB"})
        tasks = list(dict.fromkeys(one.task for one in reported))
        assert tasks.index("write pages") < tasks.index("build keys") < tasks.index("check consistency")
        assert {table.name: row(to, TPCC_ROWS.format(table.name)) for table in TPCC_TABLES} == copied
        assert row(to, TPCC_KEYS) == keys
        with closing(connect_unpinned(to)) as control:
            control.execute("CREATE EXTENSION amcheck; CREATE EXTENSION pg_visibility")
        for table in TPCC_TABLES:
            also = sum(index.table == table.name for index in TPCC_INDEXES)
            check_unharmed(to, table.name, keys=int(table.key is not None) + also)
        assert load(cluster, {**TPCC, "loader": "pages", "maintenance_work_mem": "128MB"}) == []
        drop(to)
        load(cluster, {**TPCC, "loader": "pages", "partitions": 2, "foreign_keys": True})
        assert {table.name: row(to, TPCC_ROWS.format(table.name)) for table in TPCC_TABLES} == copied


def drop(to: Connection) -> None:
    with closing(connect_unpinned(to)) as control:
        found = control.execute(
            "SELECT string_agg(oid::regclass::text, ', ') FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition"
            " AND relnamespace = 'public'::regnamespace"
        ).fetchone()
        assert found is not None
        control.execute(f"DROP TABLE {found[0]} CASCADE".encode())


class Dying(DatasetSession):
    """Kills its own process: as soon as a file is being written, once all are, or once the server runs again."""

    at = "writing"

    @contextmanager
    def stopped(self) -> Iterator[None]:
        assert self.server is not None
        with super().stopped():
            if self.at == "writing":
                threading.Thread(target=self._die_once_seen, daemon=True).start()
            yield
            if self.at == "written":
                os.kill(os.getpid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    def _die_once_seen(self) -> None:
        assert self.server is not None
        while not any(self.server.layout.data_directory.glob("base/*/*.plinth")):
            pass
        os.kill(os.getpid(), signal.SIGKILL)


def killed_load(
    layout: ServerLayout, spec: dict[str, Any], at: str, monkeypatch: pytest.MonkeyPatch
) -> dict[Path, int]:
    """Load, and be killed at some point; the files that are whole by then, with their inodes."""
    monkeypatch.setattr(Dying, "at", at)

    def load_until_killed() -> None:
        with cluster_of(layout) as cluster:
            load(cluster, spec, Dying)

    assert run_in_child(load_until_killed).signal == signal.SIGKILL
    end_server(layout.data_directory, (KILL,))
    (layout.data_directory / "postmaster.pid").unlink(missing_ok=True)
    subprocess.run(["rm", "-rf", layout.socket_directory], check=True)
    assert (at == "writing") == bool(list(layout.data_directory.rglob("*.plinth")))
    return {path: path.stat().st_ino for path in written(layout)}


MANY = {"kind": "numbers", "rows": 1_000_000, "partitions": 4, "loader": "pages"}
TPCC_MANY = {"kind": "tpcc", "warehouses": 4, "loader": "pages", "check_consistency": False}
MANY_FIGURES = "SELECT count(*), count(DISTINCT number), min(number), max(number) FROM numbers"


@pytest.mark.long
@pytest.mark.parametrize("at", ["writing", "written", "started"])
def test_a_load_that_was_killed_is_resumed(
    folder: Path, installations: dict[str, Installation], owner: Owner, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    layout = layout_in(folder, installations["18"], owner)
    whole = killed_load(layout, MANY, at, monkeypatch)
    with cluster_of(layout) as cluster:
        reported = load(cluster, MANY)
        assert row(cluster.connection, MANY_FIGURES) == (1_000_000, 1_000_000, 1, 1_000_000)
        assert row(cluster.connection, "INSERT INTO numbers (operator) VALUES (1) RETURNING number") == (1_000_001,)
        assert "write pages" in {one.task for one in reported} and "build keys" not in {one.task for one in reported}
    assert {path: path.stat().st_ino for path in whole} == whole
    assert not list(layout.data_directory.rglob("*.plinth"))


@pytest.mark.long
@pytest.mark.parametrize("at", ["writing", "written"])
def test_a_load_of_tpcc_that_was_killed_is_resumed(
    folder: Path, installations: dict[str, Installation], owner: Owner, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """The server builds its keys, and they are not there before all rows are."""
    layout = layout_in(folder, installations["18"], owner)
    whole = killed_load(layout, TPCC_MANY, at, monkeypatch)
    with cluster_of(layout) as cluster:
        reported = load(cluster, TPCC_MANY)
        assert {"write pages", "build keys"} <= {one.task for one in reported}
        assert row(cluster.connection, TPCC_KEYS) == (8, 10, True)
        assert [check for check in checked(cluster.connection) if not check.ok] == []
    assert {path: path.stat().st_ino for path in whole} == whole
    assert not list(layout.data_directory.rglob("*.plinth"))


def checked(to: Connection) -> list[Check]:
    """The consistency conditions of tpcc."""
    with closing(connect_unpinned(to)) as control:
        return check_conditions(control, initial=True)


def written(layout: ServerLayout) -> list[Path]:
    """The files of tables and keys that are whole: larger than an empty key."""
    new = [path for path in layout.data_directory.glob("base/5/*") if path.name.isdigit() and int(path.name) >= 16384]
    return [path for path in new if path.stat().st_size > 2**20]


@pytest.mark.long
def test_a_full_disk_is_reported_and_what_is_there_is_kept_until_there_is_room(
    scratch: Path, installations: dict[str, Installation], owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLINTH_STATE_DIR", str(scratch / "state"))
    storage = scratch / "storage"
    storage.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=85m,mode=0755", "plinth-test", storage], check=True)
    try:
        layout = layout_in(scratch, installations["18"], owner)
        with cluster_of(layout) as cluster:
            with pytest.raises(RunError, match=r"(?i)no space left") as raised:
                load(cluster, MANY)
            assert raised.value.hint == "the storage is full: give it a larger size, or take a smaller dataset.rows"
            assert not cluster.alive()
        subprocess.run(["mount", "-o", "remount,size=1g", storage], check=True)
        with cluster_of(layout) as cluster:
            load(cluster, MANY)
            assert row(cluster.connection, MANY_FIGURES)[0] == 1_000_000
    finally:
        subprocess.run(["umount", storage], check=True)


def test_who_interrupts_the_writing_finds_the_server_stopped_and_who_did_not_start_it_may_not_stop_it(
    folder: Path, installations: dict[str, Installation], owner: Owner
) -> None:
    dataset = dataset_of(TypeAdapter(DatasetSpec).validate_python(MANY))

    def interrupt(progress: Progress) -> None:
        if progress.task == "write pages":
            raise Interrupted("ended by SIGINT")

    with cluster_of(layout_in(folder, installations["18"], owner)) as cluster:
        with DatasetSession(connect_unpinned(cluster.connection), cluster.connection, HOST) as server:
            with pytest.raises(Refused, match="not ours to stop"):
                dataset.populate(server, lambda _: None)
        assert cluster.alive()
        with DatasetSession(connect_unpinned(cluster.connection), cluster.connection, HOST, cluster) as server:
            with pytest.raises(Interrupted):
                dataset.populate(server, interrupt)
        assert not cluster.alive()
        assert not list(cluster.layout.data_directory.rglob("*.plinth"))
