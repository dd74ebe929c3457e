"""The client of an emulated network's control socket. docs/internals/network.md has its commands."""

from collections.abc import Mapping

from plinth.model.network import Direction, LinkChanges, LinkSettings, NetworkStatus
from plinth.system.daemon import DaemonControl


class NetworkControl(DaemonControl):
    """Commands to an emulated network. Each opens a connection of its own, and is done when it returns.

    Every method raises RunError when the daemon is not there or does not answer within `timeout_s`, and UsageError when the
    network refuses it.
    """

    served = "emulated network"
    hint = "`plinth clean` undoes what a run has left"

    def status(self) -> NetworkStatus:
        """The state of the network."""
        return NetworkStatus.model_validate(self._ask("status"))

    def change(self, changes: Mapping[Direction, LinkChanges] | Mapping[Direction, LinkSettings]) -> None:
        """Change directions of links, all at once, for packets that are sent from now on."""
        links = [
            {"from": sender, "to": receiver, "changes": one.model_dump(mode="json", exclude_none=True)}
            for (sender, receiver), one in changes.items()
        ]
        self._ask("set", links=links)
