"""In which state the trials of each variant began, where the experiment asked for one."""

from collections.abc import Iterator
from statistics import median

from plinth.analyse.trials import JudgedTrial, Measured
from plinth.model.trial import CacheState
from plinth.model.units import format_duration


def preparations(measured: dict[str, Measured]) -> Iterator[str]:
    """Return sentences of each variant; of caches with the evidence of the trial that was furthest from what was asked for."""
    for one in measured.values():
        yield from _restored(one)
        yield from _warmed_up(one)
        states = [(state, trial.number) for trial in one.trials if (state := trial.contents.trial.cache) is not None]
        if states:
            state, number = max(states, key=lambda found: _distance(found[0]))
            reached = sum(state.reached is True for state, _ in states)
            yield f"{one.variant.label}: {state.asked} cache in {reached} of {len(states)} trials; trial {number}: {state.evidence}"


def _restored(one: Measured) -> Iterator[str]:
    found = [restored for trial in one.trials if (restored := trial.contents.trial.restored) is not None]
    if found:
        how = " and ".join(dict.fromkeys(way for restored in found for way in restored.how.values()))
        took_s = median(restored.duration_s for restored in found)
        sharing = "; the first write to each block goes to a new place" if how != "copy" else ""
        yield (
            f"{one.variant.label}: files restored to what they were after loading before {len(found)} of {len(one.trials)} trials, "
            f"by {how}, in {format_duration(took_s)} (median){sharing}"
        )


def _warmed_up(one: Measured) -> Iterator[str]:
    ended = [trial.contents.trial for trial in one.trials if trial.contents.trial.warmup_end is not None]
    if ended:
        steady = sum(trial.warmup_end is not None and trial.warmup_end.reason == "steady" for trial in ended)
        shortest, longest = (format_duration(round(f(trial.warmup_ns for trial in ended) / 1e9, 1)) for f in (min, max))
        took = shortest if shortest == longest else f"{shortest} to {longest}"
        yield f"{one.variant.label}: warm-up of {took}; throughput was steady at its end in {steady} of {len(ended)} trials"


def not_steady_after_warmup(judged: JudgedTrial) -> str | None:
    """Return why the warm-up of a trial ended at its cap; None where throughput was steady, or the warm-up of fixed length."""
    end = judged.contents.trial.warmup_end
    return end.seen if end is not None and end.reason == "cap" else None


def not_reached(judged: JudgedTrial) -> str | None:
    """Return why a trial did not begin with the cache that was asked for; None where it did, or nothing was asked for."""
    trial = judged.contents.trial
    if trial.cache is None or trial.cache.reached:
        return None
    what = f"{trial.cache.asked} cache"
    return next((gap.reason for gap in trial.gaps if gap.what == what), trial.cache.evidence)


def _distance(state: CacheState) -> tuple[bool, int]:
    if state.asked == "cold":
        return state.reached is not True, state.resident_bytes or 0
    left = state.read_bytes_by_pass[-1] if state.read_bytes_by_pass else -(state.resident_bytes or 0)
    return state.reached is not True, left
