"""Storages that this machine cannot make, each lost alone: reported with the step and the right exit code, while the others continue."""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest

from disks import MIB, WORD, command, dev_without, disk, in_private_mounts, without_program

HEAD = """\
spec = 1
name = "bad"
question = "What fails here?"
dataset = { kind = "tpcb", scale = 1 }
workload = { builtin = "tpcb-like", clients = 1 }
matrix = { storage = LEVELS }
measure = { warmup = "0s", duration = "200ms", repeats = 1, aa = false }
storage.fine = { kind = "directory" }
"""


class Lost(NamedTuple):
    """What a storage must be lost by: the exit code that goes with it, and words of the reason."""

    exit_code: int
    said: str


def lost_but_the_rest_continues(project, storages: str, lost: Mapping[str, Lost], *words: str, prefix=()) -> None:
    """Run an experiment all of whose storages but `fine` are lost, the first of them telling how it ends."""
    project.write(HEAD.replace("LEVELS", json.dumps([*lost, "fine"])) + storages)
    done = project.run(*words, prefix=prefix)
    assert done.returncode == next(iter(lost.values())).exit_code, done.stderr
    assert "Traceback" not in done.stderr
    recorded = json.loads((project.bundle / "manifest.json").read_text())["failures"]
    found = {loss["what"].removeprefix("storage "): loss for loss in recorded}
    assert list(found) == list(lost)
    for name, expected in lost.items():
        assert expected.said in found[name]["reason"]
        assert found[name]["exit_code"] == expected.exit_code, found[name]
    trials = {trial["variant"]: trial for trial in project.trials()}
    assert trials["fine"]["status"] == "complete"
    assert all(trials[name]["failure"].startswith("not run: ") for name in lost)
    assert project.left_behind() == []
    resumed = project.plinth("resume", project.bundle, prefix=prefix)  # which has nothing to do
    assert resumed.returncode == done.returncode, resumed.stderr
    assert next(iter(lost.values())).said in resumed.stderr


def zram(name: str, *fields: str) -> str:
    return "\n".join((f"[storage.{name}]", 'kind = "zram"', 'size = "400MiB"', *fields, ""))


@pytest.mark.long
def test_what_is_in_use_or_refused_or_not_installed(project, tmp_path) -> None:
    def attempt() -> None:
        with disk(tmp_path, size_bytes=512 * MIB) as used:
            command("mkfs.ext4", "-q", used.node)
            (tmp_path / "used").mkdir()
            command("mount", used.node, tmp_path / "used")
            without_program("mkfs.xfs", project.folder)
            storages = f'[storage.used]\nkind = "device"\nid = "{used.id}"\nserial = "{used.serial}"\nsize = "512MiB"\n'
            storages += zram("no-tool", 'filesystem = "xfs"')
            storages += zram("bad-mkfs", 'mkfs_options = ["-O", "no_such_feature"]')
            storages += zram("bad-mount", 'mount_options = ["commit=never"]')
            lost = {
                "no-tool": Lost(5, "mkfs.xfs: there is no such program"),  # known before the run, and so the first
                "used": Lost(4, f"is in use: ext4 on {tmp_path / 'used'}"),
                "bad-mkfs": Lost(5, "storage bad-mkfs: make the file system ext4 on "),
                "bad-mount": Lost(5, "storage bad-mount: mount it on "),
            }
            try:
                lost_but_the_rest_continues(project, storages, lost, "--destroy", WORD)
            finally:
                command("umount", tmp_path / "used")

    in_private_mounts(attempt)


@pytest.mark.long
def test_no_fuse_and_no_loop_device_left(project) -> None:
    def attempt() -> None:
        dev_without("fuse", "loop[0-9]*")
        storages = '[storage.served]\nkind = "emulated"\nprofile = "ideal"\nsize = "400MiB"\n'
        storages += '[storage.looped]\nkind = "loop"\nsize = "400MiB"\n'
        lost = {"served": Lost(5, "this system has no FUSE"), "looped": Lost(5, "no loop device is available")}
        lost_but_the_rest_continues(project, storages, lost)

    in_private_mounts(attempt)


@pytest.mark.long
def test_no_right_to_mount(project) -> None:
    without: Sequence[str] = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--")
    said = "needs the right to make and mount block devices"
    storages = '[storage.looped]\nkind = "loop"\nsize = "400MiB"\n' + zram("zram")
    lost = {"looped": Lost(5, f"storage looped {said}"), "zram": Lost(5, f"storage zram {said}")}
    lost_but_the_rest_continues(project, storages, lost, prefix=without)
