"""The guest of the tests: gives back what its command gave, leaves the machine as it was, and is gone afterwards."""

from pathlib import Path

import pytest

from user_mode_linux import Disk, run_inside


def guests() -> list[int]:
    """Pids of every process of a guest that we have started."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (process / "cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if arguments[0] == b"linux.uml" and b"umid=guest-of-this-test" in arguments:
            found.append(int(process.name))
    return found


def test_a_guest_has_our_files_disks_of_its_own_and_drivers_and_changes_nothing_of_ours(scratch: Path) -> None:
    seen, written = scratch / "seen", scratch / "written"
    seen.write_text("as outside\n")
    script = f"""
        id -u; cat {seen}; echo inside >{written}; cat {written}; touch /etc/written-inside && echo wrote
        cat /sys/block/ubdb/serial; echo; blockdev --getsize64 /dev/ubda /dev/ubdb
        cat /proc/mdstat; modprobe raid456 && grep Personalities /proc/mdstat; dmsetup targets | grep striped
        exit 7
    """
    disks = [Disk(2**20), Disk(2**21, serial="S4EV0N123456")]
    ended = run_inside(["bash", "-c", script], disks=disks, modules=["raid0", "dm-mod"], name="guest-of-this-test")
    assert ended.exit_code == 7, ended.output
    lines = ended.output.splitlines()
    first = lines.index("0")
    assert lines[first + 1 : first + 7] == ["as outside", "inside", "wrote", "S4EV0N123456", str(2**20), str(2**21)]
    assert "Personalities : [raid0] " in lines
    assert "Personalities : [raid0] [raid6] [raid5] [raid4] " in lines
    assert any(line.startswith("striped") for line in lines)
    assert not written.exists()
    assert not Path("/etc/written-inside").exists()
    assert guests() == []


def test_a_guest_that_takes_too_long_is_ended_with_all_its_processes() -> None:
    script = "echo begun; sleep 1000 & sleep 1000"
    with pytest.raises(AssertionError, match="took longer than 6 s") as error:
        run_inside(["sh", "-c", script], timeout_s=6, name="guest-of-this-test")
    assert "begun" in str(error.value)
    assert guests() == []


def test_a_driver_that_is_not_there_fails_the_command() -> None:
    ended = run_inside(["true"], modules=["no-such-driver"])
    assert ended.exit_code != 0
    assert "Module no-such-driver not found" in ended.output
