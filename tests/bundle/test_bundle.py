"""Bundles: what is written is read back, and a run that is cut short leaves whole trials."""

import shutil
import signal
import subprocess
import sys
import textwrap

import duckdb
import pytest

from analyse_bundles import HOST
from bundle_parts import PLAN, histogram, second, trial
from plinth.bundle import BundleWriter, read_bundle, read_manifest, verify_bundle
from plinth.bundle.files import BundleFolder
from plinth.bundle.seal import seal_bundle
from plinth.bundle.tables import Tables
from plinth.model.errors import MissingCapability, PlinthError, Refused, RunError, UsageError
from plinth.model.plan import PlannedTrial
from plinth.model.trial import Event, Sample, Trial
from sampled import rows_of
from typed import present


def test_series_keep_large_numbers_and_gaps(tmp_path):
    empty = second(1, done=0, **{f"latency_{name}_ns": None for name in ("mean", "p50", "p95", "p99", "max")})
    series = (second(0), empty)
    tables = Tables(BundleFolder(tmp_path))
    tables.write_series("s.parquet", series)
    assert tables.read_series(["s.parquet"]) == {"s.parquet": series}


def test_many_tables_are_read_together_each_with_what_it_has(tmp_path):
    """More than are opened at once."""
    tables = Tables(BundleFolder(tmp_path))
    written = {f"s{number}.parquet": (second(number, late=1), second(number + 1, late=2)) for number in range(40)}
    for name, series in written.items():
        tables.write_series(name, series)
    tables.write_histograms("h1.parquet", (histogram(),))
    tables.write_histograms("h2.parquet", (histogram(sum_ns=31), histogram(scope="service")))
    assert tables.read_series(list(written)) == written
    assert tables.read_histograms(["h1.parquet", "h2.parquet"]) == {
        "h1.parquet": (histogram(),),
        "h2.parquet": (histogram(sum_ns=31), histogram(scope="service")),
    }


def test_the_one_table_that_cannot_be_read_is_named(tmp_path):
    tables = Tables(BundleFolder(tmp_path))
    for name in ("a.parquet", "c.parquet"):
        tables.write_series(name, (second(0),))
    (tmp_path / "b.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(RunError, match="cannot read a table of the bundle") as failed:
        tables.read_series(["a.parquet", "b.parquet", "c.parquet"])
    assert failed.value.where == str(tmp_path / "b.parquet")
    said = str(failed.value)
    assert "/proc/self/fd" not in said and "SELECT" not in said and "LINE 1" not in said


def test_histograms_keep_their_order_also_without_buckets(tmp_path):
    histograms = (
        histogram(),
        histogram(scope="statement", statement=0, line=2, text="SELECT 'x''y';", buckets=(), count=0),
        histogram(scope="statement", statement=1, line=3, text="SELECT 2"),
    )
    tables = Tables(BundleFolder(tmp_path))
    tables.write_histograms("h.parquet", histograms)
    assert tables.read_histograms(["h.parquet"]) == {"h.parquet": histograms}


@pytest.mark.parametrize(
    ("altered", "reason"),
    [
        ("SELECT * REPLACE (NULL::BIGINT AS bucket_count) FROM rows", "a bucket has no count"),
        ("SELECT * FROM rows ORDER BY value_ns, scope", "the rows of a histogram are not together"),
    ],
)
def test_histograms_that_no_run_writes_are_refused(tmp_path, altered, reason):
    Tables(BundleFolder(tmp_path)).write_histograms("h.parquet", (histogram(), histogram(scope="service")))
    rows = duckdb.sql(f"SELECT * FROM read_parquet('{tmp_path / 'h.parquet'}')")
    duckdb.sql(f"COPY ({altered}) TO '{tmp_path / 'altered.parquet'}' (FORMAT parquet)")
    del rows
    with pytest.raises(RunError, match=f"not what it should be: {reason}") as refused:
        Tables(BundleFolder(tmp_path)).read_histograms(["h.parquet", "altered.parquet"])
    assert refused.value.where == str(tmp_path / "altered.parquet")


def test_samples_are_a_file_for_each_source(tmp_path):
    samples = [Sample(-5, "host_cpu", "all", "user_s", 0.25), Sample(1, "device", "sda", "flushes", 2.0)]
    (tmp_path / "observe").mkdir()
    tables = Tables(BundleFolder(tmp_path))
    tables.write_samples("observe", samples)
    assert sorted(p.name for p in (tmp_path / "observe").iterdir()) == ["device.parquet", "host_cpu.parquet"]
    read = tables.read_samples(["observe", "nothing"])
    assert sorted(rows_of(read["observe"])) == sorted(samples)
    assert read["nothing"] == {}


def test_samples_are_read_by_metric_in_order_of_time(tmp_path):
    shuffled = [Sample(t_ns, "host_cpu", "all", "user_s", value) for t_ns, value in ((3, 1.0), (-2, 4.0), (3, 0.5))]
    (tmp_path / "observe").mkdir()
    tables = Tables(BundleFolder(tmp_path))
    tables.write_samples("observe", shuffled)
    (points,) = tables.read_samples(["observe"])["observe"].values()
    assert points.t_ns.tolist() == [-2, 3, 3]
    assert points.values.tolist() == [4.0, 0.5, 1.0]


@pytest.mark.parametrize("column", ["t_ns", "object", "metric", "value"])
def test_a_sample_without_a_column_is_an_error_and_no_zero(tmp_path, column):
    (tmp_path / "observe").mkdir()
    row = {"t_ns": "1", "object": "'all'", "metric": "'user_s'", "value": "0.5"} | {column: "NULL"}
    selected = ", ".join(f"{value} AS {name}" for name, value in row.items())
    duckdb.execute(f"COPY (SELECT {selected}) TO '{tmp_path}/observe/host.parquet' (FORMAT parquet)")
    with pytest.raises(RunError, match="a sample lacks its time, value, object or metric") as error:
        Tables(BundleFolder(tmp_path)).read_samples(["observe"])
    assert present(error.value.where).endswith("observe/host.parquet")


def test_a_bundle_is_read_back_as_it_was_written(tmp_path):
    writer = BundleWriter.create(tmp_path / "b", PLAN, "spec = 1\n", "0.1.0")
    event = Event(t_ns=3, kind="checkpoint_end", text="checkpoint\x85complete\u2028, as Python sees it in three lines")
    writer.write_trial(trial(), None, [Sample(1, "host", "all", "x", 1.0)], [event])
    writer.finish("complete")
    contents = read_bundle(tmp_path / "b")
    assert contents.manifest.status == "complete"
    assert contents.plan == PLAN
    assert contents.host == HOST
    assert contents.trials[0].trial == trial()
    assert contents.trials[0].events == (event,)
    assert rows_of(contents.trials[0].read_samples()) == [Sample(1, "host", "all", "x", 1.0)]
    assert contents.trials[0].series == ()


def test_the_seal_shows_what_was_changed_added_and_taken_away(tmp_path):
    path = tmp_path / "b"
    writer = BundleWriter.create(path, PLAN, "spec = 1\n", "0.1.0")
    folder = writer.write_trial(trial(), None, [], [])
    with pytest.raises(RunError, match="not sealed"):
        verify_bundle(path)
    writer.finish("complete")
    checked = verify_bundle(path)
    assert checked == len([p for p in path.rglob("*") if p.is_file()]) - 1
    (path / "derived").mkdir()
    (path / "derived" / "report.html").write_text("rebuilt at will")
    assert verify_bundle(path) == checked
    (folder / "trial.json").write_text("{}")
    (path / "extra").write_text("")
    (path / "experiment.toml").unlink()
    with pytest.raises(RunError) as caught:
        verify_bundle(path)
    assert list(caught.value.details) == [
        "missing: experiment.toml",
        "not in the seal: extra",
        "changed: trials/0001-disk/trial.json",
    ]


def test_the_seal_is_in_the_form_of_sha256sum(tmp_path):
    BundleWriter.create(tmp_path / "b", PLAN, "spec = 1\n", "0.1.0").finish("complete")
    done = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path / "b", capture_output=True)
    assert done.returncode == 0, done


def test_a_folder_with_something_in_it_is_refused(tmp_path):
    (tmp_path / "precious").write_text("mine")
    with pytest.raises(Refused, match="not empty"):
        BundleWriter.create(tmp_path, PLAN, "", "0.1.0")
    assert [p.name for p in tmp_path.iterdir()] == ["precious"]


def test_no_bundle_and_a_newer_bundle_are_said_to_be_so(tmp_path):
    with pytest.raises(UsageError, match="not a bundle"):
        read_manifest(tmp_path)
    BundleWriter.create(tmp_path / "b", PLAN, "", "9.9.9")
    manifest = tmp_path / "b" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"schema_version": 1', '"schema_version": 2'))
    with pytest.raises(UsageError, match="reads up to 1"):
        read_bundle(tmp_path / "b")


def test_resuming_a_bundle_drops_half_a_trial_and_breaks_the_seal(tmp_path):
    path = tmp_path / "b"
    writer = BundleWriter.create(path, PLAN, "", "0.1.0")
    writer.write_trial(trial(1), None, [], [])
    writer.finish("interrupted", "Ctrl-C")
    (path / "trials" / ".partial-0002").mkdir()
    again = BundleWriter.reopen(path, read_manifest(path))
    assert not (path / "SHA256SUMS").exists()
    assert [p.name for p in (path / "trials").iterdir()] == ["0001-disk"]
    assert read_manifest(path).status == "running"
    again.write_trial(trial(2), None, [], [])
    again.finish("complete")
    assert [c.trial.number for c in read_bundle(path).trials] == [1, 2]


def test_on_a_full_disk_a_trial_is_there_whole_or_not_at_all(scratch):
    small = scratch / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "plinth-test", small], check=True)
    try:
        writer = BundleWriter.create(small / "b", PLAN, "", "0.1.0")
        writer.write_trial(trial(1), None, [], [])
        with (small / "filler").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
            while True:
                file.write(bytes(4096))
        samples = [Sample(at, "host", "all", "x", 1.0) for at in range(1000)]
        for table in ([], samples):  # what Python writes, and what DuckDB does
            with pytest.raises(PlinthError, match=r"[nN]o space left") as full:
                writer.write_trial(trial(2), None, table, [])
            assert str(small / "b") in present(full.value.where)
        assert [path.name for path in (small / "b" / "trials").iterdir()] == ["0001-disk"]
        with pytest.raises(MissingCapability, match="cannot write the bundle: no space left"):
            writer.finish("failed")
        assert [contents.trial.number for contents in read_bundle(small / "b").trials] == [1]
        (small / "filler").unlink()
        writer.write_trial(trial(2), None, samples, [])
        writer.finish("complete")
        assert verify_bundle(small / "b") > 0
        writer.folder.close()
    finally:
        subprocess.run(["umount", small], check=True)


DAMAGES = {
    "manifest.json": b"[]",
    "experiment.toml": b"\xff",
    "plan.json": b'{"schema_version": 1, "run_',
    "env/host.json": b"\xff\xfe",
    "trials/0001-disk/events.jsonl": b"not JSON\n",
    "trials/0001-disk/trial.json": None,
    "trials/0001-disk/series.parquet": b"PAR1 and no more",
    "trials/0001-disk/observe/host.parquet": b"",
}


@pytest.mark.parametrize("damaged", DAMAGES)
def test_a_damaged_part_is_named(tmp_path, damaged):
    writer = BundleWriter.create(tmp_path / "b", PLAN, "", "0.1.0")
    folder = writer.write_trial(trial(1), None, [Sample(1, "host", "all", "x", 1.0)], [])
    Tables(BundleFolder(folder)).write_series("series.parquet", (second(0),))
    part, content = tmp_path / "b" / damaged, DAMAGES[damaged]
    assert part.exists()
    part.unlink() if content is None else part.write_bytes(content)
    with pytest.raises(PlinthError) as error:
        for contents in read_bundle(tmp_path / "b").trials:
            contents.read_samples()
    assert present(error.value.where).startswith(str(part.parent if part.parent.name == "observe" else part))


KILLED_AT = ["make_folder", "write_samples", "sync_folders", "rename"]


@pytest.mark.parametrize("instant", KILLED_AT)
def test_kill_in_the_middle_of_a_trial_leaves_a_bundle_that_opens(tmp_path, instant):
    """The process kills itself with SIGKILL when it comes to `instant` of the second trial."""
    program = textwrap.dedent(f"""
        import os, pathlib, signal, sys
        sys.path[:0] = {sys.path!r}
        from bundle_parts import PLAN, trial
        from plinth.bundle import BundleFolder, BundleWriter
        from plinth.bundle.tables import Tables
        w = BundleWriter.create(pathlib.Path({str(tmp_path / "b")!r}), PLAN, "", "0.1.0")
        w.write_trial(trial(1), None, [], [])
        def die(*args, **kwargs):
            os.kill(os.getpid(), signal.SIGKILL)
        setattr(Tables if {instant!r} == "write_samples" else BundleFolder, {instant!r}, die)
        w.write_trial(trial(2), None, [], [])
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert done.returncode == -signal.SIGKILL, done
    contents = read_bundle(tmp_path / "b")
    assert [c.trial.number for c in contents.trials] == [1]
    assert contents.manifest.status == "running"


def test_a_planned_trial_that_is_gone_is_missed_although_the_bundle_was_sealed_again(tmp_path):
    trials = tuple(PlannedTrial(number=number, block=1, variant="disk", seed=1) for number in (1, 2, 3))
    writer = BundleWriter.create(tmp_path / "b", PLAN.model_copy(update={"trials": trials}), "", "0.1.0")
    for planned in trials:
        trial = Trial(number=planned.number, block=1, variant="disk", started_unix_ns=0, status="failed", failure="x")
        writer.write_trial(trial, None, (), ())
    writer.finish("complete")
    verify_bundle(tmp_path / "b")
    shutil.rmtree(tmp_path / "b" / "trials" / "0002-disk")
    seal_bundle(BundleFolder(tmp_path / "b"))
    with pytest.raises(RunError, match="1 trial missing") as error:
        verify_bundle(tmp_path / "b")
    assert error.value.details == ("planned, but not in the bundle: trial 2 of disk",)


def test_a_run_that_was_interrupted_misses_no_trial(tmp_path):
    trials = (PlannedTrial(number=1, block=1, variant="disk", seed=1),)
    writer = BundleWriter.create(tmp_path / "b", PLAN.model_copy(update={"trials": trials}), "", "0.1.0")
    writer.finish("interrupted", "by Ctrl-C")
    verify_bundle(tmp_path / "b")
