"""Synthetic bundles for tests of the report: invented figures of an invented machine, never to be quoted.

The shape is real: variants and order come from the planner, sources and metrics are those of plinth.observe.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from plinth.model.base import Gap
from plinth.model.contents import BundleContents, TrialContents
from plinth.model.experiment import Experiment
from plinth.model.facts import Fact, HostFacts, Installation, ServerFacts, Setting, StackNode, StorageFacts
from plinth.model.load import LoadError, ScriptTotals, Totals
from plinth.model.manifest import Manifest
from plinth.model.plan import PRIMARY, Plan, PlannedCluster, PlannedNode, ScriptText, Variant
from plinth.model.probe_io import IoJob, IoMoment, IoProbe, IoResult, IoSide, StorageIo
from plinth.model.published import PublishedFact, PublishedFigure, PublishedIo, PublishedRatio, Reference
from plinth.model.step import Step
from plinth.model.trial import Check
from plinth.plan.order import order_trials
from plinth.plan.variants import expand
from plinth.probe.io_jobs import shapes
from ramdisk_experiment import ramdisk_text
from report_trials import CORES, DEVICE, SECOND_NS, STARTED_UNIX_NS, histogram, invented_trial

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
        histogram(rng, done, whole.sum_ns / whole.count * pace, "transaction", None, None, None).model_copy(
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
        done = side(iops, job.block_bytes)
        return IoResult(job=job, write=done) if "write" in job.parameters["rw"] else IoResult(job=job, read=done)

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
            PublishedFigure.model_validate({"levels": {"storage": "disk"}, "tps": 200, "latency_mean_ns": 40_000_000}),
            PublishedFigure.model_validate(
                {"levels": {"storage": "memory"}, "tps": 1800, "latency_mean_ns": 4_000_000, "note": "in a hurry"}
            ),
            PublishedFigure(levels={"storage": "tape"}, tps=2),
            PublishedFigure(levels={"storage": "disk", "workload.builtin": "select-only"}, tps=90_000),
        ),
        ratio=(
            PublishedRatio(
                what="memory against disk", levels={"storage": "memory"}, to={"storage": "disk"}, low=2, high=4
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
        trials=tuple(invented_trial(trial, by_id[trial.variant], storage_of, experiment) for trial in order),
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
