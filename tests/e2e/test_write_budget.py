"""measure.max_written: a run ends before it is passed, and every run reports what it wrote to which disk."""

import json

import pytest


def test_a_run_that_would_write_too_much_ends_and_leaves_nothing(project, nothing_left):
    done = project.run("--set", "measure.max_written=20MB")
    assert done.returncode == 4, done.stderr
    assert "error: the write budget is spent" in done.stderr
    assert "where: measure.max_written" in done.stderr
    assert "(disk)" in done.stderr  # which disk, and for which storage
    assert "larger budget" in done.stderr
    assert project.status() == "interrupted"
    nothing_left()
    wear = json.loads((project.bundle / "wear.json").read_text())
    assert wear["max_written_bytes"] == 20_000_000

    again = project.plinth("resume", project.bundle)
    assert again.returncode == 4, again.stderr
    assert "the write budget is spent" in again.stderr
    nothing_left()


@pytest.mark.long
def test_every_run_shows_what_it_wrote(project):
    done = project.run("--set", "measure.max_written=1TB", "--set", "measure.repeats=1")
    assert done.returncode in (0, 3), done.stderr
    wear = json.loads((project.bundle / "wear.json").read_text())
    disks = [disk for disk in wear["disks"] if "disk" in disk["storages"]]
    assert disks
    assert all(disk["written_bytes"] > 2**20 for disk in disks)
    assert all("memory" not in disk["storages"] for disk in wear["disks"])
    for disk in disks:  # SMART, or why there is none
        assert disk["before"] or disk["gaps"]
    report = project.plinth("report", project.bundle, "--markdown").stdout
    assert "## Written to disks" in report
    assert f"| {disks[0]['disk']} |" in report
