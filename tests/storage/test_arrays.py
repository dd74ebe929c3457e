"""md and lvm inside user-mode-linux, whose kernel has their drivers; and what is said where a kernel has not."""

from pathlib import Path

import pytest

from making import from_toml
from plinth.model.errors import MissingCapability
from plinth.system.runner import Runner
from user_mode_linux import Disk, check_inside


@pytest.mark.long
@pytest.mark.timeout(720)
def test_arrays_and_volumes_are_made_read_back_and_undone() -> None:
    check_inside("tests/support/arrays_inside.py", disks=[Disk(2**30)], modules=["loop"], timeout_s=330)


@pytest.mark.long
@pytest.mark.timeout(720)
def test_arrays_of_every_level_are_made_and_survive_kills() -> None:
    long = ("-m", "long", "tests/support/arrays_inside.py")
    check_inside(*long, disks=[Disk(2**30)], modules=["loop"], timeout_s=330)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_postgresql_runs_on_arrays_of_whole_disks() -> None:
    disks = [Disk(2**29, serial=f"S4EVNF0M51230{number}") for number in range(4)]
    check_inside("tests/support/postgres_inside.py", disks=disks, timeout_s=420)


@pytest.mark.parametrize(("kind", "driver"), [("md", "md driver"), ("lvm", "device-mapper driver (dm)")])
def test_without_the_driver_it_is_said_before_anything_is_made(
    state_dir: Path, monkeypatch: pytest.MonkeyPatch, kind: str, driver: str
) -> None:
    """On any machine: the driver that is looked for is one that no kernel has."""
    monkeypatch.setattr(f"plinth.storage.kinds.{kind}._SIGN", state_dir / "no-such-file")
    monkeypatch.setattr(f"plinth.storage.kinds.{kind}._MODULE", "no_such_module")
    level = "level = 0" if kind == "md" else ""
    toml = f'[storage.m]\nkind = "file"\nsize = "16MiB"\n[storage.s]\nkind = "{kind}"\nmembers = ["m"]\n{level}\n'
    with pytest.raises(MissingCapability) as error:
        from_toml(toml)["s"].check(Runner())
    assert error.value.message.startswith(f"{driver}: not in this kernel; modprobe no_such_module says: ")
    assert "not found" in error.value.message
    assert not state_dir.exists()
