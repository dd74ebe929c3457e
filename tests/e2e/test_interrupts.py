"""Signals at random instants of a whole run: nothing is left, no traceback, and only undoing takes its time."""

import os
import random
import signal
import time

import pytest

INTERRUPTS = 3
STORAGES = """\
[storage.disk]
kind = "directory"
[storage.slow]
kind = "emulated"
profile = "sata-ssd"
size = "1GiB"
[storage.memory]
kind = "tmpfs"
size = "1GiB"
"""
LONGEST_WAIT_S = 2.0
UNDOING = "undo what this run made"


@pytest.fixture
def interrupted_project(project):
    before, _, rest = project.experiment.partition("[storage.disk]")
    _, _, rest = rest.partition("[dataset]")
    text = f"{before}{STORAGES}[dataset]{rest}".replace('storage = ["disk", "memory"]', 'storage = ["slow", "memory"]')
    project.write(text.replace("repeats = 2", "repeats = 1"))
    return project


def interrupt_once(project, nothing_left, delay_s, number):
    """Start a run, send the signal `delay_s` after its first words; returns how long it was until undoing began, or the run
    had ended, and what it said last before that."""
    running = project.start(program=("-m", "plinth"))
    assert running.next_line() is not None
    time.sleep(delay_s)
    running.signal(number)
    sent = time.monotonic()
    waited_s, said_last = None, ""
    while (line := running.next_line()) is not None:
        if UNDOING in line and waited_s is None:
            waited_s, said_last = time.monotonic() - sent, "".join(running.lines[-3:-1])
    code, said = running.end()
    assert code in (0, 3, 130, -number), said
    assert "Traceback" not in said
    assert "Exception ignored" not in said
    nothing_left()
    if waited_s is None:
        return time.monotonic() - sent, "".join(running.lines[-2:])
    return waited_s, said_last


def interrupt_often(project, nothing_left, count):
    seed = random.randrange(2**32)
    draw = random.Random(seed)
    began = time.monotonic()
    whole = project.start()
    code, said = whole.end()
    assert code in (0, 3), said
    whole_s = time.monotonic() - began
    late = []
    for number in range(count):
        delay_s = draw.uniform(0, whole_s)
        project.bundle = project.folder / f"bundle-{number}"
        waited_s, said_last = interrupt_once(
            project, nothing_left, delay_s, draw.choice([signal.SIGINT, signal.SIGTERM])
        )
        if waited_s > LONGEST_WAIT_S:
            late.append(f"after {delay_s:.3f} s: {waited_s:.1f} s, having said {said_last!r}")
            print(late[-1], flush=True)
    return late, seed


@pytest.mark.long
def test_interrupted_at_random_instants(interrupted_project, nothing_left):
    interrupt_often(interrupted_project, nothing_left, INTERRUPTS)


@pytest.mark.long
@pytest.mark.timeout(4 * 3600)
def test_interrupted_at_five_hundred_random_instants(interrupted_project, nothing_left):
    late, seed = interrupt_often(interrupted_project, nothing_left, int(os.environ.get("PLINTH_INTERRUPTS", "500")))
    assert not late, f"seed {seed}: {late}"
