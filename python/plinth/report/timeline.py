"""Builds the time series of all trials: lines, and columns of each trial in bins of equal width."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from plinth.model.contents import BundleContents, TrialContents
from plinth.model.facts import StorageFacts
from plinth.model.plan import Variant
from plinth.model.report import Panel, PanelGap, SeriesInfo, Value
from plinth.model.trial import machine_of, source_on
from plinth.model.waits import SOURCE as WAITS
from plinth.report.catalogue import (
    CREDIT_PANELS,
    CREDITS,
    DEVICE,
    HOST_LINES,
    LOAD,
    LOAD_LINES,
    MAX_DEVICES,
    PANEL_SOURCES,
    PANELS,
    Line,
    Reading,
    RoledDevice,
    credit_lines,
    device_lines,
    is_drawn,
    machine_lines,
    machine_panels,
    machine_sources,
    wait_lines,
)
from plinth.report.lags import LAG_PANELS, LAG_SOURCES, Lag, lag_lines, lags_of
from plinth.report.series import (
    Floats,
    bin_count,
    bin_width,
    counter_rates,
    gauge_means,
    load_latency,
    load_rates,
    rounded,
)

_ONLY_IF_ANY = ("failed", "skipped", "schedule lag p99")
"""Lines of the load that are drawn only where there is something to see."""


class Track(NamedTuple):
    """One series of a trial: times since the load began, and raw values."""

    t_s: Floats
    values: Floats


class TrialTracks(NamedTuple):
    """The series of one trial before binning."""

    contents: TrialContents
    storages: Mapping[str, StorageFacts]
    tracks: Mapping[Reading, Track]

    @property
    def end_s(self) -> float:
        """End of the last second of the load; 0 without a load."""
        return max(((s.t_ns + s.length_ns) / 1e9 for s in self.contents.series), default=0.0)


class Timelines(NamedTuple):
    """Panels, lines, and for each trial, in the bundle's order, its columns, gaps and end."""

    panels: tuple[Panel, ...]
    series: tuple[SeriesInfo, ...]
    bin_s: int
    columns: tuple[tuple[tuple[Value, ...] | None, ...], ...]
    gaps: tuple[tuple[PanelGap, ...], ...]
    ends_s: tuple[float, ...]
    lags: tuple[Mapping[str, Lag], ...]
    """Of each trial, by standby."""


def timelines(contents: BundleContents) -> Timelines:
    """Bin the series of every trial."""
    storages = {variant.id: _read_storages(contents, variant) for variant in contents.plan.variants}
    trials = [_tracks(trial, storages[trial.trial.variant]) for trial in contents.trials]
    machines = _machines(trials)
    lines = _lines(trials, machines)
    ends_s = tuple(trial.end_s for trial in trials)
    bin_s = bin_width(ends_s, len(lines))
    panels = _panels(contents, lines, machines)
    columns = tuple(_columns(trial, lines, bin_s) for trial in trials)
    return Timelines(
        panels=panels,
        series=tuple(SeriesInfo(panel=line.panel, label=line.label) for line in lines),
        bin_s=bin_s,
        columns=columns,
        gaps=tuple(_gaps(trial, panels, lines, of_trial) for trial, of_trial in zip(trials, columns, strict=True)),
        ends_s=ends_s,
        lags=tuple(lags_of(trial.contents, trial.tracks) for trial in trials),
    )


def no_timelines(contents: BundleContents) -> Timelines:
    """Return timelines without any series, for which no sample is read."""
    trials = contents.trials
    ends_s = tuple(TrialTracks(trial, {}, {}).end_s for trial in trials)
    return Timelines((), (), 1, ((),) * len(trials), ((),) * len(trials), ends_s, ())


def _panels(contents: BundleContents, lines: Sequence[Line], machines: Sequence[str]) -> tuple[Panel, ...]:
    """Return the panels; those of replication where there are standbys, of our own or of an external server; those of further machines
    where something of them was read."""
    drawn = {line.panel for line in lines}
    has_standbys = any(cluster.standbys for cluster in contents.plan.clusters)
    return (
        *PANELS,
        *(panel for panel in CREDIT_PANELS if panel.id in drawn),
        *(panel for panel in LAG_PANELS if has_standbys or panel.id in drawn),
        *(panel for panel in machine_panels(machines) if panel.id in drawn),
    )


def _machines(trials: Sequence[TrialTracks]) -> list[str]:
    """Return the machines that were read of which a primary was not on."""
    found = {machine_of(reading.source)[1] for trial in trials for reading in trial.tracks}
    return sorted(machine for machine in found if machine is not None)


def _read_storages(contents: BundleContents, variant: Variant) -> dict[str, StorageFacts]:
    """Return the facts of a variant's storages by role, if they are in the bundle."""
    return {role: facts for role, facts in contents.storages_of(variant).items() if facts is not None}


def _tracks(trial: TrialContents, storages: Mapping[str, StorageFacts]) -> TrialTracks:
    readings = ((Reading(*key), points) for key, points in trial.read_samples().items())
    tracks = {reading: Track(points.t_ns / 1e9, points.values) for reading, points in readings if is_drawn(reading)}
    return TrialTracks(trial, storages, tracks)


def _lines(trials: Sequence[TrialTracks], machines: Sequence[str]) -> list[Line]:
    """Return the lines with data in at least one trial; lines of failures only if there were any."""
    waits: dict[str, float] = {}
    devices: dict[RoledDevice, None] = {}
    for trial in trials:
        devices |= dict.fromkeys(_devices(trial))
        for reading, track in trial.tracks.items():
            if reading.source == WAITS:
                waits[reading.object] = waits.get(reading.object, 0.0) + float(track.values.sum())
    seen = {reading for trial in trials for reading in trial.tracks}
    seconds = [second for trial in trials for second in trial.contents.series]
    load = [
        line
        for line in LOAD_LINES
        if line.label not in _ONLY_IF_ANY or any(getattr(second, line.readings[0].metric) for second in seconds)
    ]
    had_any = {
        reading
        for trial in trials
        for reading, track in trial.tracks.items()
        if reading.source == CREDITS and track.values.any()
    }
    observed = [*device_lines(devices), *HOST_LINES, *wait_lines(waits), *credit_lines(had_any), *lag_lines(seen)]
    for machine in machines:
        observed += machine_lines(machine, _busiest(trials, source_on(DEVICE, machine)))
    lines = load + [line for line in observed if seen.intersection(line.readings)]
    place = {
        panel.id: place for place, panel in enumerate((*PANELS, *CREDIT_PANELS, *LAG_PANELS, *machine_panels(machines)))
    }
    return sorted(lines, key=lambda line: place[line.panel])


def _busiest(trials: Sequence[TrialTracks], source: str) -> list[str]:
    """Return the devices of a machine that wrote most, over all trials."""
    written: dict[str, float] = {}
    for trial in trials:
        for reading, track in trial.tracks.items():
            if reading.source == source and reading.metric == "write_bytes":
                written[reading.object] = written.get(reading.object, 0.0) + float(track.values[-1] - track.values[0])
    return sorted(written, key=lambda device: (-written[device], device))[:MAX_DEVICES]


def _devices(trial: TrialTracks) -> list[RoledDevice]:
    """Return the devices below a trial's storages, busiest first, without their partitions; all devices if unknown."""
    written = {
        reading.object: float(track.values[-1] - track.values[0])
        for reading, track in trial.tracks.items()
        if reading.source == DEVICE and reading.metric == "write_bytes"
    }
    roles: dict[str, list[str]] = {}
    for role, storage in trial.storages.items():
        partitions = {node.name.removeprefix("/dev/") for node in storage.stack if node.kind == "partition"}
        below = [device for device in storage.block_devices if device in written]
        for device in [d for d in below if d not in partitions] or below:
            roles.setdefault(device, []).append(role)
    several = len(trial.storages) > 1
    if not trial.storages:
        roles = {device: [] for device in written}
    busiest = sorted(roles, key=lambda device: (-written[device], device))[:MAX_DEVICES]
    return [RoledDevice(device, tuple(roles[device]) if several else ()) for device in busiest]


def _columns(trial: TrialTracks, lines: Sequence[Line], bin_s: int) -> tuple[tuple[Value, ...] | None, ...]:
    bins = bin_count(trial.end_s, bin_s)
    devices = set(_devices(trial))
    return tuple(_column(trial, line, devices, bins, bin_s) for line in lines)


def _column(
    trial: TrialTracks, line: Line, devices: set[RoledDevice], bins: int, bin_s: int
) -> tuple[Value, ...] | None:
    if line.readings[0].source == LOAD:
        return _load_column(trial.contents, line.readings[0].metric, bins, bin_s)
    if line.device is not None and line.device not in devices:
        return None
    binned = counter_rates if line.counter else gauge_means
    parts = [
        binned(track.t_s, track.values, bins, bin_s)
        for reading in line.readings
        if (track := trial.tracks.get(reading)) is not None
    ]
    if not parts:
        return None
    total = (np.fmax.reduce(parts) if line.one_of else np.sum(parts, axis=0)) * line.scale
    return rounded(total) if np.isfinite(total).any() else None


def _load_column(trial: TrialContents, metric: str, bins: int, bin_s: int) -> tuple[Value, ...] | None:
    if not trial.series:
        return None
    figures = [getattr(second, metric) for second in trial.series]
    if all(figure is None for figure in figures):
        return None
    binned = load_latency if metric.endswith("_ns") else load_rates
    return rounded(binned(trial.series, figures, bins, bin_s))


def _gaps(
    trial: TrialTracks,
    panels: Sequence[Panel],
    lines: Sequence[Line],
    columns: Sequence[tuple[Value, ...] | None],
) -> tuple[PanelGap, ...]:
    filled = {line.panel for line, column in zip(lines, columns, strict=True) if column is not None}
    return tuple(PanelGap(panel=p.id, reason=_reason(trial, p.id)) for p in panels if p.id not in filled)


def _reason(trial: TrialTracks, panel: str) -> str:
    of_machines = machine_sources(_machines([trial]))
    source = {**PANEL_SOURCES, **LAG_SOURCES, **of_machines}.get(panel)
    if source is None:
        return "nothing was read of it in this trial"
    if source == DEVICE and trial.storages and not any(facts.block_devices for facts in trial.storages.values()):
        places = (f"{facts.filesystem} at {facts.path}" for facts in trial.storages.values())
        return f"no block device is known under {', '.join(dict.fromkeys(places))}"
    names_source = re.compile(rf"(^|, ){re.escape(source)}($|[:, ])")
    for gap in trial.contents.trial.gaps:
        if names_source.search(gap.what):
            return gap.reason
    if trial.contents.trial.failure is not None:
        return f"the trial failed: {trial.contents.trial.failure}"
    return f"the bundle has too few samples of {source} in this trial" if source != LOAD else "no load was run"
