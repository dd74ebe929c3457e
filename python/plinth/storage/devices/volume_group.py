"""LVM volume groups: known by name, reached through their own devices only, and removed while the name is ours (lvm(8))."""

import json
from collections.abc import Sequence
from pathlib import Path

from plinth.model.errors import RunError
from plinth.system.runner import Runner
from plinth.system.undo import read_undo_state, write_undo_state

UDEV = Path("/run/udev/control")


def lvm_command(program: str, devices: Sequence[Path], *arguments: str) -> tuple[str, ...]:
    """A command of LVM that sees no devices but `devices`, and writes no backup of metadata to /etc.

    Links to devices are found in their own folders. Without udev LVM itself makes the nodes of volumes.
    """
    folders = ", ".join(json.dumps(str(folder)) for folder in dict.fromkeys(device.parent for device in devices))
    sections = [
        f'devices {{ scan = ["/dev", {folders}] hints = "none" }}',
        "backup { backup = 0 archive = 0 }",
    ]
    if not UDEV.exists():
        sections.append("activation { udev_sync = 0 udev_rules = 0 }")
    only = ",".join(map(str, devices))
    return (program, "--devices", only, "--config", " ".join(sections), *arguments)


def save_group(path: Path, name: str, devices: Sequence[Path]) -> None:
    """Record a group that is about to be made, and its devices, without which it cannot be removed."""
    write_undo_state(path, {"group": name, "devices": [str(device) for device in devices]})


def remove_volume_group(undo_state: Path, label: str, runner: Runner) -> None:
    """Remove the volume group that `undo_state` names, with its volumes, and LVM's marks on its devices.

    Nothing when nothing was saved, or the devices have gone. LVM refuses while a volume is in use.
    """
    content = read_undo_state(undo_state, label)
    if content is None:
        return
    name, devices = content["group"], [Path(device) for device in content["devices"]]
    devices = [device for device in devices if device.exists()]
    if not devices:
        return
    found = groups_of(devices, runner)
    if name in found.values():
        runner.run(lvm_command("vgremove", devices, "--yes", name))
        found = groups_of(devices, runner)
    if name in found.values():
        raise RunError(f"volume group {name} is still there after vgremove", where=" ".join(map(str, devices)))
    if ours := [device for device, group in found.items() if not group]:
        runner.run(lvm_command("pvremove", devices, "--yes", *map(str, ours)))


def groups_of(devices: Sequence[Path], runner: Runner) -> dict[Path, str]:
    """The devices that LVM has marked, and the volume group of each; "" for one that is in none."""
    argv = lvm_command("pvs", devices, "--reportformat", "json", "-o", "pv_name,vg_name")
    rows = json.loads(runner.run(argv).stdout)["report"][0]["pv"]
    by_node = {device.resolve(): device for device in devices}
    return {by_node[Path(row["pv_name"]).resolve()]: row["vg_name"] for row in rows}
