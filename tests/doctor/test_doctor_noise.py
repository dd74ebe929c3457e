"""The noise that is measured: of known noise what follows from it, and on this machine what can be known of it."""

import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from plinth.analyse.noise_floor import REPEATS, work_noise
from plinth.doctor import WORKS, measure_slots
from plinth.model.errors import PlinthError
from plinth.tasks.doctor import measure_noise


def sides(spread: float, seed: int, blocks: int = 10) -> tuple[dict[int, float], dict[int, float]]:
    rng = random.Random(seed)
    first, second = ({block: 1000 * math.exp(rng.gauss(0, spread)) for block in range(blocks)} for _ in "AB")
    return first, second


def test_more_trials_show_less_and_twice_the_noise_shows_half_as_much() -> None:
    quiet, loud = (work_noise("cpu", "", sides(spread, seed=7), seed=1) for spread in (0.02, 0.04))
    ratios = [one.ratio for one in quiet.expected]
    assert tuple(one.repeats for one in quiet.expected) == REPEATS
    assert ratios == sorted(ratios, reverse=True)
    assert all(ratio > 1 for ratio in ratios)
    for less, more in zip(quiet.expected, loud.expected, strict=True):
        assert math.log(more.ratio) == pytest.approx(2 * math.log(less.ratio))


def test_the_sides_are_rarely_distinguished_while_they_are_the_same() -> None:
    apart = sum(work_noise("cpu", "", sides(0.05, seed), seed=1).told_apart for seed in range(40))
    assert apart <= 7  # 2 of 40 are expected; more than 7 come in one of a thousand


def test_sides_that_differ_are_distinguished() -> None:
    first, second = sides(0.01, seed=3)
    assert work_noise("cpu", "", (first, {block: rate * 1.2 for block, rate in second.items()}), seed=1).told_apart


def test_work_that_shows_no_spread_expects_nothing() -> None:
    same = dict.fromkeys(range(10), 500.0)
    noise = work_noise("cpu", "", (same, same), seed=1)
    assert noise.expected == ()
    assert noise.pair.note is not None


def test_every_side_is_measured_in_every_block_and_no_file_is_left(scratch: Path) -> None:
    measured = measure_slots(scratch, blocks=2, slot_s=0.005)
    assert sorted((slot.work, slot.block, slot.side) for slot in measured.slots) == sorted(
        (work, block, side) for work in WORKS for block in range(2) for side in "AB"
    )
    assert all(slot.rate_per_s > 0 for slot in measured.slots)
    assert list(scratch.iterdir()) == []


def test_each_side_comes_first_now_and_then() -> None:
    measured = measure_slots(Path("/dev/shm"), blocks=6, slot_s=0)
    for work in WORKS:
        firsts = [
            next(slot.side for slot in measured.slots if (slot.work, slot.block) == (work, block)) for block in range(6)
        ]
        assert set(firsts) == {"A", "B"}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/proc", "cannot measure the noise"),
        ("/no/such", "no such directory"),
        ("/proc/version", "it is not a directory"),
    ],
)
def test_a_place_that_cannot_be_written_is_an_error(path: str, words: str) -> None:
    with pytest.raises(PlinthError) as raised:
        measure_noise(Path(path), 2)
    assert words in raised.value.message
    assert raised.value.where == path


def plinth(*words: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}
    command = [sys.executable, "-m", "plinth", "doctor", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)


def test_the_command_shows_what_it_found_and_the_noise(scratch: Path) -> None:
    done = plinth(scratch, "--noise", "1.2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("machine\n")
    assert f"\n{scratch}\n" in done.stdout
    assert f"Noise, in {scratch}" in done.stdout
    assert "20 trials" in done.stdout


def test_the_command_gives_json_and_examines_where_storages_are_made() -> None:
    done = plinth("--json")
    assert done.returncode == 0, done.stderr
    (examination,) = json.loads(done.stdout)["examinations"]
    assert examination["places"]
    assert {finding["about"] for finding in examination["findings"]} == {"machine", *examination["places"]}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("/no/such/place",), "no such directory"),
        (("/tmp", "--noise", "0.1"), "too short to measure noise"),
        (("/tmp", "--noise", "inf"), "--noise: got inf; allowed are at most 366 d"),
    ],
)
def test_the_command_refuses_what_makes_no_sense(words: tuple[str, ...], message: str) -> None:
    done = plinth(*words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "hint:" in done.stderr
