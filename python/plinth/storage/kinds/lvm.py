"""A logical volume over the devices of several storages (lvm(8), lvcreate(8))."""

import json
from pathlib import Path
from typing import ClassVar

from plinth.model.errors import Refused, RunError
from plinth.model.facts import Fact, StackNode, StorageFacts
from plinth.model.step import Step, Undo
from plinth.model.storage import LvmStorage
from plinth.storage.actions import Action
from plinth.storage.blockstorage import BLOCK_UNDO
from plinth.storage.devices.kernel_driver import DRIVER_PROGRAMS, driver_feature, require_driver
from plinth.storage.devices.volume_group import lvm_command, remove_volume_group, save_group
from plinth.storage.members import BLANK_MEMBERS, StorageOfMembers, sizes_of
from plinth.storage.requirements import Requirements
from plinth.system.runner import Runner
from plinth.system.undo import UndoHandler, UndoHandlers

_MODULE = "dm_mod"
_SIGN = Path("/sys/class/misc/device-mapper")
_VOLUME = "data"
_LAYOUT = ("segtype", "stripes", "stripe_size", "lv_size")


class Lvm(StorageOfMembers[LvmStorage]):
    """One volume in a volume group of its own."""

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
        """The requested size, or the total capacity of the members."""
        sizes = sizes_of(self, self.spec.members)
        return self.spec.size_bytes or (None if sizes is None else sum(sizes))

    def device_paths(self) -> list[Path]:
        """The node that LVM makes for the volume."""
        return [Path("/dev") / self.mark / _VOLUME]

    def power_cut_refusal(self) -> str:
        """The reason: it is not assembled again after a power cut."""
        return f"{self.name} is of kind lvm: its volume group would have to be activated again, which Plinth does not do yet"

    def check(self, runner: Runner) -> None:
        """The kernel has the driver, and there is no volume group of that name."""
        require_driver("device-mapper driver (dm)", _MODULE, _SIGN, runner)
        super().check(runner)
        node = self.device_paths()[0]
        if node.parent.exists():
            raise Refused("a volume group of that name is there already", where=str(node.parent), hint="vgs shows it")

    def block_actions(self) -> list[Action]:
        """Make the group and the volume."""
        members = self.members
        group = self._lvm("vgcreate", self.mark, *map(str, members))
        # What a former file system left within blank members is nobody's: without the answer lvcreate would give up.
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
        """As of every block storage, with how the volume uses its members."""
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
        """How LVM says that the volume uses its members."""
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
