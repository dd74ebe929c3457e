"""The sentences, word for word."""

import pytest

from plinth.analyse.wording import Side, comparison_sentence, rate, times
from plinth.model.analysis import NoiseFloor, SafetyGrade, Verdict
from plinth.model.estimate import Estimate, Interval

KEEPS: SafetyGrade = "keeps"
LOSES: SafetyGrade = "does not keep"
RECENT: SafetyGrade = "may lose recent commits"
UNKNOWN: SafetyGrade = "unknown"


def estimate(
    value: float, low: float | None = None, high: float | None = None, n: int = 5, note: str | None = None
) -> Estimate:
    interval = None if low is None or high is None else Interval(low=low, high=high)
    return Estimate(value=value, interval=interval, n=n, method="given", note=note)


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (estimate(3.1, 2.8, 3.4), "3.1x [2.8, 3.4]"),
        (estimate(1.8, 1.61, 2.05), "1.8x [1.6, 2.0]"),
        (estimate(1.8, 1.77, 1.84), "1.80x [1.77, 1.84]"),
        (estimate(1.3, 1.02, 1.65), "1.30x [1.02, 1.65]"),
        (estimate(1.004, 1.0021, 1.0062), "1.004x [1.002, 1.006]"),
        (estimate(12.4, 11.8, 13.1), "12.4x [11.8, 13.1]"),
        (estimate(130, 90, 180), "130x [90, 180]"),
        (estimate(2.987), "2.99x"),
    ],
)
def test_ratio_has_the_digits_that_its_interval_allows(ratio: Estimate, text: str) -> None:
    assert times(ratio) == text


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (estimate(1234.4, 1200, 1260.2), "1,234 transactions/s [1,200, 1,260]"),
        (estimate(3.456, 3.2, 3.61), "3.46 transactions/s [3.20, 3.61]"),
        (estimate(20000), "20,000 transactions/s"),
    ],
)
def test_rate(figure: Estimate, text: str) -> None:
    assert rate(figure) == text


FLOOR = NoiseFloor(ratio=estimate(1.0, 0.9, 1.11), smallest_ratio=1.11, alarm=False)


@pytest.mark.parametrize(
    ("verdict", "ratio", "memory", "disk", "more", "text"),
    [
        (
            "better",
            estimate(3.1, 2.8, 3.4),
            LOSES,
            KEEPS,
            None,
            "memory is 3.1x [2.8, 3.4] faster than disk; but what it acknowledges it does not keep",
        ),
        ("better", estimate(3.1, 2.8, 3.4), KEEPS, KEEPS, None, "memory is 3.1x [2.8, 3.4] faster than disk"),
        (
            "better",
            estimate(3.1, 2.8, 3.4),
            RECENT,
            KEEPS,
            None,
            "memory is 3.1x [2.8, 3.4] faster than disk; but it may lose recent commits",
        ),
        (
            "better",
            estimate(3.1, 2.8, 3.4),
            UNKNOWN,
            UNKNOWN,
            None,
            "memory is 3.1x [2.8, 3.4] faster than disk; whether either keeps what it acknowledges is not known",
        ),
        (
            "worse",
            estimate(1 / 1.8, 1 / 2.05, 1 / 1.61),
            KEEPS,
            LOSES,
            None,
            "memory is 1.8x [1.6, 2.0] slower than disk; and memory keeps what it acknowledges, which disk does not do",
        ),
        (
            "worse",
            estimate(0.5, 0.4, 0.6),
            LOSES,
            KEEPS,
            None,
            "memory is 2.0x [1.7, 2.5] slower than disk; and what it acknowledges it does not keep",
        ),
        (
            "no difference shown",
            estimate(1.01, 0.98, 1.03),
            LOSES,
            LOSES,
            None,
            "no difference shown between memory and disk: 1.01x [0.98, 1.03], inside 5%; neither keeps what it acknowledges",
        ),
        (
            "undecided",
            estimate(1.08, 0.97, 1.2),
            KEEPS,
            KEEPS,
            6,
            "whether memory is faster or slower than disk is undecided: 1.08x [0.97, 1.20]; "
            "about 6 more trials of each would be needed to tell",
        ),
        (
            "undecided",
            estimate(1.3, 1.05, 1.6),
            KEEPS,
            KEEPS,
            1,
            "whether memory is faster or slower than disk is undecided: 1.3x [1.1, 1.6]; clear by itself, but not as one "
            "of several comparisons; about 1 more trial of each would be needed to tell",
        ),
        (
            "undecided",
            estimate(3.0, n=2, note="no interval: it needs at least 3 trials, not 2"),
            LOSES,
            KEEPS,
            3,
            "whether memory is faster or slower than disk is undecided: 3x; no interval: it needs at least 3 trials, not 2; "
            "about 3 more trials of each would be needed to tell; of memory: what it acknowledges it does not keep",
        ),
    ],
)
def test_comparison(
    verdict: Verdict, ratio: Estimate, memory: SafetyGrade, disk: SafetyGrade, more: int | None, text: str
) -> None:
    said = comparison_sentence(verdict, ratio, Side("memory", memory), Side("disk", disk), FLOOR, more)
    assert said == text
