"""Groups of variants that cannot be distinguished, as a compact letter display of all pairs of a stratum."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from plinth.analyse.bootstrap import MIN_TRIALS
from plinth.analyse.simultaneous import MOST_PAIRS, Ratios, Together, compact_letters, pairs_of
from plinth.analyse.trials import Measured
from plinth.model.analysis import Grouping, NoiseFloor
from plinth.model.factors import Design
from plinth.model.sweep import Stratum

FEWEST = 3
"""Of two variants their comparison says all."""
AS_ASKED = "the throughput of an open loop is what its schedule asks for"


def group_variants(
    design: Design,
    measured: Mapping[str, Measured],
    noise: NoiseFloor | None,
    seed: int,
    scheduled: Collection[str] = (),
) -> tuple[Grouping, ...]:
    """Group each stratum of at least three variants by throughput; the chance of any false difference in all of them is 5 %.

    As for verdicts, where the A/A pair was distinguished, what differs no more than that pair is not distinguished. Strata whose baseline is
    `scheduled` are not grouped: their throughput is what a schedule asks for.
    """
    large = [one for one in design.strata if len(one.variants) >= FEWEST]
    strata = [one for one in large if one.baseline not in scheduled]
    found = {
        one.baseline: one_group
        for one, one_group in zip(strata, _groupings(strata, measured, noise, seed), strict=True)
    }
    return tuple(found.get(one.baseline) or _ungrouped(one, AS_ASKED) for one in large)


def _ungrouped(stratum: Stratum, reason: str) -> Grouping:
    return Grouping(stratum=stratum.label, letters={}, fastest=(), missing=f"not grouped: {reason}")


def _groupings(
    strata: Sequence[Stratum], measured: Mapping[str, Measured], noise: NoiseFloor | None, seed: int
) -> list[Grouping]:
    judged = [[id_ for id_ in one.variants if len(measured[id_].log_tps) >= MIN_TRIALS] for one in strata]
    grouped = [place for place, ids in enumerate(judged) if len(ids) >= FEWEST]
    pairs = pairs_of([len(judged[place]) for place in grouped])
    if pairs > MOST_PAIRS:
        reason = f"{pairs:,} pairs of variants are more than {MOST_PAIRS:,}"
        return [_ungrouped(one, reason) for one in strata]
    sets = [Together(tuple(measured[id_].log_in_time for id_ in judged[place])) for place in grouped]
    ratios = Ratios(sets, seed) if sets else None
    found: list[Grouping] = []
    for place, (stratum, ids) in enumerate(zip(strata, judged, strict=True)):
        if ratios is None or place not in grouped:
            reason = f"{len(ids)} variants have {MIN_TRIALS} counted trials, which takes {FEWEST}"
            found.append(_ungrouped(stratum, reason))
        else:
            which = grouped.index(place)
            found.append(_grouping(stratum, ids, sets[which], ratios, which, noise))
    return found


def _grouping(
    stratum: Stratum, ids: list[str], one: Together, ratios: Ratios, which: int, noise: NoiseFloor | None
) -> Grouping:
    order = sorted(range(len(ids)), key=lambda place: -one.centres[place])

    least = math.log(noise.smallest_ratio) if noise is not None and noise.alarm else 0.0

    def is_apart(over: int, under: int) -> bool:
        interval = ratios.interval(which, over, under)
        if interval is None or interval.low <= 1 <= interval.high:
            return False
        return abs(one.centres[over] - one.centres[under]) > least

    apart = [[over != under and is_apart(over, under) for under in order] for over in order]
    letters = compact_letters(apart)
    few = [id_ for id_ in stratum.variants if id_ not in ids]
    missing = f"fewer than {MIN_TRIALS} counted trials: {', '.join(few)}" if few else None
    if letters is None:
        missing = "no letters: too many groups overlap"
    return Grouping(
        stratum=stratum.label,
        letters={ids[place]: text for place, text in zip(order, letters, strict=True)} if letters else {},
        told_apart=_told_apart(apart),
        fastest=tuple(ids[place] for place, is_told in zip(order, apart[0], strict=True) if not is_told),
        missing=missing,
    )


def _told_apart(apart: Sequence[Sequence[bool]]) -> Literal["none", "some", "all"]:
    pairs = [apart[over][under] for over in range(len(apart)) for under in range(over)]
    if all(pairs):
        return "all"
    return "some" if any(pairs) else "none"
