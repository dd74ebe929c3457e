"""The final report of `plinth bench`, line for line as pgbench 18 writes it, so that its readers read ours."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from plinth.bench.failure import BenchFailure
from plinth.bench.lossless import file_name
from plinth.bench.options import BenchOptions
from plinth.bench.outcome import Counts, Latency, Outcome, ScriptOutcome
from plinth.bench.tables import TableInfo
from plinth.bench.tpcc import DESCRIPTION as TPCC
from plinth.system.regular_file import open_output


def report(asked: BenchOptions, tables: TableInfo, outcome: Outcome) -> str:
    """Return the report, its lines ended."""
    return "".join(f"{line}\n" for line in _lines(asked, tables, outcome))


@contextmanager
def json_file(place: str | None, out: TextIO) -> Iterator[TextIO | None]:
    """Yield the file of --json, or `out` for "-". It is opened before the load, so that no result is lost because it cannot be."""
    if place is None or place == "-":
        yield None if place is None else out
        return
    with _opened(place) as file:
        yield file


def _opened(place: str) -> TextIO:
    try:
        return io.TextIOWrapper(io.BufferedWriter(open_output(file_name(place))), encoding="utf-8")
    except OSError as error:
        raise BenchFailure(f'could not open file "{place}": {error.strerror}') from error


def _lines(asked: BenchOptions, tables: TableInfo, outcome: Outcome) -> Iterator[str]:
    counts = outcome.total
    yield from _parameters(asked, tables, outcome)
    if asked.time_s == 0:
        yield f"number of transactions per client: {asked.transactions}"
        yield f"number of transactions actually processed: {counts.done}/{asked.transactions * asked.clients}"
    else:
        yield f"duration: {asked.time_s} s"
        yield f"number of transactions actually processed: {counts.done}"
    if counts.all <= 0:
        return
    yield from _failures(asked, counts, "number of ")
    if asked.latency_limit_ms is not None:
        yield (
            f"number of transactions above the {asked.latency_limit_ms:.1f} ms latency limit: "
            f"{outcome.late}/{counts.done} ({_percent(outcome.late, counts.done):.3f}%)"
        )
    if asked.rate is not None or asked.progress_s or asked.latency_limit_ms is not None:
        yield from _latency("latency", counts.latency)
    else:
        average_us = outcome.duration_us * asked.clients / counts.all
        yield f"latency average = {average_us / 1000:.3f} ms" + (" (including failures)" if counts.failed > 0 else "")
    for percentile, latency_us in outcome.percentiles_us:
        yield f"latency p{percentile:g} = {latency_us / 1000:.3f} ms"
    if asked.rate is not None:
        average = f"{outcome.lag_sum_us / counts.done / 1000:.3f}" if counts.done else "NaN"  # as PostgreSQL prints 0/0
        yield f"rate limit schedule lag: avg {average} (max {outcome.lag_max_us / 1000:.3f}) ms"
    yield from _speed(asked, counts, outcome)
    yield from _scripts(asked, outcome)


def _parameters(asked: BenchOptions, tables: TableInfo, outcome: Outcome) -> Iterator[str]:
    yield f"transaction type: {_type(asked, outcome)}"
    yield f"scaling factor: {tables.scale}"
    if tables.partition_method is not None:
        yield f"partition method: {tables.partition_method}"
        yield f"partitions: {tables.partitions}"
    yield f"query mode: {asked.protocol}"
    yield f"number of clients: {asked.clients}"
    yield f"number of threads: {asked.threads}"
    if asked.max_tries:
        yield f"maximum number of tries: {asked.max_tries}"


def _type(asked: BenchOptions, outcome: Outcome) -> str:
    if asked.tpcc:
        return TPCC
    return outcome.scripts[0].description if len(outcome.scripts) == 1 else "multiple scripts"


def _failures(asked: BenchOptions, counts: Counts, prefix: str) -> Iterator[str]:
    def line(what: str, count: int) -> str:
        return f"{prefix}{what}: {count} ({_percent(count, counts.all):.3f}%)"

    yield line("failed transactions", counts.failed)
    if asked.failures_detailed:
        yield line("serialization failures", counts.serialization_failures)
        yield line("deadlock failures", counts.deadlock_failures)
        if asked.continue_on_error:
            yield line("other failures", counts.other_failures)
    if asked.max_tries != 1:
        yield line("transactions retried", counts.retried)
        yield f"{prefix.removesuffix('number of ')}total number of retries: {counts.retries}"
    if asked.rate is not None and asked.latency_limit_ms is not None:
        yield line("transactions skipped", counts.skipped)


def _speed(asked: BenchOptions, counts: Counts, outcome: Outcome) -> Iterator[str]:
    tps = counts.done / (outcome.duration_us / 1e6)
    if asked.connect:
        attempts = counts.done + counts.failed
        average_us = outcome.connecting_us / attempts if attempts else 0.0
        yield f"average connection time = {average_us / 1000:.3f} ms"
        yield f"tps = {tps:.6f} (including reconnection times)"
    else:
        yield f"initial connection time = {outcome.connecting_us / 1000:.3f} ms"
        yield f"tps = {tps:.6f} (without initial connection time)"


def _scripts(asked: BenchOptions, outcome: Outcome) -> Iterator[str]:
    several = len(outcome.scripts) > 1
    weights = sum(script.weight for script in outcome.scripts)
    for number, script in enumerate(outcome.scripts, start=1):
        if several:
            yield from _script(asked, outcome, number, script, weights)
        if asked.report_per_command:
            yield from _commands(asked, script, " - " if several else "")


def _script(asked: BenchOptions, outcome: Outcome, number: int, script: ScriptOutcome, weights: int) -> Iterator[str]:
    counts = script.counts
    yield f"SQL script {number}: {script.description}"
    yield f" - weight: {script.weight} (targets {_percent(script.weight, weights):.1f}% of total)"
    yield f" - {counts.all} transactions ({_percent(counts.all, outcome.total.all):.1f}% of total)"
    if counts.all > 0:
        tps = counts.done / (outcome.duration_us / 1e6)
        yield f" - number of transactions actually processed: {counts.done} (tps = {tps:.6f})"
        yield from _failures(asked, counts, " - number of ")
        if counts.rolled_back:
            yield (
                f" - number of transactions rolled back on purpose: {counts.rolled_back} "
                f"({_percent(counts.rolled_back, counts.done):.3f}%)"
            )
    yield from _latency(" - latency", counts.latency)


def _commands(asked: BenchOptions, script: ScriptOutcome, prefix: str) -> Iterator[str]:
    shown = " and failures" if asked.max_tries == 1 else ", failures and retries"
    yield f"{prefix}statement latencies in milliseconds{shown}:"
    for command in script.commands:
        retries = "" if asked.max_tries == 1 else f" {command.retries:>10}"
        yield f"   {command.latency.mean_us / 1000:11.3f}  {command.failures:>10}{retries} {command.text}"


def _latency(prefix: str, latency: Latency) -> Iterator[str]:
    if latency.count:
        yield f"{prefix} average = {latency.mean_us / 1000:.3f} ms"
        yield f"{prefix} stddev = {latency.stddev_us / 1000:.3f} ms"


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0
