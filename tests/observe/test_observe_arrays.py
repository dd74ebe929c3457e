"""md arrays and ZFS: files as the kernel writes them, since few machines have either."""

from pathlib import Path

import pytest

from plinth.model.facts import StackNode, StorageFacts
from plinth.observe.arrays import MdArrays, Pool, Zfs, pools_of

ARCSTATS = """\
9 1 0x01 147 39984 3980271180 1193457892
name                            type data
hits                            4    4521
misses                          4    87
demand_data_hits                4    3000
demand_data_misses              4    12
c                               4    1073741824
c_max                           4    2147483648
size                            4    536870912
"""
ZIL = """\
11 1 0x01 14 3808 3980271180 1193457892
name                            type data
zil_commit_count                4    100
zil_commit_writer_count         4    90
zil_itx_count                   4    240
zil_itx_metaslab_normal_bytes   4    0
zil_itx_metaslab_slog_bytes     4    8192000
"""


def array(root: Path, name: str, **files: str) -> None:
    folder = root / name / "md"
    folder.mkdir(parents=True)
    for file, text in files.items():
        (folder / file).write_text(f"{text}\n")


@pytest.fixture
def sys_block(tmp_path: Path) -> Path:
    rebuilding = {"sync_action": "recover", "sync_completed": "1024 / 4096"}
    array(tmp_path, "md0", degraded="1", mismatch_cnt="8", **rebuilding)
    array(tmp_path, "md1", degraded="0", mismatch_cnt="0", sync_action="idle", sync_completed="none")
    array(tmp_path, "md2", array_state="clean")  # RAID-0 has no redundancy
    (tmp_path / "vda").mkdir()
    return tmp_path


def test_arrays_show_what_is_missing_and_how_far_a_recovery_is(sys_block: Path) -> None:
    readout = MdArrays(["md0", "md1", "md2", "vda", "nonesuch"], sys_block).read()
    reported = {(reading.object, reading.metric): reading.value for reading in readout.readings}
    assert reported == {
        ("md0", "degraded"): 1,
        ("md0", "mismatch_bytes"): 4096,
        ("md0", "syncing"): 1,
        ("md0", "synced_bytes"): 1024 * 512,
        ("md0", "to_sync_bytes"): 4096 * 512,
        ("md1", "degraded"): 0,
        ("md1", "mismatch_bytes"): 0,
        ("md1", "syncing"): 0,
    }


def test_zfs_reports_cache_and_intent_log_and_what_it_does_not(tmp_path: Path) -> None:
    (tmp_path / "arcstats").write_text(ARCSTATS)
    (tmp_path / "zil").write_text(ZIL)
    readout = Zfs([Pool("tank", by_fuse=False, files=0)], tmp_path).read()
    reported = {(reading.object, reading.metric): reading.value for reading in readout.readings}
    assert reported["arc", "hits"] == 4521
    assert reported["arc", "size_bytes"] == 536870912
    assert reported["zil", "zil_itx_metaslab_slog_bytes"] == 8192000
    assert list(readout.missing) == ["arc: l2_hits, l2_misses"]


def test_what_cannot_be_had_of_a_pool_is_missing_with_the_reason(tmp_path: Path) -> None:
    pools = [Pool("by_fuse", by_fuse=True, files=2), Pool("hidden", by_fuse=False, files=0)]
    readout = Zfs(pools, tmp_path / "none").read()
    assert readout.readings == []
    assert list(readout.missing) == [
        "ARC and ZIL of by_fuse",
        "I/O of each of the 2 members of by_fuse that are files",
        "ARC and ZIL of hidden",
    ]
    assert "zfs-fuse publishes no kstat" in readout.missing["ARC and ZIL of by_fuse"]
    assert readout.missing["ARC and ZIL of hidden"] == f"{tmp_path / 'none'} is not there"


def test_pools_are_known_from_the_storages_that_were_described() -> None:
    common = {"kind": "zfs", "path": "/p", "mount_options": (), "total_bytes": 1, "free_bytes": 1, "volatile": False}
    nodes = [("mount", "/p"), ("filesystem", "zfs"), ("zfs", "tank"), ("file", "/a"), ("loop", "loop1")]
    stack = tuple(StackNode(kind=kind, name=name) for kind, name in nodes)
    storages = [
        StorageFacts(name="a", filesystem="fuse.zfs", stack=stack, **common),
        StorageFacts(name="b", filesystem="zfs", stack=stack, **common),
        StorageFacts(name="c", filesystem="ext4", stack=stack[:2], **common),
    ]
    assert pools_of(storages) == (Pool("tank", True, 1), Pool("tank", False, 1))


def test_a_host_without_either_has_nothing_to_report(tmp_path: Path) -> None:
    for source in (MdArrays(["vda"], tmp_path), Zfs([], tmp_path / "none")):
        assert source.read().readings == []
        assert not source.read().missing
