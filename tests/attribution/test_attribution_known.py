"""Bottlenecks that are known by construction are found, nine times of ten each; what was recorded of them: test_attribution_recorded.py."""

from collections import Counter
from pathlib import Path

import pytest

from known import IN_MEMORY, IN_MEMORY_CASES, ON_SLOW_DISKS, ON_SLOW_DISKS_CASES, Cases, run_known

EXPERIMENTS = {"in memory": (IN_MEMORY, IN_MEMORY_CASES), "on slow disks": (ON_SLOW_DISKS, ON_SLOW_DISKS_CASES)}
REPEATS = 10
RIGHT_OF_TEN = 9


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("experiment", "cases"), EXPERIMENTS.values(), ids=EXPERIMENTS)
@pytest.mark.usefixtures("state_dir")
def test_nine_of_ten_are_right_in_each_class(scratch: Path, experiment: str, cases: Cases) -> None:
    """Prints the table of docs/studies/plinth-itself.md."""
    found = run_known(scratch, experiment, cases, repeats=REPEATS)
    right = {}
    for expected, bottlenecks in found.items():
        counts = Counter(one.kind for one in bottlenecks)
        print(f"| {expected} | {', '.join(f'{kind} {count}' for kind, count in counts.most_common())} |")
        right[expected] = counts[expected]
    assert all(count >= RIGHT_OF_TEN for count in right.values()), right
