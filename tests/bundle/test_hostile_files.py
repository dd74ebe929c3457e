"""Bundles are shared: hostile files in one are read without waiting, refused by name, and nothing else is written to."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from bundle_parts import PLAN, histogram, second, trial
from plinth.bundle import (
    BundleFolder,
    BundleWriter,
    read_bundle,
    read_manifest,
    read_plan,
    verify_bundle,
    write_derived,
)
from plinth.bundle.tables import Tables
from plinth.common.untrusted import MOST_KEYS, validate_untrusted
from plinth.model.errors import PlinthError, Refused, RunError, UsageError
from plinth.model.plan import Plan
from plinth.model.trial import Event, Sample
from plinth.system.lock import LOCK_FILE, DirectoryLock
from sampled import rows_of
from typed import present

SAMPLE = Sample(1, "host", "all", "x", 1.0)
PRECIOUS = "not the bundle's\n"
BOUND_S = 60


@pytest.fixture(autouse=True)
def _ends():
    """What waits for a FIFO would wait forever."""
    signal.alarm(BOUND_S)
    yield
    signal.alarm(0)


@pytest.fixture
def bundle(tmp_path):
    return written(tmp_path / "b")


@pytest.fixture
def precious(tmp_path):
    path = tmp_path / "precious"
    path.write_text(PRECIOUS)
    return path


def written(path, value=1.0):
    writer = BundleWriter.create(path, PLAN, "spec = 1\n", "0.1.0")
    samples = [SAMPLE._replace(value=value), SAMPLE._replace(source="device", value=value)]
    folder = writer.write_trial(trial(), None, samples, [Event(t_ns=3, kind="checkpoint_end", text="x")])
    tables = Tables(BundleFolder(folder))
    tables.write_series("series.parquet", (second(0, done=int(value)),))
    tables.write_histograms("hist.parquet", (histogram(),))
    with writer.log("commands.jsonl").to_append() as log:
        log.write(b"{}\n")
    writer.finish("complete")
    return path


def read_all(path):
    contents = read_bundle(path)
    for each in contents.trials:
        each.read_samples()
    return contents


def link(path, precious):
    path.symlink_to(precious)


def dangling(path, precious):
    path.symlink_to(path.with_name("nowhere"))


def fifo(path, precious):
    os.mkfifo(path)


def unix_socket(path, precious):
    with socket.socket(socket.AF_UNIX) as listening:
        with contextlib.chdir(path.parent):  # the path of a socket is short
            listening.bind(path.name)


def device(path, precious):
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))


def folder(path, precious):
    path.mkdir()


def sparse(path, precious):
    path.touch()
    os.truncate(path, 2**42)


def empty(path, precious):
    path.touch()


def bytes_of_chance(path, precious):
    path.write_bytes(os.urandom(5000))


def wrong_types(path, precious):
    path.write_text('{"schema_version": 1, "run_id": [], "number": {}, "cores": null, "kind": 7}')


def no_object(path, precious):
    path.write_text("[1e400, NaN, -1]")


def many_digits(path, precious):
    path.write_text("9" * 10_000)


def nested(path, precious):
    path.write_text("[" * 100_000)


SPECIAL: dict[Callable[[Path, Path], None], str] = {
    link: "a symbolic link",
    dangling: "a symbolic link",
    fifo: "a FIFO",
    unix_socket: "a socket",
    device: "a character device",
}
ORDINARY = [folder, sparse, empty, bytes_of_chance, wrong_types, no_object, many_digits, nested]


@pytest.mark.parametrize("put", [*SPECIAL, *ORDINARY])
def test_anything_in_place_of_a_file(tmp_path, bundle, precious, put):
    """Each file in turn. A reader may find it empty or absent; it never waits, and raises nothing but a PlinthError."""
    files = sorted(path for path in bundle.rglob("*") if path.is_file())
    assert len(files) == 12
    for file in files:
        content = file.read_bytes()
        file.unlink()
        put(file, precious)
        name = str(file.relative_to(bundle))
        with pytest.raises(PlinthError) as verified:
            verify_bundle(bundle)
        if put in SPECIAL and name != "SHA256SUMS":
            assert f"{SPECIAL[put]}: {name}" in verified.value.details
        if file.parent.name == "logs" or name == "SHA256SUMS" or (put is empty and file.suffix in (".toml", ".jsonl")):
            read_all(bundle)  # which needs nothing of it
        elif file.suffix != ".toml" or put not in ORDINARY:
            with pytest.raises(PlinthError) as reported:
                read_all(bundle)
            assert name in present(reported.value.where) or "observe" in present(reported.value.where)
            assert put not in SPECIAL or SPECIAL[put] in reported.value.message
        file.rmdir() if put is folder else file.unlink()
        file.write_bytes(content)
    assert precious.read_text() == PRECIOUS
    assert verify_bundle(bundle) == len(files) - 1
    assert read_all(bundle).trials[0].read_samples()


@pytest.mark.parametrize("name", ["env", "trials", "trials/0001-disk", "trials/0001-disk/observe", "logs"])
def test_a_folder_that_is_a_link_leads_nowhere(tmp_path, bundle, name):
    """Not even to another bundle's, which could be read there."""
    other = written(tmp_path / "other")
    (bundle / name).rename(tmp_path / "moved")
    (bundle / name).symlink_to(other / name)
    with pytest.raises(RunError) as verified:
        verify_bundle(bundle)
    assert f"a symbolic link: {name}" in verified.value.details
    if name != "logs":
        with pytest.raises(RunError, match="cannot read a part of the bundle") as reported:
            read_all(bundle)
        assert name in reported.value.where


def test_a_resumed_run_writes_to_nothing_that_a_link_names(bundle, precious):
    manifest = read_manifest(bundle)
    for name in (".manifest.json.partial", "SHA256SUMS", ".SHA256SUMS.partial", "logs/drivers.log", "wear.json"):
        (bundle / name).unlink(missing_ok=True)
        (bundle / name).symlink_to(precious)
    (bundle / "trials" / ".partial-0002").symlink_to(precious.parent)
    (bundle / "derived").symlink_to(precious.parent)
    writer = BundleWriter.reopen(bundle, manifest)
    writer.write_trial(trial(2), None, [SAMPLE], [])
    with pytest.raises(Refused, match="symbolic link"):
        writer.log("drivers.log").to_append()
    with pytest.raises(PlinthError):
        write_derived(bundle, "precious", "overwritten")
    writer.finish("complete")
    assert precious.read_text() == PRECIOUS
    assert sorted(path.name for path in precious.parent.iterdir()) == ["b", "precious"]
    (bundle / "derived").unlink()
    (bundle / "derived").mkdir()
    (bundle / "derived" / "report.html").symlink_to(precious)
    write_derived(bundle, "report.html", "<html>")
    assert precious.read_text() == PRECIOUS
    assert (bundle / "derived" / "report.html").read_text() == "<html>"


def test_a_log_with_a_second_name_and_a_fifo_in_its_place_are_refused(bundle, precious):
    writer = BundleWriter.reopen(bundle, read_manifest(bundle))
    (bundle / "logs" / "hard").hardlink_to(precious)
    os.mkfifo(bundle / "logs" / "fifo")
    (bundle / "logs" / "folder").mkdir()
    for name in ("hard", "fifo", "folder"):
        with pytest.raises(PlinthError):
            writer.log(name).to_append()
    assert precious.read_text() == PRECIOUS


def test_a_lock_file_that_is_something_else_is_refused(bundle, precious):
    for put in (link, fifo, device, folder, lambda path, precious: path.hardlink_to(precious)):
        put(bundle / LOCK_FILE, precious)
        with pytest.raises(PlinthError):
            DirectoryLock(bundle, BundleFolder(bundle).descriptor).acquire()
        (bundle / LOCK_FILE).rmdir() if put is folder else (bundle / LOCK_FILE).unlink()
    assert precious.read_text() == PRECIOUS


def test_a_bundle_that_is_renamed_is_written_on_where_it_is_now(tmp_path):
    path = tmp_path / "b"
    writer = BundleWriter.create(path, PLAN, "", "0.1.0")
    path.rename(tmp_path / "c")
    (path / "trials").mkdir(parents=True)
    (path / "manifest.json").write_text(PRECIOUS)
    writer.write_trial(trial(), None, [SAMPLE], [])
    writer.finish("complete")
    assert writer.path == tmp_path / "c"
    assert sorted(found.name for found in path.rglob("*")) == ["manifest.json", "trials"]
    assert (path / "manifest.json").read_text() == PRECIOUS
    assert verify_bundle(tmp_path / "c")
    assert len(read_all(tmp_path / "c").trials) == 1


@pytest.mark.parametrize("gone", ["trials", "env", "logs", "."])
def test_what_is_taken_away_while_it_is_written_is_said(tmp_path, gone):
    path = tmp_path / "b"
    writer = BundleWriter.create(path, PLAN, "", "0.1.0")
    (path / gone).rename(tmp_path / "away") if gone != "." else None
    if gone == ".":
        shutil.rmtree(path)
    failures = []
    for write in (
        lambda: writer.write_trial(trial(), None, [], []),
        lambda: writer.write_host(PLAN.host),
        lambda: writer.log("x.log").to_append().close(),
    ):
        try:
            write()
        except RunError as error:
            failures.append(error.message)
    assert failures
    assert all("taken away" in message or "no longer there" in message for message in failures)


SPECIAL_NAMES = [
    "a[b]c",
    "r*",
    "a?c",
    "a{b,c}",
    "it's",
    'a"b',
    "a\\b",
    "a b",
    "a\nb",
    "größe-表",
    "-rf",
    "$(id)",
    "%s",
    "~",
]


@pytest.mark.long
@pytest.mark.parametrize("name", SPECIAL_NAMES)
def test_tables_are_those_of_this_very_path(tmp_path, name):
    """DuckDB takes what it is given for a pattern: of its neighbours nothing may be read, or written to."""
    written(tmp_path / "abc", value=7.0)
    for neighbour in ("r", "rx", "ab", "ac", "a\tb"):
        shutil.copytree(tmp_path / "abc", tmp_path / neighbour)
    path = written(tmp_path / name, value=2.0)
    contents = read_all(path)
    assert sorted(source for source, *_ in contents.trials[0].read_samples()) == ["device", "host"]
    assert {sample.value for sample in rows_of(contents.trials[0].read_samples())} == {2.0}
    assert [each.done for each in contents.trials[0].series] == [2]
    assert verify_bundle(path) == 11
    assert {sample.value for sample in rows_of(read_all(tmp_path / "abc").trials[0].read_samples())} == {7.0}


def test_sources_with_special_names_are_read_by_their_own(bundle):
    observe = bundle / "trials" / "0001-disk" / "observe"
    (observe / "host.parquet").rename(observe / "h*.parquet")
    (observe / "device.parquet").rename(observe / "h[o]st's.parquet")
    samples = read_all(bundle).trials[0].read_samples()
    assert sorted(source for source, *_ in samples) == ["h*", "h[o]st's"]


def test_all_tables_of_a_bundle_are_read_by_one_connection(bundle, monkeypatch):
    import duckdb

    made = []
    connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *args, **kwargs: made.append(1) or connect(*args, **kwargs))
    writer = BundleWriter.reopen(bundle, read_manifest(bundle))
    for number in range(2, 6):
        writer.write_trial(trial(number), None, [SAMPLE, SAMPLE._replace(source="device")], [])
    assert len(made) == 1
    assert len(read_all(bundle).trials) == 5
    assert len(made) == 2


def test_folders_nested_deep_and_names_that_lead_out_are_errors(bundle):
    deep = bundle
    for _ in range(150):
        deep = deep / "d"
    deep.mkdir(parents=True)
    with pytest.raises(RunError, match="nested more than"):
        verify_bundle(bundle)
    folder = BundleFolder(bundle)
    for name in ("../precious", "/etc/passwd", "env/../../precious", ""):
        with pytest.raises(ValueError, match="not a name within a bundle"):
            folder.read_text(name)


def test_what_is_no_bundle_is_said_to_be_none(tmp_path):
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "fifo")
    for name in ("missing", "file", "fifo", "nul\0"):
        with pytest.raises(UsageError):
            read_manifest(tmp_path / name)


def test_a_table_of_the_wrong_shape_is_named(bundle):
    """A valid Parquet file, whose nulls no second and no histogram has."""
    name = "trials/0001-disk/series.parquet"
    folder = BundleFolder(bundle)
    empty_second = second(0).model_copy(update={"done": None})
    Tables(folder).write_series(name, [empty_second])
    with pytest.raises(RunError, match="not what it should be") as reported:
        read_all(bundle)
    assert present(reported.value.where).endswith(name)
    assert replace(read_bundle_without(bundle, name)).trials


def read_bundle_without(bundle, name):
    (bundle / name).unlink()
    return read_all(bundle)


@pytest.mark.parametrize("key", ["trials", "clusters", "variants", "steps", "cuts"])
def test_millions_of_wrong_items_are_one_error_and_not_the_end_of_memory(bundle, key):
    """All errors of 64 MB of them would take 100 GB."""
    document = json.loads((bundle / "plan.json").read_text())
    document[key] = [{}] * 100_000
    (bundle / "plan.json").write_text(json.dumps(document))
    with pytest.raises(RunError) as refused:
        read_plan(bundle)
    assert f"{key}.0" in refused.value.message
    more = re.search(r"and (\d+) more", refused.value.message)
    assert more is None or int(more[1]) < 30


def test_a_table_with_more_keys_than_any_of_ours_is_refused(bundle):
    document = json.loads((bundle / "plan.json").read_text())
    document["storages"] = {f"s{number}": {} for number in range(MOST_KEYS + 1)}
    (bundle / "plan.json").write_text(json.dumps(document))
    with pytest.raises(RunError, match="a table has 2,001 keys"):
        read_plan(bundle)


def test_what_is_right_is_read_as_it_is_otherwise():
    written = json.loads(PLAN.model_dump_json())
    assert validate_untrusted(Plan, written) == Plan.model_validate(written) == PLAN


def test_a_table_of_few_bytes_with_texts_that_fill_memory_is_refused(bundle, monkeypatch):
    monkeypatch.setattr("plinth.bundle.tables._MAX_MEMORY_BYTES", 64 * 2**20)
    (table,) = bundle.glob("trials/*/observe/host.parquet")
    table.unlink()
    columns = "1::BIGINT t_ns, repeat(chr(97 + i::INT), 40000000) AS object, 'm' metric, 1.0::DOUBLE value"
    duckdb.sql(f"COPY (SELECT {columns} FROM range(4) t(i)) TO '{table}' (FORMAT parquet, COMPRESSION zstd)")
    assert table.stat().st_size < 100_000
    with pytest.raises(RunError, match="cannot read a table of the bundle"):
        read_all(bundle)
    assert not list(Path().glob(".tmp/*")), "nothing is spilled"


@pytest.mark.parametrize(
    ("table", "limit"), [("series", "_MAX_SECONDS"), ("hist", "_MAX_BUCKETS"), ("observe/host", "_MAX_SAMPLES")]
)
def test_a_table_that_claims_more_rows_than_any_is_refused(bundle, monkeypatch, table, limit):
    monkeypatch.setattr(f"plinth.bundle.tables.{limit}", 100)
    (file,) = bundle.glob(f"trials/*/{table}.parquet")
    rows = duckdb.read_parquet(str(file)).fetchall()
    assert rows
    many = f"SELECT one.* FROM (SELECT * FROM '{file}' LIMIT 1) one, range(101)"
    duckdb.sql(f"COPY ({many}) TO '{file}.new' (FORMAT parquet)")
    Path(f"{file}.new").rename(file)
    with pytest.raises(RunError, match="it has more than 100 rows"):
        read_all(bundle)
