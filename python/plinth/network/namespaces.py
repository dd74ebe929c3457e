"""Network namespaces with a TUN device for each node, and the daemon that joins them: their steps, and how they are undone."""

import ipaddress
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plinth.model.errors import MissingCapability, Refused, RunError
from plinth.model.network import NetworkConfig, NodePlace
from plinth.model.step import Step, Undo
from plinth.network.daemon import NetworkControl, serve_command
from plinth.system.action import Action, make_labelled
from plinth.system.daemon import find_daemons, start_daemon
from plinth.system.log_file import LogFile
from plinth.system.owner import current_user
from plinth.system.paths import check_socket_path
from plinth.system.process import all_exit, handles, kill_all, send
from plinth.system.runner import Runner
from plinth.system.undo import UndoHandler, UndoHandlers

NAMESPACES = Path("/run/netns")
"""Where ip-netns(8) has the files of network namespaces."""
_SERVE = ("network", "serve")
_END_TIMEOUT_S = 10.0
_ADDRESSES = ipaddress.IPv4Network("10.119.0.0/24")  # seen in the namespaces only: it may be in use outside of them
_DEVICE = "plinth0"
_TUN = Path("/dev/net/tun")


def network_daemons(control: Path, label: str) -> list[int]:
    """Return the processes of ours that serve a network with this control socket."""
    return [found.pid for found in find_daemons(_SERVE, {"--control": str(control), "--label": label})]


def stop_network(control: Path, label: str) -> None:
    """End the daemon; nothing when it has ended."""

    def pids() -> list[int]:
        return network_daemons(control, label)

    with handles(pids) as found:
        for pidfd in found.values():
            send(pidfd, signal.SIGTERM)
        all_exit(list(found.values()), _END_TIMEOUT_S)
    if left := kill_all(pids, _END_TIMEOUT_S):
        raise RunError(f"the emulated network's daemon could not be ended: pid {left[0]}", where=str(control))


def delete_namespace(path: Path, label: str, runner: Runner) -> None:
    """Delete a network namespace; nothing when it is gone. Refused for one that does not have our label in its name."""
    if path.parent != NAMESPACES or not path.name.startswith(f"{label}-"):
        raise Refused(f"not deleted: it does not have our label {label!r}", where=str(path))
    if path.exists():
        runner.run(("ip", "netns", "delete", path.name))


def _delete_command(what: Undo) -> tuple[str, ...]:
    return ("ip", "netns", "delete", Path(what.path).name)


NETWORK_UNDO: UndoHandlers = {
    "delete_network_namespace": UndoHandler(
        lambda what, runner: delete_namespace(Path(what.path), what.label, runner),
        lambda what: f"delete the network namespace {Path(what.path).name}",
        _delete_command,
    ),
    "stop_network": UndoHandler(
        lambda what, runner: stop_network(Path(what.path), what.label),
        lambda what: f"end the daemon of the emulated network with the control socket {what.path}",
    ),
}


@dataclass(frozen=True)
class NetworkLayout:
    """An emulated network of named nodes. `folder` is made by it, for the control socket and the daemon's log."""

    label: str
    folder: Path
    nodes: Sequence[str]
    seed: int = 1

    @property
    def places(self) -> tuple[NodePlace, ...]:
        """Where each node is."""
        return tuple(
            NodePlace(
                name=name,
                namespace=str(NAMESPACES / f"{self.label}-{name}"),
                device=_DEVICE,
                address=str(_ADDRESSES[number]),
            )
            for number, name in enumerate(self.nodes, 1)
        )

    @property
    def control(self) -> NetworkControl:
        """The control of its daemon."""
        return NetworkControl(self.folder / "control")

    def check(self, runner: Runner) -> None:
        """Raise a PlinthError where this machine cannot emulate a network."""
        if os.geteuid() != 0:
            raise MissingCapability(
                "only root can make network namespaces",
                where="network",
                hint="run as root, or leave out [network] and its factors: servers then talk over sockets",
            )
        if not _TUN.exists():
            raise MissingCapability(
                "this system has no TUN devices, by which the network is emulated",
                where=str(_TUN),
                hint="modprobe tun; a container needs --device /dev/net/tun --cap-add NET_ADMIN --cap-add SYS_ADMIN",
            )
        runner.require("ip")
        check_socket_path(self.control.path, hint="set PLINTH_STATE_DIR to a shorter path")

    def actions(self) -> list[Action]:
        """Return the steps of making it, in order."""
        folder = make_labelled("network.folder", self.folder, self.label, current_user())
        return [folder, *(action for place in self.places for action in self._node(place)), self._serve()]

    def _node(self, place: NodePlace) -> list[Action]:
        namespace = Path(place.namespace).name
        within = ("ip", "-n", namespace)
        address = f"{place.address}/{_ADDRESSES.prefixlen}"
        made = Step(
            id=f"network.{place.name}.namespace",
            title=f"make the network namespace of {place.name}",
            argv=("ip", "netns", "add", namespace),
            undo=Undo(kind="delete_network_namespace", path=place.namespace, label=self.label),
        )
        commands = {
            "device": (f"make the TUN device of {place.name}", ("tuntap", "add", "dev", place.device, "mode", "tun")),
            "address": (f"give {place.name} the address {address}", ("address", "add", address, "dev", place.device)),
            "loopback": (f"switch on the loopback device of {place.name}", ("link", "set", "lo", "up")),
            "up": (f"switch on the TUN device of {place.name}", ("link", "set", place.device, "up")),
        }
        steps = [made] + [
            Step(id=f"network.{place.name}.{what}", title=title, argv=(*within, *words))
            for what, (title, words) in commands.items()
        ]
        return [_command(step) for step in steps]

    def _serve(self) -> Action:
        control = str(self.control.path)
        argv = serve_command(NetworkConfig(label=self.label, control=control, seed=self.seed, nodes=self.places))
        step = Step(
            id="network.serve",
            title=f"emulate the network between {', '.join(self.nodes)}",
            argv=argv,
            undo=Undo(kind="stop_network", path=control, label=self.label),
        )
        return Action(step, lambda runner: start_daemon(argv, LogFile(self.folder / "log"), runner))


def _command(step: Step) -> Action:
    argv = step.argv
    assert argv is not None, "it is a command"
    return Action(step, lambda runner: runner.run(argv))
