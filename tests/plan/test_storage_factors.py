"""Factors in the fields of storages: a storage for each level, and for all that becomes another with it."""

import pytest

from plinth.model.experiment import Experiment
from plinth.model.plan import ScriptText
from plinth.model.storage import EmulatedStorage, FileStorage, LoopStorage, TmpfsStorage, ZfsStorage
from plinth.plan import expand
from typed import of

STORAGES = {
    "disk": {"kind": "directory"},
    "slow": {"kind": "emulated", "profile": "hdd-7200", "size": "4GiB"},
    "vdev": {"kind": "file", "size": "512MiB", "count": 4, "on": "slow"},
    "spare": {"kind": "file", "size": "512MiB"},
    "tank": {"kind": "zfs", "data": [["vdev"]], "log": ["spare"], "layout": "raidz"},
}


def expanded(matrix, storages=STORAGES, **changes):
    document = {
        "spec": 1,
        "name": "x",
        "question": "?",
        "storage": storages,
        "dataset": {"kind": "tpcb", "scale": 1},
        "workload": {"builtin": "tpcb-like"},
        "matrix": matrix,
        "measure": {"aa": False},
        **changes,
    }
    experiment = Experiment.model_validate(document, by_alias=True, by_name=False)
    return expand(experiment, lambda workload, dataset: (ScriptText(name="x", source="SELECT 1;"),))


def test_a_storage_for_each_level_named_by_it():
    found = expanded({"storage.slow.profile": ["hdd-7200", "nvme"]}, server={"storage": "slow"})
    assert [variant.label for variant in found.variants] == ["hdd-7200", "nvme"]
    assert [cluster.server.storage for cluster in found.clusters] == ["slow-hdd-7200", "slow-nvme"]
    assert of(EmulatedStorage, found.storages["slow-nvme"]).profile == "nvme"
    assert "slow" not in found.storages
    assert found.storages["disk"].kind == "directory"


def test_each_level_has_its_own_copy_of_what_is_built_on_it_and_of_its_members():
    found = expanded({"storage.tank.properties.recordsize": ["8K", "128K"]}, server={"storage": "tank"})
    assert [cluster.server.storage for cluster in found.clusters] == ["tank-8K", "tank-128K"]
    pools = [of(ZfsStorage, found.storages[f"tank-{size}"]) for size in ("8K", "128K")]
    assert [pool.properties["recordsize"] for pool in pools] == ["8K", "128K"]
    assert [pool.data for pool in pools] == [(("vdev-8K",),), (("vdev-128K",),)]
    assert [pool.log for pool in pools] == [("spare-8K",), ("spare-128K",)]
    # The disk that members' files are stored on is one for all.
    assert [of(FileStorage, found.storages[f"vdev-{size}"]).on for size in ("8K", "128K")] == ["slow", "slow"]


def test_a_level_reaches_up_to_everything_that_is_built_on_it():
    found = expanded({"storage.slow.profile": ["hdd-7200", "nvme"]}, server={"storage": "tank"})
    tank = of(ZfsStorage, found.storages["tank-nvme"])
    assert tank.data == (("vdev-nvme",),)
    assert of(FileStorage, found.storages["vdev-nvme"]).on == "slow-nvme"
    assert tank.log == ("spare-nvme",)


def test_variants_that_do_not_stand_on_it_are_not_measured_once_a_level():
    found = expanded({"storage": ["disk", "slow"], "storage.slow.profile": ["hdd-7200", "nvme"]})
    assert [variant.label for variant in found.variants] == ["disk", "slow, hdd-7200", "slow, nvme"]
    assert [variant.is_baseline for variant in found.variants] == [True, False, False]
    assert found.variants[0].levels == {"storage": "disk"}


def test_the_baseline_may_be_any_level():
    matrix = {"storage": ["disk", "slow"], "storage.slow.profile": ["hdd-7200", "nvme"]}
    measure = {"aa": False, "baseline": {"storage": "slow", "storage.slow.profile": "nvme"}}
    found = expanded(matrix, measure=measure)
    assert [variant.label for variant in found.variants if variant.is_baseline] == ["slow, nvme"]
    assert [variant.label for variant in found.variants].count("disk") == 1


def test_two_factors_of_one_storage():
    storages = {"xfs": {"kind": "loop", "size": "1GiB"}}
    matrix = {"storage.xfs.filesystem": ["ext4", "xfs"], "storage.xfs.mount_options": [["noatime"], []]}
    found = expanded(matrix, storages)
    assert list(found.storages) == ["xfs-ext4-noatime", "xfs-ext4-none", "xfs-xfs-noatime", "xfs-xfs-none"]
    assert of(LoopStorage, found.storages["xfs-xfs-noatime"]).mount_options == ("noatime",)
    assert [variant.label for variant in found.variants][:2] == ["ext4, noatime", "ext4, none"]


def test_names_are_short_enough_and_all_different():
    storages = {"a" * 38: {"kind": "tmpfs", "size": "1GiB"}}
    found = expanded({f"storage.{'a' * 38}.size": ["1GiB", "2GiB", "1 GiB"]}, storages)
    assert len(found.storages) == 3
    assert all(len(name) <= 40 for name in found.storages)


def test_a_name_that_is_taken_is_not_given_twice():
    storages = {"m": {"kind": "tmpfs", "size": "1GiB"}, "m-2GiB": {"kind": "tmpfs", "size": "3GiB"}}
    found = expanded({"storage.m.size": ["2GiB"]}, storages, server={"storage": "m"})
    assert of(TmpfsStorage, found.storages["m-2GiB"]).size_bytes == 3 * 2**30
    assert of(TmpfsStorage, found.storages["m-2GiB-2"]).size_bytes == 2 * 2**30


@pytest.mark.parametrize("where", ["wal_storage", "tablespaces"])
def test_wal_and_tablespaces_follow(where):
    server = {"storage": "disk", where: "slow" if where == "wal_storage" else {"bulk": "slow"}}
    found = expanded({"storage.slow.profile": ["hdd-7200", "nvme"]}, server=server)
    got = [getattr(cluster.server, where) for cluster in found.clusters]
    names = ["slow-hdd-7200", "slow-nvme"]
    assert got == (names if where == "wal_storage" else [{"bulk": name} for name in names])
