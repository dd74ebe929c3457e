"""Forecasts throughput and p99 latency of a measured variant on another drive.

In a closed loop a transaction takes clients / tps on the mean (Little's law). The wait profile says what that time goes to, and each part
changes with the drive in its own way:

- waits for a WAL flush, by the time of a write and a flush of both drives: whoever waits for the flush of others waits one to two of them,
  however many share it;
- waits for reads and writes of data, by the times of random ones;
- waits for locks as all the rest: most are held until a commit has been flushed;
- work and turns of the client not at all, but for the queue for processors: work / (1 - utilisation^cores), the response time of an
  M/M/c queue (Gunther, Analyzing Computer System Performance with Perl::PDQ, 2011; exact for one and two).

The rates of a drive bound the result, and of one with a head the time that it takes to reach another place, which is the shorter the
more requests the drive can choose from. What a transaction reads and writes stays the same, but for its WAL: the more wait for a flush
the more share it. Nothing else is modelled: neither the queue of a drive below its limits, nor a larger page cache.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from plinth.analyse.attribution import ClientStates, client_states
from plinth.analyse.ceiling import figure_of
from plinth.analyse.machine_cpu import machine_cpu
from plinth.analyse.trials import JudgedTrial, Measured, judge_trials
from plinth.model.bottleneck import BottleneckKind
from plinth.model.choices import DEFAULT_METHOD
from plinth.model.contents import BundleContents
from plinth.model.disk import DiskProfile
from plinth.model.errors import UsageError
from plinth.model.figures import Estimate, Interval
from plinth.model.forecast import DriveForecast, Forecast, Limit
from plinth.model.plan import Variant
from plinth.model.storage import EmulatedStorage
from plinth.model.write_facts import settings_in_force, value_in_force

_LEVEL = 0.9
_Z = 1.645
"""Half the width of a 90 % interval, in standard deviations of a normal distribution."""
_ERROR = 0.08
_ERROR_OF_WRITES = 0.25
_ERROR_PER_E_FOLD = 0.08
"""Standard deviation of the logarithm of what was measured over what was forecast: of a load that only reads, what is added to it for
one that waits for nothing but flushes and writes, and for each factor of e between the drives: docs/guides/forecast.md has the measurement."""
_P99_ERROR = 2.0
"""The same of p99, in parts of that of throughput."""
_LEAST_NS = 5_000.0
"""That a request takes in the kernel, however fast the drive is."""
_FAR = 100.0
"""Times slower or faster, from which on a forecast is called an extrapolation."""
_AT_LIMIT = 0.95
"""Share of a limit of the drive from which on what was waited for is the limit."""
_MOST_FLUSHES = 6.0
"""Flushes that a client waits for at most, below the limits of a drive: those of others and its own, and those that a checkpoint delays."""
_WRITES_JOURNAL = ("fsync", "fsync_writethrough", "open_sync")
"""Values of wal_sync_method by which each flush writes the file system's journal too, at another place of the drive."""
_MOST_BUSY = 0.9
"""Utilisation of the processors that no forecast goes beyond."""
_GAIN_OF_DOUBLING = 0.25
"""How much faster a head becomes with each doubling of the requests that wait for it: the same as of the emulated disk (head.rs)."""
_HALVINGS = 60
_REFUSED: frozenset[BottleneckKind] = frozenset(
    [
        *("server CPU", "other processes", "locks", "replication", "network"),
        *("load engine", "client limit", "none found", "not known"),
    ]
)
"""Bottlenecks that no drive explains."""


@dataclass(frozen=True)
class Drive:
    """The speed of a drive: times of single requests in ns, rates a second (infinite: no limit)."""

    name: str
    random_read_ns: float
    random_write_ns: float
    log_write_ns: float
    iops: float = math.inf
    read_iops: float = math.inf
    write_iops: float = math.inf
    bytes_per_s: float = math.inf
    read_bytes_per_s: float = math.inf
    write_bytes_per_s: float = math.inf
    read_seek_ns: float = 0.0
    """Of a drive with a head: how long it is busy with a read anywhere on it; 0 without a head."""
    write_seek_ns: float = 0.0
    """The same of a write, which it takes from its cache in the order of their places, and of a read of data that lie close together."""
    burst: str | None = None
    """What it does beyond that as long as it has credits, for people."""

    def slower_by(self, overhead_ns: float) -> "Drive":
        """Return the drive with what the kernel takes for each request; a flush after a write is a second one."""
        return replace(
            self,
            random_read_ns=self.random_read_ns + overhead_ns,
            random_write_ns=self.random_write_ns + overhead_ns,
            log_write_ns=self.log_write_ns + 2 * overhead_ns,
        )


@dataclass(frozen=True)
class Demand:
    """What was measured of a transaction: the parts of its time, in ns, and what it asks of processors and drive."""

    clients: int
    tps: float
    tps_error: float
    """Standard deviation of its logarithm."""
    p99_ns: float | None
    work_ns: float
    flush_ns: float
    read_ns: float
    write_ns: float
    lock_ns: float
    cpu_s: float
    cores: int
    reads: float
    writes: float
    flushes: float
    read_bytes: float
    write_bytes: float
    sync_method: str = DEFAULT_METHOD
    """wal_sync_method."""

    @property
    def parts(self) -> dict[str, float]:
        """The fractions of its time, by what it was spent on."""
        each = {
            "CPU and turns of the client": self.work_ns,
            "WAL flush": self.flush_ns,
            "reads": self.read_ns,
            "writes": self.write_ns,
            "locks": self.lock_ns,
        }
        total = sum(each.values())
        return {name: value / total for name, value in each.items()}


def drive_of(profile: DiskProfile) -> Drive:
    """Return the speed of a profile in the long run: without credits."""
    physics = profile.physics
    half_turn_ns = 30e9 / physics.rpm if physics.rpm else 0.0
    burst = None
    if physics.iops_credits and physics.burst_iops and physics.iops:
        minutes = physics.iops_credits / (physics.burst_iops - physics.iops) / 60
        burst = f"up to {physics.burst_iops:,} requests a second for {minutes:.0f} min, while it has credits"
    speed = profile.depth_one
    return Drive(
        name=profile.name,
        random_read_ns=speed.random_read_ns,
        random_write_ns=speed.random_write_ns,
        log_write_ns=speed.log_write_ns,
        iops=_limit(physics.iops),
        read_iops=_limit(physics.read_iops),
        write_iops=_limit(physics.write_iops),
        bytes_per_s=_limit(physics.bytes_per_s),
        read_bytes_per_s=_limit(physics.read_bytes_per_s),
        write_bytes_per_s=_limit(physics.write_bytes_per_s),
        read_seek_ns=half_turn_ns + (physics.average_seek_ns or 0) if half_turn_ns else 0.0,
        write_seek_ns=half_turn_ns + (physics.track_seek_ns or 0) if half_turn_ns else 0.0,
        burst=burst,
    )


def forecast(
    contents: BundleContents,
    profiles: Mapping[str, DiskProfile],
    asked: tuple[str, ...],
    variant: str | None = None,
) -> Forecast:
    """Return the forecast of a variant, by its label or id (default: the baseline), on each profile that is asked for.

    Raises UsageError where the run has not what a forecast needs, and for names that there are not.
    """
    measured = _measured(contents, variant)
    here, overhead_ns = _drive_here(contents, measured, profiles)
    demand = _demand(contents, measured)
    if (limited := at_its_limit(demand, here)) is not None:
        raise UsageError(
            f"no forecast of {measured.variant.label}: {limited}", hint="measure it on a drive below its limits"
        )
    tps = measured.tps(contents.plan.experiment.measure.seed)
    assert tps is not None
    return Forecast(
        run_id=contents.manifest.run_id,
        experiment=contents.plan.experiment.name,
        variant=measured.variant.label,
        measured_tps=tps,
        measured_p99_ns=None if demand.p99_ns is None else round(demand.p99_ns),
        clients=demand.clients,
        parts=demand.parts,
        drives=tuple(forecast_on(demand, here, drive_of(profiles[name]).slower_by(overhead_ns)) for name in asked),
    )


def at_its_limit(demand: Demand, here: Drive) -> str | None:
    """Return why the waits of the demand say nothing of another drive: they were for a limit of the one it was measured on."""
    for rate, need, limit in _needs(demand, here, demand.writes, demand.reads * here.read_seek_ns):
        if need * demand.tps > _AT_LIMIT * rate:
            return f"its drive was at the limit of its {limit}"
    waited = demand.flush_ns / here.log_write_ns
    if waited <= _MOST_FLUSHES or (here.read_seek_ns and demand.sync_method in _WRITES_JOURNAL):
        return None
    return f"its clients waited {waited:.0f} times as long as a flush takes: its drive was at its limit"


def forecast_on(demand: Demand, here: Drive, there: Drive) -> DriveForecast:
    """Return what transactions that were measured on the drive `here` would do on `there`."""
    moves_head = demand.sync_method in _WRITES_JOURNAL and demand.flush_ns > 0
    if moves_head and bool(here.read_seek_ns) != bool(there.read_seek_ns):
        reason = f"{demand.sync_method} moves the head of one of the two drives, which is not modelled"
        return DriveForecast(profile=there.name, unavailable=reason)
    ratios = {
        "reads": there.random_read_ns / here.random_read_ns,
        "writes": there.random_write_ns / here.random_write_ns,
        "WAL flush": there.log_write_ns / here.log_write_ns,
    }
    by_latency = _closed_loop(demand, ratios)
    caps = _caps(demand, there)
    limit: Limit
    cap, limit = min(caps, default=(math.inf, "latency"))
    tps = by_latency
    if cap < by_latency:
        tps = cap
    else:
        limit = "latency"
    # How far data that lie close together would be faster, if anything: the drive's size, and their place on it, are not known.
    closer = min(by_latency / tps, _closer(demand, there)) if limit == "seeks" else 1.0
    most = _MOST_BUSY * demand.cores / demand.cpu_s if demand.cpu_s else math.inf
    if tps >= most:
        reason = f"the processors would be the bottleneck, from about {most:,.0f} transactions/s up"
        return DriveForecast(profile=there.name, limit="CPU", unavailable=reason)
    change = abs(math.log(tps / demand.tps))
    of_writes = demand.parts["WAL flush"] + demand.parts["writes"]
    error = math.hypot(demand.tps_error, _ERROR + _ERROR_OF_WRITES * of_writes + _ERROR_PER_E_FOLD * change)
    p99 = None if demand.p99_ns is None else demand.p99_ns * demand.tps / tps
    spent = {"reads": demand.read_ns, "writes": demand.write_ns, "WAL flush": demand.flush_ns}
    far = [f"{name} {_times(ratios[name])}" for name in ratios if spent[name] and not 1 / _FAR < ratios[name] < _FAR]
    notes = [f"an extrapolation: {', '.join(far)}"] if far else []
    if closer > 1:
        notes.append("for data all over the drive: in a small part of it seeks are shorter")
    if there.burst:
        notes.append(there.burst)
    return DriveForecast(
        profile=there.name,
        tps=_estimate(tps, error, higher=closer),
        latency_p99_ns=None if p99 is None else _estimate(p99, error * _P99_ERROR, lower=closer),
        limit=limit,
        notes=tuple(notes),
    )


def _closed_loop(demand: Demand, ratios: Mapping[str, float]) -> float:
    """Return the rate at which as many clients as there are have as many transactions under way."""
    waits = (
        demand.flush_ns * ratios["WAL flush"] + demand.read_ns * ratios["reads"] + demand.write_ns * ratios["writes"]
    )
    rest = demand.work_ns + demand.flush_ns + demand.read_ns + demand.write_ns
    work = demand.work_ns * (1 - _busy(demand, demand.tps) ** demand.cores)

    def takes_ns(tps: float) -> float:
        alone = work / (1 - _busy(demand, tps) ** demand.cores) + waits
        return alone * (1 + demand.lock_ns / rest)

    low, high = 0.0, 1e9 * demand.clients / max(waits, 1.0) + demand.tps * 1000
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle * takes_ns(middle) < 1e9 * demand.clients:
            low = middle
        else:
            high = middle
    return low


def _busy(demand: Demand, tps: float) -> float:
    return min(0.999, tps * demand.cpu_s / demand.cores)


def _caps(demand: Demand, drive: Drive) -> list[tuple[float, Limit]]:
    """Return the rates at which a limit of the drive is reached."""
    shared = min(demand.flushes, 2 / demand.clients)  # half of the clients share a flush while the other half waits
    of_data = _writes_of_data(demand)
    head_ns = demand.reads * drive.read_seek_ns + of_data * drive.write_seek_ns
    return [
        (rate / need, limit)
        for rate, need, limit in _needs(demand, drive, of_data + shared, head_ns)
        if need > 0 and rate < math.inf
    ]


def _writes_of_data(demand: Demand) -> float:
    return max(0.0, demand.writes - demand.flushes)


def _closer(demand: Demand, drive: Drive) -> float:
    """Return how many times as much a head does of these reads and writes of data if the data lie close together."""
    of_data = _writes_of_data(demand)
    everywhere = demand.reads * drive.read_seek_ns + of_data * drive.write_seek_ns
    return everywhere / ((demand.reads + of_data) * drive.write_seek_ns)


def _needs(demand: Demand, drive: Drive, writes: float, head_ns: float) -> list[tuple[float, float, Limit]]:
    """Return each limit of the drive, what a transaction takes of it, and what it is called. A head has 1e9 ns a second, and more to
    choose from with more clients.
    """
    gain = 1 + _GAIN_OF_DOUBLING * math.log2(demand.clients)
    return [
        (drive.iops, demand.reads + writes, "requests a second"),
        (drive.read_iops, demand.reads, "requests a second"),
        (drive.write_iops, writes, "requests a second"),
        (drive.bytes_per_s, demand.read_bytes + demand.write_bytes, "bytes a second"),
        (drive.read_bytes_per_s, demand.read_bytes, "bytes a second"),
        (drive.write_bytes_per_s, demand.write_bytes, "bytes a second"),
        (1e9 * gain, head_ns, "seeks"),
    ]


def _estimate(value: float, error: float, *, lower: float = 1.0, higher: float = 1.0) -> Estimate:
    """Return a value with its interval, of which the ends are so many times lower and higher than its error makes them."""
    times = math.exp(_Z * error)
    interval = Interval(low=value / (times * lower), high=value * times * higher, level=_LEVEL)
    return Estimate(value=value, interval=interval, n=1, method="forecast")


def _times(ratio: float) -> str:
    return f"{ratio:,.0f} times slower" if ratio > 1 else f"{1 / ratio:,.0f} times faster"


def _limit(rate: float | None) -> float:
    return float(rate) if rate else math.inf


def _measured(contents: BundleContents, name: str | None) -> Measured:
    """Return the variant that is asked for. Raises UsageError with those that there are."""
    every = [one for one in judge_trials(contents).values() if not one.variant.is_aa_twin]
    found = [
        one
        for one in every
        if (one.variant.is_baseline if name is None else name in (one.variant.label, one.variant.id))
    ]
    if not found:
        labels = ", ".join(one.variant.label for one in every)
        raise UsageError(f"--variant {name}: there is no such variant; there are: {labels}")
    measured = found[0]
    if not measured.counted:
        raise UsageError(f"no trial of {measured.variant.label} counts", hint="`plinth report` says why")
    return measured


def _drive_here(
    contents: BundleContents, measured: Measured, profiles: Mapping[str, DiskProfile]
) -> tuple[Drive, float]:
    """Return the drive that the variant was measured on, and what a request takes on its way to it, in ns.

    An emulated drive is known by its profile, and what the probe of its fsync takes longer is the way; of others that probe and the
    time of their reads are all that is known.
    """
    label = measured.variant.label
    storages = set(contents.cluster_of(measured.variant).primary.roles.values())
    if len(storages) != 1:
        found = "its server is not Plinth's" if not storages else "data and WAL are on several storages"
        raise UsageError(
            f"no forecast of {label}: {found}", hint="measure it with all its files on one storage of Plinth's"
        )
    (name,) = storages
    spec = contents.plan.storages.get(name)
    probe = contents.probes.get(name)
    # Of both drives the flush is a write and fdatasync: what another wal_sync_method adds is taken to change as much.
    found = "it was not probed" if probe is None else figure_of(probe, "preallocated", DEFAULT_METHOD, 1)
    flush_ns = None if isinstance(found, str) else found.median_ns
    if isinstance(spec, EmulatedStorage) and spec.profile in profiles and is_as_its_profile(spec):
        drive = drive_of(profiles[spec.profile])
        overhead_ns = max(_LEAST_NS, ((flush_ns or 0) - drive.log_write_ns) / 2)
        return drive.slower_by(overhead_ns), overhead_ns
    if flush_ns is None:
        raise UsageError(f"no forecast of {label}: the time of a flush of storage {name} is not known: {found}")
    read_ns, write_ns = (_device_ns(contents, measured, name, what) for what in ("read", "write"))
    # Without requests of a kind their ratio does not matter.
    return Drive(name, read_ns or flush_ns, write_ns or flush_ns, flush_ns), 0.0


def is_as_its_profile(spec: EmulatedStorage) -> bool:
    """Return whether nothing limits it but its profile, and nothing of its physics differs but its credits."""
    return spec.instance is None and not set(spec.physics.model_dump(exclude_none=True)) - {
        "credit_level",
        "iops_credits",
        "bytes_credits",
    }


def _device_ns(
    contents: BundleContents, measured: Measured, storage: str, what: Literal["read", "write"]
) -> float | None:
    """Return the mean time of a read or a write on the storage's devices, the median of the counted trials; None where there was none."""
    facts = contents.storages.get(storage)
    if facts is None:
        return None
    found: list[float] = []
    for seen in (trial.seen for trial in measured.counted if trial.seen is not None):
        count = seen.rates("device", facts.block_devices, f"{what}s")
        time_s = seen.rates("device", facts.block_devices, f"{what}_time_s")
        if count and time_s:
            found.append(time_s / count * 1e9)
    return median(found) if found else None


def _sync_method(contents: BundleContents, variant: Variant) -> str:
    """Return the wal_sync_method that was in force."""
    seen = settings_in_force(variant.asked, contents.servers.get(variant.id), contents.writes_of(variant))
    return value_in_force(seen, "wal_sync_method") or DEFAULT_METHOD


def _demand(contents: BundleContents, measured: Measured) -> Demand:
    """Return what a transaction took. Raises UsageError where that is not known, or no drive explains it."""
    label = measured.variant.label
    if measured.variant.workload.is_open_loop:
        raise UsageError(
            f"no forecast of {label}: its rate was asked for", hint="measure it without workload.rate, in a closed loop"
        )
    kinds = [one.bottleneck.kind for one in measured.counted if one.bottleneck is not None]
    kind = max(set(kinds), key=kinds.count, default="not known")
    if kind in _REFUSED:
        raise UsageError(
            f"no forecast of {label}: its bottleneck was {kind}, which no drive explains",
            hint="measure a variant that waits for its storage; `plinth report` names each one's bottleneck",
        )
    each = [one for trial in measured.counted if (one := _of_trial(contents, measured, trial)) is not None]
    if not each:
        raise UsageError(
            f"no forecast of {label}: its wait profile or its devices were not read in any counted trial",
            hint="`plinth report --full` lists what could not be read",
        )
    tps = measured.tps(contents.plan.experiment.measure.seed)
    latency = measured.latency()
    assert tps is not None
    interval = tps.interval
    error = 0.0 if interval is None or interval.low <= 0 else math.log(interval.high / interval.low) / 2 / 1.96

    def middle(name: str) -> float:
        return median(getattr(one, name) for one in each)

    return Demand(
        clients=measured.variant.clients,
        tps=tps.value,
        tps_error=error,
        p99_ns=None if latency is None else float(latency.p99_ns),
        cores=contents.host.cores,
        sync_method=_sync_method(contents, measured.variant),
        **{name: middle(name) for name in _OF_TRIAL},
    )


_OF_TRIAL = (
    *("work_ns", "flush_ns", "read_ns", "write_ns", "lock_ns", "cpu_s"),
    *("reads", "writes", "flushes", "read_bytes", "write_bytes"),
)


def _of_trial(contents: BundleContents, measured: Measured, trial: JudgedTrial) -> Demand | None:
    """Return the demand of one trial; None where its waits, its processors or its devices were not read."""
    tps, seen = trial.contents.trial.tps, trial.seen
    if not tps or seen is None:
        return None
    cores = contents.host.cores
    machine = machine_cpu(seen, cores)
    states = client_states(seen, measured.variant.clients, machine)
    devices = [
        device
        for facts in contents.storages_of(measured.variant).values()
        if facts is not None
        for device in facts.block_devices
    ]
    rates = {
        metric: seen.rates("device", dict.fromkeys(devices), metric)
        for metric in ("reads", "writes", "read_bytes", "write_bytes")
    }
    if machine is None or states is None or None in rates.values():
        return None
    of_one = {metric: (rate or 0.0) / tps for metric, rate in rates.items()}
    flushes = seen.rates("device", dict.fromkeys(devices), "flushes") or seen.rate("pg_wal", "all", "wal_sync") or 0.0
    return Demand(
        clients=measured.variant.clients,
        tps=tps,
        tps_error=0.0,
        p99_ns=None,
        **_parts(states, 1e9 * measured.variant.clients / tps),
        cpu_s=(machine.used - machine.neighbours) / tps,
        cores=cores,
        reads=of_one["reads"],
        writes=of_one["writes"],
        flushes=min(flushes / tps, of_one["writes"]),
        read_bytes=of_one["read_bytes"],
        write_bytes=of_one["write_bytes"],
        sync_method=_sync_method(contents, measured.variant),
    )


def _parts(states: ClientStates, takes_ns: float) -> dict[str, float]:
    """Return the parts of a transaction that takes `takes_ns`."""
    named: dict[str, BottleneckKind] = {
        "flush_ns": "WAL flush",
        "read_ns": "device reads",
        "write_ns": "device writes",
        "lock_ns": "locks",
    }
    parts = {name: states.share(kind) * takes_ns for name, kind in named.items()}
    return {**parts, "work_ns": max(0.0, takes_ns - sum(parts.values()))}
