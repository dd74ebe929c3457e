"""Endurance of drives: what the trials of a bundle wrote in their measured phases, to which device and for what (data, WAL, an SLOG
of a ZFS pool), and how long a drive lasts at that rate."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from plinth.analyse.bootstrap import of_trials
from plinth.analyse.machine_cpu import SERVER
from plinth.analyse.postgres_writes import PostgresWrites
from plinth.analyse.trials import Measured, judge_trials
from plinth.analyse.window import Window
from plinth.model.base import Gap
from plinth.model.contents import BundleContents, TrialContents
from plinth.model.endurance import (
    DeviceWritten,
    Endurance,
    Flow,
    FlowWritten,
    Rating,
    StorageWritten,
    VariantEndurance,
    Written,
)
from plinth.model.facts import StorageFacts
from plinth.model.figures import Estimate, percent
from plinth.model.storage import ZfsStorage
from plinth.model.units import format_decimal_size

DAY_S = 86_400
YEAR_DAYS = 365.25
MUCH_MORE = 2.0
"""Bytes of a device, for each byte that the server explains, from which on the others' are most of them."""
_FLOWS: dict[Flow, str] = {
    "data": "tables, indexes, temporary files: given to the kernel, which may write a page once for several times",
    "wal": "WAL that was generated",
    "wal_written": "WAL as it was written: a page that is not full is written again with the next commit; new segments are "
    "filled with zeros",
    "full_page_images": "of the WAL: whole pages after a checkpoint, at most (their number times 8 KiB)",
}


def endurance(contents: BundleContents, tps: float | None = None, rating: Rating | None = None) -> Endurance:
    """Return the account of a bundle, at the measured rate or at `tps` transactions a second; of a drive of the experiment's rating,
    unless another is given. Pure.
    """
    rating = rating or stated_rating(contents)
    drives = contents.wear.disks if contents.wear else ()
    gaps = (
        list(contents.wear.gaps)
        if contents.wear
        else [Gap(what="wear of the drives", reason="the run did not keep it")]
    )
    return Endurance(
        run_id=contents.manifest.run_id,
        experiment=contents.plan.experiment.name,
        rate="as measured" if tps is None else "as given",
        rating=rating,
        variants=tuple(
            variant_endurance(contents, measured, rating, tps) for measured in judge_trials(contents).values()
        ),
        drives=drives,
        gaps=tuple(gaps),
    )


def variant_endurance(
    contents: BundleContents, measured: Measured, rating: Rating | None, tps: float | None = None
) -> VariantEndurance:
    """Return the account of one variant, at its measured rate or at `tps`."""
    return _Account(contents, measured, tps, rating).variant()


def written_by_block(contents: BundleContents, measured: Measured) -> dict[int, float]:
    """Return bytes that each transaction wrote to the devices below the storages, in each counted trial of which that is known, by
    block."""
    return _Account(contents, measured, None, None).written_by_block()


def stated_rating(contents: BundleContents) -> Rating | None:
    """Return the rating of the drive that the experiment states."""
    drive = contents.plan.experiment.drive
    return drive.rating() if drive else None


def life_years(rated_bytes: float, bytes_per_day: float) -> float:
    """Return how long until the rated bytes are written."""
    return rated_bytes / bytes_per_day / YEAR_DAYS


class _Trial(NamedTuple):
    """Rates are bytes a second in the measured phase."""

    contents: TrialContents
    tps: float
    seen: Window
    writes: PostgresWrites

    def server_rate(self) -> float | None:
        """Return what the server's processes wrote to all devices, by the kernel's count or PostgreSQL's, whichever is more."""
        wal = self.writes.wal if self.writes.wal_written is None else self.writes.wal_written
        by_views = None if self.writes.data is None or wal is None else self.writes.data + wal
        known = [rate for rate in (by_views, self.seen.rates("process_io", SERVER, "write_bytes")) if rate is not None]
        return max(known, default=None)

    def device_rate(self, device: str) -> float | None:
        return self.seen.rate("device", device, "write_bytes")


class _Account:
    """The account of one variant."""

    def __init__(self, contents: BundleContents, measured: Measured, tps: float | None, rating: Rating | None) -> None:
        seed = contents.plan.experiment.measure.seed
        self._contents = contents
        self._variant = measured.variant
        self._rating = rating
        self._seed = seed
        self._asked_tps = tps
        self._tps = measured.tps(seed)
        if tps is not None:
            self._tps = Estimate(value=tps, interval=None, n=0, method="as given")
        self._trials = list(_trials(measured))
        self._roles = contents.cluster_of(measured.variant).primary.roles
        self._gaps: list[Gap] = []

    def variant(self) -> VariantEndurance:
        """Return the account; figures that are not available are gaps."""
        if not self._trials:
            self._gap("everything", "no trial counts")
        flows = tuple(self._flows()) if self._trials else ()
        storages = tuple(self._storages()) if self._trials else ()
        devices = tuple(self._devices()) if self._trials else ()
        self._check_checkpoints()
        return VariantEndurance(
            id=self._variant.id,
            label=self._variant.label,
            tps=self._tps,
            flows=flows,
            storages=storages,
            devices=devices,
            total=self._total() if self._trials else None,
            gaps=tuple(dict.fromkeys(self._gaps)),
        )

    def _gap(self, what: str, reason: str) -> None:
        self._gaps.append(Gap(what=what, reason=reason))

    def _flows(self) -> Iterator[FlowWritten]:
        for flow, what in _FLOWS.items():
            written = self._written(lambda trial, flow=flow: getattr(trial.writes, flow))
            if written is None:
                reasons = dict.fromkeys(reason for trial in self._trials for reason in [trial.writes.missing.get(flow)])
                self._gap(f"{flow.replace('_', ' ')} of PostgreSQL", "; ".join(filter(None, reasons)))
            else:
                yield FlowWritten(flow=flow, what=what, **dict(written))

    def _storages(self) -> Iterator[StorageWritten]:
        for devices, places in self._places().items():
            written = self._written(lambda trial, devices=devices: _sum(trial.device_rate(one) for one in devices))
            if written is None:
                self._gap(f"bytes written to {', '.join(devices)}", "its counters were not read in the measured phase")
                continue
            roles = tuple(role for _, role in places)
            yield StorageWritten(
                storages=tuple(dict.fromkeys(storage for storage, _ in places)),
                roles=roles,
                devices=devices,
                amplification=self._amplification(devices, roles),
                **dict(written),
            )

    def written_by_block(self) -> dict[int, float]:
        """Return what `written_by_block` of this module does."""
        devices = self._all_devices()
        rates = (
            (trial, _sum(trial.device_rate(one) for one in devices)) for trial in self._trials if devices is not None
        )
        return {trial.contents.trial.block: rate / trial.tps for trial, rate in rates if rate is not None}

    def _total(self) -> Written | None:
        """Return what was written to all devices; None where they are not known."""
        devices = self._all_devices()
        if devices is None:
            return None
        return self._written(lambda trial: _sum(trial.device_rate(one) for one in devices))

    def _all_devices(self) -> tuple[str, ...] | None:
        """Return the devices directly below all file systems, each once; None where those of a storage are not known."""
        facts = [self._contents.storages.get(storage) for storage in self._roles.values()]
        below = [topmost_devices(one) if one else () for one in facts]
        return tuple(dict.fromkeys(device for each in below for device in each)) if all(below) else None

    def _places(self) -> dict[tuple[str, ...], list[tuple[str, str]]]:
        """Return storages and roles by the devices directly below them."""
        found: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        for role, storage in self._roles.items():
            facts = self._contents.storages.get(storage)
            devices = topmost_devices(facts) if facts else ()
            if devices:
                found.setdefault(devices, []).append((storage, role))
            elif facts is None:
                self._gap(f"devices of storage {storage}", "its facts are not in the bundle")
            else:
                reasons = "; ".join(gap.reason for gap in facts.gaps if "devices below" in gap.what)
                self._gap(f"devices of storage {storage}", reasons or facts.volatile_reason or "none is known below it")
        return found

    def _amplification(self, devices: Sequence[str], roles: tuple[str, ...]) -> Estimate | None:
        ratios = []
        for trial in self._trials:
            of_devices = _sum(trial.device_rate(one) for one in devices)
            of_postgres = trial.writes.of_roles(roles, frozenset(self._roles))
            if of_devices is None or not of_postgres:
                what = f"device bytes for each byte of PostgreSQL on {', '.join(devices)}"
                self._gap(what, "what PostgreSQL gave to it cannot be distinguished, or is nothing")
                return None
            ratios.append(of_devices / of_postgres)
        return of_trials(ratios, self._seed)

    def _devices(self) -> Iterator[DeviceWritten]:
        roles = {one.device: one.roles for trial in self._trials for one in trial.contents.trial.devices}
        for device, of_device in roles.items():
            written = self._written(lambda trial, device=device: trial.device_rate(device))
            if written is None:
                self._gap(f"bytes written to {device}", "its counters were not read in every trial's measured phase")
                continue
            share = self._server_share(device)
            if share is None:
                self._gap(
                    f"what of the bytes written to {device} is PostgreSQL's", "neither its views nor its processes told"
                )
            yield DeviceWritten(
                device=device,
                server_share=share,
                caveat=_caveat(device, share, written),
                roles=of_device,
                uses=tuple(self._uses(device)),
                life_years=self._life(written.bytes_per_day),
                **dict(written),
            )

    def _server_share(self, device: str) -> Estimate | None:
        pairs = [(trial.server_rate(), trial.device_rate(device)) for trial in self._trials]
        shares = [of_server / written for of_server, written in pairs if of_server is not None and written]
        return of_trials(shares, self._seed) if shares and len(shares) == len(pairs) else None

    def _uses(self, device: str) -> Iterator[str]:
        """Return what a device is to the pools below the cluster, by the storages that the pool has as members."""
        for storage in dict.fromkeys(self._roles.values()):
            spec = self._contents.plan.storages.get(storage)
            if isinstance(spec, ZfsStorage):
                for reference in spec.references():
                    member = self._contents.storages.get(reference.name)
                    if member is not None and device in member.block_devices:
                        yield str(reference.key[0])

    def _life(self, bytes_per_day: Estimate) -> Estimate | None:
        if self._rating is None or bytes_per_day.value <= 0:
            return None
        rated_bytes = self._rating.rated_bytes
        return bytes_per_day.through(lambda written: life_years(rated_bytes, written))

    def _written(self, rate_of: Callable[[_Trial], float | None]) -> Written | None:
        """Convert bytes per second to bytes per transaction and per day; None where a trial lacks the figure."""
        each = [(trial, rate_of(trial)) for trial in self._trials]
        per_transaction = [rate / trial.tps for trial, rate in each if rate is not None]
        if not each or len(per_transaction) < len(each):
            return None
        rates = [trial.tps if self._asked_tps is None else self._asked_tps for trial in self._trials]
        per_day = [written * rate * DAY_S for written, rate in zip(per_transaction, rates, strict=True)]
        return Written(
            bytes_per_transaction=of_trials(per_transaction, self._seed), bytes_per_day=of_trials(per_day, self._seed)
        )

    def _check_checkpoints(self) -> None:
        """Note a gap where no checkpoint ended in a measured phase: pages dirty at its end are not in the figure for data."""
        without = [
            str(trial.contents.trial.number)
            for trial in self._trials
            if not any(
                event.kind == "checkpoint_end" and event.t_ns >= trial.contents.trial.warmup_ns
                for event in trial.contents.events
            )
        ]
        if without:
            self._gap(
                "data that checkpoints write",
                f"no checkpoint ended in the measured phase of trial {', '.join(without)}: pages that were changed there had "
                "not been written when it ended; make measure.duration longer than checkpoint_timeout",
            )


def _caveat(device: str, share: Estimate | None, written: Written) -> str | None:
    if share is None or share.value * MUCH_MORE > 1:
        return None
    day = written.bytes_per_day.value
    return (
        f"PostgreSQL's processes explain {percent(share.value, 0)} of what {device} wrote, {format_decimal_size(share.value * day)} of "
        f"{format_decimal_size(day)} per day: the rest is of its file systems or of other programs of this machine, and a life is that of all"
    )


def _trials(measured: Measured) -> Iterator[_Trial]:
    for judged in measured.counted:
        trial = judged.contents.trial
        if trial.tps and judged.seen is not None and judged.writes is not None:
            yield _Trial(judged.contents, trial.tps, judged.seen, judged.writes)


def topmost_devices(facts: StorageFacts) -> tuple[str, ...]:
    """Return the devices directly below the file system: those below no other of its devices."""
    nodes = [node for node in facts.stack if node.name in facts.block_devices]
    least = min((node.depth for node in nodes), default=0)
    return tuple(node.name for node in nodes if node.depth == least)


def _sum(values: Iterator[float | None]) -> float | None:
    known = list(values)
    return None if not known or None in known else sum(value for value in known if value is not None)
