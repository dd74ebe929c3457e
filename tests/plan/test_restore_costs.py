"""What it costs to restore the data before each trial: twice the space, the time of the copies, what they write."""

from pytest import approx

from plan_inputs import GIB, experiment, plan_of
from plinth.model.plan import Pace, Plan
from plinth.plan import StoragePlace

STORAGES = {"storage": {"disk": {"kind": "directory"}, "wal": {"kind": "directory"}}}
TRIALS = 3


def planned(restore: str, place: StoragePlace | None = None, builtin: str = "tpcb-like") -> Plan:
    place = place or StoragePlace("1", "/", 100 * GIB)
    measure = {"warmup": "1s", "duration": "9s", "repeats": TRIALS, "aa": False, "restore": restore}
    e = experiment(
        **STORAGES,
        matrix={"storage": ["disk"]},
        server={"wal_storage": "wal"},
        workload={"builtin": builtin, "clients": 4},
        measure=measure,
    )
    return plan_of(e, places={"disk": place, "wal": place})


def test_the_copy_takes_as_much_space_as_the_files() -> None:
    without, restored = planned("none").clusters[0], planned("copy").clusters[0]
    assert (without.restored, restored.restored) == (False, True)
    assert restored.bytes_by_storage == {name: 2 * size for name, size in without.bytes_by_storage.items()}
    assert restored.data_bytes == without.data_bytes
    (need, *_) = [need for need in planned("copy").needs if need.where == "/"]
    assert need.needed_bytes == sum(restored.bytes_by_storage.values())


def test_copies_are_written_once_and_before_each_trial() -> None:
    without, restored = planned("none"), planned("copy")
    copies_bytes = (1 + TRIALS) * without.clusters[0].data_bytes
    assert restored.estimated_written_bytes - without.estimated_written_bytes == copies_bytes
    slow = StoragePlace("1", "/", 100 * GIB, pace=Pace(flush_s=0, page_write_s=0, write_bytes_per_s=1e6))
    assert planned("copy", slow).estimated_s - planned("none", slow).estimated_s == approx(copies_bytes / 1e6)


def test_copies_that_share_blocks_write_next_to_nothing() -> None:
    sharing = StoragePlace("1", "/", 100 * GIB, shares_blocks=True)
    assert planned("auto", sharing).estimated_written_bytes == planned("none").estimated_written_bytes
    assert planned("snapshot", sharing).estimated_s == approx(
        planned("none", sharing).estimated_s + 2 * (1 + TRIALS) * 0.5
    )
    assert planned("auto").estimated_written_bytes == planned("copy").estimated_written_bytes


def test_a_cluster_that_is_only_read_is_not_restored() -> None:
    assert planned("copy", builtin="select-only").clusters == planned("none", builtin="select-only").clusters
