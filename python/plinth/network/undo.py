"""How an emulated network is undone by a process that knows only the journal."""

import signal
from pathlib import Path

from plinth.model.errors import Refused, RunError
from plinth.model.step import Undo
from plinth.system.daemon import find_daemons
from plinth.system.process import all_exit, handles, kill_all, send
from plinth.system.runner import Runner
from plinth.system.undo import UndoHandler, UndoHandlers

NAMESPACES = Path("/run/netns")
"""Where ip-netns(8) has the files of network namespaces."""
_SERVE = ("network", "serve")
_END_TIMEOUT_S = 10.0


def network_daemons(control: Path, label: str) -> list[int]:
    """The processes of ours that serve a network with this control socket."""
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
