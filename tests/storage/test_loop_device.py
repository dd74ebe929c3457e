"""Loop devices found by their file."""

import os
import subprocess
from pathlib import Path

from plinth.storage.devices.loop_device import loops_of


def test_a_file_is_found_whatever_it_and_others_are_called(scratch: Path) -> None:
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
