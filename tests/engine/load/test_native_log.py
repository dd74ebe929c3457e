"""The log of transactions is pgbench's: the same columns, and with the same seed the same lines but for the times."""

import itertools
import os
from pathlib import Path
from typing import Any

import pytest

from native_server import Finished, Load, Server
from plinth import _native

FAILS = """\
\\set n random(1, 3)
select fail_sometimes(:n);
"""
FUNCTION = """\
create or replace function fail_sometimes(n int) returns void language plpgsql as
$$ begin
if n = 1 then raise exception using errcode = '40001'; elsif n = 2 then raise exception using errcode = '40P01'; end if;
end $$
"""


def steady(tps: float) -> dict[str, object]:
    return {"arrivals": "poisson", "stages": [{"from_tps": tps, "to_tps": tps}]}


def lines(folder: Path, program: str) -> list[list[str]]:
    """All lines of a program's logs, the first thread's first."""
    paths = sorted(folder.glob(f"{program}.*"), key=lambda path: len(path.name))
    return [line.split() for path in paths for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        ([], {}),
        (["--max-tries=3"], {"max_tries": 3}),
        (["--failures-detailed"], {"log": {"failures_detailed": True}}),
        (["-R", "2000", "--max-tries=2"], {"rate": steady(2000), "max_tries": 2}),
        (["--sampling-rate=0.3"], {"log": {"sampling_rate": 0.3}}),
    ],
    ids=["plain", "retries", "detailed", "rate", "sampled"],
)
def test_lines_are_pgbenchs_but_for_the_times(
    server: Server,
    load: Load,
    finished: Finished,
    tmp_path_factory: pytest.TempPathFactory,
    options: list[str],
    changes: dict[str, Any],
) -> None:
    folder = tmp_path_factory.mktemp("log")
    server.execute(FUNCTION)
    script = folder / "script.sql"
    script.write_text(FAILS)
    common = ["-n", "-f", str(script), "-t", "60", "-c", "2", "-j", "2", "--random-seed=5", "-M", "prepared"]
    server.pgbench(*common, "-l", f"--log-prefix={folder}/pgbench", *options)
    changes = changes | {"log": {"prefix": f"{folder}/plinth", **changes.get("log", {})}}
    finished(load(server.connection(), FAILS, clients=2, threads=2, transactions_per_client=60, seed=5, **changes))
    assert sorted(path.name for path in folder.glob("plinth.*")) == [f"plinth.{os.getpid()}", f"plinth.{os.getpid()}.1"]

    def without_times(line: list[str]) -> list[str]:
        latency = "time" if line[2].isdigit() else line[2]
        lag = ["lag"] if "rate" in changes else []
        return [*line[:2], latency, line[3], *lag, *line[6 + len(lag) :]]

    ours, theirs = ([without_times(line) for line in lines(folder, name)] for name in ("plinth", "pgbench"))
    assert ours == theirs
    words = {line[2] for line in ours}
    assert len(words) > 1, "some fail, some do not"


def test_intended_starts_are_pgbenchs(
    server: Server, load: Load, finished: Finished, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The same seed draws the same arrivals: the end, less the latency, is the intended start.

    pgbench reads the clock for a line's end later than for its latency, so that some of its starts seem late, by chance,
    and never early. Each is right in one run or another, so pgbench runs until each has been: ours are to be those.
    """
    folder = tmp_path_factory.mktemp("log")
    script = folder / "script.sql"
    script.write_text("select 1;\n")
    log = {"prefix": f"{folder}/plinth"}
    finished(load(server.connection(), "select 1;", transactions_per_client=100, rate=steady(500), seed=99, log=log))

    def starts_us(program: str) -> list[int]:
        return [int(line[4]) * 1_000_000 + int(line[5]) - int(line[2]) for line in lines(folder, program)]

    ours = starts_us("plinth")
    assert len(ours) == 100 and len({after - before for before, after in itertools.pairwise(ours)}) > 50
    unconfirmed = set(range(100))
    for run in range(40):
        options = ["-n", "-f", str(script), "-t", "100", "-R", "500", "--random-seed=99", "-M", "prepared"]
        server.pgbench(*options, "-l", f"--log-prefix={folder}/pgbench{run}")
        late_us = [its - mine for mine, its in zip(ours, starts_us(f"pgbench{run}"), strict=True)]
        began_later_us = min(late_us)
        rounding_us = 2
        unconfirmed -= {number for number, late in enumerate(late_us) if late - began_later_us <= rounding_us}
        if not unconfirmed:
            return
    pytest.fail(f"pgbench never began these transactions when we did: {sorted(unconfirmed)}")


def test_times_and_lags_are_those_of_the_result(
    server: Server, load: Load, finished: Finished, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("log")
    log = {"prefix": f"{folder}/plinth"}
    run = load(server.connection(), "select pg_sleep(0.002);", clients=2, duration_s=0.5, rate=steady(300), log=log)
    result = finished(run)
    logged = lines(folder, "plinth")
    assert len(logged) == result.totals.done
    sums = {one.scope: one.sum_ns for one in result.histograms}
    assert sum(int(line[2]) for line in logged) * 1000 == pytest.approx(sums["transaction"], rel=0.01)
    assert sum(int(line[6]) for line in logged) * 1000 == pytest.approx(sums["schedule_lag"], rel=0.01, abs=1e6)
    assert all(result.started_unix_ns <= (int(line[4]) * 1_000_000 + int(line[5]) + 1) * 1_000 for line in logged)


def test_aggregated_lines(
    server: Server, load: Load, finished: Finished, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Columns as of pgbench's documentation; the sums are those of the single lines."""
    folder = tmp_path_factory.mktemp("log")
    server.execute(FUNCTION)
    script = folder / "script.sql"
    script.write_text(FAILS)
    options = ["-n", "-f", str(script), "-T", "3", "-R", "200", "-L", "1000", "--max-tries=2", "--failures-detailed"]
    server.pgbench(*options, "-l", f"--log-prefix={folder}/pgbench", "--aggregate-interval=1", "--random-seed=5")
    log = {"prefix": f"{folder}/plinth", "aggregate_interval_s": 1, "failures_detailed": True}
    changes = {"rate": steady(200), "latency_limit_s": 1.0, "max_tries": 2, "seed": 5, "protocol": "simple"}
    result = finished(load(server.connection(), FAILS, duration_s=3.0, log=log, **changes))
    ours, theirs = ([list(map(int, line)) for line in lines(folder, name)] for name in ("plinth", "pgbench"))
    assert {len(line) for line in ours} == {len(line) for line in theirs} == {15}
    # They begin at whole seconds, so that the first is short, and by chance empty.
    assert len(ours) in (2, 3)
    assert [after[0] - before[0] for before, after in itertools.pairwise(ours)] == [1] * (len(ours) - 1)
    assert ours[0][0] == result.started_unix_ns // 1_000_000_000
    for _, done, sum_us, squares, least_us, most_us, *rest in ours[1:]:
        assert done * least_us <= sum_us <= done * most_us
        assert sum_us**2 / done <= squares * 1.0001
        lag_sum, _, lag_least, lag_most, skipped, retried, retries, serialization, deadlock = rest
        assert lag_least * done <= lag_sum <= lag_most * done
        assert skipped == 0
        assert retries == retried > 0
        assert serialization > 0
        assert deadlock > 0


def test_a_log_that_cannot_be_written_is_an_error(
    server: Server, load: Load, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("log")
    run = load(server.connection(), "select 1;", log={"prefix": f"{folder}/nowhere/log"})
    with pytest.raises(
        _native.EngineError, match=r'could not open logfile ".*nowhere/log\.\d+": No such file or directory$'
    ):
        run.start()
    prefix = folder / "full"
    Path(f"{prefix}.{os.getpid()}").symlink_to("/dev/full")
    run = load(server.connection(), "select 1;", duration_s=60.0, log={"prefix": str(prefix)})
    run.start()
    assert run.wait(30.0), "a full disk ends the run"
    with pytest.raises(_native.EngineError, match="No space left"):
        run.result()


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ({"prefix": "x", "aggregate_interval_s": 1, "sampling_rate": 0.5}, "exclude one another"),
        ({"prefix": "x", "aggregate_interval_s": 0}, "at least 1"),
        ({"prefix": "x", "sampling_rate": 1.5}, "got a sampling_rate of 1.5"),
        ({}, "missing field `prefix`"),
    ],
)
def test_logs_that_make_no_sense(load: Load, log: dict[str, object], words: str) -> None:
    connection = {"host": "/tmp", "port": 5432, "user": "u", "database": "d"}
    with pytest.raises(_native.ConfigError, match=words):
        load(connection, "select 1;", log=log)
