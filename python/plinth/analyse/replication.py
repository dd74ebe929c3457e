"""Which standby commits waited for, and in which step of replication: from pg_stat_replication and the settings of the primary.

Two estimates of the time in a step, of which the longer counts. One is the difference of the lags of pg_stat_replication: the time from the
local flush of WAL until the primary heard that a standby has written, flushed, replayed it. Lags are of answers, so that in a stall they
are those of before it. The other is the WAL that was in the step, on the mean, in relation to the WAL of a second (Little's law), which
grows in a stall; it is of few samples.

A standby that flushes slowly also receives late, as the same process does both: see `_caused`.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from plinth.analyse.window import Window
from plinth.model.base import SettingValue
from plinth.model.bottleneck import Evidence
from plinth.model.synchronous_standby_names import Quorum, quorum_of

SOURCE = "pg_replication"
_WAL = "pg_wal"
_STEPS = ("network", "flush", "replay")
"""What lies before write_lag, between it and flush_lag, and between that and replay_lag."""
_WORDS = {"network": "the network, and its write", "flush": "its flush of WAL", "replay": "its replay of WAL"}
_LAGS = ("write", "flush", "replay")
_WAITED = {"remote_write": 1, "remote_apply": 3}
"""How many of the steps synchronous_commit waits for; two where it is on."""


class StandbyLag(NamedTuple):
    """A standby with the mean time in each step, in s, as far as it is known."""

    name: str
    steps_s: Mapping[str, float]

    def until_s(self, steps: int) -> float:
        """Return how long the first steps take."""
        return sum(self.steps_s.get(step, 0.0) for step in _STEPS[:steps])


def standby_lags(seen: Window) -> list[StandbyLag]:
    """Return the standbys that stream from the primary, with their lags in the measured phase; those that nothing was behind of are left
    out."""
    found: dict[str, dict[str, float]] = {}
    wal_bytes_per_s = seen.rate_of_all(_WAL, "wal_bytes")
    for of in seen.objects(SOURCE):
        by_answers = _differences([seen.mean(SOURCE, of, f"{what}_lag_s") for what in _LAGS])
        by_bytes = _differences([seen.mean(SOURCE, of, f"{what}_behind_bytes") for what in _LAGS])
        if not by_answers:
            continue
        for number, step in enumerate(_STEPS[: len(by_answers)]):
            took_s = by_answers[number]
            if wal_bytes_per_s and number < len(by_bytes):
                took_s = max(took_s, by_bytes[number] / wal_bytes_per_s)
            found.setdefault(of.rpartition("/")[0], {})[step] = took_s
    return [StandbyLag(name, steps_s) for name, steps_s in found.items()]


def _differences(until: Sequence[float | None]) -> list[float]:
    """Return what each adds to the one before, up to the first that is not known."""
    known = list(itertools.takewhile(lambda one: one is not None, until))
    return [max(0.0, (one or 0.0) - (before or 0.0)) for before, one in zip([0.0, *known], known, strict=False)]


def _caused(steps_s: Mapping[str, float], steps: int) -> dict[str, float]:
    """Return the time of the first `steps`, by what caused it.

    A standby writes nothing while it flushes: what reaches it then waits for half a flush, on the mean, which is time in the step before.
    So a flush is waited for with remote_write, too.
    """
    network_s, flush_s = steps_s.get("network", 0.0), steps_s.get("flush", 0.0)
    waited_s = min(network_s, flush_s / 2)
    caused = {"network": network_s - waited_s, "flush": waited_s}
    if steps > 1:
        caused["flush"] += flush_s
    if steps > 2:
        caused["replay"] = steps_s.get("replay", 0.0)
    return caused


def waited_for(seen: Window, settings: Mapping[str, SettingValue]) -> tuple[StandbyLag, str] | None:
    """Return the standby that commits waited for, and its step that took the longest of those that they wait for; None where it is not
    known."""
    asked = {name.lower(): str(value) for name, value in settings.items()}
    names = asked.get("synchronous_standby_names", "")
    quorum, lags = quorum_of(names), standby_lags(seen)
    if quorum is None or not lags:
        return None
    steps = _WAITED.get(asked.get("synchronous_commit", "on").lower(), 2)
    slowest = _slowest_needed(quorum, lags, steps, is_any=names.strip().lower().startswith("any"))
    if slowest is None:
        return None
    caused = _caused(slowest.steps_s, steps)
    return slowest, max(caused, key=lambda step: caused[step])


def _slowest_needed(quorum: Quorum, lags: Sequence[StandbyLag], steps: int, *, is_any: bool) -> StandbyLag | None:
    """Return, with ANY, the slowest of the fastest that are needed; with FIRST, the slowest of the first in the list."""
    possible = set(quorum.possible([lag.name for lag in lags]))
    candidates = [lag for lag in lags if lag.name in possible]
    if is_any:
        candidates.sort(key=lambda lag: lag.until_s(steps))
    else:
        listed = [name.lower() for name in quorum.candidates]
        candidates.sort(key=lambda lag: listed.index(lag.name) if lag.name in listed else len(listed))
    return max(candidates[: quorum.needed], key=lambda lag: lag.until_s(steps), default=None)


def step_sentence(of: tuple[StandbyLag, str]) -> str:
    """Return the end of the sentence of a bottleneck."""
    standby, step = of
    return f", mostly standby {standby.name}: {_WORDS[step]}"


def lag_evidence(seen: Window) -> Iterator[Evidence]:
    """Return the mean time in each step, by standby."""
    for lag in standby_lags(seen):
        for step, took_s in lag.steps_s.items():
            yield Evidence(what=f"standby {lag.name}: {_WORDS[step]}", value=took_s * 1e9, unit="ns", source=SOURCE)
