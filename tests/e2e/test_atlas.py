"""The atlas of a run: images of recorded disks are checked, kept, opened and minimised."""

import json
import os
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from plinth.bundle import read_cuts
from plinth.tasks.kept_images import kept_image
from power_cut_experiment import LEDGER, TPCB, TPCB_WITH_LEDGER, experiment

DURABILITY = (
    'atlas = 4\nrecordings = 2\nrecord = "500ms"\nmodes = ["drop", "torn"]\nmoments = ["load", "checkpoint"]\n'
    'points = ["change"]\ntear_sizes = [512]\nstop_after = 9'
)
ATLAS = experiment(
    cuts=0,
    durability=DURABILITY,
    load=TPCB_WITH_LEDGER,
    data="",
    wal='filesystem = "btrfs"',  # of which one image at a time can be mounted
).replace("[dataset]", '[server]\nstorage = "data"\nwal_storage = "wal"\n[dataset]')
MATRIX = '[matrix]\nstorage = ["data", "wal"]'
ATLAS_OF_ONE = experiment(cuts=0, durability=DURABILITY, load=LEDGER, disk="")
MATRIX_OF_ONE = '[matrix]\nstorage = ["disk"]'
OFF = '[matrix]\nserver.settings.synchronous_commit = ["off"]\nstorage = ["disk"]'


@pytest.fixture(scope="module")
def atlas(module_project):
    """A run whose data and WAL were recorded on disks of their own, and its cuts."""
    module_project.write(ATLAS.replace(MATRIX, '[matrix]\nserver.settings.synchronous_commit = ["on", "off"]'))
    done = module_project.run("--yes", timeout_s=250)
    assert done.returncode in (0, 3), done.stderr
    assert module_project.left_behind() == []
    return module_project, read_cuts(module_project.bundle)


@pytest.mark.long
def test_images_of_recorded_disks_show_what_was_lost_by_each_moment(atlas):
    """synchronous_commit = off loses commits; with on, the control, nothing is missing."""
    project, cuts = atlas
    assert [cut.failure for cut in cuts] == [None] * 8
    for cut in cuts:
        assert cut.disks == ("data", "wal") and len(cut.points) == len(cut.reports) == 2
        assert cut.recording in (1, 2) and cut.recovery_s is not None
    assert len({cut.acknowledged for cut in cuts}) > 4, "each is of another moment, with its own commits"
    on = [cut for cut in cuts if cut.variant == "synchronous-commit-on"]
    assert all(not cut.damage for cut in on) and {(cut.mode, cut.moment) for cut in on} == {
        (mode, moment) for mode in ("drop", "torn") for moment in ("load", "checkpoint")
    }
    lost = [damage for cut in cuts for damage in cut.damage]
    assert lost and {damage.kind for damage in lost} == {"lost commit"}
    for cut in cuts:
        timeline = cut.timeline
        assert (timeline is not None) == bool(cut.damage)
        assert timeline is None or sum(timeline.lost) == cut.lost_commits
    report = json.loads(project.plinth("report", project.bundle, "--json").stdout)
    tests = {variant["id"]: variant["durability"] for variant in report["analysis"]["variants"]}
    assert [tests["synchronous-commit-on"][key] for key in ("made", "images", "independent", "damaged")] == [4, 4, 2, 0]
    assert sorted(path.name for path in (project.bundle / "recordings").iterdir()) == sorted(
        {f"{cut.variant}-recording-{cut.recording:04d}" for cut in cuts if cut.damage}
    )
    assert project.plinth("verify", project.bundle).returncode == 0


@pytest.mark.long
def test_a_damaged_image_is_opened_with_its_server_until_the_interrupt(atlas):
    project, cuts = atlas
    number = next(cut.number for cut in cuts if cut.damage)
    with (project.folder / "opened").open("w") as stdout:
        opened = project.start(command=("durability", "open", project.bundle, number), stdout=stdout)
        opened.wait_for("Ctrl-C ends it")
    lines = (project.folder / "opened").read_text().splitlines()
    psql = next(line for line in lines if line.startswith("psql:"))
    host = psql.split("-h ")[1].split()[0]
    with psycopg.connect(host=host, user="postgres", dbname="postgres") as control:
        row = control.execute("SELECT count(*) FROM pgbench_branches").fetchone()
    assert row == (1,)
    opened.signal(signal.SIGINT)
    code, stderr = opened.end()
    assert code == 0 and "Traceback" not in stderr
    assert project.left_behind() == []


@pytest.mark.long
def test_the_shortest_damaged_beginning_of_a_recording_is_found(atlas):
    project, cuts = atlas
    number = next(cut.number for cut in cuts if cut.damage)
    done = project.plinth("durability", "minimise", str(project.bundle), str(number), timeout_s=120)
    assert done.returncode == 0, done.stderr
    assert "damaged from the records" in done.stdout and "one change before" in done.stdout
    assert f"--points {done.stdout.split('from the records ')[1].split()[0]}" in done.stdout
    assert project.left_behind() == []


@pytest.mark.long
def test_a_ledger_without_space_fails_each_recording_separately_and_says_so(project, nothing_left):
    """The place of the bundle is filled once the trial is over."""
    small = project.folder / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "plinth-test", str(small)], check=True)
    project.bundle = small / "bundle"
    try:
        project.write(ATLAS_OF_ONE.replace("atlas = 4", "atlas = 2"))
        run = project.start("--yes")
        run.wait_for("cut the power")
        ballast = small / "ballast"
        ballast.write_bytes(bytes(os.statvfs(small).f_bfree * 4096 - 600_000))
        for number in (1, 2):
            said = run.wait_for(f"cut {number} failed")
            assert "cannot extend the ledger" in said and "No space left on device" in said
        ballast.unlink()
        code, stderr = run.end()
        assert code == 3 and "Traceback" not in stderr
        nothing_left()
        assert [path.name for path in (project.bundle / "ledgers").iterdir()] == ["0001"], "of the trial only"
        markdown = project.plinth("report", project.bundle, "--markdown").stdout
        assert "cut 1: n/a: the load could not run: cannot extend the ledger" in markdown
    finally:
        subprocess.run(["umount", str(small)], check=True)


@pytest.mark.long
def test_images_of_an_interrupted_recording_are_kept_next_to_those_of_the_next_attempt(
    project, nothing_left, monkeypatch
):
    """With synchronous_commit = off every image lacks commits. Ctrl-C, then resume: the rest is of a new recording."""
    project.write(
        ATLAS_OF_ONE.replace("atlas = 4\nrecordings = 2", "atlas = 4\nrecordings = 1").replace(MATRIX_OF_ONE, OFF)
    )
    run = project.start("--yes")
    run.wait_for("lost commit", timeout_s=90)
    run.signal(signal.SIGINT)
    code, stderr = run.end()
    assert code == 130 and "Traceback" not in stderr
    nothing_left()
    before = {cut.number: cut for cut in read_cuts(project.bundle)}
    resumed = project.plinth("resume", project.bundle, timeout_s=200)
    assert resumed.returncode in (0, 3), resumed.stderr
    nothing_left()
    after = {cut.number: cut for cut in read_cuts(project.bundle)}
    assert sorted(after) == [1, 2, 3, 4] and before.items() <= after.items()
    assert {cut.attempt for cut in before.values()} == {1}
    again = [cut for cut in after.values() if cut.attempt == 2]
    assert len(again) == 4 - len(before)
    monkeypatch.setenv("PLINTH_STATE_DIR", str(project.state))
    for cuts in (before.values(), again):
        damaged = next(cut for cut in cuts if cut.damage)
        with kept_image(project.bundle, damaged.number, print) as image:
            found = image.checked_at(damaged.points)
        assert sum(damage.count for damage in found.damage) == damaged.lost_commits
    nothing_left()


@pytest.mark.long
def test_an_image_that_the_kernel_does_not_mount_is_a_result_with_its_words(project, nothing_left):
    """The superblock is zeroed below the file system, over and over, while the disk is recorded."""
    project.write(ATLAS_OF_ONE.replace("recordings = 2", "recordings = 1"))
    run = project.start("--yes")
    run.wait_for("cut the power")
    (disk,) = project.state.glob("work/*/disk/disk.img")
    zeroed = threading.Event()

    def zero_superblock() -> None:
        with disk.open("r+b", buffering=0) as file:
            while not zeroed.wait(0.01):
                os.pwrite(file.fileno(), bytes(1024), 1024)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(zero_superblock)
        try:
            run.wait_for("recovery refused", timeout_s=90)
        finally:
            zeroed.set()
        writing.result()
    code, stderr = run.end()
    assert code == 0 and "Traceback" not in stderr, stderr
    nothing_left()
    refused = [
        damage for cut in read_cuts(project.bundle) for damage in cut.damage if damage.kind == "recovery refused"
    ]
    assert refused and all("mount" in damage.evidence[0] for damage in refused)
    assert any("superblock" in line for damage in refused for line in damage.evidence)


@pytest.mark.long
def test_what_was_not_kept_is_not_opened(atlas):
    project, cuts = atlas
    clean = next(cut.number for cut in cuts if cut.variant == "synchronous-commit-on")
    for number, code, said in ((clean, 4, "was not kept"), (999, 2, "has no power cut 999")):
        refused = project.plinth("durability", "open", str(project.bundle), str(number))
        assert refused.returncode == code
        assert said in refused.stderr and "images with damage, which were kept:" in refused.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ATLAS.replace(f"{TPCB[1]}\nledger = true", TPCB[1]), "an atlas needs a commit ledger"),
        (
            ATLAS.replace('kind = "emulated"\nprofile = "sata-ssd"', 'kind = "tmpfs"').replace(
                'filesystem = "btrfs"', ""
            ),
            "only emulated disks can be",
        ),
        (ATLAS.replace("[durability]", '[durability]\ndisks = "one"'), "a cut of all disks at once"),
        (ATLAS.replace("atlas = 4", "atlas = 0"), "nothing would be tested"),
    ],
)
def test_what_cannot_be_recorded_is_refused_in_the_plan(project, text, said):
    project.write(text.replace(MATRIX, "[matrix]\nworkload.clients = [1]"))
    refused = project.plinth("plan", "x.toml")
    assert refused.returncode == 2
    assert said in refused.stderr
