"""Loop devices found by their file."""

import fcntl
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from plinth.storage.devices.loop_device import _attach, loops_of
from plinth.system.runner import Runner

# linux/loop.h
_LOOP_CTL_ADD, _LOOP_CTL_REMOVE = 0x4C80, 0x4C81


def test_a_file_is_found_under_any_name_among_any_others(scratch: Path) -> None:
    """What is not found is taken for detached; and anybody may have attached a file whose name is no UTF-8."""
    images = [scratch / "image", scratch / "image\r\u2028 (x)\n", scratch / os.fsdecode(b"\xfc.iso")]
    devices: list[str] = []
    try:
        for image in images:
            with image.open("wb") as file:
                file.truncate(2**20)
            attached = subprocess.run(["losetup", "-f", "--show", image], check=True, capture_output=True, text=True)
            devices.append(attached.stdout.strip())
        assert [loops_of(image) for image in images] == [[Path(device)] for device in devices]
    finally:
        for device in devices:
            subprocess.run(["losetup", "-d", device], check=True)


@pytest.fixture
def device() -> Iterator[Path]:
    """A loop device that nobody else is given, since its number is far above theirs."""
    number = 900_000 + os.getpid() % 100_000
    with Path("/dev/loop-control").open() as control:
        fcntl.ioctl(control, _LOOP_CTL_ADD, number)
        yield Path(f"/dev/loop{number}")
        fcntl.ioctl(control, _LOOP_CTL_REMOVE, number)


def test_a_device_whose_flushes_a_former_user_has_switched_off_gets_them_again(scratch: Path, device: Path) -> None:
    """The kernel keeps the setting when a device is detached."""
    (scratch / "image").write_bytes(bytes(2**20))
    argv = ("losetup", "--show", str(device), str(scratch / "image"))
    setting = Path("/sys/block") / device.name / "queue/write_cache"
    subprocess.run(argv, check=True)
    setting.write_text("write through")
    subprocess.run(["losetup", "-d", device], check=True)
    subprocess.run(argv, check=True)
    assert setting.read_text() == "write through\n"
    subprocess.run(["losetup", "-d", device], check=True)
    assert _attach(argv, Runner()) == device
    assert setting.read_text() == "write back\n"
    subprocess.run(["losetup", "-d", device], check=True)


@pytest.mark.long
def test_devices_that_others_detach_meanwhile_are_passed_over(scratch: Path) -> None:
    """sysfs answers ENODEV when a device loses its file between open(2) and read(2): once in about thirty times."""
    image = scratch / "image"
    image.write_bytes(bytes(2**20))

    def attach_and_detach() -> None:
        for _ in range(150):
            attach = ["losetup", "-f", "--show", image]
            device = subprocess.run(attach, check=True, capture_output=True, text=True).stdout.strip()
            subprocess.run(["losetup", "-d", device], check=True)

    other = threading.Thread(target=attach_and_detach)
    other.start()
    try:
        while other.is_alive():
            assert loops_of(scratch / "another") == []
    finally:
        other.join()
