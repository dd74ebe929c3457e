"""`measure.restore`: every trial begins with the data as loaded, by copies, reflinks and snapshots, also after a kill."""

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from plinth import open_bundle

LOOPS = {
    "ext4": ('[storage.looped]\nkind = "loop"\nsize = "1GiB"\n', "copy"),
    "xfs": ('[storage.looped]\nkind = "loop"\nfilesystem = "xfs"\nsize = "1GiB"\n', "reflink"),
    "btrfs": ('[storage.looped]\nkind = "loop"\nfilesystem = "btrfs"\nsize = "1GiB"\n', "reflink"),
    "zfs": (
        '[storage.part]\nkind = "file"\nsize = "1GiB"\n[storage.looped]\nkind = "zfs"\ndata = ["part"]\n',
        "snapshot",
    ),
}
EXPERIMENT = """\
spec = 1
name = "restored"
question = "Does each trial begin with the same data?"

STORAGE
[server]
storage = "looped"
[dataset]
kind = "numbers"
rows = 500_000
streams = 1

[workload]
script = "wide.sql"
clients = 2

[measure]
warmup = "0s"
duration = "1s"
repeats = 3
aa = false
probe = "0s"
restore = "auto"
"""


WIDE = """\
\\set first random(1, 400000)
UPDATE numbers SET region = region WHERE number BETWEEN :first AND :first + 999;
"""
"""One of these makes the table larger."""
LARGE_POOL = LOOPS["zfs"][0].replace("1GiB", "4GiB")


def write(project, storage: str, *changes: tuple[str, str]) -> None:
    text = EXPERIMENT.replace("STORAGE", storage)
    for change in changes:
        assert change[0] in text
        text = text.replace(*change)
    (project.folder / "wide.sql").write_text(WIDE)
    project.write(text)


def sizes_at_start(project) -> list[int]:
    """The size of the table with its key by trial, as it was first seen in each."""
    samples = open_bundle(project.bundle).samples("pg_table").numpy()
    rows = zip(*(samples[name] for name in ("trial", "t_ns", "object", "metric", "value")), strict=True)
    first: dict[int, tuple[int, int]] = {}
    for trial, t_ns, table, metric, value in rows:
        if table.endswith(".numbers") and metric == "total_bytes":
            first[int(trial)] = min((int(t_ns), int(value)), first.get(int(trial), (int(t_ns), int(value))))
    return [size for _, size in first.values()]


def check(project, how: str) -> None:
    trials = project.trials()
    assert [trial["status"] for trial in trials] == ["complete"] * 3, trials
    assert [trial["restored"]["how"] for trial in trials] == [{"data": how}] * 3
    sizes = sizes_at_start(project)
    assert len(sizes) == 3 and len(set(sizes)) == 1, sizes


@pytest.mark.parametrize(
    ("filesystem", "restore"),
    [
        ("ext4", "auto"),
        pytest.param("xfs", "auto", marks=pytest.mark.long),
        pytest.param("btrfs", "auto", marks=pytest.mark.long),
        pytest.param("btrfs", "snapshot", marks=pytest.mark.long),
        pytest.param("zfs", "auto", marks=pytest.mark.long),
    ],
)
def test_each_trial_begins_with_what_was_loaded(project, nothing_left, filesystem, restore):
    storage, how = LOOPS[filesystem]
    how = restore if restore != "auto" else how
    write(project, storage, ('"auto"', f'"{restore}"'))
    planned = project.plinth("plan", "x.toml")
    assert "put the data of 1-looped back to what it was after loading" in planned.stdout
    done = project.run()
    assert done.returncode in (0, 3), done.stderr
    check(project, how)
    assert f"before 3 of 3 trials, by {how}" in project.whole_report()
    nothing_left()


@pytest.mark.long
def test_without_it_a_trial_begins_with_what_others_left(project):
    write(project, LOOPS["ext4"][0], ('"auto"', '"none"'))
    assert project.run().returncode in (0, 3)
    first, second, _ = sizes_at_start(project)
    assert first < second
    assert all(trial["restored"] is None for trial in project.trials())


@pytest.mark.long
@pytest.mark.parametrize(
    ("filesystem", "number", "restore"),
    [
        pytest.param("ext4", signal.SIGINT, "auto", marks=pytest.mark.long),
        ("ext4", signal.SIGKILL, "auto"),
        pytest.param("xfs", signal.SIGKILL, "auto", marks=pytest.mark.long),
        pytest.param("btrfs", signal.SIGKILL, "snapshot", marks=pytest.mark.long),
    ],
)
def test_a_restoration_that_is_cut_short_is_undone_and_resumed(project, nothing_left, filesystem, number, restore):
    storage, how = LOOPS[filesystem]
    how = restore if restore != "auto" else how
    write(project, storage, ("rows = 500_000", "rows = 1_500_000"), ('"auto"', f'"{restore}"'))
    running = project.start()
    running.wait_for("trial 1 of 3")
    await_restoration(project)
    running.signal(number)
    code, said = running.end()
    if number == signal.SIGINT:
        assert code == 130, said
        nothing_left()
    resumed = project.plinth("resume", project.bundle)
    assert resumed.returncode in (0, 3), resumed.stderr
    assert ("resume with cluster" in resumed.stderr) is (number == signal.SIGKILL), resumed.stderr
    check(project, how)
    nothing_left()


def await_restoration(project) -> None:
    """Wait until files of the data directory are gone that the copy has."""
    (copy,) = project.state.glob("work/*/**/*.loaded-copy")
    data = copy.with_name(copy.name.removesuffix(".loaded-copy"))
    deadline = time.monotonic() + 60
    while (data / "base").exists():
        assert time.monotonic() < deadline, "no restoration began"
    assert (copy / "PG_VERSION").exists()


ORDERS = """\
spec = 1
name = "orders"
question = "How many orders a second?"

[storage.looped]
kind = "loop"
size = "400MiB"
[storage.memory]
kind = "tmpfs"
size = "400MiB"

[server]
storage = "looped"
wal_storage = "memory"
tablespaces = { bulk = "memory" }

[dataset]
kind = "sql"
schema = "schema.sql"
load = "load.sql"
before_trial = "before.sql"
size = "1MB"

[workload]
script = "order.sql"
clients = 2

[measure]
warmup = "0s"
duration = "500ms"
repeats = 3
aa = false
probe = "0s"
restore = "copy"
"""
BEFORE = """\
DO $$ BEGIN RAISE LOG 'begins with % orders, sum %, % bytes',
  (SELECT count(*) FROM orders), (SELECT sum(n) FROM orders), pg_relation_size('orders'); END $$;
"""


@pytest.fixture
def orders(project) -> Iterator:
    for name, text in {
        "schema.sql": "CREATE TABLE orders (n int) TABLESPACE bulk;",
        "load.sql": "INSERT INTO orders SELECT generate_series(1, 1000);",
        "before.sql": BEFORE,
        "order.sql": "INSERT INTO orders VALUES (1);",
    }.items():
        (project.folder / name).write_text(text)
    project.write(ORDERS)
    return project


BTRFS = (
    ('kind = "loop"\nsize = "400MiB"', 'kind = "loop"\nfilesystem = "btrfs"\nsize = "600MiB"'),
    ('kind = "tmpfs"\nsize = "400MiB"', 'kind = "loop"\nfilesystem = "btrfs"\nsize = "600MiB"'),
    ('restore = "copy"', 'restore = "snapshot"'),
)


@pytest.mark.long
@pytest.mark.parametrize(("how", "changes"), [pytest.param("copy", (), marks=pytest.mark.long), ("snapshot", BTRFS)])
def test_rows_in_a_tablespace_and_wal_elsewhere_are_restored(orders, nothing_left, how, changes):
    text = ORDERS
    for change in changes:
        assert change[0] in text
        text = text.replace(*change)
    orders.write(text)
    done = orders.run()
    assert done.returncode in (0, 3), done.stderr
    (log,) = (orders.bundle / "logs").glob("postgresql-*.log")
    begun = re.findall(r"begins with (\d+) orders, sum (\d+), (\d+) bytes", log.read_text())
    assert len(begun) == 3 and set(begun) == {("1000", "500500", begun[0][2])}
    trials = orders.trials()
    assert all(trial["status"] == "complete" and trial["totals"]["done"] > 0 for trial in trials), trials
    assert trials[0]["restored"]["how"] == {"data": how, "WAL": how, "tablespace bulk": how}
    nothing_left()


def test_reflinks_that_are_not_there_are_missed_before_anything_is_loaded(project, nothing_left):
    write(project, LOOPS["ext4"][0], ('"auto"', '"reflink"'))
    done = project.run()
    assert done.returncode == 5, done.stderr
    assert "has no copies that share blocks" in done.stderr and "load numbers" not in done.stderr
    nothing_left()


WITH_STANDBY = (("[dataset]", '[server.standby.a]\nstorage = "looped"\n[dataset]'),)


@pytest.mark.long
@pytest.mark.parametrize(
    ("storage", "changes", "words"),
    [
        (LOOPS["ext4"][0], (), "storage looped (kind loop) has no snapshots"),
        (
            LOOPS["zfs"][0],
            (("[measure]", "[matrix]\ndataset.rows = [1000, 2000]\n[measure]"),),
            "2 clusters are stored on looped",
        ),
        (
            LARGE_POOL + '[storage.inner]\nkind = "file"\non = "looped"\nsize = "1GiB"\n[storage.top]\nkind = "btrfs"\n'
            'members = ["inner"]\n',
            (("[measure]", '[matrix]\nstorage = ["looped", "top"]\n[measure]'),),
            "files of other storages are on looped",
        ),
        (LOOPS["btrfs"][0], WITH_STANDBY, "snapshots are taken of servers without standbys only"),
        (LOOPS["zfs"][0], WITH_STANDBY, "snapshots are taken of servers without standbys only"),
        (
            LARGE_POOL + '[storage.other]\nkind = "directory"\n',
            (
                ("[dataset]", '[server.standby.a]\nstorage = "looped"\n[dataset]'),
                ("[measure]", '[matrix]\nstorage = ["looped", "other"]\nserver.standbys = [0, 1]\n[measure]'),
            ),
            "snapshots are taken of servers without standbys only",
        ),
    ],
)
def test_snapshots_that_cannot_be_taken_are_refused_by_the_plan(project, storage, changes, words):
    write(project, storage, ('"auto"', '"snapshot"'), *changes)
    refused = project.plinth("plan", "x.toml")
    assert refused.returncode == 2, refused.stdout
    assert words in refused.stderr and "x.toml" in refused.stderr
    copied = project.plinth("plan", "x.toml", "--set", 'measure.restore="auto"')
    assert copied.returncode == 0, copied.stderr
    assert "keep a copy of its data as loaded" in copied.stdout and "keep a snapshot" not in copied.stdout


READ_ONLY = (('script = "wide.sql"', 'builtin = "numbers-select"'),)
NOTHING_LOADED = (
    ('kind = "numbers"\nrows = 500_000\nstreams = 1', 'kind = "none"'),
    ('script = "wide.sql"', 'builtin = "ledger"'),
)


@pytest.mark.parametrize(
    ("changes", "words"),
    [(READ_ONLY, "no workload changes the data"), (NOTHING_LOADED, "there is no dataset that could be restored")],
)
def test_what_would_restore_nothing_is_refused(project, changes, words):
    write(project, LOOPS["ext4"][0], *changes)
    refused = project.plinth("plan", "x.toml")
    assert refused.returncode == 2, refused.stdout
    assert words in refused.stderr and "measure.restore" in refused.stderr


def test_space_for_the_copy_is_needed(project):
    write(project, LOOPS["ext4"][0], ("rows = 500_000", "rows = 4_000_000"))
    fits = project.plinth("plan", "x.toml", "--set", 'measure.restore="none"')
    assert "NOT ENOUGH" not in fits.stdout, fits.stdout
    assert "NOT ENOUGH" in project.plinth("plan", "x.toml").stdout
    assert project.run().returncode == 5
    assert not Path(project.state / "work").exists() or not list((project.state / "work").iterdir())
