"""A drive's own write cache: which command, what the tools print, and that what is no drive is refused."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from disks import SERIAL, disk, in_private_mounts
from plinth.model.errors import MissingCapability, PlinthError, Refused, RunError
from plinth.model.storage import DeviceStorage
from plinth.observe.facts import host_facts
from plinth.run.undo import UNDO_HANDLERS
from plinth.storage import make
from plinth.storage.devices.drive_cache import cache_commands, restore_cache, switch_cache
from plinth.storage.kinds.device import Device
from plinth.system.directory import make_directory
from plinth.system.journal import Journal
from plinth.system.owner import current_user, server_owner
from plinth.system.paths import ensure, work_dir
from plinth.system.runner import Runner

ID = "/dev/disk/by-id/drive"
WORD = SERIAL[-6:]

HDPARM_ON = f"\n{ID}:\n write-caching =  1 (on)\n"
HDPARM_OFF = f"\n{ID}:\n write-caching =  0 (off)\n"
HDPARM_NONE = f"\n{ID}:\n write-caching = not supported\n"
SDPARM_ON = "    /dev/sdb: SEAGATE   ST600MM0006       0003\nWCE           1  [cha: y, def:  1, sav:  1]\n"
SDPARM_OFF = "    /dev/sdb: SEAGATE   ST600MM0006       0003\nWCE           0  [cha: y, def:  1, sav:  1]\n"
SDPARM_OLD = "    /dev/sda: ATA       WDC WD800BB-00CA  17.0\nWCE         1\n"
SDPARM_NONE = "    /dev/sdc: Generic   Flash Disk        8.07\ncaching mode page: not supported\n"
NVME_ON = "get-feature:0x6 (Volatile Write Cache), Current value:0x000001\n"
NVME_2_ON = "get-feature:0x06 (Volatile Write Cache), Current value:0x00000001\n"
NVME_2_OFF = "get-feature:0x06 (Volatile Write Cache), Current value:00000000\n"
NVME_NONE = "NVMe status: Invalid Field in Command: A reserved coded value or an unsupported value (0x4002)\n"


def sysfs(folder: Path, vendor: str | None) -> Path:
    if vendor is not None:
        (folder / "device").mkdir()
        (folder / "device/vendor").write_text(vendor)
    return folder


@pytest.mark.parametrize(
    ("node", "vendor", "get", "off", "on"),
    [
        ("sda", "ATA     \n", f"hdparm -W {ID}", f"hdparm -W 0 {ID}", f"hdparm -W 1 {ID}"),
        ("sdab", "SEAGATE \n", f"sdparm --get=WCE {ID}", f"sdparm --clear=WCE {ID}", f"sdparm --set=WCE {ID}"),
        ("sdb", None, f"sdparm --get=WCE {ID}", f"sdparm --clear=WCE {ID}", f"sdparm --set=WCE {ID}"),
        (
            "nvme0n1",
            None,
            f"nvme get-feature {ID} --feature-id=6",
            f"nvme set-feature {ID} --feature-id=6 --value=0",
            f"nvme set-feature {ID} --feature-id=6 --value=1",
        ),
    ],
)
def test_each_kind_of_drive_has_its_commands(
    tmp_path: Path, node: str, vendor: str | None, get: str, off: str, on: str
) -> None:
    commands = cache_commands(Path("/dev") / node, sysfs(tmp_path, vendor))
    assert " ".join(commands.get(ID)) == get
    assert " ".join(commands.set(ID, False)) == off
    assert " ".join(commands.set(ID, True)) == on
    assert commands.program == get.split()[0]


@pytest.mark.parametrize(
    ("node", "vendor", "printed", "expected"),
    [
        ("sda", "ATA", HDPARM_ON, True),
        ("sda", "ATA", HDPARM_OFF, False),
        ("sda", "ATA", HDPARM_NONE, None),
        ("sda", "ATA", "", None),
        ("sdb", "SEAGATE", SDPARM_ON, True),
        ("sdb", "SEAGATE", SDPARM_OFF, False),
        ("sdb", "SEAGATE", SDPARM_OLD, True),
        ("sdb", "SEAGATE", SDPARM_NONE, None),
        ("nvme0n1", None, NVME_ON, True),
        ("nvme0n1", None, NVME_2_ON, True),
        ("nvme0n1", None, NVME_2_OFF, False),
        ("nvme0n1", None, NVME_2_OFF.replace("00000000", "00000001"), True),
        ("nvme0n1", None, NVME_NONE, None),
        ("nvme0n1", None, "get-feature:0x07 (Number of Queues), Current value:0x00000001\n", None),
    ],
)
def test_the_state_is_read_from_what_the_tools_print(
    tmp_path: Path, node: str, vendor: str | None, printed: str, expected: bool | None
) -> None:
    assert cache_commands(Path("/dev") / node, sysfs(tmp_path, vendor)).is_on(printed) is expected


@pytest.mark.parametrize("node", ["loop0", "vda", "xvda", "zram0", "dm-0", "md0", "sda1", "nvme0n1p1", "mmcblk0"])
def test_what_is_no_drive_is_refused(tmp_path: Path, node: str) -> None:
    with pytest.raises(MissingCapability, match="neither SATA, SAS nor NVMe"):
        cache_commands(Path("/dev") / node, sysfs(tmp_path, None))


def test_a_disk_whose_cache_cannot_be_switched_is_refused_before_anything_is_written(
    state_dir: Path, scratch: Path
) -> None:
    def attempt() -> tuple[str, str]:
        with disk(scratch) as target:
            fields: dict[str, Any] = {"id": str(target.id), "serial": SERIAL, "size_bytes": target.size_bytes}
            spec = DeviceStorage(kind="device", write_cache="off", **fields)
            storage = make(
                {"drive": spec},
                run_id="t1",
                host=host_facts(),
                owner=server_owner(),
                work_root=ensure(work_dir()),
                destroy=(WORD,),
            )["drive"]
            assert isinstance(storage, Device)
            before, journal = target.image.read_bytes(), Journal.create("t1", UNDO_HANDLERS)
            (step,) = [step for step in storage.steps() if step.id.endswith("write_cache")]
            assert step.undo is not None and step.undo.kind == "restore_drive_cache"
            with pytest.raises(MissingCapability) as refused:
                storage.prepare(Runner(), journal)
            assert target.image.read_bytes() == before and journal.undo_all(Runner()) == ()
            (against,) = storage.destructive_target(Runner()).against
            return refused.value.message, against

    message, against = in_private_mounts(attempt)
    assert "neither SATA, SAS nor NVMe" in message
    assert against.startswith("write_cache = off: ") and "leave write_cache out" in against


TOOL = """#!/bin/sh
# Answers as hdparm does; the drive's cache is the file {state}.
case "$2" in
0|1) [ -e {state}.stubborn ] || echo "$2" > {state}; echo " setting drive write-caching to $2";;
esac
echo " write-caching =  $(cat {state})"
"""


def _obeying_hdparm(scratch: Path) -> Path:
    """An hdparm that obeys; returns where the state of its drive is."""
    state = scratch / "cache"
    state.write_text("1\n")
    (scratch / "bin").mkdir()
    (scratch / "bin/hdparm").write_text(TOOL.format(state=state))
    (scratch / "bin/hdparm").chmod(0o755)
    return state


@pytest.mark.parametrize("what", ["restored", "stubborn", "another drive", "gone"])
def test_what_was_switched_is_set_back_on_the_same_drive_only(
    state_dir: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """The drive is a loop device under the name of one, the tool a script: here is no drive to try it on."""
    state = _obeying_hdparm(scratch)
    monkeypatch.setenv("PATH", f"{scratch / 'bin'}:{os.environ['PATH']}:/usr/sbin:/sbin")

    def attempt() -> None:
        folder = scratch / "ours"
        make_directory(folder, "label", current_user(), 0o700)
        saved = folder / "saved" / "write-cache.json"
        with disk(scratch) as target:
            monkeypatch.setattr(
                "plinth.storage.devices.drive_cache.cache_commands", lambda node, folder: _hdparm(scratch)
            )
            if what == "stubborn":
                Path(f"{state}.stubborn").touch()
                with pytest.raises(RunError, match="still on"):
                    switch_cache(str(target.id), SERIAL, False, saved, Runner())
                return
            switch_cache(str(target.id), SERIAL, False, saved, Runner())
            assert state.read_text() == "0\n" and json.loads(saved.read_text())["on"] is True
            if what == "another drive":
                saved.write_text(json.dumps(json.loads(saved.read_text()) | {"serial": "another"}))
                with pytest.raises(Refused, match="left alone"):
                    restore_cache(saved, "label", Runner())
                assert state.read_text() == "0\n"
                return
            if what == "restored":
                restore_cache(saved, "label", Runner())
                assert state.read_text() == "1\n" and not saved.exists()
                restore_cache(saved, "label", Runner())
        if what == "gone":
            restore_cache(saved, "label", Runner())
            assert state.read_text() == "0\n" and not saved.exists()

    in_private_mounts(attempt)


def _hdparm(scratch: Path):
    (scratch / "ata/device").mkdir(parents=True, exist_ok=True)
    (scratch / "ata/device/vendor").write_text("ATA     \n")
    return cache_commands(Path("/dev/sda"), scratch / "ata")


def test_without_the_tool_its_package_is_named(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(scratch))
    for program, package in (("hdparm", "hdparm"), ("sdparm", "sdparm"), ("nvme", "nvme-cli")):
        with pytest.raises(PlinthError) as reported:
            Runner().require(program)
        assert f"package {package}" in (reported.value.hint or "")
