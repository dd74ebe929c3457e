"""An experiment on SQL files and a script of the user's own: run, resumed and run again without the originals."""

import shutil

import pytest

from plinth.bundle import read_bundle

SQL_FILES = """\
spec = 1
name = "orders"
question = "How many orders a second, of how many rows?"

[storage.memory]
kind = "tmpfs"
size = "600MiB"

[dataset]
kind = "sql"
schema = "sql/schema.sql"
load = "sql/load.sql"
size = "1MB"

[dataset.checks]
orders = "2 * :rows"

[workload]
script = ["order.sql@3", "sql/look.sql"]
clients = 2

[matrix]
dataset.rows = [10, 1000]

[measure]
warmup = "100ms"
duration = "500ms"
repeats = 1
aa = false
probe = "0s"
"""


@pytest.fixture
def orders(project):
    (project.folder / "sql").mkdir()
    (project.folder / "sql" / "schema.sql").write_text("CREATE TABLE orders (id int PRIMARY KEY, n int);\n")
    (project.folder / "sql" / "load.sql").write_text(
        "INSERT INTO orders SELECT n, 0 FROM generate_series(1, 2 * :rows) n;\n"
    )
    (project.folder / "order.sql").write_text(
        "\\set id random(1, 2 * :rows)\nUPDATE orders SET n = n + 1 WHERE id = :id;\n"
    )
    (project.folder / "sql" / "look.sql").write_text("SELECT count(*) FROM orders WHERE id < 10;\n")
    project.write(SQL_FILES)
    return project


@pytest.mark.long
def test_sql_files_are_run_and_kept(orders, nothing_left):
    done = orders.run()
    assert done.returncode in (0, 3), done.stderr
    first, second = orders.trials()
    assert all(trial["status"] == "complete" and trial["measured"]["done"] > 0 for trial in (first, second))
    nothing_left()
    for trial in (first, second):
        ordered, looked = (transactions(orders.bundle, trial, script) for script in ("order.sql", "sql/look.sql"))
        assert ordered + looked == trial["measured"]["done"]
        assert 2 < ordered / looked < 4.5, "drawn by their weights, 3 and 1"
    # Cut short, and the originals gone: the bundle has all that is needed.
    shutil.rmtree(orders.bundle / "trials" / f"0002-{second['variant']}")
    shutil.rmtree(orders.folder / "sql")
    (orders.folder / "order.sql").unlink()
    resumed = orders.plinth("resume", orders.bundle)
    assert resumed.returncode in (0, 3), resumed.stderr
    assert [trial["status"] for trial in orders.trials()] == ["complete"] * 2
    again = orders.plinth("plan", orders.bundle / "experiment.toml")
    assert again.returncode == 0, again.stderr
    assert "fill the tables: sql/load.sql, 1 statement" in again.stdout
    assert "order.sql@3, sql/look.sql" in again.stdout


@pytest.mark.long
def test_a_load_that_fills_the_place_of_the_wal_says_so(orders, nothing_left):
    """Its size was said too small, so that no plan can tell: the server ends, and its client only sees it go."""
    # One WAL record that is larger than the storage: WAL of many would be recycled where checkpoints keep up, and the data fill it.
    (orders.folder / "sql" / "load.sql").write_text(
        "SELECT pg_logical_emit_message(true, 'plinth', repeat('x', 300000000));\n"
    )
    orders.write(
        SQL_FILES.replace("600MiB", "200MiB").replace(
            "[dataset]", "[server.settings]\nmax_wal_size = '32MB'\n\n[dataset]"
        )
    )
    done = orders.run()
    assert done.returncode == 1, done.stderr
    assert "sql/load.sql:1" in done.stderr
    assert "No space left on device" in done.stderr and "hint: the WAL has filled its storage" in done.stderr
    nothing_left()


def transactions(bundle, trial, script):
    """Of one script, as its histogram counts them."""
    histograms = next(one.histograms for one in read_bundle(bundle).trials if one.trial.number == trial["number"])
    return sum(one.count for one in histograms if (one.scope, one.script) == ("transaction", script))


def test_sql_that_cannot_be_run_is_reported_before_anything_is_made(orders):
    (orders.folder / "sql" / "load.sql").write_text("SELECT 1;\n\\copy orders FROM 'x'\n")
    planned = orders.plinth("plan", "x.toml")
    assert planned.returncode == 2, planned.stderr
    assert "sql/load.sql:2" in planned.stderr and "not psql's own commands" in planned.stderr
    (orders.folder / "sql" / "load.sql").unlink()
    missing = orders.plinth("plan", "x.toml")
    assert missing.returncode == 2
    assert "x.toml:12" in missing.stderr and "cannot read the file 'sql/load.sql'" in missing.stderr
