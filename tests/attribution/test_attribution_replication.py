"""The standby and the step that commits wait for by construction are found, nine times of ten each."""

from pathlib import Path

import pytest

from known import run_cases, short
from known_replication import CASES, EXPECTED, EXPERIMENT, Conflicting

REPEATS = 10
RIGHT_OF_TEN = 9


def right_of(folder: Path, repeats: int) -> dict[str, int]:
    """How many trials of each case had exactly what it was made to have; each finding is printed."""
    found = run_cases(folder, EXPERIMENT, CASES, repeats, Conflicting)
    right = {}
    for levels, expected in EXPECTED.items():
        assert len(found[levels]) == repeats
        for one in found[levels]:
            print(short(one))
        case = ", ".join(levels)
        right[case] = sum(one.kind == "replication" and one.sentence.endswith(expected) for one in found[levels])
        print(f"| {case} | {expected} | {right[case]} of {repeats} |")
    return right


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("state_dir")
def test_nine_of_ten_are_right_in_each_case(scratch: Path) -> None:
    """Prints the table of docs/studies/plinth-itself.md."""
    right = right_of(scratch, repeats=REPEATS)
    assert all(count >= RIGHT_OF_TEN for count in right.values()), right
