"""Loop, file, zram and btrfs: really made, read back, used by the server's user, and taken down without a trace."""

import fcntl
import os
import struct
import subprocess
from pathlib import Path

import pytest

from making import node_facts, write_as_owner
from plinth.model.errors import MissingCapability, PlinthError, Refused, RunError
from plinth.system.directory import found_label
from plinth.system.mounts import mount_of
from plinth.system.owner import server_owner
from plinth.system.paths import work_dir
from plinth.system.runner import CommandRecord, Runner
from storage_tables import MEMORY, loop

XFS_IOC_GOINGDOWN, GOING_NOLOGFLUSH = 0x8004587D, 2  # fs/xfs/libxfs/xfs_fs.h


@pytest.mark.parametrize("filesystem", ["ext4", "xfs", "btrfs"])
def test_a_loop_is_made_as_planned_belongs_to_the_server_and_forgets_with_its_layers(made, filesystem) -> None:
    commands: list[CommandRecord] = []
    made.runner = Runner(commands.append)
    facts = made.prepare(loop(filesystem))["s"]
    storage = made.storages["s"]

    ran = [command.argv for command in commands]
    planned = [step.argv for each in made.storages.values() for step in each.steps() if step.argv]
    assert [argv for argv in ran if argv in planned] == planned
    assert facts.filesystem == mount_of(storage.mount_point).filesystem == filesystem
    assert facts.volatile_reason == f"tmpfs on {made.storages['memory'].mount_point} keeps its files in memory"
    device = os.path.realpath(storage.device_paths()[0])
    assert facts.block_devices == (Path(device).name,)
    assert node_facts(facts, "loop")["backing_file"] == str(storage.images.paths[0])
    assert node_facts(facts, "loop")["direct_io"] is True
    assert node_facts(facts, "filesystem")["features"]
    assert [gap for gap in facts.gaps if "features" in gap.what] == []
    found = storage.mount_point.stat()
    assert (found.st_uid, found.st_mode & 0o7777) == (server_owner().uid, 0o700)
    assert found_label(storage.mount_point) == "plinth-t1"
    write_as_owner(storage.mount_point)
    assert storage.failure() is None

    made.undo()
    storage.teardown(made.runner, made.journal)


def test_options_reach_mkfs_and_mount_and_are_found_again(made) -> None:
    facts = made.prepare(loop("xfs", mkfs_options='["-m", "reflink=0"]', mount_options='["noatime", "logbsize=256k"]'))
    features = node_facts(facts["s"], "filesystem")["features"]
    assert isinstance(features, list)
    assert "meta-data.reflink=0" in features
    assert {"noatime", "logbsize=256k"} <= set(facts["s"].mount_options)
    assert [gap for gap in facts["s"].gaps if "mount option" in gap.what] == []


def test_a_mount_option_that_the_kernel_does_not_show_is_a_gap(made) -> None:
    facts = made.prepare(loop("ext4", mount_options='["barrier=0", "oldalloc", "noatime"]'))["s"]
    assert [gap.what for gap in facts.gaps if "mount option" in gap.what] == ["mount option oldalloc"]


def test_nothing_is_left_to_be_written_in_the_background(made) -> None:
    made.prepare(loop("ext4"))
    device = made.storages["s"].device_paths()[0]
    groups = Runner().run(("dumpe2fs", str(device))).stdout
    lines = [line for line in groups.splitlines() if line.startswith("Group ") and "csum" in line]
    assert lines
    assert all("ITABLE_ZEROED" in line for line in lines), lines


def test_a_file_may_stand_in_a_named_directory(made, scratch: Path) -> None:
    (scratch / "place").mkdir()
    made.prepare(f'[storage.s]\nkind = "loop"\nsize = "64MiB"\npath = "{scratch / "place"}"\n')
    folder = scratch / "place" / "plinth-t1-s"
    assert found_label(folder) == "plinth-t1"
    assert [path.name for path in folder.iterdir() if path.name == "image"] == ["image"]
    assert (folder / "image").stat().st_blocks * 512 < 64 * 2**20, "it is sparse"
    assert made.storages["s"].needs_from() == scratch / "place"
    made.undo()
    assert list((scratch / "place").iterdir()) == []


def test_direct_io_is_off_where_it_is_not_wanted(made) -> None:
    assert node_facts(made.prepare(loop("ext4", direct_io="false"))["s"], "loop")["direct_io"] is False


def test_the_queue_is_set_and_set_back_also_what_the_kernel_changes_along_with_it(made) -> None:
    facts = made.prepare(loop("ext4", queue='{ write_cache = "write through", wbt_lat_usec = 0 }'))["s"]
    found = node_facts(facts, "loop")
    assert (found["write_cache"], found["wbt_lat_usec"]) == ("write through", 0)
    assert "sends no flushes" in (facts.flushes_withheld or ""), "the loop device had a write-back cache before"
    device = Path(os.path.realpath(made.storages["s"].device_paths()[0])).name
    queue = Path("/sys/block") / device / "queue"
    before = node_facts(facts, "loop")["read_ahead_kb"]
    assert int((queue / "read_ahead_kb").read_text()) == before
    made.undo()
    assert (queue / "write_cache").read_text().strip() == "write back"


def test_read_ahead_is_what_was_asked_for_even_with_another_knob(made) -> None:
    """Linux computes it again whenever the write cache is set."""
    facts = made.prepare(loop("ext4", queue='{ read_ahead_kb = 64, write_cache = "write through" }'))["s"]
    assert node_facts(facts, "loop")["read_ahead_kb"] == 64


def test_knobs_of_members_are_set_once_the_file_system_is_there(made) -> None:
    text = PAIR.format(profile="raid0", metadata="raid1", count=1)
    facts = made.prepare(text.replace('kind = "loop"\n', 'kind = "loop"\nqueue = { read_ahead_kb = 96 }\n'))["pair"]
    found = [node_facts(facts, "loop", index)["read_ahead_kb"] for index in range(2)]
    assert sorted(map(int, map(str, found)))[0] == 96 != found[1]
    made.storages["pair"].teardown(made.runner, made.journal)
    queues = [Path("/sys/block") / name / "queue/read_ahead_kb" for name in facts.block_devices if "loop" in name]
    assert all(queue.read_text() != "96\n" for queue in queues)


@pytest.mark.parametrize(
    ("queue", "kind", "message"),
    [
        ('{ scheduler = "bogus" }', RunError, "set scheduler = bogus of .*: the kernel refuses to have the knob set"),
        ("{ nr_requests = 1 }", RunError, "asked for nr_requests = 1, got"),
    ],
)
def test_a_knob_that_the_kernel_does_not_take_is_an_error_and_all_is_undone(made, queue, kind, message) -> None:
    with pytest.raises(kind, match=message) as error:
        made.prepare(loop("ext4", queue=queue))
    assert error.value.where
    assert [entry.step.id for entry in made.journal.entries if ".s." in entry.step.id] == []


def test_a_knob_that_a_device_lacks_is_missing(made) -> None:
    with pytest.raises(MissingCapability, match="this device has no knob scheduler"):
        made.prepare('[storage.s]\nkind = "zram"\nsize = "32MiB"\nqueue = { scheduler = "none" }\n')


def test_a_zram_disk_is_added_to_those_that_are_there(made) -> None:
    there = {folder.name for folder in Path("/sys/block").glob("zram*")}
    facts = made.prepare('[storage.s]\nkind = "zram"\nsize = "64MiB"\nalgorithm = "lzo"\n')["s"]
    (name,) = facts.block_devices
    assert name not in there
    assert node_facts(facts, "zram")["comp_algorithm"] == "lzo"
    assert facts.volatile_reason == f"{name} keeps its blocks in memory"
    assert made.storages["s"].needs_from() == "memory"
    write_as_owner(made.storages["s"].mount_point)
    made.undo()
    assert {folder.name for folder in Path("/sys/block").glob("zram*")} >= there
    assert not (Path("/sys/block") / name).exists()


def test_an_algorithm_that_the_kernel_lacks_is_missing(made) -> None:
    with pytest.raises(MissingCapability, match="does not know the algorithm 'gzip9'") as error:
        made.prepare('[storage.s]\nkind = "zram"\nsize = "64MiB"\nalgorithm = "gzip9"\n')
    assert "it offers: " in (error.value.hint or "")


PAIR = (
    '[storage.pair]\nkind = "btrfs"\nmembers = ["a", "b"]\ndata_profile = "{profile}"\nmetadata_profile = "{metadata}"\n'
    '[storage.a]\nkind = "loop"\nsize = "128MiB"\ncount = {count}\non = "memory"\n'
    '[storage.b]\nkind = "file"\nsize = "128MiB"\ncount = {count}\non = "memory"\n' + MEMORY
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("profile", "metadata", "count"), [("single", "dup", 1), ("raid0", "raid1", 1), ("raid1", "raid1", 1), ("raid10", "raid10", 2)]
)  # fmt: skip
def test_btrfs_over_members_of_several_kinds(made, profile: str, metadata: str, count: int) -> None:
    facts = made.prepare(PAIR.format(profile=profile, metadata=metadata, count=count))
    pair = facts["pair"]
    found = node_facts(pair, "filesystem")
    assert (found["data_profiles"], found["metadata_profiles"]) == ([profile], [metadata])
    assert len(pair.block_devices) == 2 * count
    assert pair.block_devices == tuple(sorted((*facts["a"].block_devices, *facts["b"].block_devices)))
    assert (facts["a"].filesystem, facts["a"].total_bytes) == ("none", count * 128 * 2**20)
    assert pair.volatile
    assert made.storages["pair"].needs_from() is None
    half = 2 if profile in ("raid1", "raid10") else 1
    assert made.storages["pair"].capacity_bytes() == 2 * count * 128 * 2**20 // half
    assert made.storages["a"].needs_from() is made.storages["memory"]
    write_as_owner(made.storages["pair"].mount_point)


def test_a_loop_on_a_loop_is_followed_down_and_undone_in_order(made) -> None:
    facts = made.prepare(
        '[storage.inner]\nkind = "loop"\nsize = "64MiB"\non = "s"\n' + loop("btrfs").replace("128MiB", "256MiB")
    )
    kinds = [node.kind for node in facts["inner"].stack]
    assert kinds == ["mount", "filesystem", "loop", "mount", "filesystem", "loop", "mount", "filesystem", "memory"]
    assert facts["inner"].volatile


def test_where_files_of_ours_stand_the_server_may_write_but_not_put_another_in_their_place(made) -> None:
    made.prepare(loop("ext4"))
    memory = made.storages["memory"].mount_point
    files = made.storages["s"].images.folder
    assert files.parent == memory
    write_as_owner(memory)
    for command in (["mv", str(files), str(memory / "moved")], ["rm", "-rf", str(files)]):
        with pytest.raises(PlinthError, match="failed with exit code"):
            Runner().run(command, owner=server_owner())
    assert made.storages["s"].images.paths[0].exists()
    with pytest.raises(PlinthError, match="failed with exit code"):
        Runner().run(["ls", str(files)], owner=server_owner())
    with pytest.raises(PlinthError, match="failed with exit code"):
        Runner().run(["touch", str(made.storages["s"].folder / "x")], owner=server_owner())


def test_a_storage_is_not_undone_while_another_is_stored_on_it(made) -> None:
    made.prepare(loop("ext4"))
    storage, memory = made.storages["s"], made.storages["memory"]
    with pytest.raises(PlinthError):
        memory.teardown(made.runner, made.journal)
    assert storage.failure() is None
    held = (storage.mount_point / "file").open("w")
    with held, pytest.raises(PlinthError, match="umount failed"):
        storage.teardown(made.runner, made.journal)
    assert node_facts(storage.facts(made.runner), "loop")["backing_file"], "its device was not detached under it"


def test_a_foreign_file_system_in_our_place_is_left_alone(made) -> None:
    made.prepare(loop("ext4"))
    storage = made.storages["s"]
    device = os.path.realpath(storage.device_paths()[0])
    subprocess.run(["umount", storage.mount_point], check=True)
    subprocess.run(["e2label", device, "theirs"], check=True)
    subprocess.run(["mount", device, storage.mount_point], check=True)
    with pytest.raises(Refused, match="has the label 'theirs', not ours") as error:
        storage.teardown(made.runner, made.journal)
    assert error.value.hint == f"unmount it yourself if it is not wanted: umount {storage.mount_point}"
    assert os.path.ismount(storage.mount_point)
    subprocess.run(["umount", storage.mount_point], check=True)


def shut_down_xfs(mount_point: Path) -> None:
    """What a file system does when its log cannot be written, as after a power cut: afterwards its root cannot be opened."""
    directory = os.open(mount_point, os.O_RDONLY)
    fcntl.ioctl(directory, XFS_IOC_GOINGDOWN, struct.pack("I", GOING_NOLOGFLUSH))
    os.close(directory)
    with pytest.raises(OSError, match="Input/output error"):
        list(mount_point.iterdir())


def test_a_file_system_that_has_shut_down_is_unmounted(made) -> None:
    made.prepare(loop("xfs"))
    storage = made.storages["s"]
    shut_down_xfs(storage.mount_point)
    storage.teardown(made.runner, made.journal)
    assert not os.path.ismount(storage.mount_point)


def test_a_foreign_one_that_has_shut_down_is_left_alone(made, scratch: Path) -> None:
    """Its label can no longer be read, and its device is not linked next to the mount point."""
    made.prepare(loop("xfs"))
    storage, image = made.storages["s"], scratch / "theirs.img"
    subprocess.run(["umount", storage.mount_point], check=True)
    image.touch()
    os.truncate(image, 320 * 2**20)
    subprocess.run(["mkfs.xfs", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, storage.mount_point], check=True)
    shut_down_xfs(storage.mount_point)
    with pytest.raises(PlinthError, match="Input/output error"):
        storage.teardown(made.runner, made.journal)
    subprocess.run(["umount", storage.mount_point], check=True)


@pytest.mark.long
@pytest.mark.parametrize(
    "toml",
    [
        loop("ext4"),
        '[storage.s]\nkind = "zram"\nsize = "32MiB"\n',
        '[storage.s]\nkind = "emulated"\nprofile = "ideal"\nsize = "32MiB"\non = "memory"\n' + MEMORY,
        PAIR.format(profile="raid0", metadata="raid0", count=1),
    ],
    ids=["loop", "zram", "emulated", "btrfs"],
)
def test_a_mount_namespace_that_has_copied_our_mounts_holds_nothing_up(made, toml: str) -> None:
    made.prepare(toml)
    script = ["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo ready; read end"]
    with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as elsewhere:
        assert elsewhere.stdout is not None
        assert elsewhere.stdout.readline() == b"ready\n"
        made.undo()
        table = Path(f"/proc/{elsewhere.pid}/mountinfo").read_text()
        assert str(work_dir()) not in table
        elsewhere.communicate(b"end\n")


def test_without_root_it_is_refused_before_anything_is_made(made) -> None:
    with pytest.raises(MissingCapability, match="needs the right to make and mount block devices") as error:
        made.prepare('[storage.s]\nkind = "loop"\nsize = "64MiB"\n', can_mount=False)
    assert error.value.exit_code == 5
    assert "run as root" in (error.value.hint or "")
    assert made.journal.entries == ()
    assert not work_dir().exists()


def test_what_a_storage_takes_and_holds(made) -> None:
    facts = made.prepare(PAIR.format(profile="raid0", metadata="raid1", count=1))
    storages = made.storages
    assert (storages["a"].needs_bytes(), storages["memory"].needs_bytes()) == (128 * 2**20, None)
    assert storages["memory"].capacity_bytes() == 2 * 2**30
    assert storages["pair"].requires() == ["a", "b"]
    assert storages["pair"].capacity_bytes() >= facts["pair"].total_bytes
