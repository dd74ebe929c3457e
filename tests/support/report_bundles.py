"""Synthetic bundles for tests of the report: invented figures of an invented machine, never to be quoted.

The shape is real: variants and order come from the planner, sources and metrics are those of plinth.observe.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from plinth.model.base import Gap
from plinth.model.contents import BundleContents, TrialContents
from plinth.model.experiment import Experiment
from plinth.model.facts import Fact, HostFacts, Installation, ServerFacts, Setting, StackNode, StorageFacts
from plinth.model.load import EngineCost, Histogram, LoadError, ScriptTotals, Second, Totals
from plinth.model.manifest import Manifest
from plinth.model.plan import PRIMARY, Plan, PlannedCluster, PlannedNode, PlannedTrial, ScriptText, Variant
from plinth.model.probe_io import IoJob, IoMoment, IoProbe, IoResult, IoSide, StorageIo
from plinth.model.published import PublishedFact, PublishedFigure, PublishedIo, PublishedRatio, Reference
from plinth.model.step import Step
from plinth.model.trial import Check, DeviceIo, Event, Sample, Trial
from plinth.plan.order import order_trials
from plinth.plan.variants import expand
from plinth.probe.io_jobs import shapes
from ramdisk_experiment import ramdisk_text
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

ASKED_OF_TWO = "How much faster is PostgreSQL with its data directory in memory than on this machine's disk?"
ASKED_OF_MANY = "Which commit delay suits this machine's disk, and does it matter in memory?"
RAMDISK = ramdisk_text(
    name="synthetic-ramdisk",
    question=ASKED_OF_TWO,
    scale=10,
    workload="clients = 8\n",
    rest="""\
[measure]
warmup = "{warmup}s"
duration = "{seconds}s"
repeats = {repeats}

[drive]
tbw = "600TB"
""",
)
MANY = (
    RAMDISK.replace("synthetic-ramdisk", "synthetic-many")
    .replace(ASKED_OF_TWO, ASKED_OF_MANY)
    .replace("[measure]", '"server.settings.commit_delay" = {delays}\n\n[measure]\naa = false')
)


@dataclass(frozen=True)
class Pace:
    """How the invented machine does on a storage."""

    tps: float
    noise: float
    write_share: float


PACES = {"disk": Pace(1240.0, 0.05, 1.0), "memory": Pace(3890.0, 0.03, 0.0)}


def ramdisk(*, repeats: int = 5, seconds: int = 30, trouble: bool = False) -> BundleContents:
    """Two storages and the A/A twin. With `trouble` one trial failed, one is excluded, and a source has a gap."""
    contents = synthetic(RAMDISK.format(warmup=5, seconds=seconds, repeats=repeats))
    return with_trouble(contents) if trouble else contents


def many(*, variants: int = 60, repeats: int = 5, seconds: int = 60) -> BundleContents:
    """`variants` variants, half of them in memory."""
    delays = [100 * step for step in range(variants // 2)]
    return synthetic(MANY.format(warmup=5, seconds=seconds, repeats=repeats, delays=delays))


def with_reference(contents: BundleContents, reference: Reference | None = None) -> BundleContents:
    """The same run, whose experiment names published results: by default all forms that these have."""
    plan = contents.plan.model_copy(update={"reference": reference or published()})
    return replace(contents, plan=plan)


def with_types(contents: BundleContents) -> BundleContents:
    """The same run, of a workload of two types of transactions: nine lookups to a transfer, of which some were retried."""
    scripts = (ScriptText(name="lookup", source="", weight=9), ScriptText(name="transfer", source=""))
    variants = tuple(variant.model_copy(update={"scripts": scripts}) for variant in contents.plan.variants)
    plan = contents.plan.model_copy(update={"variants": variants})
    return replace(contents, plan=plan, trials=tuple(map(_of_two_types, contents.trials)))


def _of_two_types(contents: TrialContents) -> TrialContents:
    whole = next(one for one in contents.histograms if one.scope == "transaction")
    others = tuple(one for one in contents.histograms if one.scope != "transaction")
    transfers = whole.count // 10
    rng = np.random.default_rng(contents.trial.number)
    parts = [
        _histogram(rng, done, whole.sum_ns / whole.count * pace, "transaction", None, None, None).model_copy(
            update={"script": name}
        )
        for name, done, pace in (("lookup", whole.count - transfers, 0.7), ("transfer", transfers, 3.0))
    ]
    outcomes = tuple(
        ScriptTotals(
            name=str(part.script),
            weight=weight,
            measured=Totals(
                scheduled=part.count,
                done=part.count,
                failed=0,
                skipped=0,
                open=0,
                retries=2 * retried,
                retried=retried,
            ),
        )
        for part, weight, retried in zip(parts, (9, 1), (0, 1234), strict=True)
    )
    trial = contents.trial.model_copy(update={"scripts": outcomes})
    return replace(contents, trial=trial, histograms=(*parts, *others))


def with_io(contents: BundleContents) -> BundleContents:
    """The same run, in which the I/O probe ran on the disk, twice and with a job that failed; in memory there was no fio."""
    jobs = shapes(1, ("sequential", "depth_128", "positions"))

    def side(iops: float, block_bytes: int | None) -> IoSide:
        percentiles = {"50": 2_000_000, "99": 9_000_000}
        rate = iops * (block_bytes or 0)
        return IoSide(ios=9, iops=iops, bytes_per_s=rate, min_ns=1, mean_ns=2, max_ns=3, percentiles_ns=percentiles)

    def result(job: IoJob, iops: float) -> IoResult:
        if job.name == "sequential write, direct":
            return IoResult(job=job, unavailable="Invalid argument")
        write = "write" in job.parameters["rw"]
        return IoResult(job=job, **{"write" if write else "read": side(iops, job.block_bytes)})

    def probe(moment: IoMoment, iops: float) -> StorageIo:
        made = IoProbe(
            path="/srv/test/disk",
            facts=disk(),
            fio_version="fio-3.33",
            file_bytes=2**28,
            duration_s=1,
            kind="shapes",
            results=tuple(result(job, iops) for job in jobs),
        )
        return StorageIo(storage="disk", moment=moment, probe=made)

    absent = StorageIo(storage="memory", moment="empty", probe=None, unavailable="fio is not installed")
    return replace(contents, io=(probe("empty", 12_000), absent, probe("measured", 6_000)))


def published() -> Reference:
    """An invented study of disk, memory and a tape that this run has not."""
    return Reference(
        spec=1,
        title="Disk, memory and tape",
        source="An invented study, 1999",
        url="https://example.invalid/study",
        date="1999",
        machine="An abacus | of wood",
        conditions="Twelve beads",
        figure=(
            PublishedFigure(levels={"storage": "disk"}, tps=200, latency_mean_ns=40_000_000),
            PublishedFigure(levels={"storage": "memory"}, tps=1800, latency_mean_ns=4_000_000, note="in a hurry"),
            PublishedFigure(levels={"storage": "tape"}, tps=2),
            PublishedFigure(levels={"storage": "disk", "workload.builtin": "select-only"}, tps=90_000),
        ),
        ratio=(
            PublishedRatio(
                what="memory beside disk", levels={"storage": "memory"}, to={"storage": "disk"}, low=2, high=4
            ),
        ),
        fact=(
            PublishedFact(what="fsync", value=778, unit="per s"),
            PublishedFact(
                what="dd to the disk",
                value=52,
                unit="MB/s",
                measured_by=PublishedIo(
                    storage="disk", job="sequential write, buffered", side="write", figure="bytes_per_s", per_unit=1e6
                ),
            ),
        ),
        finding=("Tape tears.",),
    )


def with_trouble(contents: BundleContents) -> BundleContents:
    """The same run on a bad day."""
    trials = list(contents.trials)
    failure = "the server ended in mid-trial: signal 9 (killed)"
    failed = trials[3].trial.model_copy(
        update={"status": "failed", "failure": failure, "tps": None, "measured": None, "totals": None}
    )
    trials[3] = replace(trials[3], trial=failed, histograms=(), series=trials[3].series[:11])
    lag = "the load engine's own delay was 120 ms at p99: the client was the limit"
    trials[6] = replace(trials[6], trial=trials[6].trial.model_copy(update={"excluded": lag}))
    gap = Gap(what="pg_wait", reason="permission denied for view pg_stat_activity")
    error = LoadError(
        kind="sql",
        sqlstate="40001",
        script="tpcb-like",
        statement=2,
        line=6,
        message="could not serialize access due to concurrent update",
        count=17,
        first_ns=3 * SECOND_NS,
    )
    check = Check(name="commits by pg_stat_database", expected="41,233", got="41,230", ok=False)
    quiet = trials[0]
    trials[0] = replace(
        quiet,
        trial=quiet.trial.model_copy(update={"gaps": (gap,), "errors": (error,), "checks": (check,)}),
        read_samples=lambda: {key: points for key, points in quiet.read_samples().items() if key[0] != "pg_wait"},
    )
    return replace(contents, trials=tuple(trials))


def synthetic(toml: str) -> BundleContents:
    """A run of this experiment on the invented machine."""
    experiment = Experiment.model_validate(tomllib.loads(toml), by_alias=True, by_name=False)
    variants, keys, storages = expand(
        experiment, lambda workload, dataset: (ScriptText(name="tpcb-like", source="-- synthetic"),)
    )
    order = order_trials(variants, experiment.measure)
    installation = Installation(bindir="/usr/lib/postgresql/18/bin", version="18.6", major=18, origin="test")
    clusters = tuple(
        PlannedCluster(
            id=key.id,
            nodes=(PlannedNode(name=PRIMARY, server=key.server),),
            dataset=key.dataset,
            installation=installation,
            data_bytes=420 * 2**20,
        )
        for key in keys
    )
    plan = Plan(
        run_id="20251009-085320-test",
        experiment=experiment,
        host=host(),
        storages=storages,
        clusters=clusters,
        variants=tuple(variants),
        trials=tuple(order),
        steps=tuple(_steps(clusters)),
        needs=(),
        estimated_s=len(order) * 40.0,
    )
    storage_of = {cluster.id: str(cluster.primary.server.storage) for cluster in clusters}
    by_id = {variant.id: variant for variant in variants}
    return BundleContents(
        path="bundles/20251009-085320-test",
        manifest=Manifest(
            plinth_version="0.0.0+test",
            run_id=plan.run_id,
            experiment=experiment.name,
            created_unix_ns=STARTED_UNIX_NS,
            ended_unix_ns=STARTED_UNIX_NS + 180 * SECOND_NS,
            status="complete",
        ),
        experiment_toml=toml,
        plan=plan,
        host=host(),
        storages={"disk": disk(), "memory": memory()},
        servers={variant.id: _server(variant, installation) for variant in variants},
        trials=tuple(_trial(trial, by_id[trial.variant], storage_of, experiment) for trial in order),
    )


def _steps(clusters: tuple[PlannedCluster, ...]) -> Iterator[Step]:
    for cluster in clusters:
        data = f"/srv/test/{cluster.primary.server.storage}/data"
        argv = ("/usr/lib/postgresql/18/bin/initdb", "-D", data, "--data-checksums")
        yield Step(
            id=f"server.{cluster.id_of(cluster.primary)}.initdb",
            title=f"make a cluster in {data}",
            argv=argv,
            user="postgres",
        )
        yield Step(id=f"dataset.{cluster.id}.load", title="load tpcb, scale 10")


def host() -> HostFacts:
    """The invented machine."""
    facts = (
        Fact(name="governor", value="performance", source="/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        Fact(name="transparent_hugepage", value="madvise", source="/sys/kernel/mm/transparent_hugepage/enabled"),
        Fact(name="swap_total_bytes", value=0, source="/proc/meminfo"),
    )
    return HostFacts(
        cores=CORES,
        memory_total_bytes=24 * 2**30,
        memory_available_bytes=20 * 2**30,
        is_root=True,
        can_mount=True,
        kernel="6.1.0-test",
        os="Test Linux 12",
        cpu_model="Synthetic CPU @ 2.60GHz",
        facts=facts,
        gaps=(Gap(what="clocksource", reason="/sys/devices/system/clocksource: No such file or directory"),),
    )


def disk() -> StorageFacts:
    """A directory on ext4 on a partition of a disk."""
    return StorageFacts(
        name="disk",
        kind="directory",
        path="/srv/test/disk",
        filesystem="ext4",
        mount_options=("rw", "relatime"),
        total_bytes=250 * 2**30,
        free_bytes=60 * 2**30,
        volatile=False,
        block_devices=("testdisk0p1", DEVICE),
        stack=(
            StackNode(
                kind="mount",
                name="/srv",
                facts=(Fact(name="options", value=["rw", "relatime"], source="/proc/self/mountinfo"),),
            ),
            StackNode(
                kind="filesystem", name="ext4", facts=(Fact(name="block_bytes", value=4096, source="statvfs(3)"),)
            ),
            StackNode(
                kind="partition",
                name="testdisk0p1",
                depth=2,
                facts=(Fact(name="size_bytes", value=250 * 2**30, source="/sys/class/block/testdisk0p1/size"),),
            ),
            StackNode(
                kind="disk",
                name=DEVICE,
                depth=3,
                facts=(
                    Fact(name="model", value="Synthetic SSD 250", source="/sys/block/testdisk0/device/model"),
                    Fact(name="write_cache", value="write back", source="/sys/block/testdisk0/queue/write_cache"),
                    Fact(name="scheduler", value="none", source="/sys/block/testdisk0/queue/scheduler"),
                    Fact(name="rotational", value=False, source="/sys/block/testdisk0/queue/rotational"),
                ),
            ),
        ),
        gaps=(Gap(what="firmware of testdisk0", reason="/sys/block/testdisk0/device/firmware_rev: No such file"),),
    )


def memory() -> StorageFacts:
    """A tmpfs."""
    options = Fact(name="options", value=["rw", "size=2097152k"], source="/proc/self/mountinfo")
    return StorageFacts(
        name="memory",
        kind="tmpfs",
        path="/srv/test/memory",
        filesystem="tmpfs",
        mount_options=("rw", "size=2097152k"),
        total_bytes=2 * 2**30,
        free_bytes=2 * 2**30,
        volatile=True,
        volatile_reason="tmpfs on /srv/test/memory keeps its files in memory",
        stack=(
            StackNode(kind="mount", name="/srv/test/memory", facts=(options,)),
            StackNode(kind="filesystem", name="tmpfs"),
            StackNode(kind="memory", name="memory"),
        ),
    )


def _server(variant: Variant, installation: Installation) -> ServerFacts:
    asked = {name: str(value) for name, value in variant.settings.items()}
    settings = [
        Setting(name="fsync", asked=None, value="on", unit=None, source="default", boot_value="on"),
        Setting(
            name="shared_buffers",
            asked=None,
            value="16384",
            unit="8kB",
            source="configuration file",
            boot_value="16384",
        ),
        Setting(
            name="max_wal_size", asked=None, value="1024", unit="MB", source="configuration file", boot_value="1024"
        ),
    ]
    settings += [
        Setting(name=name, asked=value, value=value, unit="us", source="configuration file", boot_value="0")
        for name, value in asked.items()
    ]
    return ServerFacts(
        version="18.6",
        version_num=180006,
        installation=installation,
        run_as="postgres",
        run_as_reason="started as root, which PostgreSQL refuses to run as",
        data_directory=f"/srv/test/{variant.levels['storage']}/data",
        data_checksums=True,
        settings=tuple(settings),
    )


def _trial(
    planned: PlannedTrial, variant: Variant, storage_of: dict[str, str], experiment: Experiment
) -> TrialContents:
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
        read_samples=lambda: by_metric(_samples(np.random.default_rng(seed), pace, series)),
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
    yield _histogram(rng, done, mean_ns, "transaction", None, None, None)
    for place, (line, text, share) in enumerate(STATEMENTS):
        yield _histogram(rng, done, mean_ns * share, "statement", place, line, text)


def _histogram(
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
