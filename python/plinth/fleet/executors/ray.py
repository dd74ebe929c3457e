"""Agents on the machines of a Ray cluster: Ray chooses none, it starts one on each and says how they end.

What the coordinator and an agent say to each other, with all secrets, goes through a separate connection by TLS.
"""

import select
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from time import monotonic
from typing import TypeVar

from plinth.fleet.executors.executor import NotStarted, Started
from plinth.fleet.executors.ray_messages import Answer, Placed, Problem, RayEnded, RayOrder, Versions
from plinth.fleet.protocol import Link
from plinth.model.base import Frozen
from plinth.model.errors import MissingCapability, PlinthError, RunError
from plinth.model.fleet import FleetSpec
from plinth.system import cancel
from plinth.system.certificates import Identity, new_identity
from plinth.system.extras import require_package
from plinth.system.framed_tls import connect_tls, tls_context
from plinth.system.log_file import LogFile
from plinth.system.process import wait_or_kill
from plinth.system.runner import Runner

_PLACE_TIMEOUT_S = 40.0
"""For the agents of one round over the machines: a worker of Ray is started for each."""
_ANSWER_TIMEOUT_S = 160.0
"""In addition, for Ray's package to be loaded, and the cluster to be found or not, each try of which may take Ray half a minute."""
_CONNECT_TIMEOUT_S = 10.0
_END_TIMEOUT_S = 5.0
"""An agent needs up to 3 s, and Ray's own process to leave the cluster about 1 s."""
_REASON_TIMEOUT_S = 3.0
"""How long Ray may take to say why an agent is no longer there."""
_PIECE_BYTES = 64 * 1024
_Message = TypeVar("_Message", bound=Frozen)


class RayExecutor:
    """Starts an agent on each of `fleet.machines` machines of a Ray cluster.

    More `agents` than machines share them, to see what many cost where there are few: they do not measure a server well. None is on the
    machines `not_on`, by name or address.
    """

    def __init__(
        self, fleet: FleetSpec, runner: Runner, log: LogFile, agents: int | None = None, not_on: Sequence[str] = ()
    ) -> None:
        require_package("ray", "a fleet on Ray", where="fleet.executor")
        machines = fleet.number_of_machines
        number = agents or machines
        self._agents = _RayAgents(
            RayOrder(
                address=fleet.ray_address,
                machines=machines,
                agents=number,
                not_on=tuple(not_on),
                timeout_s=_PLACE_TIMEOUT_S * -(-number // machines),
                certificate="",
            ),
            runner,
            log,
        )

    def agents(self) -> AbstractContextManager[list[Started]]:
        """Run the agents until the context ends; they end with their connections, and with Ray's actors."""
        return self._agents.started()


@contextmanager
def host_agent_on_ray(address: str, node: str, runner: Runner, log: LogFile) -> Iterator[Started]:
    """Run the agent of a host, which is one machine of a Ray cluster. It outlives Ray's actor, to undo what it has made.

    Raises RunError, or MissingCapability.
    """
    require_package("ray", "a host on Ray", where="address")
    order = RayOrder(
        address=address,
        machines=1,
        agents=1,
        node=node,
        command="host-agent",
        timeout_s=_PLACE_TIMEOUT_S,
        certificate="",
    )
    with _RayAgents(order, runner, log).started() as agents:
        yield agents[0]


class _RayAgents:
    """What an order places; it has no certificate yet."""

    def __init__(self, order: RayOrder, runner: Runner, log: LogFile) -> None:
        self._order = order
        self._runner = runner
        self._log = log

    @contextmanager
    def started(self) -> Iterator[list[Started]]:
        """Run the agents until the context ends."""
        own = new_identity()
        with _Driver(self._runner, self._log) as driver, ExitStack() as links:
            order = self._order.model_copy(update={"certificate": own.certificate})
            placed = driver.place(order)
            try:
                yield [
                    Started(one.name, link, partial(driver.said, one.name), "ray status")
                    for one, link in zip(placed, _connected(placed, own, links), strict=True)
                ]
            finally:
                with cancel.masked():
                    links.close()
                    driver.wait_for_ends([one.name for one in placed])


class _Driver:
    """The process that talks to Ray, and what it says of agents that have ended."""

    def __init__(self, runner: Runner, log: LogFile) -> None:
        self._runner = runner
        self._log = log
        self._said: dict[str, str] = {}
        self._is_over = False
        self._news = threading.Condition()
        self._received = bytearray()

    def __enter__(self) -> "_Driver":
        self._connection, theirs = socket.socketpair()
        with theirs:
            argv = [sys.executable, "-m", "plinth", "ray-driver", "--descriptor", str(theirs.fileno())]
            try:
                self._child = self._runner.spawn(argv, log=self._log, pass_fds=[theirs.fileno()])
            except BaseException:
                self._connection.close()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # it has ended already
            self._connection.shutdown(socket.SHUT_RDWR)
        wait_or_kill([self._child], _END_TIMEOUT_S)
        self._connection.close()

    def place(self, order: RayOrder) -> list[Placed]:
        """Return the actors, which wait for connections. Raises NotStarted, RunError, MissingCapability where one is not there."""
        self._connection.sendall(order.model_dump_json().encode() + b"\n")
        answer = self._answer(order.timeout_s + _ANSWER_TIMEOUT_S)
        _check(answer.problems)
        _check_versions(answer)
        threading.Thread(target=self._listen, name="ray-driver", daemon=True).start()
        return list(answer.placed)

    def said(self, name: str) -> str:
        """Return what the agent on this machine printed, and how Ray saw it end: wait until Ray knows, for a while."""
        with self._news:
            self._news.wait_for(lambda: name in self._said or self._is_over, _REASON_TIMEOUT_S)
            if name not in self._said and self._is_over:
                return "the process that talks to Ray has ended"
            return self._said.get(name, "")

    def wait_for_ends(self, names: Sequence[str]) -> None:
        """Wait until the agents on these machines have ended, whose connections are closed, or Ray has lost them."""
        with self._news:
            self._news.wait_for(lambda: self._said.keys() >= set(names) or self._is_over, _END_TIMEOUT_S)

    def _answer(self, timeout_s: float) -> Answer:
        deadline = monotonic() + timeout_s
        while (line := self._line()) is None:
            left_s = deadline - monotonic()
            if left_s <= 0:
                raise RunError(f"Ray did not answer within {timeout_s:g} s", where="fleet.ray_address")
            if cancel.poll({self._connection.fileno(): select.POLLIN}, left_s) and not self._receive():
                last_lines = self._log.tail(_PIECE_BYTES).splitlines()[-10:]
                raise RunError("the process that talks to Ray has ended", where="fleet.ray_address", details=last_lines)
        return _read(Answer, line)

    def _listen(self) -> None:
        while True:
            while (line := self._line()) is not None:
                ended = _read(RayEnded, line)
                with self._news:
                    self._said[ended.name] = ended.said
                    self._news.notify_all()
            if not self._receive():
                break
        with self._news:
            self._is_over = True
            self._news.notify_all()

    def _line(self) -> bytes | None:
        line, newline, rest = bytes(self._received).partition(b"\n")
        if not newline:
            return None
        self._received[:] = rest
        return line

    def _receive(self) -> bool:
        """Wait for more; whether there is any."""
        try:
            piece = self._connection.recv(_PIECE_BYTES)
        except OSError:
            return False
        self._received += piece
        return bool(piece)


def _connected(placed: Sequence[Placed], own: Identity, links: ExitStack) -> list[Link]:
    """Connect to all agents at once; `links` closes the connections. Raises NotStarted with those that are not reached."""

    def connect(one: Placed) -> Link | RunError:
        try:
            context = tls_context("client", own, one.certificate)
            return Link(connect_tls(one.address, one.port, context, _CONNECT_TIMEOUT_S))
        except (OSError, RunError) as error:
            return _unreached(one, error)

    with ThreadPoolExecutor(max_workers=len(placed), thread_name_prefix="connect") as threads:
        made = list(threads.map(connect, placed))
    found = [one for one in made if isinstance(one, Link)]
    for link in found:
        links.callback(link.close)
    if errors := {one.name: link for one, link in zip(placed, made, strict=True) if isinstance(link, RunError)}:
        raise NotStarted(errors)
    return found


def _unreached(placed: Placed, error: BaseException) -> RunError:
    reason = str(error) or type(error).__name__
    return RunError(
        f"the agent on machine {placed.name} cannot be reached at {placed.address}, port {placed.port}: {reason}",
        where="fleet.ray_address",
        hint="the coordinator connects to each machine at the address that Ray knows it by, as Ray's machines do",
    )


def _check(problems: Sequence[Problem]) -> None:
    """Raise the error of an answer that has problems."""
    named = {one.machine: _error(one) for one in problems if one.machine is not None}
    for one in problems:
        if one.machine is None:
            raise _error(one)
    if missing := next((error for error in named.values() if isinstance(error, MissingCapability)), None):
        others = [str(error) for error in named.values() if error is not missing]
        missing.details = (*missing.details, *others)
        raise missing
    if named:
        raise NotStarted({name: error for name, error in named.items() if isinstance(error, RunError)})


def _error(problem: Problem) -> PlinthError:
    kind = MissingCapability if problem.kind == "missing" else RunError
    return kind(problem.message, where="fleet.ray_address", hint=problem.hint, details=problem.details)


def _check_versions(answer: Answer) -> None:
    """Raise MissingCapability, with the list, where a machine's versions differ from this one's."""
    ours: Versions | None = answer.versions
    if different := [one for one in answer.placed if one.versions != ours]:
        raise MissingCapability(
            "the machines of the Ray cluster have other versions than this one",
            where="fleet.ray_address",
            details=[f"this machine: {ours}", *(f"{one.name}: {one.versions}" for one in different)],
            hint="install the same wheels under the same Python everywhere",
        )


def _read(model: type[_Message], line: bytes) -> _Message:
    return model.model_validate_json(line)
