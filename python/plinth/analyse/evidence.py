"""The figures that a finding rests on, and those that put it into proportion, as far as the bundle has them."""

from collections.abc import Iterator, Mapping

from plinth.analyse.machine_cpu import ENGINE, SERVER, TIMES
from plinth.analyse.replication import lag_evidence
from plinth.analyse.window import Window
from plinth.model.analysis import CommitCeiling
from plinth.model.bottleneck import BottleneckKind, Evidence
from plinth.model.trial import Trial
from plinth.model.waits import SOURCE

_PROBE = "fsync probe"


def evidence_of(
    kind: BottleneckKind,
    trial: Trial,
    seen: Window,
    spent: Mapping[str, float],
    clients: float,
    cores: int,
    ceiling: CommitCeiling | None,
) -> tuple[Evidence, ...]:
    """The shares of the clients' time, largest first, then what belongs to this kind of bottleneck.

    `spent` is what `clients` were at, in numbers of clients.
    """
    of_time = [
        Evidence(what=f"clients' time: {name}", value=n / clients, unit="fraction", source=SOURCE)
        for name, n in sorted(spent.items(), key=lambda item: -item[1])
        if n / clients >= 0.005
    ]
    if kind in ("device reads", "device writes"):
        of_time += _devices(trial, seen)
    elif kind == "WAL flush":
        of_time += [*_ceiling(ceiling), *_wal(trial, seen), *_devices(trial, seen)]
    elif kind == "replication":
        of_time += lag_evidence(seen)
    return (*of_time, *_cpu(trial, seen, cores))


def _cpu(trial: Trial, seen: Window, cores: int) -> Iterator[Evidence]:
    of_parts = {
        "server": SERVER,
        "load engine": ENGINE,
        "rest of run": ["rest of run"],
        "rest of host": ["rest of host"],
    }
    for what, groups in of_parts.items():
        used = seen.rates("process_cpu", groups, *TIMES)
        if used is not None and (what != "load engine" or trial.fleet is None) and (what != "rest of run" or used > 0):
            yield Evidence(what=f"CPU of {what}, of {cores} cores", value=used, unit="cores", source="process_cpu")
    for machine in trial.fleet.machines if trial.fleet else ():
        for what, share in (("load engine", machine.engine_busy), ("all cores", machine.host_busy)):
            if share is not None:
                yield Evidence(
                    what=f"machine {machine.name}: {what} busy", value=share, unit="fraction", source="agent"
                )
    for group, threads in (("backends", None), ("load engine", trial.engine.threads if trial.engine else None)):
        delay = seen.rates("process_delay", [group], "run_delay_s")
        if delay is not None:
            what = f"{group} runnable, without a CPU" + (f", of {threads} threads" if threads else "")
            yield Evidence(what=what, value=delay, unit="count", source="process_delay")


def _ceiling(of: CommitCeiling | None) -> Iterator[Evidence]:
    """How near its commits came to what the storage lets through, by the fsync probe."""
    if of is None or of.unavailable is not None:
        return
    if of.reached is not None:
        yield Evidence(what="transactions, of the commit ceiling", value=of.reached, unit="fraction", source=_PROBE)
    if of.flush_median_ns is not None:
        what = f"flush of the probe, median, by {of.method} on {of.storage}"
        yield Evidence(what=what, value=of.flush_median_ns, unit="ns", source=_PROBE)


def _wal(trial: Trial, seen: Window) -> Iterator[Evidence]:
    syncs = seen.rate("pg_wal", "all", "wal_sync")
    if syncs:  # none are counted where the WAL is written with O_SYNC or O_DSYNC (wal_sync_method open_*)
        yield Evidence(what="WAL flushes", value=syncs, unit="per_s", source="pg_wal")
        if trial.tps is not None:
            yield Evidence(what="transactions a WAL flush", value=trial.tps / syncs, unit="count", source="pg_wal")
    took_s = seen.rate("pg_wal", "all", "wal_sync_time_s")
    if took_s is not None and syncs:
        yield Evidence(what="mean WAL flush", value=took_s / syncs * 1e9, unit="ns", source="pg_wal")


def _devices(trial: Trial, seen: Window) -> Iterator[Evidence]:
    for device in trial.devices:
        name, roles = device.device, f"{', '.join(device.roles)}: {device.device}"
        for verb, counter, time in (
            ("read", "reads", "read_time_s"),
            ("write", "writes", "write_time_s"),
            ("flush", "flushes", "flush_time_s"),
        ):
            rate, took_s = seen.rate("device", name, counter), seen.rate("device", name, time)
            if not rate:
                continue
            yield Evidence(what=f"{roles}: {counter}", value=rate, unit="per_s", source="device")
            if took_s is not None:
                yield Evidence(what=f"{roles}: mean {verb}", value=took_s / rate * 1e9, unit="ns", source="device")
        busy = seen.rate("device", name, "io_time_s")
        if busy:
            yield Evidence(what=f"{roles}: utilisation", value=busy, unit="fraction", source="device")
        queue = seen.rate("device", name, "weighted_io_time_s")
        if queue:
            yield Evidence(what=f"{roles}: requests under way", value=queue, unit="count", source="device")
