"""ZFS by zfs-fuse: pools of several shapes, really made, read back and taken down, and what goes wrong with them."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from disks import command, in_private_mounts
from leftovers import nothing_left
from making import Made, from_toml
from plinth.model.errors import PlinthError, Refused
from plinth.model.facts import StorageFacts
from plinth.observe.arrays import Pool, pools_of
from plinth.storage.devices import zfs as zfs_devices
from plinth.storage.devices.zfs import ZfsFuse
from plinth.storage.kinds.file import Files
from plinth.storage.kinds.loop import Loop
from plinth.storage.kinds.zfs import Zfs
from plinth.system.directory import found_label
from plinth.system.mounts import mounts
from plinth.system.owner import server_owner
from plinth.system.runner import CommandRecord, Runner
from short_load import run_short_load
from typed import of

FILES = '[storage.v]\nkind = "file"\nsize = "64MiB"\ncount = {count}\n'
POOL = '[storage.s]\nkind = "zfs"\n'
WITH_LOG_AND_CACHE = (
    FILES.format(count=4)
    + """
[storage.log]
kind = "file"
size = "64MiB"
count = 2
[storage.ssd]
kind = "loop"
size = "64MiB"
[storage.s]
kind = "zfs"
data = ["v"]
log = ["log"]
log_layout = "mirror"
cache = ["ssd"]
pool_properties = { ashift = 12 }
properties = { recordsize = "8K", atime = "off" }
"""
)


def pool(count: int, keys: str) -> str:
    return FILES.format(count=count) + POOL + keys


def zfs_facts(facts: StorageFacts) -> dict[str, object]:
    (node,) = [node for node in facts.stack if node.kind == "zfs"]
    return {fact.name: fact.value for fact in node.facts}


def words_of(status: object) -> list[str]:
    assert isinstance(status, list)
    return [line.split()[0] for line in status]


def test_a_pool_with_log_mirror_and_cache_is_made_as_planned_and_taken_down(made: Made) -> None:
    commands: list[CommandRecord] = []
    made.runner = Runner(commands.append)
    facts = made.prepare(WITH_LOG_AND_CACHE)["s"]
    storage = of(Zfs, made.storages["s"])
    planned = [step.argv for each in made.storages.values() for step in each.steps() if step.argv]
    assert [command.argv for command in commands if command.argv in planned] == planned
    assert (facts.filesystem, facts.path) == ("fuse.zfs", str(storage.mount_point))
    assert [node.kind for node in facts.stack[:3]] == ["mount", "filesystem", "zfs"]
    assert [node.kind for node in facts.stack].count("file") == 6
    assert pools_of([facts]) == (Pool(storage.pool, by_fuse=True, files=6),)
    link = of(Loop, made.storages["ssd"]).device_paths()[0]
    loop = Path(os.path.realpath(link))
    assert loop.name in facts.block_devices
    found = zfs_facts(facts)
    status = words_of(found["status"])
    assert status.index("logs") < status.index("mirror-4") < status.index("cache") < status.index(str(link))
    assert f"cache: {link} -> {loop}" in str(found["devices"])
    assert str(of(Files, made.storages["log"]).member_paths()[1]) in words_of(found["iostat"])
    assert (found["pool.ashift"], found["pool.version"]) == ("12", "23")
    assert (found["dataset.recordsize"], found["dataset.atime"]) == ("8K", "off")
    assert "dataset.compression" not in found, "it is at its default"
    assert [gap for gap in facts.gaps if "zfs" in gap.what or "below" in gap.what] == []
    assert "nothing about the durability" in facts.notes[0]
    owner = storage.mount_point.stat()
    assert (owner.st_uid, owner.st_mode & 0o7777) == (server_owner().uid, 0o700)
    assert found_label(storage.mount_point) == "plinth-t1"
    Runner().run(["sh", "-c", 'echo 18 > "$0/PG_VERSION"', str(storage.mount_point)], owner=server_owner())
    assert storage.failure() is None
    storage.teardown(made.runner, made.journal)
    assert not storage.folder.exists()


@pytest.mark.parametrize(
    ("count", "keys", "vdevs", "capacity"),
    [
        (2, 'data = ["v"]\nlayout = "mirror"\n', ["mirror-0"], 1),
        (3, 'data = ["v"]\nlayout = "raidz"\n', ["raidz1-0"], 2),
        (2, 'data = [["v"], ["w"]]\nlayout = "mirror"\n[storage.w]\nkind = "file"\nsize = "64MiB"\ncount = 2\n',
         ["mirror-0", "mirror-1"], 2),
    ],
    ids=["mirror", "raidz", "groups"],
)  # fmt: skip
def test_layouts(made: Made, count: int, keys: str, vdevs: list[str], capacity: int) -> None:
    facts = made.prepare(pool(count, keys))["s"]
    status = words_of(zfs_facts(facts)["status"])
    assert [word for word in status if word.startswith(("mirror", "raidz"))] == vdevs
    assert made.storages["s"].capacity_bytes() == capacity * 64 * 2**20
    assert 0.4 < facts.total_bytes / (capacity * 64 * 2**20) < 1


def test_what_the_host_has_mounted_is_not_held_by_the_daemon(made: Made, scratch: Path) -> None:
    other = scratch / "other"
    other.mkdir()
    Runner().run(("mount", "-t", "tmpfs", "other", str(other)))
    made.prepare(pool(1, 'data = ["v"]\n'))
    inside = ("nsenter", f"--mount={of(Zfs, made.storages['s']).folder / 'namespace'}", "cat", "/proc/self/mountinfo")
    seen = Runner().run(inside).stdout
    assert str(made.storages["s"].mount_point) in seen
    assert str(other) not in seen
    assert str(other) in Path("/proc/self/mountinfo").read_text(), "it lets go of it for itself alone"
    Runner().run(("umount", str(other)))
    other.rmdir()


def test_where_mounts_are_shared_as_systemd_has_them_nothing_of_the_host_is_unmounted(
    state_dir: Path, scratch: Path
) -> None:
    def seen() -> list[str]:
        """All mount points but those of other tests on this machine."""
        points = [Path(mount.point) for mount in mounts()]
        return sorted(str(p) for p in points if p.is_relative_to(scratch) or not p.is_relative_to(scratch.parent))

    def make_and_undo() -> None:
        (scratch / "stacked").mkdir()
        for _ in range(2):
            command("mount", "-t", "tmpfs", "stacked", scratch / "stacked")
        command("mount", "--make-rshared", "/")
        before = seen()
        made = Made()
        point = made.prepare(pool(1, 'data = ["v"]\n'))["s"].path
        assert seen() == sorted((*before, str(Path(point).parent), point))
        made.undo()
        made.journal.close()
        assert seen() == before

    in_private_mounts(make_and_undo)


@pytest.mark.long
@pytest.mark.parametrize(
    ("keys", "exit_code", "said", "where"),
    [
        ('properties = { compression = "lz4" }\n', 5, "'compression' must be one of", "storage.s.properties.compression"),
        ('properties = { sync = "disabled" }\n', 5, "invalid property 'sync'", "storage.s.properties.sync"),
        ('properties = { recordsize = "3k" }\n', 5, "must be power of 2", "storage.s.properties.recordsize"),
        ('pool_properties = { autotrim = "on" }\n', 5, "not a valid pool property", "storage.s.pool_properties.autotrim"),
        ("pool_properties = { ashift = 20 }\n", 2, "2^9 to 2^16", "storage.s.pool_properties.ashift"),
        ('cache = ["w"]\n', 2, "a cache needs a block device", "storage.s.cache"),
        ('special = ["w"]\n', 1, "make the ZFS pool", None),
        ('layout = "raidz"\n', 1, "make the ZFS pool", None),
    ],
    ids=lambda value: value.partition(" = ")[0] if isinstance(value, str) and " = " in value else "",
)  # fmt: skip
def test_what_is_refused_is_named_and_undone(
    made: Made, keys: str, exit_code: int, said: str, where: str | None
) -> None:
    with pytest.raises(PlinthError) as error:
        made.prepare(pool(1, f'data = ["v"]\n{keys}[storage.w]\nkind = "file"\nsize = "64MiB"\n'))
    assert error.value.exit_code == exit_code
    assert said in error.value.message
    assert where is None or error.value.where == where
    assert not of(Zfs, made.storages["s"]).folder.exists()


def test_members_of_another_pool_are_refused(made: Made) -> None:
    made.prepare(pool(1, 'data = ["v"]\n'))
    other = of(Zfs, from_toml(pool(1, 'data = ["v"]\n').replace("storage.s", "storage.t"))["t"])
    with pytest.raises(Refused, match=f"has zfs_member labelled '{of(Zfs, made.storages['s']).pool}'"):
        other.prepare(made.runner, made.journal)
    assert not other.folder.exists()


def test_a_pool_of_that_name_that_is_not_ours_is_neither_overwritten_nor_destroyed(made: Made) -> None:
    made.prepare(pool(2, 'data = ["v"]\n'))
    storage, journal = of(Zfs, made.storages["s"]), made.journal
    zpool = (*ZfsFuse(storage.folder).inside, "zpool")
    create = next(action for action in storage.actions() if action.step.id.endswith(".pool"))
    with pytest.raises(PlinthError) as error:
        create.do(Runner())
    assert "part of active pool" in " ".join(error.value.details)
    zfs_devices._destroy(storage.pool, storage.mount_point, ZfsFuse(storage.folder).inside, Runner())
    Runner().run((*zpool, "create", "-o", "cachefile=none", "-O", "mountpoint=none", storage.pool,
                  *map(str, of(Files, made.storages["v"]).member_paths())))  # fmt: skip
    kept = journal.undo_steps("storage.s.", Runner())
    assert [each.error.exit_code for each in kept] == [4] * len(kept)
    assert "it is not ours" in kept[0].error.message
    assert storage.pool in Runner().run((*zpool, "list")).stdout
    Runner().run((*zpool, "destroy", storage.pool))


def test_a_copy_of_the_mount_in_another_namespace_does_not_keep_the_pool(made: Made) -> None:
    point = made.prepare(pool(1, 'data = ["v"]\n'))["s"].path
    holder = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo; cat"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    assert holder.stdin is not None and holder.stdout is not None
    holder.stdout.readline()
    assert point in Path(f"/proc/{holder.pid}/mountinfo").read_text()
    made.undo()
    assert point not in Path(f"/proc/{holder.pid}/mountinfo").read_text()
    holder.communicate(b"")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_daemon_that_dies_or_hangs_is_reported_and_everything_is_undone(
    made: Made, how: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zfs_devices, "_ASK_TIMEOUT_S", 1.0)
    monkeypatch.setattr(zfs_devices, "_ANSWER_TIMEOUT_S", 1.0)
    made.prepare(pool(1, 'data = ["v"]\n'))
    storage = of(Zfs, made.storages["s"])
    (pid,) = ZfsFuse(storage.folder).pids()
    os.kill(pid, how)
    if how == signal.SIGKILL:
        os.waitpid(pid, 0)
    reported = "has died" if how == signal.SIGKILL else f"(pid {pid}) does not answer"
    assert reported in (storage.failure() or "")
    made.undo()
    assert ZfsFuse(storage.folder).pids() == []


def test_a_daemon_that_does_not_start_is_reported_with_its_words(made: Made, scratch: Path) -> None:
    (scratch / "bin").mkdir()
    (scratch / "bin/zfs-fuse").write_text("#!/bin/sh\necho no such luck\nexit 3\n")
    (scratch / "bin/zfs-fuse").chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{scratch / 'bin'}:{os.environ['PATH']}")
        with pytest.raises(PlinthError, match="zfs-fuse ended with exit code 3") as error:
            made.prepare(pool(1, 'data = ["v"]\n'))
    assert error.value.details == ("no such luck",)
    (scratch / "bin/zfs-fuse").unlink()


@pytest.mark.long
def test_postgresql_runs_on_it_and_nothing_is_left(scratch: Path) -> None:
    with nothing_left(scratch / "state"):
        run_short_load(scratch, WITH_LOG_AND_CACHE.replace("64MiB", "256MiB"), ["s"])
