"""The write budget: what it counts, when it stops, and what it reports."""

import threading
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from plinth.model.base import Gap
from plinth.model.errors import BudgetSpent, MissingCapability, UsageError
from plinth.model.facts import Fact, StackNode, StorageFacts
from plinth.model.wear import SmartReading
from plinth.run import write_budget
from plinth.run.local_host import LocalHost
from plinth.run.write_budget import WriteBudget, written_bytes

GB = 10**9
SMART = SmartReading(percentage_used=3, lifetime_written_bytes=10**12, source="smartctl")


def storage(name: str, *stack: str, gaps: tuple[Gap, ...] = ()) -> StorageFacts:
    """A storage whose layers are given as KIND:NAME."""
    nodes = tuple(
        StackNode(kind=kind, name=node, facts=(Fact(name="model", value=f"model of {node}", source="sysfs"),))
        for kind, node in (layer.split(":", 1) for layer in stack)
    )
    return StorageFacts(
        name=name,
        kind="directory",
        path=f"/mnt/{name}",
        filesystem="ext4",
        mount_options=(),
        total_bytes=1,
        free_bytes=1,
        volatile=False,
        stack=nodes,
        gaps=gaps,
    )


class Counters:
    """Bytes written since boot, as the kernel counts them; `write` adds."""

    def __init__(self, **counted: int) -> None:
        self.counted = counted
        self.read = threading.Event()

    def __call__(self) -> dict[str, int]:
        self.read.set()
        return dict(self.counted)

    def write(self, **added: int) -> None:
        for name, size in added.items():
            self.counted[name] += size


def never(reason: BudgetSpent) -> None:
    pytest.fail(str(reason))


def watching(counters: Counters, limit: int | None, stop: Callable[[BudgetSpent], None] = never, **options):
    return WriteBudget(limit, stop, read_smart=lambda disk: (SMART, None), read_written=counters, **options)


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_budget, "_INTERVAL_S", 0.002)


def test_a_write_to_a_loop_file_counts_once_and_from_the_beginning() -> None:
    counters = Counters(vda=7 * GB, loop0=GB, vdb=0)
    spent = watching(counters, None)
    counters.write(vda=3 * GB, loop0=3 * GB, vdb=5 * GB)
    spent.add(storage("xfs", "mount:/x", "filesystem:xfs", "loop:loop0", "mount:/", "partition:vda1", "disk:vda"))
    spent.add(storage("disk", "mount:/", "disk:vda"))
    (disk,) = spent.result().disks
    assert (disk.disk, disk.model, disk.storages) == ("vda", "model of vda", ("xfs", "disk"))
    assert disk.written_bytes == 3 * GB
    assert (disk.before, disk.after, disk.gaps) == (SMART, SMART, ())


def test_an_array_counts_each_of_its_disks() -> None:
    counters = Counters(sda=0, sdb=0, md0=0)
    spent = watching(counters, None)
    spent.add(storage("r0", "md:md0", "disk:sda", "disk:sdb"))
    counters.write(sda=GB, sdb=2 * GB, md0=3 * GB)
    assert spent.result().written_bytes == 3 * GB
    assert {disk.disk: disk.written_bytes for disk in spent.result().disks} == {"sda": GB, "sdb": 2 * GB}


def test_it_stops_before_the_budget_is_passed(fast: None) -> None:
    counters = Counters(vda=0)
    stopped: list[BudgetSpent] = []
    done = threading.Event()

    def stop(reason: BudgetSpent) -> None:
        stopped.append(reason)
        done.set()

    with watching(counters, 10 * GB, stop) as spent:
        spent.add(storage("disk", "disk:vda"))
        while not done.is_set():
            assert counters.counted["vda"] < 10 * GB
            counters.write(vda=GB)
            counters.read.clear()
            assert counters.read.wait(10)
    assert len(stopped) == 1
    assert stopped[0].exit_code == 4
    assert stopped[0].where == "measure.max_written"
    assert "9.3 GiB" in stopped[0].message  # the budget
    assert stopped[0].details == (f"vda: {counters.counted['vda'] / 2**30:.1f} GiB (disk)",)
    assert 6 * GB <= counters.counted["vda"] <= 10 * GB


def test_below_the_budget_it_continues(fast: None) -> None:
    counters = Counters(vda=0)
    with watching(counters, 10 * GB) as spent:
        spent.add(storage("disk", "disk:vda"))
        counters.write(vda=GB)
        for _ in range(3):
            counters.read.clear()
            assert counters.read.wait(10)
    assert spent.figures() == {"disk_written_bytes": GB, "max_written_bytes": 10 * GB}


def test_a_resumed_run_counts_on(fast: None) -> None:
    counters = Counters(vda=50 * GB, vdb=0)
    first = watching(counters, 10 * GB)
    first.add(storage("disk", "disk:vda"))
    counters.write(vda=8 * GB)
    earlier = first.result()
    counters.counted["vda"] = 0  # after a reboot
    stopped = threading.Event()
    with watching(counters, 10 * GB, lambda reason: stopped.set(), earlier=earlier) as second:
        second.add(storage("disk", "disk:vda"))
        counters.write(vda=3 * GB)
        assert stopped.wait(10)
    assert second.result().written_bytes == 11 * GB
    assert second.result().disks[0].before == earlier.disks[0].before


@pytest.mark.parametrize("stack", [("memory:memory",), ("loop:loop0", "memory:memory"), ("zram:zram0",)])
def test_memory_wears_nothing(stack: tuple[str, ...]) -> None:
    spent = watching(Counters(vda=0), GB)
    spent.add(storage("memory", *stack))
    assert spent.result().disks == ()
    assert spent.result().gaps == ()


def test_what_cannot_be_counted_is_a_gap_and_keeps_no_budget() -> None:
    remote = storage("nfs", "mount:/n", "network:host:/n", gaps=(Gap(what="/n", reason="on another machine"),))
    without = watching(Counters(vda=0), None)
    without.add(remote)
    assert [(gap.what, gap.reason) for gap in without.result().gaps] == [
        ("bytes written to storage nfs", "on another machine")
    ]
    with pytest.raises(MissingCapability, match="on another machine"):
        watching(Counters(vda=0), GB).add(remote)


def test_a_drive_that_shows_no_wear_is_a_gap() -> None:
    spent = WriteBudget(None, never, read_smart=lambda disk: (None, "no such program"), read_written=Counters(vda=0))
    spent.add(storage("disk", "disk:vda"))
    (disk,) = spent.result().disks
    assert (disk.before, disk.after) == (None, None)
    assert [(gap.what, gap.reason) for gap in disk.gaps] == [("wear of vda", "no such program")]


def test_a_thread_that_cannot_be_interrupted_has_no_budget() -> None:
    raised: list[UsageError] = []

    def enter() -> None:
        with pytest.raises(UsageError, match="main thread") as error, ExitStack() as stack:
            stack.enter_context(watching(Counters(vda=0), GB))
        raised.append(error.value)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert len(raised) == 1


def test_the_kernel_counts_what_is_written(tmp_path) -> None:
    """Of the format of /proc/diskstats as it is here; a line of 2.6.25 to 4.17 had less after it."""
    old = tmp_path / "diskstats"
    old.write_text(" 253  0 vda 1 2 3 4 5 6 700 8 0 10 11\n")
    assert written_bytes({None: LocalHost(tmp_path)}) == {"vda": 700 * 512}
    assert written_bytes()
