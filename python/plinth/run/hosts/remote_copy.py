"""The copy of a server's files as they were after loading, on another host."""

from collections.abc import Callable, Mapping

from plinth.model.progress import Progress
from plinth.model.trial import Restored
from plinth.run.hosts.link import HostLink
from plinth.server.copies.loaded_copy import LoadedCopy, RestoreWay
from plinth.server.layout import ServerLayout
from plinth.system.action import Snapshot
from plinth.system.journal import Journal
from plinth.system.runner import Runner


class RemoteCopy(LoadedCopy):
    """The copy of the files of a node on another host. Commands of snapshots do not cross: the host has those of its storages."""

    def __init__(
        self,
        layout: ServerLayout,
        ways: Mapping[str, RestoreWay],
        runner: Runner,
        journal: Journal,
        link: HostLink,
        on: tuple[str, str],
    ) -> None:
        super().__init__(layout, ways, runner, journal)
        self._link = link
        self._on = ("copy", *on)
        cluster, node = on
        asked = {role: "storage" if isinstance(way, Snapshot) else way for role, way in ways.items()}
        link.call(("run",), "restore_by", {"cluster": cluster, "node": node, "ways": asked})

    @property
    def is_whole(self) -> bool:
        """Return whether there is one to restore from."""
        return self._link.call(self._on, "is_whole_of")

    def check(self) -> None:
        """Raise MissingCapability where a file system there does not have what is asked for."""
        self._link.call(self._on, "check")

    def make(self) -> None:
        """Copy the files as they are now."""
        self._link.call(self._on, "make")

    def restore(self, report: Callable[[Progress], None]) -> Restored:
        """Put the files back to what they were."""
        return self._link.call(self._on, "restore", report=report)
