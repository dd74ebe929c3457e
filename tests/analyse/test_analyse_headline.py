"""The headline is the effect that the answer tells first: the strongest that is decided, or why none is."""

import random
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from analyse_bundles import bundle, server_facts, sweep
from plinth.analyse import analyse
from plinth.model.analysis import Analysis
from plinth.model.figures import times_of
from plinth.model.level import Level
from plinth.model.plan import Variant

THREE_FACTORS: dict[str, list[Any]] = {
    "server.settings.synchronous_commit": ["on", "off"],
    "server.settings.wal_compression": ["off", "pglz"],
    "server.settings.wal_sync_method": ["fdatasync", "open_datasync"],
}


def noisy(rate: Callable[[Mapping[str, Level]], float], cv: float = 0.02) -> Callable[[Variant, int], float]:
    """Rates with a spread that is the same in each run of the test."""

    def of(variant: Variant, block: int) -> float:
        drawn = random.Random(zlib.crc32(f"{variant.id}/{block}".encode()))
        return rate(variant.levels) * drawn.lognormvariate(0, cv)

    return of


def first_sentence(analysis: Analysis) -> str:
    return re.split(r"(?<=\.) (?=[A-Z])", analysis.answer)[0]


def test_of_one_factor_the_headline_is_its_ratio() -> None:
    analysis = analyse(bundle({"disk": [1000, 1040, 980, 1010, 960], "xfs": [1805, 1830, 1775, 1819, 1765]}))
    (comparison,) = analysis.comparisons
    assert analysis.headline is not None
    assert (analysis.headline.variant, analysis.headline.ratio) == ("xfs", comparison.ratio)
    assert analysis.headline.note == "throughput of xfs relative to disk"


def test_of_three_factors_the_strongest_decided_effect_is_told_first_and_named_by_what_differs() -> None:
    def rate(levels: Mapping[str, Level]) -> float:
        return 1000 * (3.6 if levels["server.settings.synchronous_commit"] == "off" else 1.0)

    contents = sweep(THREE_FACTORS, noisy(rate))
    servers = {
        one.id: server_facts(synchronous_commit=str(one.settings["synchronous_commit"]))
        for one in contents.plan.variants
    }
    analysis = analyse(replace(contents, servers=servers))
    assert len(analysis.comparisons) == 7
    assert analysis.headline is not None and analysis.headline.ratio is not None
    strongest = max((one for one in analysis.comparisons if one.verdict == "better"), key=lambda one: one.ratio.value)
    assert (analysis.headline.variant, analysis.headline.ratio) == (strongest.variant, strongest.ratio)
    assert times_of(strongest.ratio, "the baseline") in analysis.answer
    assert analysis.headline.note == "throughput of synchronous_commit=off relative to the baseline"
    assert "synchronous_commit=off ran at 3." in first_sentence(analysis)
    assert "pglz; and 1 more cannot be" in analysis.answer, "labels with commas are not separated by commas"
    assert analysis.answer.endswith("The fastest may lose recent commits in a power failure.")


def test_where_nothing_is_decided_the_headline_says_why_and_has_no_figure() -> None:
    wild = noisy(lambda levels: 1000, cv=0.5)
    analysis = analyse(sweep(THREE_FACTORS, wild))
    assert {one.verdict for one in analysis.comparisons} == {"undecided"}
    assert analysis.headline is not None
    assert (analysis.headline.variant, analysis.headline.ratio) == (None, None)
    assert analysis.headline.missing is not None
    assert analysis.headline.missing.startswith("all 7 comparisons are inconclusive (")


def test_an_undecided_pair_shows_its_ratio_with_the_reason() -> None:
    analysis = analyse(bundle({"disk": [1000, 400, 1600, 900, 1300], "xfs": [1500, 700, 1900, 800, 1300]}))
    (comparison,) = analysis.comparisons
    assert comparison.verdict == "undecided"
    assert analysis.headline is not None
    assert analysis.headline.ratio == comparison.ratio
    assert "undecided" in analysis.headline.note


def test_an_interval_that_excludes_1_and_is_undecided_says_what_decides() -> None:
    """The family of comparisons and the noise floor widen what a verdict needs: the reason stands with the interval."""
    seen = 0
    for seed in range(20):
        drawn = random.Random(seed)
        rates = {
            name: [1000 * factor * drawn.lognormvariate(0, 0.08) for _ in range(5)]
            for name, factor in {"disk": 1.0, "A/A": 1.0, "xfs": 1.15, "btrfs": 1.1, "zfs": 1.12}.items()
        }
        for one in analyse(bundle(rates)).comparisons:
            interval = one.ratio.interval
            if one.is_undecided and interval is not None and not interval.low <= 1 <= interval.high:
                seen += 1
                assert one.reason, one
    assert seen > 0, "the case does not occur: the test shows nothing"


def test_without_a_comparison_there_is_no_effect() -> None:
    analysis = analyse(bundle({"disk": [1000, 1040, 980, 1010, 960], "A/A": [1010, 1000, 990, 1030, 985]}))
    assert analysis.comparisons == ()
    assert analysis.headline is None
    assert "1,0" in analysis.answer


def test_the_fastest_that_loses_commits_is_not_the_headline_where_a_safe_one_wins() -> None:
    rates = {
        "disk": [1000, 1040, 980, 1010, 960],
        "memory": [3100, 3000, 3150, 2800, 3200],
        "xfs": [1805, 1830, 1775, 1819, 1765],
    }
    contents = bundle(rates)
    safe = server_facts(fsync="on", synchronous_commit="on", full_page_writes="on")
    analysis = analyse(replace(contents, servers=dict.fromkeys(contents.servers, safe)))
    grades = {one.id: one.safety.grade for one in analysis.variants}
    assert grades["memory"] == "does not keep"
    assert analysis.headline is not None
    expected = "xfs" if grades["xfs"] == "keeps" else "memory"
    assert analysis.headline.variant == expected
    assert "memory" in analysis.answer.lower(), "the fastest is named, with what it loses"


def test_failed_variants_leave_the_effect_of_the_others() -> None:
    rates: dict[str, Sequence[float | None]] = {
        "disk": [1000, 1040, 980, 1010, 960],
        "xfs": [1805, 1830, 1775, 1819, 1765],
        "btrfs": [None] * 5,
    }
    analysis = analyse(bundle(rates))
    assert analysis.headline is not None
    assert analysis.headline.variant == "xfs"
    nothing = analyse(bundle({"disk": [None] * 5, "xfs": [None] * 5}))
    assert nothing.headline is None
    assert nothing.answer.startswith("Nothing was measured")


@pytest.mark.parametrize("seed", range(12))
def test_the_headline_is_what_the_answer_tells(seed: int) -> None:
    """Of any design: a ratio of the headline stands in the answer, is decided where any is, and nothing decided is weaker told first."""
    drawn = random.Random(seed)
    names = ["disk", "xfs", "btrfs", "zfs", "raid"][: drawn.randint(2, 5)]
    cv = drawn.choice([0.01, 0.05, 0.3])
    factors = {name: drawn.choice([1.0, 1.02, 1.5, 3.0, 0.5]) for name in names}
    rates = {name: [1000 * factors[name] * drawn.lognormvariate(0, cv) for _ in range(5)] for name in names}
    analysis = analyse(bundle(rates))
    headline = analysis.headline
    assert headline is not None
    won = [one for one in analysis.comparisons if one.verdict == "better"]
    lost = [one for one in analysis.comparisons if one.verdict == "worse"]
    if headline.ratio is None:
        assert headline.missing
        assert not won and not lost
        return
    told = next(one for one in analysis.comparisons if one.variant == headline.variant)
    assert told.ratio == headline.ratio
    assert times_of(told.ratio, "disk") in analysis.answer
    if won:
        assert told.ratio.value == max(one.ratio.value for one in won)
    elif lost:
        assert told.ratio.value == min(one.ratio.value for one in lost)
    else:
        assert len(analysis.comparisons) == 1
        assert told.reason is None or told.reason in headline.note
