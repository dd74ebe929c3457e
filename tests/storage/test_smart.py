"""Wear as drives report it. What smartctl prints is given here in its documented form, cut to the fields that are read."""

import json
from pathlib import Path

import pytest

from plinth.storage.inspect.smart import NotReported, read_smart, reported_wear
from plinth.system.runner import Runner

NVME = {
    "device": {"name": "/dev/nvme0n1", "type": "nvme", "protocol": "NVMe"},
    "nvme_smart_health_information_log": {"percentage_used": 2, "data_units_written": 62_786_553},
}


def ata(*rows: tuple[int, str, int]) -> dict:
    table = [{"id": number, "name": name, "value": value, "raw": {"value": 7}} for number, name, value in rows]
    return {"device": {"protocol": "ATA"}, "ata_smart_attributes": {"revision": 1, "table": table}}


@pytest.mark.parametrize(
    ("document", "used", "written_bytes", "source"),
    [
        (NVME, 2, 62_786_553 * 512_000, "percentage_used"),
        (
            ata((9, "Power_On_Hours", 99), (177, "Wear_Leveling_Count", 97)),
            3,
            None,
            "attribute 177 Wear_Leveling_Count",
        ),
        (ata((233, "Media_Wearout_Indicator", 100), (177, "Other", 1)), 0, None, "attribute 233"),
        (ata((231, "SSD_Life_Left", 12), (233, "Other", 100)), 88, None, "attribute 231 SSD_Life_Left"),
        (ata((202, "Percent_Lifetime_Remain", 45)), 55, None, "attribute 202"),
        (
            {"device": {"protocol": "SCSI"}, "scsi_percentage_used_endurance_indicator": 0},
            0,
            None,
            "endurance_indicator",
        ),
    ],
)
def test_each_kind_of_drive_shows_it_in_its_way(document: dict, used: int, written_bytes: int, source: str) -> None:
    reported = reported_wear(document, "smartctl --json")
    assert (reported.percentage_used, reported.lifetime_written_bytes) == (used, written_bytes)
    assert reported.source.startswith("smartctl --json: ")
    assert source in reported.source


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (ata((9, "Power_On_Hours", 99)), "may be a hard disk"),
        ({"device": {"protocol": "ATA"}}, "may be a hard disk"),
        ({"device": {"protocol": "NVMe"}}, "no health log"),
        ({"device": {"protocol": "SCSI"}}, "reports no wear"),
        (
            {"smartctl": {"messages": [{"string": "Unable to detect device type", "severity": "error"}]}},
            "Unable to detect",
        ),
        ({}, "of no known protocol"),
    ],
)
def test_a_drive_that_shows_nothing_is_no_zero(document: dict, reason: str) -> None:
    with pytest.raises(NotReported, match=reason):
        reported_wear(document, "smartctl")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (
            f"echo '{json.dumps({'smartctl': {'messages': [{'string': 'Permission denied'}]}})}'; exit 2",
            "Permission denied",
        ),
        ("echo '{}'; exit 1", "exit code 1"),
        ("echo Segmentation fault", "unknown form"),
    ],
)
def test_what_smartctl_could_not_read_is_reported_with_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, reason: str
) -> None:
    program = tmp_path / "smartctl"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(NotReported, match=reason):
        read_smart("vda", Runner())


def test_a_failing_drive_is_read_nevertheless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The higher bits of the exit code are what the drive says of itself."""
    program = tmp_path / "smartctl"
    program.write_text(f"#!/bin/sh\necho '{json.dumps(NVME)}'\nexit 88\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    reported = read_smart("nvme0n1", Runner())
    assert reported.source == "smartctl --json --info --attributes /dev/nvme0n1: percentage_used"


def test_without_smartctl_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plinth.system.runner._environment", lambda owner: {"PATH": "/nowhere"})
    with pytest.raises(NotReported, match="smartmontools"):
        read_smart("vda", Runner())
