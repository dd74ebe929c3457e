"""The emulated network's daemon: running it in this process, and the command that runs it in another one."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from plinth import _native
from plinth.model.errors import PlinthError, Refused, RunError, UsageError
from plinth.model.network import NetworkConfig, NetworkStatus
from plinth.network.control import NetworkControl
from plinth.system.failures import from_os_error

_POLL_S = 0.1  # until a signal takes effect


def serve_command(config: NetworkConfig) -> tuple[str, ...]:
    """The command that serves `config`. It prints one line of JSON when packets pass, and runs until it gets SIGTERM."""
    argv = [sys.executable, "-m", "plinth", "network", "serve", "--control", config.control]
    argv += ["--label", config.label, "--seed", str(config.seed)]
    for node in config.nodes:
        argv += ["--node", f"{node.name}={node.namespace}:{node.device}:{node.address}"]
    return tuple(argv)


def serve(config: NetworkConfig, ready: Callable[[NetworkStatus], object]) -> None:
    """Forward packets until SIGTERM or SIGINT arrives; `ready` is called when they pass and the socket answers.

    Raises a PlinthError when the network cannot be emulated.
    """
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


def as_plinth_error(error: _native.NetworkError, place: Path) -> PlinthError:
    """The engine's error, at `place` unless it names another."""
    if error.usage:
        return UsageError(error.message, hint="`plinth network serve --help` explains the options")
    if error.errno is not None:
        cause = OSError(error.errno, os.strerror(error.errno))
        return from_os_error(cause, "emulate the network", Path(error.path or place))
    if error.path is not None:
        return Refused(error.message, where=str(error.path))
    return RunError(error.message)
