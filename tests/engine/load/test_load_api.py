"""`plinth.load`: a load run from a program."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from pydantic import ValidationError

from native_server import Server
from plinth.load import Load, LoadConfig, LoadInterrupted, LoadScript, LogFiles, Rate, Stage, builtin, connection, run
from plinth.model.connection import Connection
from plinth.model.errors import RunError, UsageError
from plinth.model.load import LoadProgress

SELECT = LoadScript(name="one", source="SELECT 1;")


def to(server: Server) -> Connection:
    return Connection(**server.connection())


def test_figures_are_arrays(server: Server) -> None:
    rate = Rate(stages=(Stage(from_tps=200, to_tps=400, duration_s=1),), arrivals="uniform")
    config = LoadConfig(connection=to(server), scripts=[SELECT], clients=3, warmup_s=0.3, duration_s=1.0, rate=rate)
    seen: list[LoadProgress] = []
    outcome = run(config, seen.append, poll_s=0.05)

    result = outcome.result
    # What is due is known: 200 a second for 0.3 s, then from 200 to 400 in one. When it is done depends on the machine.
    assert result.totals.scheduled == pytest.approx(360, abs=5)
    assert 0 < result.measured.done <= 365
    assert outcome.tps == pytest.approx(result.measured.done / (result.measured_ns / 1e9))
    done = outcome.series["done"]
    assert (done.dtype, done.flags.writeable) == (np.int64, False)
    assert done.tolist() == [second.done for second in result.series]
    for name in ("latency_p99_ns", "latency_mean_ns", "schedule_lag_max_ns", "latency_stddev_ns"):
        column = outcome.series[name]
        expected = [getattr(second, name) for second in result.series]
        assert column.dtype == np.float64
        np.testing.assert_array_equal(column, [np.nan if value is None else value for value in expected])
    assert {len(column) for column in outcome.series.values()} == {len(result.series)}

    for latencies, histogram in zip(outcome.histograms, result.histograms, strict=True):
        assert list(zip(latencies.values_ns.tolist(), latencies.counts.tolist(), strict=True)) == [*histogram.buckets]
    transactions = outcome.transactions()
    assert transactions.counts.sum() == result.measured.done
    assert transactions.percentile_ns(1.0) == transactions.of.max_ns
    assert transactions.percentile_ns(0.5) <= transactions.percentile_ns(0.99)
    for share in (-0.01, 1.01, 99, np.nan):
        with pytest.raises(ValueError, match=r"share: got .*, allowed is from 0 to 1"):
            transactions.percentile_ns(share)
    with pytest.raises(KeyError, match="one"):
        outcome.transactions("two")

    assert [second for progress in seen for second in progress.seconds] == [*result.series]
    assert (seen[-1].phase, seen[-1].done) == ("done", result.totals.done)


def test_the_end_of_a_client_is_an_event(server: Server) -> None:
    ends = LoadScript(name="ends", source="SELECT 1;\nSELECT pg_terminate_backend(pg_backend_pid());")
    seen: list[LoadProgress] = []
    run(LoadConfig(connection=to(server), scripts=[ends], duration_s=5.0), seen.append, poll_s=0.05)
    (event,) = [event for progress in seen for event in progress.events]
    assert (event.kind, event.client, event.script, event.command) == ("aborted", 0, 0, 1)
    assert (event.is_connecting, event.query, event.sqlstate) == (False, 0, "57P01")
    assert "terminating connection" in event.message


def test_any_bytes_of_an_error_and_any_characters_of_a_script(server: Server) -> None:
    """To a client in SQL_ASCII the server converts nothing; the last characters of Unicode represent bytes in the engine."""
    with server.connect() as control:
        control.execute("drop database if exists load_sql_ascii")
        control.execute("create database load_sql_ascii template template0 encoding 'SQL_ASCII' locale 'C'")
    bytes_of = "convert_from('\\xe9'::bytea, 'SQL_ASCII')"
    fails = LoadScript(name="caf\U0010ffe9", source=f"select (length('\U0010ffe9') || {bytes_of})::int;")
    there = Connection(**server.connection(database="load_sql_ascii", client_encoding="SQL_ASCII"))
    seen: list[LoadProgress] = []
    outcome = run(
        LoadConfig(connection=there, scripts=[fails], transactions_per_client=1, verbose_errors=True), seen.append
    )
    (error,) = outcome.result.errors
    (event,) = [event for progress in seen for event in progress.events]
    for message in (error.message, event.message):
        assert r'invalid input syntax for type integer: "4\xe9"' in message
    assert outcome.result.scripts[0].name == fails.name


def test_a_connection_string_and_a_built_in_script(server: Server) -> None:
    string = f"host={server.folder} port={server.port} user=postgres dbname=postgres"
    config = LoadConfig(
        connection=connection(string), scripts=[builtin("select-only")], variables={"scale": "1"}, duration_s=0.3
    )
    assert run(config).result.measured.done > 0
    with pytest.raises(UsageError, match="select-only"):
        builtin("select")


@pytest.mark.parametrize(
    ("changes", "words", "where"),
    [
        ({"clients": 0}, "clients: got 0", None),
        ({"clients": -1}, "clients: invalid value: integer `-1`, expected usize$", None),
        ({"seed": 2**64}, "seed: invalid type: floating point", None),
        ({"variables": {"a": "\udce9"}}, "surrogates not allowed", None),
        ({"rate": Rate.constant(-1)}, "rate: got -1", None),
        ({"duration_s": None}, "exactly one of", None),
        ({"scripts": [LoadScript(name="bad.sql", source="SELECT 1;\n\\set x 1 +\n")]}, "cannot be run", "bad.sql:2:"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(changes: dict[str, object], words: str, where: str | None) -> None:
    nowhere = Connection(host="/tmp", port=1, user="u", database="d")
    config = LoadConfig(connection=nowhere, scripts=[SELECT], duration_s=1.0).model_copy(update=changes)
    with pytest.raises(UsageError, match=words) as raised:
        run(config)
    assert where is None or (raised.value.where or "").startswith(where)


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
@pytest.mark.parametrize("field", ["duration_s", "latency_limit_s", "warmup_s", "connect_timeout_s", "stop_timeout_s"])
def test_times_are_finite(field: str, number: float) -> None:
    """They would be nulls on their way to the engine: no limit, and no time."""
    nowhere = Connection(host="/tmp", port=1, user="u", database="d")
    config = {"connection": nowhere, "scripts": [SELECT], "duration_s": 1.0} | {field: number}
    with pytest.raises(ValidationError, match=rf"{field}\n +Input should be a finite number"):
        LoadConfig.model_validate(config)
    with pytest.raises(ValidationError, match="finite"):
        LogFiles(prefix="log", sampling_rate=number)
    with pytest.raises(ValidationError, match="finite"):
        Rate.constant(number)


def test_nobody_there_is_a_run_error() -> None:
    nowhere = Connection(host="/tmp", port=1, user="u", database="d")
    with pytest.raises(RunError, match=r"cannot connect to /tmp/\.s\.PGSQL\.1"):
        run(LoadConfig(connection=nowhere, scripts=[SELECT], duration_s=1.0))


def test_ctrl_c_brings_the_figures_so_far(server: Server) -> None:
    config = LoadConfig(connection=to(server), scripts=[SELECT], clients=2, duration_s=600.0)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(LoadInterrupted, match="interrupted after") as raised:
        run(config)
    timer.join()
    outcome = raised.value.outcome
    assert outcome is not None
    assert outcome.result.interrupted
    assert outcome.transactions("one").counts.sum() == outcome.result.measured.done > 0


def test_what_a_callback_raises_ends_the_load(server: Server) -> None:
    def too_much(progress: LoadProgress) -> None:
        raise ValueError(progress.phase)

    before = "select count(*) from pg_stat_activity where application_name = 'plinth'"
    with pytest.raises(ValueError, match="measure"):
        run(LoadConfig(connection=to(server), scripts=[SELECT], duration_s=600.0), too_much)
    deadline = time.monotonic() + 10
    while server.execute(before) != [(0,)]:
        assert time.monotonic() < deadline


def test_a_load_as_an_object(server: Server) -> None:
    load = Load(LoadConfig(connection=to(server), scripts=[SELECT], duration_s=600.0))
    with pytest.raises(RunError, match="not started"):
        load.outcome()
    load.start()
    assert not load.wait(0.2)
    load.stop()
    assert load.wait(10.0)
    assert load.outcome().result.interrupted
