"""What a load does, and that its books agree with the database's."""

import json

import pytest

from native_server import Finished, Load, Server
from plinth import _native
from plinth.model.load import LoadResult
from typed import present

PROTOCOLS = pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])


def builtin(name: str) -> list[dict[str, str]]:
    return [{"name": name, "source": _native.builtin_script(name)}]


@PROTOCOLS
def test_tpcb_agrees_with_the_database(server: Server, load: Load, finished: Finished, protocol: str) -> None:
    server.pgbench("-i", "-q", "-I", "g")
    scripts = builtin("tpcb-like")
    run = load(
        server.connection(),
        scripts=scripts,
        variables={"scale": "1"},
        clients=4,
        threads=2,
        protocol=protocol,
        warmup_s=0.3,
        duration_s=1.2,
    )
    result = finished(run)
    assert result.errors == ()
    assert result.totals.failed == result.totals.open == result.totals.skipped == 0
    history = server.execute("select count(*), sum(delta) from pgbench_history")
    assert history[0][0] == result.totals.done > result.measured.done > 0
    for table, column in [("accounts", "abalance"), ("tellers", "tbalance"), ("branches", "bbalance")]:
        assert server.execute(f"select sum({column}) from pgbench_{table}")[0][0] == history[0][1]


@pytest.mark.long
def test_books_agree_with_one_another(server: Server, load: Load, finished: Finished) -> None:
    run = load(
        server.connection(),
        scripts=builtin("select-only"),
        variables={"scale": "1"},
        clients=6,
        threads=3,
        warmup_s=1.2,
        duration_s=2.5,
    )
    result = finished(run)
    assert result.warmup_ns == 1_200_000_000
    assert 2_500_000_000 <= result.measured_ns < 3_500_000_000
    assert sum(row.done for row in result.series) == result.totals.done
    assert sum(row.done for row in result.series if row.phase == "measure") == result.measured.done
    lengths = [(row.phase, row.length_ns) for row in result.series]
    assert lengths[:4] == [
        ("warmup", 10**9),
        ("warmup", 200_000_000),
        ("measure", 10**9),
        ("measure", 10**9),
    ]
    assert sum(row.length_ns for row in result.series) == result.warmup_ns + result.measured_ns
    assert [row.second for row in result.series] == list(range(len(result.series)))
    transaction, statement = result.histograms
    for histogram in (transaction, statement):
        assert histogram.count == sum(count for _, count in histogram.buckets) == result.measured.done
        assert histogram.min_ns <= histogram.buckets[0][0]
        assert histogram.buckets[-2][0] < histogram.max_ns <= histogram.buckets[-1][0]
        assert histogram.min_ns * histogram.count <= histogram.sum_ns <= histogram.max_ns * histogram.count
    assert (statement.scope, statement.statement, statement.line) == ("statement", 0, 2)
    assert statement.text == "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;"
    # Clients are never idle: their latencies fill the time.
    assert transaction.sum_ns == pytest.approx(6 * result.measured_ns, rel=0.1)
    assert 0 < result.engine.user_cpu_ns + result.engine.system_cpu_ns < 3 * 2 * 4_000_000_000
    assert present(result.engine.bytes_sent) > 20 * result.totals.done
    assert present(result.engine.bytes_received) > 20 * result.totals.done


def test_progress_shows_the_same_series(server: Server, load: Load) -> None:
    run = load(server.connection(), "select 1;", clients=2, threads=2, warmup_s=0.5, duration_s=2.0)
    run.start()
    seen, phases = [], []
    while not run.wait(0.1):
        progress = json.loads(run.progress())
        seen += progress["seconds"]
        phases.append(progress["phase"])
        assert progress["clients_open"] in (0, 1, 2)
    last = json.loads(run.progress())
    seen += last["seconds"]
    assert sorted(set(phases), key=phases.index)[:2] == ["warmup", "measure"]
    assert (last["phase"], last["clients_open"]) == ("done", 0)
    result = LoadResult.model_validate_json(run.result())
    assert [row["done"] for row in seen] == [row.done for row in result.series]
    assert last["done"] == result.totals.done
    assert len(seen) > len(last["seconds"]), "rows come during the run"


@PROTOCOLS
def test_parameters_arrive(server: Server, load: Load, finished: Finished, protocol: str) -> None:
    server.execute("drop table if exists arrived; create table arrived (a int, b float8, c bool, d text, e text)")
    script = (
        "\\set a -5 * 7\n\\set b 1.5\n\\set c true\n\\set d null\ninsert into arrived values (:a, :b, :c, :d, :e);\n"
    )
    e = "'text'" if protocol == "simple" else "text"
    run = load(server.connection(), script, protocol=protocol, transactions_per_client=2, variables={"e": e})
    result = finished(run)
    assert result.errors == ()
    # As in pgbench: a null is the word NULL, which is SQL's only where the statement's text is put together.
    null = None if protocol == "simple" else "NULL"
    assert server.execute("select * from arrived") == [(-35, 1.5, True, null, "text")] * 2


def test_an_exact_number_of_transactions(server: Server, load: Load, finished: Finished) -> None:
    server.execute("drop table if exists counted; create table counted (client int)")
    run = load(
        server.connection(),
        "insert into counted values (:client_id);",
        clients=5,
        threads=2,
        warmup_s=0.2,
        transactions_per_client=7,
    )
    result = finished(run)
    assert result.measured.done == 5 * 7
    counts = dict(server.execute("select client, count(*) from counted group by 1"))
    assert sum(counts.values()) == result.totals.done
    assert all(counts[client] >= 7 for client in range(5))


def test_weights_and_pgbench_draw_the_same_numbers(
    server: Server, load: Load, finished: Finished, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The same seed gives every client the same scripts and the same keys as pgbench."""
    sources = {
        "first": (
            "\\set r random(1, 1000000)\n\\set g random_gaussian(1, 1000, 3.0)\n\\set z random_zipfian(1, 1000, 1.2)\n"
            "insert into drawn values (:client_id, 'first', :r, :g, :z);\n"
        ),
        "second": (
            "\\set r random_exponential(1, 1000, 4.0)\n\\set h hash(:r)\n"
            "insert into drawn values (:client_id, 'second', :r, :h, :default_seed);\n"
        ),
    }
    table = "drop table if exists drawn; create table drawn (client int, script text, a int8, b int8, c int8)"
    rows = "select * from drawn order by client, script, a, b, c"
    weights = {"first": 3, "second": 1}

    server.execute(table)
    folder = tmp_path_factory.mktemp("scripts")
    files = []
    for name, source in sources.items():
        (folder / name).write_text(source)
        files += ["-f", f"{folder / name}@{weights[name]}"]
    # One client a thread, for the clients of a thread share its choice of scripts in the order of their turns.
    options = ["-n", "-c", "3", "-j", "3", "-t", "20", "--random-seed=4711", "-M", "prepared"]
    server.pgbench(*options, *files)
    expected = server.execute(rows)

    server.execute(table)
    scripts = [{"name": name, "source": source, "weight": weights[name]} for name, source in sources.items()]
    run = load(server.connection(), scripts=scripts, clients=3, threads=3, transactions_per_client=20, seed=4711)
    result = finished(run)
    assert result.errors == ()
    assert server.execute(rows) == expected
    assert len({row[1] for row in expected}) == 2
    by_script = {one.script: one.count for one in result.histograms if one.scope == "transaction"}
    assert sum(by_script.values()) == 60
    assert by_script["first"] > by_script["second"]


def test_sleep_takes_its_time_and_others_continue(server: Server, load: Load, finished: Finished) -> None:
    scripts = [{"name": "sleepy", "source": "\\sleep 2500 us\nselect 1;\n\\set s 30\n\\sleep :s ms\n"}]
    result = finished(load(server.connection(), scripts=scripts, clients=3, transactions_per_client=5))
    (transaction,) = [one for one in result.histograms if one.scope == "transaction"]
    assert transaction.count == 15
    assert 32_500_000 <= transaction.min_ns < 45_000_000
    # Three clients sleep at the same time.
    assert 5 * 32_500_000 <= result.measured_ns < 2 * 5 * 45_000_000


@pytest.mark.parametrize("script", ["\\set x 1\n", "\\sleep 0 us\n"])
def test_a_script_that_never_waits_lets_others_run(server: Server, load: Load, finished: Finished, script: str) -> None:
    scripts = [{"name": "restless", "source": script, "weight": 100}, {"name": "select", "source": "select 1;"}]
    result = finished(load(server.connection(), scripts=scripts, clients=3, duration_s=0.3))
    done = {one.script: one.count for one in result.histograms if one.scope == "transaction"}
    assert min(done["restless"], done["select"]) > 10
    assert result.measured_ns < 2_000_000_000


def test_replies_of_any_size(server: Server, load: Load, finished: Finished) -> None:
    """Longer than every buffer on the way, in rows of a megabyte, and in very many rows."""
    script = "select repeat('x', 1000000) from generate_series(1, 3);\nselect generate_series(1, 100000);\n"
    result = finished(load(server.connection(), script, clients=2, transactions_per_client=3))
    assert (result.measured.done, result.errors) == (6, ())
    assert present(result.engine.bytes_received) > 6 * 3_000_000


def test_statements_of_any_size(server: Server, load: Load, finished: Finished) -> None:
    """Longer than the socket's buffer: what it does not take at once follows."""
    script = "select length(:long) / 5000000;\n"
    long = "'" + "x" * 5_000_000 + "'"
    run = load(
        server.connection(), script, clients=3, protocol="simple", transactions_per_client=2, variables={"long": long}
    )
    result = finished(run)
    assert (result.measured.done, result.errors) == (6, ())
    assert present(result.engine.bytes_sent) > 6 * 5_000_000


def test_compound_statements_and_notices(server: Server, load: Load, finished: Finished) -> None:
    script = "do $$ begin raise notice 'hello'; end $$\\; select 1\\; ;\n"
    result = finished(load(server.connection(), script, protocol="simple", transactions_per_client=3))
    assert (result.measured.done, result.errors) == (3, ())


def test_five_hundred_connections_on_one_thread(server: Server, load: Load, finished: Finished) -> None:
    run = load(
        server.connection(),
        "insert into many values (:client_id);",
        clients=500,
        transactions_per_client=4,
        connect_timeout_s=60.0,
    )
    server.execute("drop table if exists many; create table many (client int)")
    result = finished(run)
    assert (result.measured.done, result.errors) == (2000, ())
    assert server.execute("select count(*), count(distinct client) from many") == [(2000, 500)]


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
@pytest.mark.parametrize(
    ("script", "each"),
    [
        ("select 1;", 1),
        ("select 1;\nselect 2;", 2),
        ("begin;\nselect 1;\ncommit;", 1),
        ("begin;\nselect 1;\nrollback;", 1),
        ("\\sleep 1 ms", 0),
        ("\\if false\nselect 1;\n\\endif", 0),
        ("select 1 as one \\gset\n\\if :one\nselect 2;\n\\endif", 2),
    ],
    ids=["one", "two", "commit", "rollback", "sleep", "not-taken", "gset"],
)
def test_transactions_of_the_server_are_counted_also_where_a_script_has_none_or_several(
    server: Server, load: Load, finished: Finished, protocol: str, script: str, each: int
) -> None:
    run = load(server.connection(), script, clients=2, transactions_per_client=50, duration_s=None, protocol=protocol)
    result = finished(run)
    assert result.totals.done == 100 and result.errors == ()
    assert result.server_transactions == 100 * each


@pytest.mark.parametrize(
    ("script", "least"),
    [
        ("\\startpipeline\nselect 1;\nselect 2;\n\\endpipeline", 100),
        ("\\startpipeline\nselect 1;\n\\syncpipeline\nselect 2;\n\\endpipeline", 200),
        ("\\startpipeline\n\\syncpipeline\n\\endpipeline", 0),
    ],
)
def test_each_part_of_a_pipeline_with_statements_is_a_transaction(
    server: Server, load: Load, finished: Finished, script: str, least: int
) -> None:
    changes = {"clients": 2, "transactions_per_client": 50, "duration_s": None}
    assert finished(load(server.connection(), script, protocol="extended", **changes)).server_transactions == least
