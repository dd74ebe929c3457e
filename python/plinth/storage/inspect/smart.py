"""Wear of a drive as it reports itself, read with smartctl(8) of smartmontools.

Fields: NVM Express base specification 2.0, figure 207 (percentage used, data units of 512,000 bytes); ACS-4 attributes,
whose normalised value counts down from 100; SBC-4's percentage used endurance indicator.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plinth.model.errors import PlinthError
from plinth.model.wear import SmartReading
from plinth.system.runner import CommandError, Runner

_NVME_DATA_UNIT_BYTES = 512_000
# Attributes that count the endurance that is left, down from 100, the usual one first.
_ATA_ENDURANCE_LEFT = (231, 233, 177, 202, 173, 169)
# The exit code of smartctl is a mask: these bits say that it read nothing, the others what the drive has to say.
_READ_NOTHING = 0b11


class NotReported(Exception):
    """A drive, or what is in the place of one, that reports no wear; the text says why."""


def read_smart(disk: str, runner: Runner) -> SmartReading:
    """Return the wear that the disk of a kernel name reports. Raises NotReported, also where smartctl is not installed."""
    argv = ("smartctl", "--json", "--info", "--attributes", str(Path("/dev") / disk))
    try:
        completed = runner.run(argv, allowed_exit_codes=range(256), timeout_s=30)
    except CommandError as error:
        raise NotReported(error.message) from error
    except PlinthError as error:
        raise NotReported("; ".join(filter(None, (error.message, error.hint)))) from error
    try:
        document = json.loads(completed.stdout)
    except ValueError as error:
        raise NotReported(f"smartctl answered in an unknown form: {error}") from error
    if completed.exit_code & _READ_NOTHING:
        raise NotReported(_messages(document) or f"smartctl failed with exit code {completed.exit_code}")
    return reported_wear(document, " ".join(argv))


def reported_wear(document: Mapping[str, Any], command: str) -> SmartReading:
    """Return the wear in what `smartctl --json` printed. Raises NotReported when there is none."""
    match document.get("device", {}).get("protocol"):
        case "NVMe":
            return _nvme(document.get("nvme_smart_health_information_log") or {}, command)
        case "ATA":
            return _ata(document.get("ata_smart_attributes", {}).get("table", []), command)
        case "SCSI" if (used := document.get("scsi_percentage_used_endurance_indicator")) is not None:
            field = "scsi_percentage_used_endurance_indicator"
            return SmartReading(percentage_used=used, lifetime_written_bytes=None, source=f"{command}: {field}")
        case protocol:
            raise NotReported(
                _messages(document) or f"the drive ({protocol or 'of no known protocol'}) reports no wear"
            )


def _nvme(log: Mapping[str, Any], command: str) -> SmartReading:
    if "percentage_used" not in log:
        raise NotReported("the drive gave no health log")
    units = log.get("data_units_written")
    return SmartReading(
        percentage_used=log["percentage_used"],
        lifetime_written_bytes=None if units is None else units * _NVME_DATA_UNIT_BYTES,
        source=f"{command}: percentage_used",
    )


def _ata(table: list[Mapping[str, Any]], command: str) -> SmartReading:
    by_id = {row["id"]: row for row in table}
    for number in _ATA_ENDURANCE_LEFT:
        if number in by_id:
            row = by_id[number]
            source = f"{command}: attribute {number} {row.get('name', '')}".rstrip()
            used = max(0, 100 - row["value"])
            return SmartReading(percentage_used=used, lifetime_written_bytes=None, source=source)
    raise NotReported("the drive has no attribute that counts its endurance: it may be a hard disk")


def _messages(document: Mapping[str, Any]) -> str:
    return "; ".join(message["string"] for message in document.get("smartctl", {}).get("messages", []))
