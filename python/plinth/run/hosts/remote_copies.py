"""Copies of a server's files on another host: as they were after loading, and snapshots that are taken while it runs."""

from collections.abc import Mapping

from typing_extensions import override

from plinth.run.hosts.link import HostLink
from plinth.run.hosts.remote_object import RemoteObject, remote
from plinth.server.copies.live_snapshot import LiveSnapshot
from plinth.server.copies.loaded_copy import LoadedCopy, RestoreWay
from plinth.server.layout import ServerLayout
from plinth.system.action import Snapshot


@remote("copy")
class RemoteCopy(RemoteObject, LoadedCopy):
    """The copy of the files of a node on another host. Commands of snapshots do not cross: the host has those of its storages."""

    def __init__(
        self, layout: ServerLayout, ways: Mapping[str, RestoreWay], link: HostLink, cluster: str, node: str
    ) -> None:
        super().__init__(link, ("copy", cluster, node))
        self.layout = layout
        asked = {role: "storage" if isinstance(way, Snapshot) else way for role, way in ways.items()}
        link.call(("run",), "restore_by", {"cluster": cluster, "node": node, "ways": asked})

    @property
    @override
    def is_whole(self) -> bool:
        return self._ask("is_whole_of")


@remote("snapshot")
class RemoteSnapshot(RemoteObject, LiveSnapshot):
    """Snapshot `number` of a cluster's running primary on another host; what its steps say is what is done there."""

    def __init__(
        self, layout: ServerLayout, number: int, of_storage: Snapshot | None, link: HostLink, cluster: str
    ) -> None:
        RemoteObject.__init__(self, link, ("snapshot", cluster, str(number)))
        LiveSnapshot.__init__(self, layout, number, of_storage)
