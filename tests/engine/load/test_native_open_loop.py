"""Transactions that are due at times of their own: the schedule, and what a server made slow on purpose does to it."""

import itertools
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from native_server import Finished, Load, Server
from plinth.model.load import Histogram, LoadResult

MS = 1_000_000
STALL_MS = 1_000


def steady(tps: float, arrivals: str = "uniform") -> dict[str, object]:
    return {"arrivals": arrivals, "stages": [{"from_tps": tps, "to_tps": tps}]}


def histogram(result: LoadResult, scope: str) -> Histogram:
    (found,) = [one for one in result.histograms if one.scope == scope]
    return found


def above(histogram: Histogram, limit_ns: int) -> int:
    """How many latencies are longer."""
    return sum(count for value_ns, count in histogram.buckets if value_ns > limit_ns)


def percentile_ns(histogram: Histogram, share: float) -> int:
    counts = itertools.accumulate(count for _, count in histogram.buckets)
    return next(
        value for (value, _), sum_ in zip(histogram.buckets, counts, strict=True) if sum_ >= share * histogram.count
    )


@pytest.mark.parametrize(
    ("script", "changes", "policy"),
    [
        ("select 1;", {}, os.SCHED_BATCH),
        ("select 1;", {"rate": steady(100.0)}, os.SCHED_OTHER),
        ("\\sleep 1 ms\nselect 1;", {}, os.SCHED_OTHER),
    ],
)
def test_only_threads_that_keep_no_time_wait_for_their_turn(
    server: Server, load: Load, script: str, changes: dict[str, object], policy: int
) -> None:
    run = load(server.connection(), script, duration_s=60.0, **changes)
    run.start()
    while json.loads(run.progress())["done"] == 0:
        assert not run.wait(0.01), "the run ended"
    threads = [task for task in Path("/proc/self/task").iterdir() if (task / "comm").read_text() == "plinth-load-0\n"]
    assert [os.sched_getscheduler(int(task.name)) for task in threads] == [policy]
    run.stop()
    assert run.wait(30.0), "its thread would be found by the next test"


@pytest.mark.parametrize("arrivals", ["uniform", "poisson"])
def test_the_rate_is_kept_and_latency_is_from_the_intended_start(
    server: Server, load: Load, finished: Finished, arrivals: str
) -> None:
    run = load(
        server.connection(),
        "select 1;",
        clients=4,
        threads=2,
        warmup_s=0.5,
        duration_s=2.0,
        rate=steady(400.0, arrivals),
    )
    result = finished(run)
    assert result.measured.done == pytest.approx(800, abs=20 if arrivals == "uniform" else 6 * 800**0.5)
    assert result.measured.skipped == result.measured.failed == result.measured.late == 0
    latency, service, lag = (histogram(result, scope) for scope in ("transaction", "service", "schedule_lag"))
    assert latency.count == service.count == lag.count == result.measured.done
    assert latency.sum_ns == service.sum_ns + lag.sum_ns
    assert percentile_ns(lag, 0.5) < 5 * MS, "nobody waits when clients are free"
    rows = [row for row in result.series if row.done]
    assert all(row.schedule_lag_mean_ns is not None and row.schedule_lag_max_ns is not None for row in rows)


def test_a_closed_loop_has_no_schedule(server: Server, load: Load, finished: Finished) -> None:
    result = finished(load(server.connection(), "select 1;", transactions_per_client=5))
    assert {one.scope for one in result.histograms} == {"transaction", "statement"}
    assert all(row.schedule_lag_mean_ns is None for row in result.series)


def test_rates_step_and_ramp(server: Server, load: Load, finished: Finished) -> None:
    stages = [
        {"from_tps": 100, "to_tps": 100, "duration_s": 1},
        {"from_tps": 300, "to_tps": 300, "duration_s": 1},
        {"from_tps": 300, "to_tps": 0, "duration_s": 1},
    ]
    rate = {"arrivals": "uniform", "stages": stages}
    result = finished(load(server.connection(), "select 1;", clients=4, threads=2, duration_s=3.0, rate=rate))
    done = [row.done for row in result.series[:3]]
    assert result.totals.scheduled == pytest.approx(550, abs=5)
    # What a busy machine does late counts in the next second.
    assert done == [pytest.approx(expected, abs=40) for expected in (100, 300, 150)]


def test_late_ones_are_skipped_with_a_rate_and_only_counted_without(
    server: Server, load: Load, finished: Finished
) -> None:
    """One client, 10 ms each, 1,000 due a second: most are too late after 50 ms."""
    script = "select pg_sleep(0.01);"
    run = load(server.connection(), script, duration_s=1.0, rate=steady(1000.0), latency_limit_s=0.05)
    result = finished(run)
    totals = result.totals
    assert totals.scheduled == pytest.approx(1000, abs=70)
    assert totals.skipped > 700
    assert 10 < totals.done <= 101, "one after the other, and fewer where sleeping takes longer"
    assert 0 < totals.late <= totals.done
    assert histogram(result, "schedule_lag").max_ns <= 80 * MS, "who is too late is not begun"
    assert sum(row.skipped or 0 for row in result.series) == totals.skipped
    assert sum(row.late or 0 for row in result.series) == totals.late

    result = finished(load(server.connection(), script, transactions_per_client=10, latency_limit_s=0.005))
    assert (result.totals.done, result.totals.late, result.totals.skipped) == (10, 10, 0)


def test_what_was_due_and_never_begun_is_counted(server: Server, load: Load, finished: Finished) -> None:
    """Without a limit nobody is skipped: the queue that is left at the end is no secret."""
    run = load(server.connection(), "select pg_sleep(0.02);", duration_s=1.0, rate=steady(500.0))
    result = finished(run)
    assert result.totals.scheduled == pytest.approx(500, abs=2)
    assert result.totals.open == pytest.approx(450, abs=30)
    assert result.measured.open == result.totals.open


def stalled(server: Server, load: Load, script: str, stall: Callable[[], None], **changes: object) -> LoadResult:
    """A load of 4 clients and 200 arrivals a second for 5 s, with a stall soon after its beginning.

    On a busy machine it begins a second late, and has to end before the load: what waits at the end is not answered.
    """
    run = load(server.connection(), script, clients=4, threads=2, duration_s=5.0, rate=steady(200.0), **changes)
    run.start()
    while json.loads(run.progress())["done"] < 100:
        assert not run.wait(0.005)
    stall()
    assert run.wait(30.0)
    return LoadResult.model_validate_json(run.result())


def check_stall(result: LoadResult, stall_ms: int) -> None:
    """The stall is in the latency of each arrival that it hit; in our queue, service knows nothing of it."""
    latency, service, lag = (histogram(result, scope) for scope in ("transaction", "service", "schedule_lag"))
    assert result.totals.scheduled == pytest.approx(1000, abs=3)
    # Arrivals come every 5 ms; the one that comes x ms into the stall waits for the rest of it.
    expected = stall_ms / 2 / 5
    assert above(latency, stall_ms // 2 * MS) == pytest.approx(expected, rel=0.25, abs=8)
    assert percentile_ns(latency, 0.999) >= 0.9 * stall_ms * MS
    # All but the few that were under way when it began waited with us.
    assert above(service, stall_ms // 2 * MS) <= 4
    assert above(lag, stall_ms // 2 * MS) >= expected * 0.75 - 8
    assert percentile_ns(service, 0.99) < stall_ms // 2 * MS


def test_a_lock_held_for_a_second_shows_in_every_arrival_it_hit(server: Server, load: Load) -> None:
    server.execute("drop table if exists locked; create table locked (n int); insert into locked values (0)")

    def hold_lock() -> None:
        with psycopg.connect(
            host=str(server.folder), port=server.port, user="postgres", dbname="postgres"
        ) as connection:
            connection.execute("lock table locked in access exclusive mode")
            time.sleep(STALL_MS / 1000)

    check_stall(stalled(server, load, "select n from locked;", hold_lock), STALL_MS)


def test_a_stopped_server_shows_in_every_arrival_it_hit(own_server: Server, load: Load) -> None:
    def stop_for_two_seconds() -> None:
        backends = own_server.execute("select pid from pg_stat_activity where application_name = 'plinth'")
        pids = [own_server.pid, *(pid for (pid,) in backends)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(2.0)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    check_stall(stalled(own_server, load, "select 1;", stop_for_two_seconds), 2_000)


def test_a_slow_statement_shows_in_the_arrivals_behind_it(server: Server, load: Load, finished: Finished) -> None:
    """One client; every hundredth transaction sleeps in the server for 300 ms, and those behind it wait."""
    server.execute("drop sequence if exists slowly; create sequence slowly")
    script = "select pg_sleep(case when nextval('slowly') % 100 = 0 then 0.3 else 0 end);"
    result = finished(load(server.connection(), script, duration_s=1.5, rate=steady(100.0)))
    latency, service = histogram(result, "transaction"), histogram(result, "service")
    assert result.totals.scheduled == pytest.approx(150, abs=2)
    assert above(service, 100 * MS) == 1
    # Those that came in the 200 ms after it began waited more than 100 ms each.
    assert above(latency, 100 * MS) >= 15


def test_a_stop_ends_those_that_wait_for_their_time(server: Server, load: Load) -> None:
    run = load(server.connection(), "select 1;", clients=3, threads=2, duration_s=600.0, rate=steady(0.1))
    run.start()
    threading.Timer(0.2, run.stop).start()
    began = time.monotonic()
    assert run.wait(10.0)
    assert time.monotonic() - began < 3.0
    result = LoadResult.model_validate_json(run.result())
    assert result.interrupted
    assert result.totals.scheduled == result.totals.done <= 1


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        ({"stages": []}, "rate: no stages"),
        ({"stages": [{"from_tps": -1, "to_tps": 1}]}, "got -1"),
        ({"stages": [{"from_tps": 1, "to_tps": 1}], "arrivals": "even"}, "unknown variant `even`"),
    ],
)
def test_rates_that_make_no_sense(load: Load, rate: dict[str, object], words: str) -> None:
    from plinth import _native

    connection = {"host": "/tmp", "port": 5432, "user": "u", "database": "d"}
    with pytest.raises(_native.ConfigError, match=words):
        load(connection, "select 1;", rate=rate)


@pytest.mark.long
@pytest.mark.parametrize(
    ("rate", "arrivals"),
    [
        (steady(1e9, "poisson"), 2e9),
        (steady(1e9, "uniform"), 2e9),
        ({"stages": [{"from_tps": 0, "to_tps": 1e9, "duration_s": 2.0}, {"from_tps": 1, "to_tps": 1}]}, 1e9),
    ],
    ids=["poisson", "uniform", "ramp"],
)
@pytest.mark.parametrize("limit_s", [0.001, None])
def test_the_end_is_kept_at_any_rate_and_every_arrival_is_counted(
    server: Server, load: Load, finished: Finished, rate: dict[str, object], arrivals: float, limit_s: float | None
) -> None:
    changes = {} if limit_s is None else {"latency_limit_s": limit_s}
    run = load(server.connection(), "select 1;", clients=2, threads=2, duration_s=2.0, rate=rate, **changes)
    result = finished(run)
    assert result.measured_ns < 10_000_000_000, "it went on counting for minutes"
    totals = result.totals
    assert totals.scheduled == pytest.approx(arrivals, abs=10 * arrivals**0.5)
    assert totals.done > 0 and totals.failed == 0
    # Only the last millisecond may still be begun when the run ends, and what came while a client was busy.
    assert (totals.skipped > 0.5 * arrivals) == (limit_s is not None)


def test_a_part_skips_its_share_of_the_arrivals_that_all_parts_have(server: Server, load: Load) -> None:
    """Two parts of a load, one after the other here, deal the arrivals of one process out, and miss none."""
    scheduled = []
    for number in range(2):
        run = load(
            server.connection(),
            "select 1;",
            clients=2,
            threads=2,
            duration_s=1.0,
            rate=steady(1e8, "poisson"),
            latency_limit_s=0.001,
            part={"number": number, "of": 2},
        )
        run.start()
        run.go(time.monotonic_ns())
        assert run.wait(60.0)
        totals = LoadResult.model_validate_json(run.result()).totals
        assert totals.skipped > 0.5 * totals.scheduled
        scheduled.append(totals.scheduled)
    assert abs(scheduled[0] - scheduled[1]) <= 1


def test_a_limit_of_transactions_ends_within_what_is_skipped(server: Server, load: Load, finished: Finished) -> None:
    run = load(
        server.connection(),
        "select pg_sleep(0.01);",
        clients=2,
        duration_s=None,
        transactions_per_client=12_345,
        rate=steady(1e5, "poisson"),  # for 0.25 s: longer than the engine waits for a processor
        latency_limit_s=0.001,
    )
    totals = finished(run).totals
    assert totals.scheduled == totals.done + totals.skipped == 2 * 12_345 and 0 < totals.done < totals.skipped


@pytest.mark.parametrize("log", [{}, {"aggregate_interval_s": 1}, {"sampling_rate": 0.001}])
def test_a_log_of_what_is_skipped_does_not_keep_the_run_from_its_end(
    server: Server, load: Load, finished: Finished, tmp_path: Path, log: dict[str, float]
) -> None:
    """A line for each of them takes longer than the time that they come in."""
    run = load(
        server.connection(),
        "select 1;",
        duration_s=0.2,
        rate=steady(1e9),
        latency_limit_s=0.001,
        log={"prefix": str(tmp_path / "log")} | log,
    )
    result = finished(run)
    assert result.measured_ns < 10_000_000_000
    totals = result.totals
    assert totals.scheduled == totals.done + totals.skipped + totals.open == pytest.approx(2e8, rel=0.001)
    rows = [line.split() for path in tmp_path.iterdir() for line in path.read_text().splitlines()]
    if not log:
        assert sum(row[2] == "skipped" for row in rows) == totals.skipped
    if "aggregate_interval_s" in log:
        # Columns: interval, transactions, four sums of latencies and of lags each, skipped.
        assert sum(int(row[10]) for row in rows) <= totals.skipped and totals.skipped > 1e8
