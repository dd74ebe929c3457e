"""How far standbys are behind, over time and in words: from pg_stat_replication and pg_replication_slots of the primary.

Lags in time are those of pg_stat_replication: from the local flush of WAL until the primary heard that a standby has written, flushed,
replayed it. They are null while nothing is behind.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from plinth.model.contents import TrialContents
from plinth.model.figures import NOT_AVAILABLE
from plinth.model.standby import WAIT_TIMEOUT_S
from plinth.model.units import format_count, format_decimal_size, format_duration
from plinth.report.catalogue import READ_YOUR_WRITES, Line, Reading, is_of_replication, standby_of, time_panel
from plinth.report.series import Floats

TIMED = {"write": "written", "flush": "flushed", "replay": "replayed"}
STEPS = {"sent": "sent", **TIMED}
"""The steps of replication, each with what the WAL then is."""


LAG_PANELS = (
    time_panel(
        "lag",
        "Replication lag",
        "ns",
        "From the primary's flush of WAL until it heard that the standby has written, flushed, replayed it; a hole: nothing was behind. "
        "Waited for (19 and later): how long a session there waits with WAIT FOR LSN to see what was committed before.",
        scale="log",
    ),
    time_panel(
        "lag_bytes",
        "Replication lag in WAL",
        "bytes",
        "WAL that the primary has written and not yet sent to the standby, or that the standby has not yet written, flushed, replayed.",
    ),
    time_panel(
        "retained", "Retained WAL", "bytes", "WAL that the primary keeps for each slot, from pg_replication_slots."
    ),
)
WAIT = "wait_s"
LAG_SOURCES = {"lag": "pg_replication", "lag_bytes": "pg_replication", "retained": "pg_slots"}


class Lag(NamedTuple):
    """How far one standby was behind in the measured phase of one trial."""

    means_s: Mapping[str, float]
    """The mean lag by step, without the times in which nothing was behind; what was never known is left out."""
    most_behind_bytes: float | None
    """Of its replay."""
    most_retained_bytes: float | None
    usual_wait_s: float | None = None
    """How long a session there waited to see what was committed before: the median of the waits that ended in time."""
    longest_wait_s: float | None = None
    timeouts: int = 0
    """How many waits did not end in time."""


def lag_lines(readings: Iterable[Reading]) -> list[Line]:
    """Return a line for each step of each standby, and one for each slot."""
    found = [reading for reading in readings if is_of_replication(reading)]
    by_line: dict[tuple[str, str, str], list[Reading]] = {}
    for reading in sorted(found):
        by_line.setdefault((reading.source, standby_of(reading), reading.metric), []).append(reading)
    names = sorted({standby_of(reading) for reading in found})
    lines = []
    for panel, metric, label, scale in (
        *(("lag", f"{step}_lag_s", f" {words}", 1e9) for step, words in TIMED.items()),
        ("lag", WAIT, " waited for", 1e9),
        *(("lag_bytes", f"{step}_behind_bytes", f" {words}", 1.0) for step, words in STEPS.items()),
        ("retained", "retained_bytes", "", 1.0),
    ):
        for name in names:
            if of_line := by_line.get((READ_YOUR_WRITES if metric == WAIT else LAG_SOURCES[panel], name, metric)):
                lines.append(Line(panel, f"{name}{label}", tuple(of_line), counter=False, scale=scale, one_of=True))
    return lines


def lags_of(trial: TrialContents, tracks: Mapping[Reading, tuple[Floats, Floats]] | None = None) -> dict[str, Lag]:
    """Return how far each standby was behind in the measured phase of a trial. `tracks` are its samples, if they were read before."""
    if tracks is None:
        read = ((Reading(*key), points) for key, points in trial.read_samples().items())
        tracks = {reading: (points.t_ns / 1e9, points.values) for reading, points in read if is_of_replication(reading)}
    names = {standby_of(reading) for reading in tracks if is_of_replication(reading)}
    from_s = trial.trial.warmup_ns / 1e9
    until_s = from_s + trial.trial.measured_ns / 1e9
    found = {name: lag_of(name, tracks, from_s, until_s) for name in sorted(names)}
    return {name: lag for name, lag in found.items() if lag is not None}


def lag_of(standby: str, tracks: Mapping[Reading, tuple[Floats, Floats]], from_s: float, until_s: float) -> Lag | None:
    """Return the lag of a standby from `from_s` to `until_s` after the beginning of the load; None where nothing of it was sampled."""
    by_metric: dict[str, list[Floats]] = {}
    for reading, (t_s, values) in tracks.items():
        if is_of_replication(reading) and standby_of(reading) == standby:
            within = values[(t_s >= from_s) & (t_s <= until_s) & np.isfinite(values)]
            by_metric.setdefault(reading.metric, []).append(within)
    known = {metric: joined for metric, parts in by_metric.items() if len(joined := np.concatenate(parts))}
    if not known:
        return None

    def most(metric: str) -> float | None:
        return float(known[metric].max()) if metric in known else None

    means_s = {step: float(known[f"{step}_lag_s"].mean()) for step in TIMED if f"{step}_lag_s" in known}
    usual_wait_s = float(np.median(known[WAIT])) if WAIT in known else None
    timeouts = int(known["timed_out"].sum()) if "timed_out" in known else 0
    return Lag(means_s, most("replay_behind_bytes"), most("retained_bytes"), usual_wait_s, most(WAIT), timeouts)


def lag_words(lags: Mapping[str, Sequence[Lag]], upstream: str | None) -> str:
    """Describe the lag of a standby: `lags` are those of its trials, by variant. `upstream` is given if nothing is sampled of it."""
    waits = _wait_words(lags)
    if upstream is not None:
        return ", ".join([f"{NOT_AVAILABLE}: it streams from {upstream}, of which nothing is sampled", *waits])
    if not lags:
        return f"{NOT_AVAILABLE}: nothing was sampled of it"
    everything = [lag for of_variant in lags.values() for lag in of_variant]
    steps = []
    for step, words in TIMED.items():
        by_variant = [[lag.means_s[step] for lag in of if step in lag.means_s] for of in lags.values()]
        if any(by_variant):
            steps.append(f"{words} {_lowest_to_highest(by_variant)}")
    behind = [lag.most_behind_bytes for lag in everything if lag.most_behind_bytes is not None]
    kept = [lag.most_retained_bytes for lag in everything if lag.most_retained_bytes is not None]
    parts = [", ".join(steps) + " after the primary" if steps else "nothing was behind when it was looked"]
    if behind:
        parts.append(f"at most {format_decimal_size(max(behind))} behind")
    if kept:
        parts.append(f"at most {format_decimal_size(max(kept))} of WAL kept for it")
    return ", ".join([*parts, *waits])


def _wait_words(lags: Mapping[str, Sequence[Lag]]) -> list[str]:
    """Return how long a session there waited to see what was committed before, if that is known."""
    everything = [lag for of_variant in lags.values() for lag in of_variant]
    words = []
    if longest_s := [lag.longest_wait_s for lag in everything if lag.longest_wait_s is not None]:
        by_variant = [[lag.usual_wait_s for lag in of if lag.usual_wait_s is not None] for of in lags.values()]
        usual, longest = _lowest_to_highest(by_variant), _rounded(max(longest_s))
        words.append(f"a session there waited {usual} to see what was committed before, at most {longest}")
    if timeouts := sum(lag.timeouts for lag in everything):
        words.append(f"{format_count(timeouts, 'wait')} for that did not end within {WAIT_TIMEOUT_S} s")
    return words


def _lowest_to_highest(by_variant: Iterable[Sequence[float]]) -> str:
    """Return the lowest and the highest of the means of variants, of which some are known."""
    means = [float(np.mean(known)) for known in by_variant if known]
    low, high = _rounded(min(means)), _rounded(max(means))
    return low if low == high else f"{low} to {high}"


def _rounded(seconds: float) -> str:
    return format_duration(float(f"{seconds:.3g}"))
