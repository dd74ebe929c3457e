"""A logical volume over the devices of several storages (lvm(8), lvcreate(8)).

A volume group is known by its name, reached through its own devices only, and removed only while the name is ours.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from plinth.model.errors import Refused, RunError
from plinth.model.facts import Fact, StackNode, StorageFacts
from plinth.model.step import Step, Undo
from plinth.model.storage import LvmStorage
from plinth.storage.actions import Action
from plinth.storage.blockstorage import BLOCK_UNDO
from plinth.storage.members import BLANK_MEMBERS, StorageOfMembers, sizes_of
from plinth.storage.requirements import DRIVER_PROGRAMS, Requirements, driver_feature, require_driver
from plinth.system.runner import Runner
from plinth.system.undo import UndoHandler, UndoHandlers, read_undo_state, write_undo_state

UDEV = Path("/run/udev/control")
_MODULE = "dm_mod"
_SIGN = Path("/sys/class/misc/device-mapper")
_VOLUME = "data"
_LAYOUT = ("segtype", "stripes", "stripe_size", "lv_size")


def lvm_command(program: str, devices: Sequence[Path], *arguments: str) -> tuple[str, ...]:
    """Return a command of LVM that sees no devices but `devices`, and writes no backup of metadata to /etc.

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
    """Return the devices that LVM has marked, and the volume group of each; "" for one that is in none."""
    argv = lvm_command("pvs", devices, "--reportformat", "json", "-o", "pv_name,vg_name")
    rows = json.loads(runner.run(argv).stdout)["report"][0]["pv"]
    by_node = {device.resolve(): device for device in devices}
    return {by_node[Path(row["pv_name"]).resolve()]: row["vg_name"] for row in rows}


class Lvm(StorageOfMembers[LvmStorage]):
    """One volume in a separate volume group."""

    requirements = BLANK_MEMBERS.plus(
        Requirements(
            programs=("vgcreate", "lvcreate", "lvs", "pvs", "vgremove", "pvremove"),
            kernel=(driver_feature(_MODULE, _SIGN),),
            optional_programs=DRIVER_PROGRAMS,
        )
    )
    undo_handlers: ClassVar[UndoHandlers] = {
        **BLOCK_UNDO,
        "remove_volume_group": UndoHandler(
            lambda what, runner: remove_volume_group(Path(what.path), what.label, runner),
            lambda what: f"remove the volume group that is named in {what.path}",
        ),
    }

    def capacity_bytes(self) -> int | None:
        """Return the requested size, or the total capacity of the members."""
        sizes = sizes_of(self, self.spec.members)
        return self.spec.size_bytes or (None if sizes is None else sum(sizes))

    def device_paths(self) -> list[Path]:
        """Return the node that LVM makes for the volume."""
        return [Path("/dev") / self.mark / _VOLUME]

    def power_cut_refusal(self) -> str:
        """Return the reason: it is not assembled again after a power cut."""
        return f"{self.name} is of kind lvm: its volume group would have to be activated again, which Plinth does not do yet"

    def check(self, runner: Runner) -> None:
        """Raise a PlinthError unless the kernel has the driver, and there is no volume group of that name."""
        require_driver("device-mapper driver (dm)", _MODULE, _SIGN, runner)
        super().check(runner)
        node = self.device_paths()[0]
        if node.parent.exists():
            raise Refused("a volume group of that name is there already", where=str(node.parent), hint="vgs shows it")

    def block_actions(self) -> list[Action]:
        """Make the group and the volume."""
        members = self.members
        group = self._lvm("vgcreate", self.mark, *map(str, members))
        # Remains of a former file system in blank members belong to no one: without the answer lvcreate would give up.
        wiped = ("--wipesignatures", "y", "--yes")
        volume = self._lvm("lvcreate", "--name", _VOLUME, *wiped, *self._shape(), *self._size(), self.mark)
        undo_state = self.undo_state_folder / "volume-group.json"

        def make_group(runner: Runner) -> None:
            save_group(undo_state, self.mark, members)
            with self.members_held(runner):
                runner.run(group)

        return [
            Action(
                Step(
                    id=self.step_id("group"),
                    title=f"make a volume group of {' and '.join(map(str, members))}",
                    argv=group,
                    destroys=self.members_destroy(),
                    undo=Undo(kind="remove_volume_group", path=str(undo_state), label=self.label),
                ),
                make_group,
            ),
            Action(
                Step(id=self.step_id("volume"), title=f"make a {self.spec.layout} volume in it", argv=volume),
                lambda runner: runner.run(volume),
            ),
            Action(
                Step(id=self.step_id("layout"), title="see whether its layout is the one asked for", argv=self._report),
                self._check_layout,
            ),
        ]

    def facts(self, runner: Runner) -> StorageFacts:
        """Return the facts as every block storage does, with how the volume uses its members."""
        facts = super().facts(runner)
        source = " ".join(self._report)
        added = tuple(Fact(name=name, value=value, source=source) for name, value in self._layout(runner).items())
        stack = tuple(
            node.model_copy(update={"facts": (*node.facts, *added)}) if self._is_volume(node) else node
            for node in facts.stack
        )
        return facts.model_copy(update={"stack": stack})

    def _is_volume(self, node: StackNode) -> bool:
        name = f"{self.mark}-{_VOLUME}"  # as the device mapper calls it
        return node.kind == "dm" and any(fact.name == "name" and fact.value == name for fact in node.facts)

    @property
    def _report(self) -> tuple[str, ...]:
        columns = ",".join(_LAYOUT)
        return self._lvm("lvs", "--reportformat", "json", "--units", "b", "--nosuffix", "-o", columns, self.mark)

    def _layout(self, runner: Runner) -> dict[str, str]:
        """Return how LVM says that the volume uses its members."""
        segments = json.loads(runner.run(self._report).stdout)["report"][0]["lv"]  # a linear one has one a member
        return {column: " and ".join(dict.fromkeys(row[column] for row in segments)) for column in _LAYOUT}

    def _check_layout(self, runner: Runner) -> None:
        """Raise RunError unless the volume is linear or striped as asked; sizes are rounded up to whole extents."""
        asked = {"segtype": self.spec.layout}
        if self.spec.layout == "striped":
            asked["stripes"] = str(self._stripes)
            if self.spec.stripe_size_bytes is not None:
                asked["stripe_size"] = str(self.spec.stripe_size_bytes)
        found = self._layout(runner)
        if {name: found[name] for name in asked} != asked:
            raise RunError(f"asked for a volume with {asked}, got {found}", where=self.mark)

    @property
    def _stripes(self) -> int:
        return self.spec.stripes or len(self.members)

    def _shape(self) -> tuple[str, ...]:
        if self.spec.layout == "linear":
            return ("--type", "linear")
        size_bytes = self.spec.stripe_size_bytes
        size = () if size_bytes is None else ("--stripesize", f"{size_bytes // 1024}k")
        return ("--type", "striped", "--stripes", str(self._stripes), *size)

    def _size(self) -> tuple[str, ...]:
        return ("-l", "100%FREE") if self.spec.size_bytes is None else ("-L", f"{self.spec.size_bytes}b")

    def _lvm(self, program: str, *arguments: str) -> tuple[str, ...]:
        return lvm_command(program, self.members, *arguments)
