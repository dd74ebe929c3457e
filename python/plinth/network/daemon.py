"""The daemon of an emulated network: the client of its control socket, serving it, and round trips through it.

docs/internals/network.md has the commands of the socket.
"""

import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from plinth.model.errors import PlinthError, Refused, RunError, UsageError
from plinth.model.network import Direction, LinkChanges, LinkSettings, NetworkConfig, NetworkStatus, NodePlace
from plinth.system.daemon import DaemonControl
from plinth.system.failures import from_os_error

if TYPE_CHECKING:
    from plinth import _native

_POLL_S = 0.1  # until a signal takes effect


class NetworkControl(DaemonControl):
    """Commands to an emulated network. Each opens a separate connection, and has taken effect when it returns.

    Every method raises RunError when the daemon is not there or does not answer within `timeout_s`, and UsageError when the
    network refuses it.
    """

    served = "emulated network"
    hint = "`plinth clean` undoes what a run has left"

    def status(self) -> NetworkStatus:
        """Return the state of the network."""
        return NetworkStatus.model_validate(self._ask("status"))

    def change(self, changes: Mapping[Direction, LinkChanges] | Mapping[Direction, LinkSettings]) -> None:
        """Change directions of links, all at once, for packets that are sent from now on."""
        links = [
            {"from": sender, "to": receiver, "changes": one.model_dump(mode="json", exclude_none=True)}
            for (sender, receiver), one in changes.items()
        ]
        self._ask("set", links=links)


def serve_command(config: NetworkConfig) -> tuple[str, ...]:
    """Return the command that serves `config`. It prints one line of JSON when packets pass, and runs until it gets SIGTERM."""
    argv = [sys.executable, "-m", "plinth", "network", "serve", "--control", config.control]
    argv += ["--label", config.label, "--seed", str(config.seed)]
    for node in config.nodes:
        argv += ["--node", f"{node.name}={node.namespace}:{node.device}:{node.address}"]
    return tuple(argv)


def serve(config: NetworkConfig, ready: Callable[[NetworkStatus], object]) -> None:
    """Forward packets until SIGTERM or SIGINT arrives; `ready` is called when they pass and the socket answers.

    Raises a PlinthError when the network cannot be emulated.
    """
    from plinth import _native  # the journal needs this module without the engine

    stopped: list[int] = []
    previous = {
        number: signal.signal(number, lambda number, frame: stopped.append(number))
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        server = _native.NetworkServer(config.model_dump_json())
        server.start()
        try:
            ready(NetworkControl(Path(config.control)).status())
            while not stopped:
                server.wait(_POLL_S)
        finally:
            server.stop()
    except _native.NetworkError as error:
        raise as_plinth_error(error, Path(config.control)) from error
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def as_plinth_error(error: "_native.NetworkError", place: Path) -> PlinthError:
    """Return the engine's error, at `place` unless it names another."""
    if error.usage:
        return UsageError(error.message, hint="`plinth network serve --help` explains the options")
    if error.errno is not None:
        cause = OSError(error.errno, os.strerror(error.errno))
        return from_os_error(cause, "emulate the network", Path(error.path or place))
    if error.path is not None:
        return Refused(error.message, where=str(error.path))
    return RunError(error.message)


def measure_round_trips(
    sender: NodePlace, receiver: NodePlace, count: int, pause_s: float, timeout_s: float
) -> tuple[int | None, ...]:
    """Measure `count` round trips in ns, with pauses between them; None for each that took longer than `timeout_s`, or was lost.

    Raises a PlinthError when no packets can be sent.
    """
    from plinth import _native

    try:
        return tuple(_native.network_round_trips(sender.namespace, receiver.address, count, pause_s, timeout_s))
    except _native.NetworkError as error:
        raise as_plinth_error(error, Path(sender.namespace)) from error
