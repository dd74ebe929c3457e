"""What the kernel says where mkfs or mount fails: of the devices that these were given, and not of those of others."""

from pathlib import Path

import pytest

from disks import loop_device
from plinth.storage.filesystem import run_with_kernel_log
from plinth.system.runner import CommandError, Runner

MIB = 2**20


def kernel_messages_of_a_failure(devices: list[Path], *messages: str) -> list[str]:
    """What a command that fails is reported with, while the kernel logs these messages."""
    script = 'for message; do echo "$message" >/dev/kmsg || exit 9; done; echo "it failed" >&2; exit 1'
    with pytest.raises(CommandError) as caught:
        run_with_kernel_log(("sh", "-c", script, "mkfs", *messages), Runner(), devices)
    assert caught.value.completed.exit_code == 1
    first, *others = caught.value.details
    assert first == "it failed"
    return [line for line in others if any(message in line for message in messages)]


def test_messages_of_other_devices_are_left_out(scratch: Path) -> None:
    with loop_device(scratch / "own", 4 * MIB) as own, loop_device(scratch / "other", 4 * MIB) as other:
        link = scratch / "device"
        link.symlink_to(own)
        of_own = f"EXT4-fs (plinth test, {own.name}): bad option"
        of_other = f"I/O error, dev {other.name}, sector 8 (plinth test)"
        of_none = "plinth test: unknown parameter"
        found = kernel_messages_of_a_failure([link], of_own, of_other, of_none)
        assert found == [f"kernel: {of_own}", f"kernel: {of_none}"]
        found = kernel_messages_of_a_failure([link, other], of_own, of_other)
        assert found == [f"kernel: {of_own}", f"kernel: {of_other}"]
