"""The control socket: what it answers to commands, to nonsense, and to several at once; faults that reach a reader."""

import errno
import json
import mmap
import os
import socket
import threading
from pathlib import Path

import pytest

from emulated_disks import KEEP_SIZE, MIB, PUNCH_HOLE, ZERO_RANGE, ServedDisk, fallocate, open_direct, served
from plinth.model.disk import DropFraction, EioFault, IgnoreFlush, LateFlush, Physics
from plinth.model.errors import RunError, UsageError
from plinth.storage.devices.disk_control import LocalDiskControl

PAGE = 8192


def ask(disk: ServedDisk, line: bytes) -> dict[str, object]:
    """One exchange, byte for byte."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(disk.config.control)
        connection.sendall(line)
        connection.shutdown(socket.SHUT_WR)
        return json.loads(b"".join(iter(lambda: connection.recv(65536), b"")))


def write_pages(fd: int, *numbers: int, byte: int = 1) -> None:
    """Aligned, as O_DIRECT wants them."""
    for number in numbers:
        assert os.pwrite(fd, aligned(bytes([byte]) * PAGE), number * PAGE) == PAGE


def read_page(fd: int, number: int) -> bytes:
    buffer = aligned(bytes(PAGE))
    assert os.preadv(fd, [buffer], number * PAGE) == PAGE
    return bytes(buffer)


def aligned(content: bytes) -> mmap.mmap:
    buffer = mmap.mmap(-1, len(content))
    buffer.write(content)
    return buffer


NONSENSE = [
    (b"hello\n", "not a command"),
    (b"\n", "not a command"),
    (b"\xff\xfe{}\n", "not a command"),
    (b'["status"]\n', "not a command"),
    (b'{"command": "explode"}\n', "unknown variant `explode`"),
    (b'{"command": "status", "loud": true}\n', "unknown field `loud`"),
    (b'{"command": "power-cut", "mode": "half"}\n', "unknown variant `half`"),
    (b'{"command": "power-cut"}\n', "missing field `mode`"),
    (b'{"command": "set", "physics": {"speed": 1}}\n', "unknown field `speed`"),
    (b'{"command": "set", "physics": {"spread": 7.0}}\n', "spread: got 7, a number from 0 to 2 is needed"),
    (b'{"command": "fault", "fault": {"operation": "read", "nth": 0}}\n', "requests are counted from 1"),
    (b'{"command": "power-on"}\n', "the power is on already"),
    (b'{"command": "sta', "the line has no end"),
    (b"x" * 70_000, "a line of more than 65536 bytes"),
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory):
    with served(tmp_path_factory.mktemp("disk")) as disk:
        yield disk


@pytest.mark.parametrize(("line", "error"), NONSENSE, ids=[repr(line[:40]) for line, _ in NONSENSE])
def test_nonsense_is_refused_and_the_disk_continues(shared: ServedDisk, line: bytes, error: str):
    answer = ask(shared, line)
    assert answer["ok"] is False
    assert error in str(answer["error"])
    assert shared.control.status().power == "on"


def test_a_client_that_goes_away_or_says_nothing_harms_nobody(shared: ServedDisk):
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(shared.config.control)
        with socket.socket(socket.AF_UNIX) as rude:
            rude.connect(shared.config.control)
            rude.sendall(b'{"command": "status"}\n' * 100)
        assert shared.control.status().power == "on"


def test_a_connection_takes_many_commands_and_many_connections_work_at_once(shared: ServedDisk):
    def converse() -> None:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(shared.config.control)
            with connection.makefile("rw") as lines:
                for _ in range(50):
                    lines.write('{"command": "status"}\n')
                    lines.flush()
                    answers.append(json.loads(lines.readline())["ok"])

    answers: list[bool] = []
    threads = [threading.Thread(target=converse) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True] * 400


def test_too_many_clients_get_an_error(shared: ServedDisk):
    idle = [socket.socket(socket.AF_UNIX) for _ in range(40)]
    for connection in idle:
        connection.settimeout(10)
        connection.connect(shared.config.control)
    assert b"more than 32 clients" in idle[-1].recv(1000)
    for connection in idle:
        connection.close()


def test_no_daemon_is_an_error_that_says_so(tmp_path: Path):
    with pytest.raises(RunError, match="is not running"):
        LocalDiskControl(tmp_path / "nobody").status()
    with pytest.raises(UsageError, match="a Unix socket's path has at most 107"):
        LocalDiskControl(tmp_path / ("x" * 120)).status()


def test_the_status_counts_what_was_done(disk: ServedDisk):
    with open_direct(disk.image) as fd:
        write_pages(fd, 0, 1, 2)
        assert disk.control.status().cache_dirty_bytes == 3 * PAGE
        assert read_page(fd, 1) == bytes([1]) * PAGE
        os.fdatasync(fd)
        assert disk.control.status().cache_dirty_bytes == 0
        write_pages(fd, 3)
    with open_direct(disk.image, os.O_DSYNC) as fd:
        write_pages(fd, 4)
    found = disk.control.status()
    counters = found.counters
    assert (counters["writes"], counters["bytes_written"], counters["writes_through"]) == (5, 5 * PAGE, 1)
    assert (counters["reads"], counters["bytes_read"], counters["flushes"]) == (1, PAGE, 1)
    assert found.cache_dirty_bytes == PAGE  # O_DSYNC is durable at once, and takes nothing else with it
    assert disk.control.flush_now() == PAGE
    assert (found.profile, found.size_bytes, found.power, found.lie) == ("ideal", 256 * MIB, "on", None)


def test_physics_change_while_it_is_served(disk: ServedDisk):
    in_force = disk.control.set_physics(Physics.model_validate({"flush_latency": "5ms", "read_iops": 100}))
    assert (in_force.flush_latency_ns, in_force.read_iops, in_force.write_latency_ns) == (5_000_000, 100, 0)
    assert disk.control.status().physics == in_force
    with pytest.raises(UsageError, match="a head serves one request"):
        disk.control.set_physics(Physics(rpm=7200))
    assert disk.control.status().physics == in_force
    with open_direct(disk.image) as fd:
        os.fdatasync(fd)
    assert disk.control.status().counters["requests_delayed"] == 1


def test_the_fault_armed_is_the_fault_that_strikes(disk: ServedDisk):
    disk.control.arm(EioFault(operation="write", nth=3))
    disk.control.arm(EioFault(operation="read", offset=10 * PAGE + 512, length=1, count=None))
    disk.control.arm(EioFault(operation="flush"))
    with open_direct(disk.image) as fd:
        write_pages(fd, 0, 1)
        with pytest.raises(OSError) as failed:
            write_pages(fd, 2, byte=7)
        assert failed.value.errno == errno.EIO
        assert read_page(fd, 2) == bytes(PAGE)
        for _ in range(2):
            with pytest.raises(OSError, match="Input/output error"):
                read_page(fd, 10)
        assert read_page(fd, 9) == bytes(PAGE)
        with pytest.raises(OSError, match="Input/output error"):
            os.fdatasync(fd)
        assert disk.control.status().cache_dirty_bytes == 2 * PAGE  # a flush that failed has flushed nothing
        os.fdatasync(fd)
    write, read, flush = disk.control.status().faults
    assert [(state.seen, state.fired) for state in (write, read, flush)] == [(3, 1), (2, 2), (2, 1)]
    counters = disk.control.status().counters
    assert (counters["eio_write"], counters["eio_read"], counters["eio_flush"]) == (1, 2, 1)
    assert [state.fired for state in disk.control.clear_faults()] == [1, 2, 1]
    assert disk.control.status().faults == ()


def test_an_error_passes_the_loop_device_to_the_reader(disk: ServedDisk):
    with disk.loop() as device:
        disk.control.arm(EioFault(operation="read", offset=MIB, length=512, count=None))
        with open_direct(device) as fd:
            assert read_page(fd, 0) == bytes(PAGE)
            with pytest.raises(OSError) as failed:
                read_page(fd, MIB // PAGE)
    assert failed.value.errno == errno.EIO
    assert disk.control.status().faults[0].fired > 0


def test_faults_and_lies_of_the_command_line_are_there_from_the_start(scratch: Path):
    more = {"faults": ["flush,nth=2,count=all", "read,offset=1MiB,length=512"], "lie": "drop-fraction=0.25"}
    with served(scratch, **more) as disk:
        found = disk.control.status()
        assert [fault.words for fault in found.faults] == [
            "flush,nth=2,count=all",
            "read,nth=1,count=1,offset=1048576,length=512",
        ]
        assert found.lie == DropFraction(fraction=0.25)


class TestPowerCuts:
    def test_a_cut_loses_what_no_flush_has_covered_and_every_request_fails_until_power_is_back(self, disk: ServedDisk):
        with open_direct(disk.image) as fd:
            write_pages(fd, 0, 1, byte=1)
            os.fdatasync(fd)
            write_pages(fd, 1, 2, byte=2)
            report = disk.control.power_cut()
            assert (report.writes_dropped, report.bytes_dropped, report.sectors_dropped) == (2, 2 * PAGE, 32)
            for request in (lambda: read_page(fd, 0), lambda: write_pages(fd, 0), lambda: os.fdatasync(fd)):
                with pytest.raises(OSError) as failed:
                    request()
                assert failed.value.errno == errno.EIO
            with pytest.raises(UsageError, match="the power is off already"):
                disk.control.power_cut()
            assert disk.control.status().power == "off"
            assert disk.control.status().counters["requests_refused"] == 3
            disk.control.power_on()
            assert [read_page(fd, number)[0] for number in range(3)] == [1, 1, 0]

    def test_requests_that_have_not_ended_fail_with_the_power(self, scratch: Path):
        with served(scratch, physics={"flush_latency": "30s"}) as disk, open_direct(disk.image) as fd:
            write_pages(fd, 0)
            failed: list[int | None] = []

            def flush() -> None:
                try:
                    os.fdatasync(fd)
                except OSError as error:
                    failed.append(error.errno)

            flusher = threading.Thread(target=flush)
            flusher.start()
            while disk.control.status().counters["requests_delayed"] == 0:
                pass
            report = disk.control.power_cut()
            flusher.join(timeout=10)
            assert failed == [errno.EIO]
            assert (report.requests_failed, report.writes_dropped) == (1, 1)

    @pytest.mark.parametrize("mode", ["subset", "prefix", "torn"])
    def test_the_same_order_and_seed_leave_the_same(self, scratch: Path, mode: str):
        outcomes = []
        for attempt in range(2):
            folder = scratch / str(attempt)
            folder.mkdir()
            with served(folder, size_bytes=MIB) as disk, open_direct(disk.image) as fd:
                for number in range(40):
                    write_pages(fd, number % 13, byte=number + 1)
                    if number in (10, 21):
                        os.fdatasync(fd)
                report = disk.control.power_cut(mode, seed=7)  # pyright: ignore[reportArgumentType]
                disk.control.power_on()
                outcomes.append((report, [read_page(fd, number) for number in range(13)]))
        assert outcomes[0] == outcomes[1]
        report, pages = outcomes[0]
        assert report.writes_dropped > 0
        assert report.writes_torn == (1 if mode == "torn" else 0)
        torn = [page for page in pages if len(set(page)) > 1]
        assert len(torn) <= report.writes_torn

    def test_a_disk_without_a_volatile_cache_loses_nothing(self, scratch: Path):
        for number, profile in enumerate(("cloud-volume", "nvme")):
            folder = scratch / str(number)
            folder.mkdir()
            with served(folder, profile) as disk, open_direct(disk.image) as fd:
                write_pages(fd, 0, 1, byte=3)
                assert disk.control.power_cut().bytes_dropped == 0
                disk.control.power_on()
                assert read_page(fd, 1) == bytes([3]) * PAGE

    def test_discards_are_part_of_the_order(self, disk: ServedDisk):
        with open_direct(disk.image) as fd:
            write_pages(fd, 0, 1, 2, byte=5)
            os.fdatasync(fd)
            fallocate(fd, PUNCH_HOLE | KEEP_SIZE, PAGE, PAGE)
            assert read_page(fd, 1) == bytes(PAGE)
            assert disk.control.power_cut().discards_dropped == 1
            disk.control.power_on()
            assert read_page(fd, 1) == bytes([5]) * PAGE
            fallocate(fd, ZERO_RANGE | KEEP_SIZE, PAGE, PAGE)
            os.fdatasync(fd)
            assert disk.control.power_cut().discards_dropped == 0
            disk.control.power_on()
            assert read_page(fd, 1) == bytes(PAGE)


class TestLies:
    def test_ignored_flushes_save_nothing(self, disk: ServedDisk):
        disk.control.set_lie(IgnoreFlush())
        with open_direct(disk.image) as fd:
            write_pages(fd, 0)
            os.fdatasync(fd)
            assert disk.control.power_cut().writes_dropped == 1
        assert disk.control.status().counters["flushes_falsified"] == 1

    def test_a_late_flush_saves_what_the_one_before_it_should_have(self, disk: ServedDisk):
        disk.control.set_lie(LateFlush(flushes=1))
        with open_direct(disk.image) as fd:
            for number in range(3):
                write_pages(fd, number)
                os.fdatasync(fd)
            assert disk.control.power_cut().writes_dropped == 1
            disk.control.power_on()
            assert [read_page(fd, number)[0] for number in range(3)] == [1, 1, 0]

    def test_a_fraction_of_writes_is_never_saved(self, disk: ServedDisk):
        disk.control.set_lie(DropFraction(fraction=0.2))
        with open_direct(disk.image) as fd:
            for number in range(200):
                write_pages(fd, number)
                os.fdatasync(fd)
            dropped = disk.control.power_cut().writes_dropped
            disk.control.power_on()
            lost = sum(read_page(fd, number)[0] == 0 for number in range(200))
        assert 20 <= dropped <= 60
        assert lost == dropped

    def test_the_lie_can_be_switched_off(self, disk: ServedDisk):
        disk.control.set_lie(IgnoreFlush())
        disk.control.set_lie(None)
        with open_direct(disk.image) as fd:
            write_pages(fd, 0)
            os.fdatasync(fd)
        assert disk.control.power_cut().writes_dropped == 0

    def test_a_disk_with_nothing_volatile_cannot_lie(self, disk: ServedDisk):
        disk.control.set_physics(Physics(cache_size=0))
        with pytest.raises(UsageError, match="no volatile cache to lie about"):
            disk.control.set_lie(IgnoreFlush())


def test_a_torn_write_is_torn_at_the_atomic_unit_that_is_in_force(disk: ServedDisk):
    with open_direct(disk.image) as fd:
        write_pages(fd, 0, 1, byte=1)
        disk.control.flush_now()
        for unit_bytes, boundaries in ((4096, range(4096, 2 * PAGE, 4096)), (8192, [PAGE]), (16384, [])):
            disk.control.set_physics(Physics(atomic_write_size=unit_bytes))
            assert os.pwrite(fd, aligned(bytes([2]) * 2 * PAGE), 0) == 2 * PAGE
            report = disk.control.power_cut("torn", seed=7)
            disk.control.power_on()
            found = read_page(fd, 0) + read_page(fd, 1)
            torn_at = found.find(1)
            assert found == bytes([2]) * torn_at + bytes([1]) * (2 * PAGE - torn_at)
            assert (torn_at in boundaries) == (report.writes_torn == 1), (unit_bytes, torn_at)
            assert torn_at in (*boundaries, 0)
            write_pages(fd, 0, 1, byte=1)
            disk.control.flush_now()
