"""Storages with space but without inodes, which PostgreSQL's errors and hints do not tell from full ones."""

import json

import pytest

EXPERIMENT = """\
spec = 1
name = "inodes"
question = "What fails here?"
dataset = { kind = "tpcb", scale = 1, partitions = 300 }
workload = { builtin = "tpcb-like", clients = 1 }
matrix = { storage = ["few-for-the-load", "few-for-initdb", "fine"] }
measure = { warmup = "0s", duration = "200ms", repeats = 1, aa = false, probe = "0s" }

[storage.few-for-the-load]
kind = "loop"
size = "1GiB"
filesystem = "ext4"
mkfs_options = ["-N", "1200"]
[storage.few-for-initdb]
kind = "loop"
size = "1GiB"
filesystem = "ext4"
mkfs_options = ["-N", "600"]
[storage.fine]
kind = "loop"
size = "1GiB"
"""
HINT = "hint: the storage has space, but no inodes left for further files"


@pytest.mark.long
def test_no_inodes_are_distinguished_from_no_space_in_the_load_and_in_initdb(project, nothing_left) -> None:
    project.write(EXPERIMENT)
    done = project.run()
    assert done.returncode == 1, done.stderr
    assert HINT in done.stderr and "the storage is full" not in done.stderr
    failures = {
        failure["what"]: failure["reason"]
        for failure in json.loads((project.bundle / "manifest.json").read_text())["failures"]
    }
    assert list(failures) == ["cluster 1-few-for-the-load", "cluster 2-few-for-initdb"]
    for reason in failures.values():  # a full file system still serves: nothing is said to be broken
        assert "could not create file" in reason and "No space left on device" in reason
    trials = {trial["variant"]: trial["status"] for trial in project.trials()}
    assert trials["fine"] == "complete"
    nothing_left()


def test_initdb_that_finds_no_inodes_says_so(project, nothing_left) -> None:
    """It has removed all that it made by the time anybody can look."""
    project.write(EXPERIMENT.replace('"few-for-the-load", "few-for-initdb", "fine"', '"few-for-initdb"'))
    done = project.run()
    assert done.returncode == 1, done.stderr
    assert "initdb failed with exit code 1" in done.stderr and HINT in done.stderr
    nothing_left()
