"""How storages are layered: what is accepted, what is not, and where the error points."""

import pytest

from plinth.experiment import read_experiment_text
from plinth.model.errors import ExperimentError
from plinth.model.storage import DeviceStorage, LoopStorage
from plinth.model.storage_graph import in_order, mounted_storages, raw_storages
from typed import of, present

HEAD = """\
spec = 1
name = "nested"
question = "Which is faster?"
dataset = { kind = "none" }
workload = { builtin = "select-only" }
"""
STORAGES = """\
[storage.tank]
kind = "zfs"
data = [["vdev"], ["x", "y"]]
layout = "mirror"
log = ["log"]
cache = ["ram"]
[storage.vdev]
kind = "file"
size = "1GiB"
on = "slow"
count = 2
[storage.slow]
kind = "emulated"
profile = "hdd-10k-sas"
size = "4GiB"
on = "memory"
[storage.memory]
kind = "tmpfs"
size = "8GiB"
[storage.x]
kind = "loop"
size = "1GiB"
queue = { scheduler = "none" }
[storage.y]
kind = "loop"
size = "1GiB"
path = "/mnt/nvme0"
[storage.log]
kind = "device"
id = "/dev/disk/by-id/nvme-a"
serial = "S1"
size = "480GB"
[storage.ram]
kind = "zram"
size = "512MiB"
"""


def storages(text: str):
    return read_experiment_text(HEAD + text, "x.toml", folder=None).experiment.storage  # type: ignore[arg-type] - no scripts


def problems(text: str) -> list[tuple[str, str, str]]:
    with pytest.raises(ExperimentError) as caught:
        storages(text)
    lines = (HEAD + text).splitlines()
    return [(lines[int(present(p.where).rpartition(":")[2]) - 1], p.key, p.message) for p in caught.value.problems]


def test_each_comes_after_those_that_it_is_built_on_and_members_are_raw():
    found = storages(STORAGES)
    assert in_order(found) == ["memory", "slow", "vdev", "x", "y", "log", "ram", "tank"]
    assert raw_storages(found) == dict.fromkeys(["vdev", "x", "y", "log", "ram"], "tank")
    assert mounted_storages(found) == ["tank", "slow", "memory"]
    assert of(LoopStorage, found["x"]).queue.knobs() == {"scheduler": "none"}


WRONG = [
    # change, the line that is named, key, words of the message
    (('on = "memory"', 'on = "memry"'), 'on = "memry"', "slow.on", "'memry' is not one of: tank, vdev"),
    (('on = "memory"', 'on = "vdev"'), 'on = "vdev"', "slow.on", "'vdev' is of kind file, which is not mounted"),
    (('on = "memory"', 'on = "x"'), 'on = "x"', "slow.on", "'x' is a member of 'tank', so no file can be stored on it"),
    (('on = "memory"', 'on = "tank"'), "[storage.tank]", "tank", "itself: tank -> vdev -> slow -> tank"),
    (('on = "memory"', 'on = "slow"'), "[storage.slow]", "slow", "itself: slow -> slow"),
    (('on = "memory"', 'on = "memory"\npath = "/"'), "[storage.slow]", "slow", "path or on, not both"),
    (('on = "memory"', "count = 2"), "count = 2", "slow.count", "no storage has 'slow' as a member"),
    (('cache = ["ram"]', 'cache = ["memory"]'), 'cache = ["memory"]', "tank.cache.0", "cannot be a member; allowed: loop"),
    (('cache = ["ram"]', 'cache = ["x"]'), 'cache = ["x"]', "tank.cache.0", "'x' is a member already, of 'tank'"),
    (('["x", "y"]', '["x"]'), 'data = [["vdev"], ["x"]]', "tank.data.1", "layout mirror needs at least 2 members, got 1"),
    (('log = ["log"]', 'log = ["log"]\nlog_layout = "mirror"'), 'log = ["log"]', "tank.log", "log_layout mirror needs at"),
    (('scheduler = "none"', "sheduler = 1"), 'queue = { sheduler = 1 }', "x.queue.sheduler", "unknown key 'sheduler'"),
    (('path = "/mnt/nvme0"', 'filesystem = "xfs"'), 'filesystem = "xfs"', "y.filesystem", "gets no file system of its own"),
    (('path = "/mnt/nvme0"', "mkfs_options = [1]"), "mkfs_options = [1]", "y.mkfs_options.0", "must be text in quotes"),
    (('path = "/mnt/nvme0"', "fill = 0.5"), "fill = 0.5", "y.fill", "gets no file system of its own"),
    (('size = "4GiB"', 'size = "4GiB"\nfill = 0.99'), "fill = 0.99", "slow.fill", "less than 0.99"),
    (('size = "4GiB"', 'size = "4GiB"\nfill = -0.1'), "fill = -0.1", "slow.fill", "greater than or equal to 0"),
    (('"/dev/disk/by-id/nvme-a"', '"/dev/sda"'), 'id = "/dev/sda"', "log.id", "'/dev/sda'"),
    (('size = "512MiB"', 'size = "1KiB"'), 'size = "1KiB"', "ram.size", "greater than or equal to 1048576"),
    (('size = "512MiB"', "size = 1048577"), "size = 1048577", "ram.size", "multiple of 512"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "line", "key", "message"), WRONG)
def test_what_cannot_stand_on_one_another_is_found_where_it_is_written(change, line, key, message):
    assert change[0] in STORAGES
    found = problems(STORAGES.replace(change[0], change[1], 1))
    assert [(line, f"storage.{key}")] == [(at, where) for at, where, text in found if message in text], found


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ('kind = "directory"', "unknown key 'fill' of this kind: a directory shares its file system with all else"),
        ('kind = "file"\nsize = "1GiB"', "unknown key 'fill'; allowed: count, host, kind, on, path, size"),
    ],
)
@pytest.mark.parametrize("fill", ["fill = 0.5", "fill = 0"])
def test_only_a_file_system_of_its_own_is_filled(kind: str, message: str, fill: str):
    ((line, key, found),) = problems(f"[storage.a]\n{kind}\n{fill}\n")
    assert (line, key) == (fill, "storage.a.fill")
    assert found.startswith(message)


def test_the_hint_names_kinds_that_can_be_filled():
    with pytest.raises(ExperimentError) as caught:
        storages('[storage.a]\nkind = "directory"\nfill = 0.85\n')
    assert 'kind = "loop"' in str(caught.value.problems[0].hint)


@pytest.mark.parametrize(
    ("array", "fewest"),
    [
        ('kind = "md"\nlevel = 0', 2),
        ('kind = "md"\nlevel = 5', 3),
        ('kind = "md"\nlevel = 6', 4),
        ('kind = "lvm"\nlayout = "striped"', 2),
        ('kind = "lvm"\nlayout = "striped"\nstripes = 3', 3),
        ('kind = "btrfs"\ndata_profile = "raid1"', 2),
        ('kind = "btrfs"\nmetadata_profile = "raid10"', 4),
    ],
)
def test_an_array_has_as_many_members_as_its_level_needs(array: str, fewest: int):
    text = '[storage.a]\n{array}\nmembers = ["m"]\n[storage.m]\nkind = "loop"\nsize = "1GiB"\ncount = {count}\n'
    assert of(LoopStorage, storages(text.format(array=array, count=fewest))["m"]).count == fewest
    (problem,) = problems(text.format(array=array, count=fewest - 1))
    assert problem[1] == "storage.a.members"
    assert f"needs at least {fewest} members, got {fewest - 1}" in problem[2]


@pytest.mark.parametrize(("name", "reason"), [("x", "is a member of 'tank'"), ("vdev", "is a member of 'tank'")])
def test_no_data_directory_is_stored_on_a_raw_device(name: str, reason: str):
    (problem,) = problems(f'server = {{ storage = "{name}" }}\n' + STORAGES)
    assert problem[1] == "server.storage"
    assert reason in problem[2]
    (problem,) = problems(f'matrix = {{ storage = ["{name}", "memory"] }}\n' + STORAGES)
    assert problem[1] == "matrix.storage"


def test_nor_on_a_file_that_nobody_takes_as_a_member():
    text = '[server]\nstorage = "f"\n[storage.f]\nkind = "file"\nsize = "1GiB"\n'
    assert problems(text) == [
        ('storage = "f"', "server.storage", "no data directory can be stored on storage 'f': it is of kind file, which is not mounted")
    ]  # fmt: skip


def test_options_of_a_linear_volume_say_what_they_need():
    text = '[storage.a]\nkind = "lvm"\nmembers = ["m"]\nstripes = 2\n[storage.m]\nkind = "zram"\nsize = "1GiB"\n'
    ((_, key, message),) = problems(text)
    assert (key, message) == ("storage.a", 'stripes and stripe_size need layout = "striped"')


@pytest.mark.parametrize("option", ['write_cache = "off"', "queue.read_ahead_kb = 128"])
def test_a_partition_sets_nothing_of_its_disk(option: str):
    part = '[storage.p]\nkind = "device"\nid = "/dev/disk/by-partuuid/0a1b2c3d-02"\nserial = "S1"\nsize = "9GB"\n'
    assert of(DeviceStorage, storages(part)["p"]).id.endswith("-02")
    ((_, key, message),) = problems(part + option + "\n")
    assert key == "storage.p"
    assert message.startswith(f"{option.partition(' ')[0]}: of the whole disk")


DISK = 'kind = "device"\nid = "/dev/disk/by-id/nvme-a"\nserial = "S1"\nsize = "480GB"\n'
NO_DISK = STORAGES.replace(DISK, 'kind = "file"\nsize = "1GiB"\n')
FACTORS = [
    ('storage.x.filesystem = ["ext4", "zfs"]', "'zfs'", "allowed: ext4, xfs, btrfs"),
    ('storage.x.filesytem = ["ext4"]', "unknown key 'filesytem'", ""),
    ('storage.z.size = ["1GiB"]', "storage 'z' is not one of: tank", ""),
    ('storage.x = ["y"]', "cannot be a factor", "storage.NAME.*"),
    ('storage.x.mount_options = ["noatime"]', "level 'noatime'", ""),
    ('storage.x.mount_options = [["noatime", 1]]', "got 1", ""),
    ('storage.slow.on = ["memory", "vdev"]', "which is not mounted", ""),
    ('storage.slow.on = ["memory", "tank"]', "a storage cannot be built on itself", ""),
    ('storage.tank.layout = ["mirror", "raidz3"]', "needs at least 4 members", ""),
]


@pytest.mark.parametrize(("factor", "said", "also"), FACTORS, ids=[factor for factor, *_ in FACTORS])
def test_levels_of_a_storages_fields_are_checked_as_the_file_itself(factor, said, also):
    assert NO_DISK != STORAGES
    found = problems(f"{NO_DISK}[matrix]\n{factor}\n")
    assert any(said in message and also in message for _, _, message in found), found


def test_a_disk_cannot_be_there_once_for_each_level():
    ((line, key, message),) = problems(f'{STORAGES}[matrix]\nstorage.tank.layout = ["mirror", "stripe"]\n')
    assert (line, key) == ('storage.tank.layout = ["mirror", "stripe"]', "matrix.storage.tank.layout")
    assert "storage 'log' is a disk, which cannot be there once for each level" in message


def test_a_disk_can_be_there_for_one_level():
    storages(f'{STORAGES}[matrix]\nstorage.tank.layout = ["mirror"]\n')


def test_fields_of_storages_can_be_factors():
    text = '[storage.x]\nkind = "loop"\nsize = "1GiB"\n[matrix]\nstorage.x.mount_options = [[], ["noatime", "nodiratime"]]\n'
    loaded = read_experiment_text(HEAD + text, "x.toml", folder=None)  # type: ignore[arg-type] - no scripts
    assert loaded.experiment.matrix == {"storage.x.mount_options": [(), ("noatime", "nodiratime")]}
