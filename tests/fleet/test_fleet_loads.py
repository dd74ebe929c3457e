"""Loads by three machines, each with each executor: the same result as from one engine."""

import time
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from fleets import LOCAL_FIRST, MakeConfig, MakeFleet
from plinth.fleet.executors import executor_of
from plinth.fleet.load import FleetLoad
from plinth.fleet.merge import add_histograms, merged_second
from plinth.load import Load, Rate
from plinth.load.drivers import DriverLoad
from plinth.model.connection import Connection
from plinth.model.fleet import FleetSpec
from plinth.model.load import MAX_SKEW_NS, LoadResult, Second
from plinth.model.workload import Driver
from plinth.system.log_file import LogFile
from plinth.system.runner import Runner

_INSERT = "\\set value random(1, 1000000000)\nINSERT INTO drawn VALUES (:client_id, :value);"


def _run(load) -> tuple[LoadResult, list[Second]]:
    load.start()
    seconds: list[Second] = []
    while not load.wait(0.2):
        seconds += load.progress().seconds
    return load.result(), [*seconds, *load.progress().seconds]


def _where(connection: Connection) -> str:
    return f"host={connection.host} port={connection.port} user={connection.user} dbname={connection.database}"


def _drawn(connection: Connection) -> list[tuple[int, int]]:
    with psycopg.connect(_where(connection), autocommit=True) as control:
        rows = control.execute("SELECT client, value FROM drawn ORDER BY 1, 2").fetchall()
        control.execute("TRUNCATE drawn")
    return rows


@pytest.fixture
def drawn(connection: Connection):
    with psycopg.connect(_where(connection), autocommit=True) as control:
        control.execute("CREATE TABLE drawn (client int, value int, at bigserial)")
        yield
        control.execute("DROP TABLE drawn")


@pytest.mark.long
def test_a_fleet_does_what_one_engine_with_all_threads_does(
    spec: FleetSpec, fleet: MakeFleet, config: MakeConfig, drawn: None, connection: Connection
) -> None:
    count = {"duration_s": None, "transactions_per_client": 20}
    alone, _ = _run(Load(config(_INSERT, threads=3, **count)))
    expected = _drawn(connection)
    result, _ = _run(fleet(spec, config(_INSERT, **count)))
    assert _drawn(connection) == expected and len(expected) == 6 * 20
    assert result.measured == alone.measured
    assert [(one.scope, one.count) for one in result.histograms] == [(one.scope, one.count) for one in alone.histograms]
    assert result.engine.threads == 3 and result.engine.server_version == alone.engine.server_version
    assert result.fleet is not None
    assert [(one.clients, one.threads, one.measured.done) for one in result.fleet.machines] == [(2, 1, 40)] * 3


@pytest.mark.parametrize("spec", LOCAL_FIRST, indirect=True)
def test_an_open_loop_has_its_arrivals_once_and_its_seconds_together(
    spec: FleetSpec, fleet: MakeFleet, config: MakeConfig, drawn: None, connection: Connection
) -> None:
    asked = config(_INSERT, rate=Rate.constant(200), warmup_s=1.0, duration_s=2.0)
    result, seconds = _run(fleet(spec, asked))
    of_one, _ = _run(fleet(FleetSpec(executor="local", machines=1), asked))
    assert result.totals.scheduled == of_one.totals.scheduled, "the same arrivals, whoever serves them"
    assert len(_drawn(connection)) == result.totals.done + of_one.totals.done
    assert tuple(seconds) == result.series and [one.phase for one in seconds[:3]] == ["warmup", "measure", "measure"]
    assert sum(one.done for one in seconds) == result.totals.done
    histogram = next(one for one in result.histograms if one.scope == "transaction")
    assert histogram.count == result.measured.done == sum(count for _, count in histogram.buckets)
    assert result.fleet is not None and result.fleet.skew_ns is not None
    shares = [one.measured.scheduled for one in result.fleet.machines]
    assert max(shares) - min(shares) <= 2, "arrivals are dealt in turn"


@pytest.mark.long
@pytest.mark.parametrize(
    ("spec", "driver"),
    [
        ("ssh", "psycopg"),
        pytest.param("local", "sqlalchemy", marks=pytest.mark.long),
        pytest.param("ray", "psycopg", marks=pytest.mark.long),
    ],
    indirect=["spec"],
)
def test_clients_of_a_driver_are_dealt_to_the_machines(
    spec: FleetSpec,
    driver: Driver,
    config: MakeConfig,
    drawn: None,
    connection: Connection,
    tmp_path: Path,
) -> None:
    log = LogFile(tmp_path / "log")
    alone, _ = _run(DriverLoad(driver, config(_INSERT), Runner(), log))
    by_one = _drawn_by_each(connection)
    load = FleetLoad(config(_INSERT, warmup_s=0.5), executor_of(spec, Runner(), log), driver)
    result, seconds = _run(load)
    by_fleet = _drawn_by_each(connection)
    assert sorted(by_one) == sorted(by_fleet) == [*range(6)]
    for client, values in by_one.items():
        both = min(len(values), len(by_fleet[client]))
        assert both > 5 and values[:both] == by_fleet[client][:both], "the same draws, wherever the client is"
    assert sum(map(len, by_fleet.values())) == result.totals.done == sum(one.done for one in seconds)
    assert tuple(seconds) == result.series and [one.phase for one in seconds[:2]] == ["warmup", "measure"]
    transactions, statement = result.histograms
    assert transactions.count == statement.count == result.measured.done > 0
    assert (result.engine.driver, result.engine.threads) == (alone.engine.driver, 6)
    assert result.engine.user_cpu_ns > 0 and result.engine.bytes_sent is None
    assert result.fleet is not None and result.fleet.skew_ns is not None
    assert [one.clients for one in result.fleet.machines] == [2] * 3
    assert min(one.measured.done for one in result.fleet.machines) > 0


def _drawn_by_each(connection: Connection) -> dict[int, list[int]]:
    """In the order in which they were."""
    with psycopg.connect(_where(connection), autocommit=True) as control:
        rows = control.execute("SELECT client, array_agg(value ORDER BY at) FROM drawn GROUP BY 1").fetchall()
        control.execute("TRUNCATE drawn")
    return dict(rows)


def test_a_part_begins_in_time_however_much_it_has_to_record(config: MakeConfig) -> None:
    """Histograms of 400 statements took 15 ms to make."""
    asked = config("SELECT 1;\n" * 400, clients=1, duration_s=0.1, part={"number": 0, "of": 1})

    def first_start_ns() -> int:
        load = Load(asked)
        load.start()
        load.go(time.monotonic_ns() + 300_000_000)
        assert load.wait(20)
        return load.result().first_start_ns or 0

    # Where other processes want the CPU, most begin late; where histograms are made first, each does.
    begun_ns: list[int] = []
    while len(begun_ns) < 30 and not (begun_ns and min(begun_ns) < MAX_SKEW_NS):
        begun_ns.append(first_start_ns())
    assert 0 < min(begun_ns) < MAX_SKEW_NS, begun_ns


def test_merged_seconds_are_the_engine_s_own(config: MakeConfig) -> None:
    asked = config("SELECT pg_sleep(0.001);", rate=Rate.constant(500), duration_s=1.0, part={"number": 0, "of": 1})
    load = Load(asked)
    load.start()
    load.go(time.monotonic_ns())
    assert load.wait(20)
    histograms = {}
    add_histograms(histograms, load.take_histograms())
    rows = load.result().series
    assert rows[0].done > 0
    for row in rows:
        merged = merged_second([row], histograms[row.second])
        assert merged.model_copy(update={"latency_stddev_ns": None}) == row.model_copy(
            update={"latency_stddev_ns": None}
        )
        assert merged.latency_stddev_ns == pytest.approx(row.latency_stddev_ns, rel=1e-9)


@pytest.mark.long
def test_a_warm_up_of_open_length_ends_with_the_same_second_everywhere(fleet: MakeFleet, config: MakeConfig) -> None:
    load = fleet(FleetSpec(executor="local", machines=2), config(warmup_s=0.0, warmup_max_s=30.0))
    load.start()
    assert not load.wait(0.3)
    warmup_ns = load.begin_measuring()
    while not load.wait(1.0):
        pass
    assert load.result().warmup_ns == warmup_ns and 2e9 <= warmup_ns <= 4e9
    assert load.result().measured.done > 0


def test_a_stop_ends_all_and_keeps_what_was_done(fleet: MakeFleet, config: MakeConfig) -> None:
    load = fleet(FleetSpec(executor="local", machines=2), config(duration_s=600.0))
    load.start()
    load.wait(0.5)
    load.stop()
    assert load.wait(20)
    assert load.result().interrupted and load.result().totals.done > 0


@pytest.mark.long
def test_a_machine_that_is_done_waits_for_the_others_longer_than_its_lease(
    fleet: MakeFleet, config: MakeConfig
) -> None:
    source = "\\if :client_id = 0\nSELECT pg_sleep(12);\n\\endif\nSELECT 1;"
    load = fleet(
        FleetSpec(executor="local", machines=2), config(source, duration_s=None, transactions_per_client=1, clients=2)
    )
    load.start()
    while not load.wait(1.0):
        pass
    assert load.result().measured.done == 2


@pytest.mark.parametrize("spec", ["ssh"], indirect=True)
def test_secrets_are_in_no_argument_environment_or_log(
    spec: FleetSpec, fleet: MakeFleet, config: MakeConfig, connection: Connection, tmp_path: Path
) -> None:
    secret = "planted-Eiph9eeT"
    load = fleet(spec, config(connection=replace(connection, password=secret), duration_s=600.0))
    load.start()
    try:
        assert not load.wait(0.3)
        seen = b"".join(_text(file) for name in ("cmdline", "environ") for file in Path("/proc").glob(f"[0-9]*/{name}"))
        logs = b"".join(_text(file) for file in tmp_path.rglob("*"))
        assert b"plinth\0agent" in seen, "the agents are among what was looked at"
        assert secret.encode() not in seen + logs
    finally:
        load.stop()
        load.wait(20)


def _text(file: Path) -> bytes:
    try:
        return file.read_bytes() if file.is_file() else b""
    except OSError:  # it has ended, or is another user's
        return b""
