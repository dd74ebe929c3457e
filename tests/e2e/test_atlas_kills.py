"""kill -9 of an atlas: nothing that it has left keeps an image from being tested, and nothing stays."""

import random
import signal
import subprocess
import time

import pytest

from plinth.bundle import read_cuts
from power_cut_experiment import LEDGER, TPCB_WITH_LEDGER, experiment

IMAGES = 4
ATLAS = experiment(
    cuts=0,
    durability=f'atlas = {IMAGES}\nrecordings = 1\nrecord = "500ms"\nmodes = ["drop"]\nmoments = ["load"]\n'
    'points = ["change"]\nstop_after = 9',
    load=LEDGER,
    disk="",
)
DYING = """\
import os, signal, sys
from plinth.run.power_cuts import atlas

called, calls = atlas.{function}, 0

def dying(*args, **options):
    global calls
    calls += 1
    if calls == {call}:
        os.kill(os.getpid(), signal.SIGKILL)
    return called(*args, **options)

atlas.{function} = dying
from plinth.cli import main
sys.exit(main())
"""
"""plinth, which is killed when it calls a function of the atlas for the n-th time."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("await_first_commit", 1),  # the disk is being recorded
        pytest.param("start_server", 1, marks=pytest.mark.long),  # an image is mounted
        pytest.param("check_recovered", 2, marks=pytest.mark.long),  # servers of images run
        pytest.param("name_torn_pages", IMAGES, marks=pytest.mark.long),  # others are checked
    ],
)
def test_all_images_are_tested_by_the_run_that_resumes_one_that_was_killed(project, nothing_left, function, call):
    project.write(ATLAS)
    run = project.start("--yes", program=("-c", DYING.format(function=function, call=call)))
    code, stderr = run.end()
    assert code == -signal.SIGKILL, stderr
    before = {cut.number: cut for cut in read_cuts(project.bundle)}
    assert project.left_behind() != []
    all_tested_once_resumed(project, before)
    nothing_left()


def all_tested_once_resumed(project, before):
    resumed = project.plinth("resume", project.bundle, timeout_s=200)
    assert resumed.returncode in (0, 3), resumed.stderr
    cuts = {cut.number: cut for cut in read_cuts(project.bundle)}
    assert sorted(cuts) == list(range(1, len(cuts) + 1))
    assert {number: cut.failure for number, cut in cuts.items() if cut.failure} == {}
    assert before.items() <= cuts.items()
    images = [cut for number, cut in cuts.items() if number not in before and cut.recording is not None]
    assert {cut.attempt for cut in images} <= {2}, "the recording before is gone"
    assert project.status() == "complete"


@pytest.mark.long
def test_an_image_that_could_not_be_served_is_tested_by_the_next_resume(project, nothing_left):
    """The folder of one image is there already, and not Plinth's."""
    project.write(ATLAS)
    run = project.start("--yes")
    run.wait_for("cut the power")
    (storage,) = (path for path in project.state.glob("work/plinth-*-disk") if "-recording-" not in path.name)
    in_the_way = storage.with_name(f"{storage.name}-image-2")
    in_the_way.mkdir()
    (in_the_way / "theirs").write_text("kept")
    code, stderr = run.end()
    assert code in (0, 3), stderr
    assert f"1 of {IMAGES} power cuts could not be tested; `plinth resume {project.bundle}` tries again" in stderr
    before = {cut.number: cut for cut in read_cuts(project.bundle)}
    assert [number for number, cut in before.items() if cut.failure] == [2]
    assert (in_the_way / "theirs").read_text() == "kept"
    before.pop(2)
    all_tested_once_resumed(project, before)
    assert (in_the_way / "theirs").read_text() == "kept"
    (in_the_way / "theirs").unlink()
    in_the_way.rmdir()
    nothing_left()
    again = project.plinth("resume", project.bundle)
    assert again.returncode in (0, 3) and "nothing to resume" in again.stderr


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_whenever_an_atlas_is_killed_it_is_cleaned_and_resumed(project, nothing_left):
    """At 60 random instants of live cuts, recordings and images."""
    text = ATLAS.replace("cuts = 0", "cuts = 2").replace("recordings = 1", "recordings = 2")
    project.write(
        text.replace('kind = "none"', f"{TPCB_WITH_LEDGER[0]}").replace('builtin = "ledger"', TPCB_WITH_LEDGER[1])
    )
    chance = random.Random(20261126)
    run = project.start("--yes")
    run.wait_for("cut the power")
    began = time.monotonic()
    assert run.end(timeout_s=200)[0] in (0, 3)
    whole_s = time.monotonic() - began
    for number in range(60):
        project.bundle = project.folder / f"bundle-{number}"
        run = project.start("--yes")
        run.wait_for("cut the power")
        try:
            run.process.wait(chance.uniform(0, whole_s))
        except subprocess.TimeoutExpired:
            run.signal(signal.SIGKILL)
        run.end()
        before = {cut.number: cut for cut in read_cuts(project.bundle) if cut.was_tested}
        if number % 2:
            cleaned = project.plinth("clean")
            assert cleaned.returncode == 0, (number, cleaned.stderr)
            nothing_left()
        resumed = project.plinth("resume", project.bundle, timeout_s=200)
        assert resumed.returncode in (0, 3), (number, resumed.stderr)
        cuts = {cut.number: cut for cut in read_cuts(project.bundle)}
        assert sorted(cuts) == list(range(1, IMAGES + 3)), number
        assert before.items() <= cuts.items() and all(cut.was_tested for cut in cuts.values()), (number, resumed.stderr)
        nothing_left()
