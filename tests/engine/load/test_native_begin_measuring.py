"""A warm-up whose end is told while the load runs."""

import json

import pytest

from native_server import Finished, Load, Server
from plinth import _native
from plinth.model.load import LoadResult
from waiting import wait_until

SECOND_NS = 1_000_000_000


def result_of(run: _native.LoadRun) -> LoadResult:
    """Of a load that was started."""
    assert run.wait(60.0), "the run did not end"
    result = LoadResult.model_validate_json(run.result())
    for totals in (result.totals, result.measured):
        assert totals.scheduled == totals.done + totals.failed + totals.skipped + totals.open
    return result


def select_only() -> list[dict[str, str]]:
    return [{"name": "select-only", "source": "SELECT 1;"}]


@pytest.mark.long
def test_the_load_runs_on_from_the_warm_up_to_the_measured_phase(
    server: Server, load: Load, finished: Finished
) -> None:
    run = load(
        server.connection(),
        scripts=select_only(),
        clients=4,
        threads=2,
        warmup_s=0.5,
        warmup_max_s=300.0,
        duration_s=1.5,
    )
    run.start()
    wait_until(lambda: json.loads(run.progress())["elapsed_ns"] >= SECOND_NS)
    told_ns = json.loads(run.progress())["elapsed_ns"]
    ends_ns = run.begin_measuring()
    assert told_ns < ends_ns <= told_ns + 1_500_000_000
    assert ends_ns % SECOND_NS == 0
    assert run.begin_measuring() == ends_ns, "it has an end"
    result = result_of(run)
    assert result.warmup_ns == ends_ns
    assert 1_500_000_000 <= result.measured_ns < 2_500_000_000
    assert not result.interrupted
    rows = result.series
    assert [row.phase for row in rows if row.t_ns < ends_ns] == ["warmup"] * (ends_ns // SECOND_NS)
    assert {row.phase for row in rows if row.t_ns >= ends_ns} == {"measure"}
    assert all(row.length_ns == SECOND_NS for row in rows if row.t_ns < ends_ns + SECOND_NS)
    assert all(row.done > 0 for row in rows if row.length_ns == SECOND_NS), "there was no pause"
    measured = sum(row.done for row in rows if row.phase == "measure")
    assert measured == result.measured.done < result.totals.done == sum(row.done for row in rows)
    (transactions,) = [one for one in result.histograms if one.scope == "transaction"]
    assert transactions.count == measured


def test_it_does_not_end_before_its_least_time(server: Server, load: Load) -> None:
    run = load(server.connection(), scripts=select_only(), warmup_s=2.5, warmup_max_s=300.0, duration_s=0.5)
    run.start()
    assert run.begin_measuring() == 2_500_000_000
    result = result_of(run)
    assert result.warmup_ns == 2_500_000_000
    assert 500_000_000 <= result.measured_ns < 1_500_000_000


def test_it_ends_at_its_longest_time_without_being_stopped(server: Server, load: Load, finished: Finished) -> None:
    result = finished(load(server.connection(), scripts=select_only(), warmup_max_s=1.2, duration_s=0.5))
    assert result.warmup_ns == 1_200_000_000
    assert 500_000_000 <= result.measured_ns < 1_500_000_000


def test_an_open_loop_ends_with_its_measured_time(server: Server, load: Load) -> None:
    """Clients that wait for transactions of long after that do not keep it running."""
    rate = {"stages": [{"from_tps": 4, "to_tps": 4}], "arrivals": "uniform"}
    run = load(server.connection(), scripts=select_only(), clients=32, rate=rate, warmup_max_s=300.0, duration_s=2.0)
    run.start()
    ends_ns = run.begin_measuring()
    result = result_of(run)
    assert result.warmup_ns == ends_ns
    assert result.measured_ns < 2_500_000_000
    assert abs(result.measured.scheduled - 8) <= 1
    assert result.totals.open <= 1, "one that is due at the very end"


def test_what_has_no_open_warm_up_is_refused(server: Server, load: Load) -> None:
    run = load(server.connection(), scripts=select_only(), warmup_s=0.2, duration_s=0.2)
    with pytest.raises(_native.EngineError, match="the load has not begun"):
        run.begin_measuring()
    run.start()
    with pytest.raises(_native.EngineError, match="the warm-up has a fixed length"):
        run.begin_measuring()
    result_of(run)
