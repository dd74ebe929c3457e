"""The process of a coordinator that talks to Ray, `plinth ray-driver`: it places one actor on each machine, and watches them.

It is a separate process since Ray takes over the one that it is in: its signals, and its life, which ends when Ray's own processes
do. A coordinator whose cluster is lost has servers to stop and storages to undo.

It ends with its connection to the coordinator; Ray then ends the actors, and with them the agents.
"""

import logging
import os
import platform
import re
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from plinth import __version__
from plinth.fleet.executors.ray_messages import Answer, Placed, Problem, RayEnded, RayOrder, Versions
from plinth.fleet.executors.ray_node import RayNode
from plinth.model.errors import MissingCapability, PlinthError, RunError
from plinth.model.units import format_count

if TYPE_CHECKING:
    from ray.actor import ActorHandle

_LOOK_S = 0.2
_LEAVE_TIMEOUT_S = 5.0
_REACH_TIMEOUT_S = 2.0
_CONNECT_TIMEOUT_S = 20.0
"""How long an agent waits for the coordinator once the last of them is there."""
_TRIES = 3
_RAY_ADDRESS, _MOST_ADDRESS = "RAY_ADDRESS", 1000
_NO_SERVER = "Starting Ray client server failed"
_CLIENT = "ray://"
_HEAD = "node:__internal_head__"
_MOST_LINES = 8
_ENVIRONMENT = {
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # what runs there is what is installed there
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_USAGE_STATS_PROMPT_ENABLED": "0",
}
_WORKER_ENVIRONMENT = {"env_vars": {"RAY_worker_niceness": "0"}}
"""Ray gives its workers a niceness of 15, which the load engine would inherit."""


class _Node(NamedTuple):
    """A machine of the cluster, as Ray knows it, and the CPUs of its that an agent gets."""

    id: str
    name: str
    address: str
    cpus: float


def main(words: Sequence[str]) -> int:
    """Run the hidden command `plinth ray-driver --descriptor N`, where N is the connection to the coordinator."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the coordinator decides
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    match words:
        case ["--descriptor", number] if number.isdecimal():
            return _drive(socket.socket(fileno=int(number)))
        case _:
            sys.stderr.write(
                "error: plinth ray-driver is started by a coordinator, and takes no arguments from people\n"
            )
            return 2


class _Coordinator:
    """The other end of the connection. `is_gone` is set when it has closed it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lines = connection.makefile("rb")
        self._sending = threading.Lock()
        self.is_gone = threading.Event()

    def order(self) -> RayOrder:
        """Read what it asks for. From then on its end is watched: this process does not outlive it by more than _LEAVE_TIMEOUT_S."""
        order = RayOrder.model_validate_json(self._lines.readline())
        threading.Thread(target=self._watch, name="coordinator", daemon=True).start()
        return order

    def tell(self, message: Answer | RayEnded) -> None:
        """Send it a message, unless it is gone."""
        with self._sending, suppress(OSError):
            self._connection.sendall(message.model_dump_json().encode() + b"\n")

    def _watch(self) -> None:
        with suppress(OSError):
            self._lines.read()
        self.is_gone.set()
        threading.Event().wait(_LEAVE_TIMEOUT_S)
        os._exit(1)  # Ray waits for something that does not come


def _drive(connection: socket.socket) -> int:
    coordinator = _Coordinator(connection)
    order = coordinator.order()
    os.environ.update(_ENVIRONMENT)
    import ray

    versions = Versions(plinth=__version__, python=platform.python_version(), ray=ray.__version__)
    try:
        with _connected(order.address):
            actors, answer = _placed(order, coordinator, versions)
            coordinator.tell(answer)
            for node, actor in actors.items():
                actor.ended.remote().future().add_done_callback(partial(_tell_end, coordinator, node.name))
            coordinator.is_gone.wait()
    except PlinthError as error:
        kind = "missing" if isinstance(error, MissingCapability) else "failed"
        problem = Problem(kind=kind, message=error.message, hint=error.hint, details=error.details)
        coordinator.tell(Answer(problems=(problem,), versions=versions))
        return 1
    return 0


@contextmanager
def _connected(address: str) -> Iterator[None]:
    """Be a driver of the cluster until the context ends. Raises RunError, MissingCapability where it cannot be."""
    import ray

    _check_port(address)
    try:
        _join(address)
    except Exception as error:
        text = str(error)
        lines = _lines(text)
        if "ersion mismatch" in text:
            raise MissingCapability(
                "the Ray cluster runs other versions than this machine",
                details=lines,
                hint="install the same wheels under the same Python everywhere",
            ) from error
        raise _no_cluster(address, lines[0] if lines else type(error).__name__, lines[1:]) from error
    try:
        yield
    finally:
        ray.shutdown()


def _join(address: str) -> None:
    """Make this process a driver. Ray's server for clients sometimes fails to start one's process (ray-project/ray#63202): another try does."""
    import ray

    address = _of_own_users(address)
    for left in reversed(range(_TRIES)):
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
            return
        except Exception as error:
            if not left or _NO_SERVER not in str(error):
                raise
            ray.shutdown()


def _of_own_users(address: str) -> str:
    """Return where "auto" leads root. Ray takes the address that is in a file below /tmp, or that a process has in its arguments: any user
    of the machine could write one, and a cluster runs code in the processes that join it. Raises RunError unless the file is root's, or of who
    called sudo."""
    if address != "auto" or os.geteuid() != 0 or os.environ.get(_RAY_ADDRESS):
        return address
    # Where Ray keeps it, without a folder that `ray start --temp-dir` names.
    file = Path(os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp", "ray", "ray_current_cluster")
    trusted = {0, int(os.environ.get("SUDO_UID", "0"))}
    try:
        with file.open() as opened:
            owners = {os.fstat(opened.fileno()).st_uid, file.parent.lstat().st_uid}
            found = opened.read(_MOST_ADDRESS).strip()
    except OSError as error:
        raise _no_cluster(address, f"{file}: {error.strerror}", ()) from error
    if not owners <= trusted:
        raise RunError(
            f"{file}, which names the Ray cluster of this machine, belongs to user id {max(owners - trusted)}: a cluster can run code in "
            "processes that join it, and root joins none that another user names",
            hint=f"start it as root, run as its user, or name it: {_RAY_ADDRESS}=HOST:PORT in the environment",
        )
    return found


def _check_port(address: str) -> None:
    """Raise RunError where nobody listens, for which Ray would wait half a minute."""
    if not address.startswith(_CLIENT):
        return
    host, _, port = address.removeprefix(_CLIENT).rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _REACH_TIMEOUT_S).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, str(error), ()) from error


def _no_cluster(address: str, reason: str, lines: Sequence[str]) -> RunError:
    return RunError(
        f"no Ray cluster answers at {address!r}: {reason}",
        details=lines,
        hint="`ray start --head` on one machine, `ray start --address=HOST:6379` on the others; `ray status` shows them",
    )


def _placed(
    order: RayOrder, coordinator: _Coordinator, versions: Versions
) -> "tuple[dict[_Node, ActorHandle[Any]], Answer]":
    """Start one actor for each agent, which waits for the coordinator, or the problems of those where there is none."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    actor_class = ray.remote(RayNode)
    actors: dict[_Node, Any] = {}
    for node in _shared(_chosen(order.machines, order.node, order.not_on), order.agents):
        options = {
            "num_cpus": node.cpus,
            "max_restarts": 0,
            "max_concurrency": 2,
            "runtime_env": _WORKER_ENVIRONMENT,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node.id, soft=False),
        }
        actors[node] = actor_class.options(**options).remote()
    waiting = {
        actor.listen.remote(node.address, order.certificate, order.timeout_s + _CONNECT_TIMEOUT_S, order.command): node
        for node, actor in actors.items()
    }
    placed: list[Placed] = []
    problems: list[Problem] = []
    for _ in range(int(order.timeout_s / _LOOK_S)):
        done, _ = ray.wait([*waiting], num_returns=len(waiting), timeout=_LOOK_S)
        for reference in done:
            node = waiting.pop(reference)
            try:
                placed.append(_placed_on(node, ray.get(reference)))
            except Exception as error:  # noqa: BLE001 - Ray raises what came up there, of any class
                problems.append(_problem_of(node, error))
        if not waiting or coordinator.is_gone.is_set():
            break
    problems += [_no_room(node, order.timeout_s) for node in waiting.values()]
    names = [node.name for node in actors]
    placed.sort(key=lambda one: names.index(one.name))
    return actors, Answer(placed=tuple(placed), problems=tuple(problems), versions=versions)


def _chosen(machines: int, wanted: str | None, not_on: Sequence[str]) -> list[_Node]:
    """Return as many machines of the cluster, in the order of their names, without those that `not_on` names: this one and the head last,
    which have other work; or the one that has the name or address `wanted`.

    Raises RunError when there are too few.
    """
    import ray

    listed = [node for node in ray.nodes() if node["Alive"]]
    alive = [node for node in listed if _listens(node["NodeManagerAddress"], node["NodeManagerPort"])]
    here = ray.get_runtime_context().get_node_id()
    names = [node["NodeName"] or node["NodeManagerAddress"] for node in alive]
    found = [
        (
            (node["NodeID"] == here, _HEAD in node["Resources"], _sortable(name)),
            _Node(
                node["NodeID"],
                name if names.count(name) == 1 else f"{name}-{node['NodeID'][:8]}",
                node["NodeManagerAddress"],
                node["Resources"].get("CPU", 0.0),
            ),
        )
        for node, name in zip(alive, names, strict=True)
    ]
    if wanted is not None:
        named = [node for _, node in found if wanted in (node.name, node.address)]
        if len(named) != 1:
            raise RunError(
                f"the Ray cluster has {'no' if not named else 'more than one'} machine {wanted}",
                details=sorted(f"{node.name}: {node.address}, {node.cpus:g} CPUs" for _, node in found),
                hint="`ray list nodes` shows the names and addresses of its machines",
            )
        return named
    free = [(key, node) for key, node in found if node.name not in not_on and node.address not in not_on]
    if len(free) < machines:
        others = len(found) - len(free)
        hosts = f" for a fleet, next to {format_count(others, 'host')} of the run" if others else ""
        raise RunError(
            f"the Ray cluster has {format_count(len(free), 'machine')}{hosts}, and {machines} are to drive the load",
            details=[
                *sorted(f"{node.name}: {node.address}, {node.cpus:g} CPUs" for _, node in free),
                *(
                    f"{node['NodeManagerAddress']}: lost, as Ray will notice soon"
                    for node in listed
                    if node not in alive
                ),
            ],
            hint="`ray start --address=HOST:6379` on more machines, or fewer in machines",
        )
    return [node for _, node in sorted(free)[:machines]]


def _listens(address: str, port: int) -> bool:
    """Return whether the raylet of a machine is there: one that was lost is still listed for half a minute, next to its successor."""
    try:
        socket.create_connection((address, port), _REACH_TIMEOUT_S).close()
    except ConnectionRefusedError:
        return False
    except OSError:  # what is in between may let nobody through but Ray
        return True
    return True


def _shared(nodes: Sequence[_Node], agents: int) -> list[_Node]:
    """Return where each agent runs. A single one on a machine gets all CPUs that it offers: no other work of Ray disturbs the load."""
    if agents == len(nodes):
        return [*nodes]
    shared = ((nodes[number % len(nodes)], number // len(nodes) + 1) for number in range(agents))
    return [node._replace(name=f"{node.name}-{number}", cpus=0.0) for node, number in shared]


def _sortable(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts client10 after client9."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def _placed_on(node: _Node, listening: Any) -> Placed:
    versions = Versions(plinth=listening["plinth"], python=listening["python"], ray=listening["ray"])
    return Placed(
        name=node.name,
        address=node.address,
        port=listening["port"],
        certificate=listening["certificate"],
        versions=versions,
    )


def _problem_of(node: _Node, error: Exception) -> Problem:
    """Return why the actor is not there."""
    text = str(error)
    lines = _lines(text)
    if "No module named 'plinth" in text:
        return Problem(
            kind="missing",
            machine=node.name,
            message=f"Plinth is not installed under Ray's Python on {node.name}",
            hint="the same wheel under the same Python on every machine: Plinth installs nothing there",
        )
    return Problem(
        machine=node.name,
        message=f"no agent could be started on {node.name}: {lines[-1] if lines else type(error).__name__}",
        details=tuple(lines[:-1]),
    )


def _no_room(node: _Node, timeout_s: float) -> Problem:
    return Problem(
        machine=node.name,
        message=f"Ray did not start an agent on {node.name} within {timeout_s:g} s: it asks for all of its "
        f"{node.cpus:g} CPUs, so that nothing else of Ray disturbs the load",
        hint="`ray status` shows what occupies the machine",
    )


def _tell_end(coordinator: _Coordinator, name: str, future: "Future[str]") -> None:
    error = future.exception()
    said = future.result() if error is None else "\n".join(("Ray:", *_lines(str(error))))
    coordinator.tell(RayEnded(name=name, said=said))


def _lines(text: str) -> list[str]:
    """Return the end of what Ray says of an error, without the frames of Ray's code."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith(("File ", "Traceback"))][-_MOST_LINES:]
