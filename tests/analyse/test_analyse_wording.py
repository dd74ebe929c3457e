"""The sentences, word for word."""

import pytest

from plinth.analyse.comparison import Outcome, why_undecided
from plinth.analyse.wording import Side, comparison_sentence, rate
from plinth.model.analysis import NoiseFloor, Verdict
from plinth.model.figures import Estimate, Interval, number, percent_or_times, times
from plinth.model.safety import SafetyGrade

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
        (estimate(1.0, 0.12, 8.0), "1.0x [0.12, 8.0]"),
        (estimate(49, 8, 300), "49x [8.0, 300]"),
        (estimate(5, 2.4, 10.4), "5.0x [2.4, 10]"),
        (estimate(0.00042, 0.0003, 0.0006), "0.00042x [0.00030, 0.00060]"),
        (estimate(1e-9, 5e-10, 2e-9), "<0.000001x [<0.000001, <0.000001]"),
        (estimate(12_345, 9_000, 18_000), "12,345x [9,000, 18,000]"),
        (estimate(1234.5), "1,234x"),
        (estimate(0.000123), "0.000123x"),
        (estimate(float("inf")), "n/ax"),
    ],
)
def test_ratio_has_the_digits_that_its_interval_allows(ratio: Estimate, text: str) -> None:
    assert times(ratio) == text


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (estimate(1234.4, 1200, 1260.2), "1,234 transactions/s (95 % CI 1,200 to 1,260)"),
        (estimate(3.456, 3.2, 3.61), "3.46 transactions/s (95 % CI 3.20 to 3.61)"),
        (estimate(20000), "20,000 transactions/s"),
        (estimate(0.0042, 0.0031, 0.0057), "0.0042 transactions/s (95 % CI 0.0031 to 0.0057)"),
        (estimate(0), "0 transactions/s"),
    ],
)
def test_rate(figure: Estimate, text: str) -> None:
    assert rate(figure) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.0000123, "0.0000123"),
        (0.01234, "0.0123"),
        (3, "3"),
        (9.999, "10"),
        (99.96, "100"),
        (740, "740"),
        (1_661_683, "1,661,683"),
        (float("inf"), "n/a"),
        (float("nan"), "n/a"),
    ],
)
def test_a_number_is_never_in_powers_of_ten(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(1.005, "0.5 %"), (1.0432, "4.3 %"), (1.99, "99 %"), (2.4, "2.4x"), (8.4, "8.4x"), (740.0, "740x")],
)
def test_a_difference_is_in_percent_up_to_twice(ratio: float, text: str) -> None:
    assert percent_or_times(ratio) == text


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
            "Memory ran at 3.1x disk (95 % CI 2.8 to 3.4). Memory can lose acknowledged commits in a power failure.",
        ),
        ("better", estimate(3.1, 2.8, 3.4), KEEPS, KEEPS, None, "Memory ran at 3.1x disk (95 % CI 2.8 to 3.4)."),
        (
            "better",
            estimate(3.1, 2.8, 3.4),
            RECENT,
            KEEPS,
            None,
            "Memory ran at 3.1x disk (95 % CI 2.8 to 3.4). Memory may lose recent commits in a power failure.",
        ),
        (
            "better",
            estimate(3.1, 2.8, 3.4),
            UNKNOWN,
            UNKNOWN,
            None,
            "Memory ran at 3.1x disk (95 % CI 2.8 to 3.4). Whether any of them keeps acknowledged commits is not known.",
        ),
        (
            "worse",
            estimate(1 / 1.8, 1 / 2.05, 1 / 1.61),
            KEEPS,
            LOSES,
            None,
            "Memory ran at 0.56x disk (95 % CI 0.49 to 0.62). Disk can lose acknowledged commits in a power failure.",
        ),
        (
            "worse",
            estimate(0.5, 0.4, 0.6),
            LOSES,
            KEEPS,
            None,
            "Memory ran at 0.50x disk (95 % CI 0.40 to 0.60). Memory can lose acknowledged commits in a power failure.",
        ),
        (
            "no difference shown",
            estimate(1.01, 0.98, 1.03),
            LOSES,
            LOSES,
            None,
            "No difference shown: memory ran at 1.01x disk (95 % CI 0.98 to 1.03), within 5 %. "
            "Both can lose acknowledged commits in a power failure.",
        ),
        (
            "undecided",
            estimate(1.08, 0.97, 1.2),
            KEEPS,
            KEEPS,
            6,
            "Inconclusive: memory ran at 1.08x disk (95 % CI 0.97 to 1.20). "
            "About 6 more trials of each would be needed to tell (`plinth resume BUNDLE --more 6`).",
        ),
        (
            "undecided",
            estimate(1.3, 1.05, 1.6),
            KEEPS,
            KEEPS,
            1,
            "Inconclusive: memory ran at 1.3x disk (95 % CI 1.1 to 1.6); clear alone, but not as one of 3 comparisons. "
            "About 1 more trial of each would be needed to tell (`plinth resume BUNDLE --more 1`).",
        ),
        (
            "undecided",
            estimate(3.0, n=2, note="not enough trials for an interval: it needs at least 3, not 2"),
            LOSES,
            KEEPS,
            3,
            "Inconclusive: memory ran at 3x disk (not enough trials for an interval: it needs at least 3, not 2). "
            "About 3 more trials of each would be needed to tell (`plinth resume BUNDLE --more 3`). "
            "Memory can lose acknowledged commits in a power failure.",
        ),
    ],
)
def test_comparison(
    verdict: Verdict, ratio: Estimate, memory: SafetyGrade, disk: SafetyGrade, more: int | None, text: str
) -> None:
    reason = why_undecided(ratio, FLOOR, family=3) if verdict == "undecided" else None
    outcome = Outcome(ratio, verdict, more_trials=more, reason=reason)
    said = comparison_sentence(outcome, Side("memory", memory), Side("disk", disk))
    assert said == text
