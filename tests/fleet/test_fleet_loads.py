"""Loads by three machines, each with each executor: the same result as from one engine."""

import time
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from fleets import MakeConfig, MakeFleet
from plinth.fleet.merge import add_histograms, merged_second
from plinth.load import Load, Rate
from plinth.model.connection import Connection
from plinth.model.fleet import FleetSpec
from plinth.model.load import LoadResult, Second

_INSERT = "\\set value random(1, 1000000000)\nINSERT INTO drawn VALUES (:client_id, :value);"


def _run(load) -> tuple[LoadResult, list[Second]]:
    load.start()
    seconds: list[Second] = []
    while not load.wait(0.2):
        seconds += load.progress().seconds
    return load.result(), [*seconds, *load.progress().seconds]


def _drawn(connection: Connection) -> list[tuple[int, int]]:
    conninfo = f"host={connection.host} port={connection.port} user={connection.user} dbname={connection.database}"
    with psycopg.connect(conninfo, autocommit=True) as control:
        rows = control.execute("SELECT * FROM drawn ORDER BY 1, 2").fetchall()
        control.execute("TRUNCATE drawn")
    return rows


@pytest.fixture
def drawn(connection: Connection):
    conninfo = f"host={connection.host} port={connection.port} user={connection.user} dbname={connection.database}"
    with psycopg.connect(conninfo, autocommit=True) as control:
        control.execute("CREATE TABLE drawn (client int, value int)")
        yield
        control.execute("DROP TABLE drawn")


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


def test_an_open_loop_has_its_arrivals_once_and_its_seconds_together(
    fleet: MakeFleet, config: MakeConfig, drawn: None, connection: Connection
) -> None:
    asked = config(_INSERT, rate=Rate.constant(200), warmup_s=1.0, duration_s=2.0)
    result, seconds = _run(fleet(FleetSpec(address="local", machines=2), asked))
    of_one, _ = _run(fleet(FleetSpec(address="local", machines=1), asked))
    assert result.totals.scheduled == of_one.totals.scheduled, "the same arrivals, whoever serves them"
    assert len(_drawn(connection)) == result.totals.done + of_one.totals.done
    assert tuple(seconds) == result.series and [one.phase for one in seconds[:3]] == ["warmup", "measure", "measure"]
    assert sum(one.done for one in seconds) == result.totals.done
    histogram = next(one for one in result.histograms if one.scope == "transaction")
    assert histogram.count == result.measured.done == sum(count for _, count in histogram.buckets)
    assert result.fleet is not None and result.fleet.skew_ns is not None
    shares = [one.measured.scheduled for one in result.fleet.machines]
    assert max(shares) - min(shares) <= 2, "arrivals are dealt in turn"


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


def test_a_warm_up_of_open_length_ends_with_the_same_second_everywhere(fleet: MakeFleet, config: MakeConfig) -> None:
    load = fleet(FleetSpec(address="local", machines=2), config(warmup_s=0.0, warmup_max_s=30.0))
    load.start()
    assert not load.wait(0.3)
    warmup_ns = load.begin_measuring()
    while not load.wait(1.0):
        pass
    assert load.result().warmup_ns == warmup_ns and 2e9 <= warmup_ns <= 4e9
    assert load.result().measured.done > 0


def test_a_stop_ends_all_and_keeps_what_was_done(fleet: MakeFleet, config: MakeConfig) -> None:
    load = fleet(FleetSpec(address="local", machines=2), config(duration_s=600.0))
    load.start()
    load.wait(0.5)
    load.stop()
    assert load.wait(20)
    assert load.result().interrupted and load.result().totals.done > 0


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
    except OSError:  # it has ended, or is somebody else's
        return b""
