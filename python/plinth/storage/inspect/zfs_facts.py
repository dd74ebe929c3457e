"""What ZFS reports about a pool: its devices, how much went to each, and every property that is not at its default."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from plinth.model.base import Gap
from plinth.model.errors import PlinthError
from plinth.model.facts import Fact, StackNode, StorageFacts
from plinth.storage.devices.zfs import COMMAND_TIMEOUT_S
from plinth.storage.inspect.stack import read_members
from plinth.system.runner import Runner

_SET_EXPLICITLY = ("local", "received", "temporary")
_INHERITED = ["inherited", "from"]


def with_pool(
    facts: StorageFacts,
    pool: str,
    dataset: str,
    uses: Mapping[str, Sequence[Path]],
    inside: Sequence[str],
    runner: Runner,
) -> StorageFacts:
    """Add to `facts` of the mounted dataset the pool below it, and below that what its members are stored on.

    `uses` has the members: data, log, special, cache. ZFS names a device by our link to it; what that is, is a fact too.
    """
    asked = _Asked(inside, runner)
    version = Path("/sys/module/zfs/version")
    devices = [f"{use}: {path}{_real(path)}" for use, paths in uses.items() for path in paths]
    found = [
        Fact(name="devices", value=devices, source="zpool create"),
        asked.lines("status", ("zpool", "status", "-v", pool)),
        asked.lines("iostat", ("zpool", "iostat", "-v", pool)),
        *asked.properties("pool", ("zpool", "get", "all", pool)),
        *asked.properties("dataset", ("zfs", "get", "all", dataset)),
    ]
    if version.exists():
        found.append(Fact(name="module_version", value=version.read_text().strip(), source=str(version)))
    depth = len(facts.stack)  # below the mount and the file system
    below = read_members([path for paths in uses.values() for path in paths], depth=depth + 1)
    node = StackNode(kind="zfs", name=pool, depth=depth, facts=tuple(fact for fact in found if fact is not None))
    kept = tuple(gap for gap in facts.gaps if gap.what != f"{facts.path}: the devices below")
    return facts.model_copy(
        update={
            "stack": (*facts.stack, node, *below.nodes),
            "block_devices": below.block_devices,
            "volatile": below.volatile_reason is not None,
            "volatile_reason": below.volatile_reason,
            "gaps": (*kept, *below.gaps, *asked.gaps),
        }
    )


def _real(path: Path) -> str:
    return f" -> {path.resolve()}" if path.is_symlink() else ""


class _Asked:
    """Runs ZFS's commands, and collects gaps for what could not be read."""

    def __init__(self, inside: Sequence[str], runner: Runner) -> None:
        self._inside = inside
        self._runner = runner
        self.gaps: list[Gap] = []

    def lines(self, name: str, argv: Sequence[str]) -> Fact | None:
        """Return the output of a command, as lines."""
        said = self._run(name, argv)
        lines = [line for line in (said or "").splitlines() if line.strip()]
        return None if said is None else Fact(name=name, value=lines, source=" ".join(argv))

    def properties(self, of: str, argv: Sequence[str]) -> list[Fact]:
        """Return the properties that are set on it or above it, and the version. zfs-fuse prints them as a table only."""
        facts = []
        for line in (self._run(f"{of} properties", argv) or "").splitlines()[1:]:
            _, name, *values, source = line.split()
            if inherited := values[-2:] == _INHERITED:
                values = values[:-2]
            if inherited or source in _SET_EXPLICITLY or name == "version":
                facts.append(Fact(name=f"{of}.{name}", value=" ".join(values), source=" ".join(argv)))
        return facts

    def _run(self, what: str, argv: Sequence[str]) -> str | None:
        try:
            return self._runner.run((*self._inside, *argv), timeout_s=COMMAND_TIMEOUT_S).stdout
        except PlinthError as error:
            self.gaps.append(Gap(what=f"zfs: {what}", reason=f"{error.message}: {' '.join(error.details)}"))
            return None
