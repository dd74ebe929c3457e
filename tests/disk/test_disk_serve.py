"""The daemon's life: ready, served, stopped, killed, hung; and what it refuses."""

import errno
import os
import signal
import subprocess
from pathlib import Path

import pytest

from emulated_disks import LABEL, MIB, ServedDisk, run, served
from plinth.model.disk import DiskConfig
from plinth.model.errors import RunError
from plinth.storage.devices import disk_daemon
from plinth.storage.devices.disk_control import LocalDiskControl
from plinth.storage.devices.disk_daemon import kill_daemon, serve_command
from plinth.storage.devices.fuse import abort
from plinth.system.mounts import mount_of, mounts
from plinth.system.runner import Runner
from waiting import wait_until


def test_a_disk_is_a_file_of_its_size_whose_mount_has_the_label(disk: ServedDisk):
    assert disk.ready["ready"] is True
    assert disk.ready["pid"] == disk.process.pid
    assert disk.ready["size_bytes"] == 256 * MIB
    assert mount_of(disk.mount).source == LABEL
    assert disk.image.stat().st_size == 256 * MIB
    assert [path.name for path in disk.mount.iterdir()] == ["disk.img"]
    assert disk.backing.stat().st_size == 256 * MIB
    assert disk.backing.stat().st_blocks == 0
    assert Path(disk.config.control).stat().st_mode & 0o777 == 0o600


def test_what_is_written_is_there_when_the_disk_is_served_again(scratch: Path):
    text = b"kept" * 1024
    with served(scratch) as disk:
        with disk.image.open("r+b") as file:
            file.seek(5 * MIB)
            file.write(text)
        run("umount", str(disk.mount))
        assert disk.end() == (0, "")
    with served(scratch) as disk, disk.image.open("rb") as file:
        file.seek(5 * MIB)
        assert file.read(len(text)) == text
        assert file.read(4096) == bytes(4096)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(disk: ServedDisk, number: int):
    disk.signal(number)
    assert disk.end() == (0, "")
    assert not disk.is_mounted()
    assert not Path(disk.config.control).exists()


def test_a_signal_pulls_out_a_disk_that_is_in_use_and_says_so(disk: ServedDisk):
    file = os.open(disk.image, os.O_RDONLY)
    disk.signal(signal.SIGTERM)
    code, stderr = disk.end()
    assert code == 1
    assert "the disk was in use" in stderr
    assert not disk.is_mounted()
    for use in (lambda: os.read(file, 4096), lambda: os.close(file)):
        with pytest.raises(OSError) as failed:
            use()
        assert failed.value.errno in (errno.ENOTCONN, errno.ECONNABORTED)


def test_after_kill_9_the_mount_is_dead_and_can_be_unmounted(disk: ServedDisk):
    disk.process.kill()
    disk.end()
    with pytest.raises(OSError) as failed:
        disk.image.open("rb")
    assert failed.value.errno == errno.ENOTCONN
    with pytest.raises(RunError, match="is not running"):
        disk.control.status()
    run("umount", str(disk.mount))
    assert not disk.is_mounted()


def test_a_daemon_that_hangs_is_distinguished_from_one_that_is_gone_and_its_connection_is_aborted(disk: ServedDisk):
    disk.signal(signal.SIGSTOP)
    hasty = LocalDiskControl(disk.control.path, timeout_s=0.2)
    with pytest.raises(RunError, match="hangs"):
        hasty.status()
    # Readers block now, until the connection is aborted.
    reader = subprocess.Popen(["head", "--bytes=4096", str(disk.image)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: _is_blocked(reader.pid), "the reader waits for the disk")
    kill_daemon(disk.mount, "plinth-other")
    assert reader.poll() is None
    (served,) = [mount for mount in mounts() if mount.point == str(disk.mount)]
    abort(served)
    _, stderr = reader.communicate(timeout=10)
    assert reader.returncode != 0, stderr
    run("umount", str(disk.mount))
    disk.signal(signal.SIGCONT)
    assert disk.end()[0] == 0


@pytest.mark.timeout(60)
def test_one_that_mounts_only_now_is_ended_without_waiting_for_it_to_end(disk: ServedDisk, monkeypatch):
    not_yet, ours = [[]], disk_daemon._ours
    monkeypatch.setattr(disk_daemon, "_ours", lambda mount, label: not_yet.pop() if not_yet else ours(mount, label))
    monkeypatch.setattr(disk_daemon, "_END_TIMEOUT_S", 600.0)
    disk_daemon.stop_daemon(disk.mount, LABEL, Runner())
    assert disk.end() == (0, "")
    assert not disk.is_mounted()


def test_of_stacked_mounts_only_the_connection_that_is_meant_is_aborted(disk: ServedDisk):
    run("mount", "-t", "tmpfs", "plinth-over-it", str(disk.mount))
    *_, served, over_it = [mount for mount in mounts() if mount.point == str(disk.mount)]
    abort(over_it)  # no connection has its number
    run("umount", str(disk.mount))
    assert disk.image.stat().st_size == 256 * MIB
    abort(served)
    assert disk.end()[0] == 0, "its daemon ends with its connection"


def test_a_disk_stays_as_long_as_it_is(disk: ServedDisk):
    with pytest.raises(PermissionError):
        os.truncate(disk.image, MIB)
    with pytest.raises(PermissionError):
        disk.image.write_bytes(b"truncated first")
    with pytest.raises(OSError) as failed, disk.image.open("r+b", buffering=0) as file:
        file.seek(256 * MIB - 512)
        file.write(bytes(1024))
    assert failed.value.errno == errno.ENOSPC


REFUSALS = [
    ("profile", {"profile": "hdd-5400"}, 2, "no profile \"hdd-5400\"; there are hdd-7200, hdd-10k-sas"),
    ("size", {"size_bytes": 4097}, 2, "size: got 4097 bytes, a positive multiple of 4096 is needed"),
    ("backing elsewhere", {"backing": "/nonexistent/data"}, 2, "no such directory"),
    ("backing is a folder", {"backing": "/tmp"}, 1, "Is a directory"),
    ("mount missing", {"mount": "/nonexistent"}, 2, "cannot mount the disk: no such directory"),
    ("mount not empty", {"mount": "/proc"}, 4, "the directory to mount on is not empty"),
    ("socket path", {"control": "/tmp/" + "x" * 110}, 2, "has 115 bytes; a Unix socket's may have 107"),
    ("lie without a cache", {"profile": "hdd-10k-sas", "lie": "ignore-flush"}, 2, "no volatile cache to lie about"),
    ("head with channels", {"profile": "hdd-7200", "physics": {"channels": 4}}, 2, "a head serves one request"),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("change", "code", "message"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
def test_what_cannot_be_served_is_refused(scratch: Path, change: dict[str, object], code: int, message: str):
    (scratch / "mount").mkdir()
    usual = {"profile": "ideal", "size_bytes": MIB, "label": LABEL}
    usual |= {key: str(scratch / key) for key in ("backing", "mount", "control")}
    done = _serve(DiskConfig.model_validate(usual | change))
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert not (scratch / "control").exists()


def test_a_backing_file_of_another_size_or_in_use_is_left_alone(scratch: Path):
    with served(scratch) as disk:
        other = disk.config.model_copy(update={"mount": str(scratch / "other"), "control": str(scratch / "c2")})
        Path(other.mount).mkdir()
        assert "is served by another daemon" in _serve(other).stderr
        same_socket = other.model_copy(update={"control": disk.config.control, "backing": str(scratch / "data2")})
        done = _serve(same_socket)
        assert (done.returncode, "answers on the control socket" in done.stderr) == (4, True), done.stderr
        assert disk.control.status().power == "on"
    done = _serve(disk.config.model_copy(update={"size_bytes": MIB}))
    assert done.returncode == 4
    assert f"has {256 * MIB} bytes; {MIB} were asked for" in done.stderr
    assert disk.backing.stat().st_size == 256 * MIB


def test_a_socket_that_a_dead_daemon_left_is_replaced(scratch: Path):
    with served(scratch) as disk:
        disk.process.kill()
        disk.end()
    assert Path(disk.config.control).is_socket()
    with served(scratch) as disk:
        assert disk.control.status().power == "on"


def _serve(config: DiskConfig) -> subprocess.CompletedProcess[str]:
    return subprocess.run(serve_command(config), capture_output=True, text=True, timeout=30)


def _is_blocked(pid: int) -> bool:
    return Path(f"/proc/{pid}/wchan").read_text().startswith(("fuse", "request_wait"))
