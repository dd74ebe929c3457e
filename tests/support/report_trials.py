"""The trials of synthetic bundles: seconds, histograms, samples and devices, drawn from a seed."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from plinth.model.contents import TrialContents
from plinth.model.experiment import Experiment
from plinth.model.load import EngineCost, Histogram, Second, Totals
from plinth.model.plan import PlannedTrial, Variant
from plinth.model.trial import Check, DeviceIo, Event, Sample, Trial
from sampled import by_metric

SECOND_NS = 1_000_000_000
STARTED_UNIX_NS = 1_760_000_000 * SECOND_NS
CORES = 2
CLIENTS = 8
DEVICE = "testdisk0"
STATEMENTS = (
    (4, "UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;", 0.16),
    (5, "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;", 0.05),
    (6, "UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;", 0.08),
    (7, "UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;", 0.11),
    (9, "END;", 0.6),
)


@dataclass(frozen=True)
class Pace:
    """How the invented machine does on a storage."""

    tps: float
    noise: float
    write_share: float


PACES = {"disk": Pace(1240.0, 0.05, 1.0), "memory": Pace(3890.0, 0.03, 0.0)}


def invented_trial(
    planned: PlannedTrial, variant: Variant, storage_of: dict[str, str], experiment: Experiment
) -> TrialContents:
    """The same one for the same number and seed."""
    rng = np.random.default_rng((planned.number, experiment.measure.seed))
    pace = PACES[storage_of[variant.cluster]]
    warmup, measured = int(experiment.measure.warmup_s), int(experiment.measure.duration_s)
    series = tuple(_series(rng, pace, warmup, measured))
    histograms = tuple(_histograms(rng, series))
    done = sum(second.done for second in series if second.phase == "measure")
    totals = Totals(scheduled=done + CLIENTS, done=done, failed=0, skipped=0, open=CLIENTS, retries=0, retried=0)
    trial = Trial(
        number=planned.number,
        block=planned.block,
        variant=variant.id,
        status="complete",
        started_unix_ns=STARTED_UNIX_NS + planned.number * (warmup + measured + 5) * SECOND_NS,
        connect_ns=4_000_000,
        warmup_ns=warmup * SECOND_NS,
        measured_ns=measured * SECOND_NS,
        totals=totals,
        measured=totals,
        tps=done / measured,
        engine=EngineCost(
            user_cpu_ns=done * 14_000,
            system_cpu_ns=done * 9_000,
            loop_lag_p99_ns=80_000,
            bytes_sent=done * 400,
            bytes_received=done * 700,
            threads=1,
            server_version="18.6",
        ),
        checks=(Check(name="commits by pg_stat_database", expected=f"{done:,}", got=f"{done:,}", ok=True),),
        devices=tuple(_devices(done, pace)),
    )
    checkpoint_ns = (warmup + measured // 2) * SECOND_NS
    events = (
        Event(t_ns=checkpoint_ns, kind="checkpoint_start", text="checkpoint starting: time"),
        Event(
            t_ns=checkpoint_ns + 4 * SECOND_NS, kind="checkpoint_end", text="checkpoint complete: wrote 4096 buffers"
        ),
    )
    seed = planned.number
    return TrialContents(
        trial=trial,
        series=series,
        histograms=histograms,
        events=events,
        read_samples=cache(lambda: by_metric(_samples(np.random.default_rng(seed), pace, series))),
    )


def _devices(done: int, pace: Pace) -> Iterator[DeviceIo]:
    for device in ("testdisk0p1", DEVICE) if pace.write_share else ():
        yield DeviceIo(
            device=device,
            roles=("data",),
            reads=60,
            read_bytes=491_520,
            writes=done,
            written_bytes=done * 14_000,
            flushes=None if device != DEVICE else round(0.6 * done),
        )


def _series(rng: np.random.Generator, pace: Pace, warmup: int, measured: int) -> Iterator[Second]:
    drift = 0.0
    of_trial = rng.normal(0, pace.noise / 2)
    for second in range(warmup + measured):
        drift = 0.6 * drift + rng.normal(0, pace.noise)
        dip = 0.75 if warmup + measured // 2 <= second < warmup + measured // 2 + 4 else 1.0
        done = max(1, round(pace.tps * dip * (1 + of_trial + drift) * min(1.0, 0.5 + second / 4)))
        mean_ns = CLIENTS * SECOND_NS / done
        yield Second(
            second=second,
            phase="warmup" if second < warmup else "measure",
            t_ns=second * SECOND_NS,
            length_ns=SECOND_NS,
            done=done,
            failed=0,
            retried=0,
            latency_mean_ns=mean_ns,
            latency_p50_ns=round(mean_ns * 0.8),
            latency_p95_ns=round(mean_ns * 2.1 / dip),
            latency_p99_ns=round(mean_ns * 4.2 / dip**3),
            latency_max_ns=round(mean_ns * 19),
        )


def _histograms(rng: np.random.Generator, series: tuple[Second, ...]) -> Iterator[Histogram]:
    done = sum(second.done for second in series if second.phase == "measure")
    mean_ns = CLIENTS * sum(second.length_ns for second in series if second.phase == "measure") / done
    yield histogram(rng, done, mean_ns, "transaction", None, None, None)
    for place, (line, text, share) in enumerate(STATEMENTS):
        yield histogram(rng, done, mean_ns * share, "statement", place, line, text)


def histogram(
    rng: np.random.Generator,
    count: int,
    mean_ns: float,
    scope: str,
    statement: int | None,
    line: int | None,
    text: str | None,
) -> Histogram:
    latency_us = np.maximum(1, rng.lognormal(np.log(mean_ns / 1000 * 0.8), 0.55, count)).astype(np.int64)
    shift = np.maximum(0, np.ceil(np.log2(latency_us + 1)).astype(np.int64) - 11)
    highest_ns = ((((latency_us >> shift) + 1) << shift) - 1) * 1000
    values, counts = np.unique(highest_ns, return_counts=True)
    return Histogram.model_validate(
        {
            "scope": scope,
            "script": "tpcb-like",
            "statement": statement,
            "line": line,
            "text": text,
            "count": count,
            "sum_ns": int(latency_us.sum()) * 1000,
            "min_ns": int(values[0]),
            "max_ns": int(values[-1]),
            "buckets": tuple(zip(values.tolist(), counts.tolist(), strict=True)),
        }
    )


def _samples(rng: np.random.Generator, pace: Pace, series: tuple[Second, ...]) -> Iterator[Sample]:
    """Counters grow from somewhere; gauges are of the moment. One tick before the load, one after each second."""
    counters: dict[tuple[str, str, str], float] = {}
    for tick in range(len(series) + 1):
        tps = float(series[tick - 1].done) if tick else 0.0
        t_ns = tick * SECOND_NS + int(rng.normal(0, 2_000_000))
        for key, rate in _rates(tps, pace).items():
            counters[key] = counters.get(key, 1000.0) + max(0.0, rate * (1 + rng.normal(0, 0.05)))
            yield Sample(t_ns, *key, counters[key])
        for key, level in _levels(tps, tick, pace).items():
            yield Sample(t_ns, *key, max(0.0, level * (1 + rng.normal(0, 0.08))))


def _rates(tps: float, pace: Pace) -> dict[tuple[str, str, str], float]:
    busy = min(1.0, tps / 4200)
    groups = {
        "backends": 0.9 * busy,
        "checkpointer": 0.03,
        "background writer": 0.005,
        "walwriter": 0.02,
        "autovacuum": 0.01,
        "io workers": 0.04 * pace.write_share,
        "other postgres": 0.002,
        "load engine": 0.35 * busy,
        "rest of host": 0.08,
    }
    host_cpu = {"user_s": 1.0 * busy, "system_s": 0.5 * busy, "iowait_s": 0.3 * pace.write_share, "steal_s": 0.01}
    device = {
        "writes": tps * 1.2 * pace.write_share + 3,
        "write_bytes": tps * 14_000 * pace.write_share + 20_000,
        "reads": 2.0,
        "read_bytes": 16_384.0,
        "flushes": tps * 0.6 * pace.write_share,
        "io_time_s": min(0.8, tps / 1600) * pace.write_share,
    }
    return (
        {("host_cpu", "all", metric): rate for metric, rate in host_cpu.items()}
        | {("process_cpu", group, "user_s"): rate * 0.7 for group, rate in groups.items()}
        | {("process_cpu", group, "system_s"): rate * 0.3 for group, rate in groups.items()}
        | {
            ("device", device_name, metric): rate
            for metric, rate in device.items()
            for device_name in ("testdisk0p1", DEVICE)
        }
        | {
            ("pg_io", "client backend/wal/normal", "write_bytes"): tps * 9000.0,
            ("pg_io", "checkpointer/relation/normal", "write_bytes"): tps * 2500.0,
        }
        | {("pg_wal", "all", "insert_lsn_bytes"): tps * 2600.0, ("host", "all", "context_switches"): tps * 11}
    )


def _levels(tps: float, tick: int, pace: Pace) -> dict[tuple[str, str, str], float]:
    waits = {
        "CPU": 1.6,
        "IO:WalSync": 4.1 * pace.write_share,
        "LWLock:WALWrite": 1.3 * pace.write_share,
        "Lock:transactionid": 0.6,
        "Lock:tuple": 0.2,
        "Client:ClientRead": 0.5,
        "LWLock:BufferContent": 0.1,
        "IO:DataFileRead": 0.1 * pace.write_share,
        "IO:DataFileWrite": 0.05 * pace.write_share,
    }
    active = sum(waits.values())
    return {("pg_wait", f"client backend/{event}", "backends"): count for event, count in waits.items()} | {
        ("pg_wait", "checkpointer/Timeout:CheckpointWriteDelay", "backends"): 0.3,
        ("pg_wait", "all", "active"): active,
        ("pg_wait", "all", "idle"): max(0.0, CLIENTS - active),
        ("pg_wait", "all", "idle_in_transaction"): 0.1,
        ("pg_wait", "all", "looks"): 10.0,
        ("host_memory", "all", "dirty_bytes"): 4e6 + 9e5 * (tick % 30) * pace.write_share,
        ("host_memory", "all", "writeback_bytes"): 2e5 * pace.write_share,
        ("host_memory", "all", "free_bytes"): 9e9,
    }
