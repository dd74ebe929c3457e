"""Changes that begin and end in any order."""

import random
from typing import Any

import pytest

from plinth.run.trial.emulation import Overlay

BEFORE = {"delay": 1, "loss": 0}


def test_what_ends_first_takes_nothing_of_what_began_later_and_the_last_leaves_what_there_was() -> None:
    overlay: Overlay[str] = Overlay()
    overlay.begin("first", "a", {"delay": 80}, BEFORE)
    overlay.begin("second", "a", {"delay": 5, "loss": 1}, BEFORE | {"delay": 80})
    assert overlay.end("first") == {"a": {"delay": 5}}
    assert overlay.end("second") == {"a": {"delay": 1, "loss": 0}}


def test_a_change_that_another_covered_is_in_force_again_when_that_ends() -> None:
    overlay: Overlay[str] = Overlay()
    overlay.begin("first", "a", {"delay": 80}, BEFORE)
    overlay.begin("second", "a", {"delay": 5}, BEFORE | {"delay": 80})
    assert overlay.owners() == ["second", "first"]
    assert overlay.end("second") == {"a": {"delay": 80}}
    assert overlay.end("nobody") == {}


@pytest.mark.parametrize("seed", range(50))
def test_in_any_order_that_they_end_in_all_is_as_before(seed: int) -> None:
    draw = random.Random(seed)
    settings: dict[str, dict[str, Any]] = {target: dict(BEFORE) for target in "ab"}
    overlay: Overlay[str] = Overlay()
    left: list[int] = []
    for owner in range(8):
        if left and draw.random() < 0.5:
            for target, values in overlay.end(left.pop(draw.randrange(len(left)))).items():
                settings[target] |= values
        target, changes = draw.choice("ab"), {name: draw.randrange(2, 9) for name in draw.sample(list(BEFORE), 1)}
        overlay.begin(owner, target, changes, settings[target])
        settings[target] |= changes
        left.append(owner)
    draw.shuffle(left)
    for owner in left:
        for target, values in overlay.end(owner).items():
            settings[target] |= values
    assert settings == {"a": BEFORE, "b": BEFORE}
