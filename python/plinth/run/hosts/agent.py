"""What runs on a host: `plinth host-agent`, which a coordinator starts by ssh, and talks to over its standard streams.

It does there what a local run does here, with a journal of its own: `plinth clean` on the host undoes what is left when neither of the two
comes back.
"""

import os
import platform
import queue
import signal
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from plinth import __version__
from plinth.fleet.agent import connection_of_standard_streams
from plinth.fleet.protocol import ClockReading, Link
from plinth.model.errors import Interrupted, PlinthError, Reported, RunError, UsageError
from plinth.model.progress import Progress
from plinth.run.hosts.calls import LANES, CallError, Kept, Lane
from plinth.run.hosts.host_run import HostRun
from plinth.run.hosts.methods import METHODS
from plinth.run.hosts.protocol import Answer, Hello, Request
from plinth.run.hosts.sampling import HostSampling
from plinth.run.local_host import HOST
from plinth.system import cancel
from plinth.system.framed_tls import Disconnected, PeerTimeout, parsed
from plinth.system.process import boot_id
from plinth.system.undo import UndoHandlers

_FIRST_LEASE_S = 60.0
"""Until the coordinator has said how long it is."""
_END_TIMEOUT_S = 30.0
_CLOSE_TIMEOUT_S = 5.0


class HostAgent:
    """Answers one coordinator. Answers are sent by several threads, each whole."""

    def __init__(self, link: Link, ssh_connection: str, handlers: UndoHandlers) -> None:
        self._link = link
        self._ssh_connection = ssh_connection
        self._sending = threading.Lock()
        self._run = HostRun(handlers, lambda command: self.send(Answer(number=0, command=command)))
        self._sampling = HostSampling()
        self._lease_s = _FIRST_LEASE_S
        self._lanes = {lane: _LaneThread(lane, self) for lane in LANES}

    def serve(self) -> int:
        """Answer requests until the coordinator ends the run or is gone; all that was made is undone then. Returns the exit code."""
        try:
            while True:
                request = parsed(Request, self._link.receive(self._lease_s).document)
                if request.kind == "end":
                    kept = tuple(map(Kept.of, self._end()))
                    self.send(Answer(number=request.number, kept=kept))
                    self._await_close()
                    return 0
                self._take(request, time.monotonic_ns())
        except (Disconnected, PeerTimeout):
            return 0
        except PlinthError:
            return 1
        finally:
            self._end()
            self._link.close()

    def call(self, request: Request) -> Any:
        """Do a call in the thread of its lane; returns its result as JSON has it."""
        kind, *names = request.on or ("",)
        method = METHODS.get(kind, {}).get(request.method)
        if method is None:
            raise UsageError(f"the agent of a host has no {kind}.{request.method}")

        def report(progress: Progress) -> None:
            self.send(Answer(number=request.number, progress=progress))

        def supply(name: str) -> Any:
            match name:
                case "runner":
                    return self._run.runner
                case "journal":
                    return self._run.journal
                case _:
                    return report

        return method.call(self._object(kind, names), request.arguments, supply)

    def send(self, answer: Answer) -> None:
        """Send an answer, if the coordinator is still there."""
        with self._sending, suppress(Disconnected, PeerTimeout, OSError):
            self._link.send(answer.model_dump_json(exclude_defaults=True).encode())

    def _await_close(self) -> None:
        """Wait until the coordinator has closed the connection: what is sent may still be on its way out when a process ends. What it
        sends meanwhile are signs of life from before it had the answer. Raises Disconnected then, or PeerTimeout."""
        deadline = time.monotonic() + _CLOSE_TIMEOUT_S
        while (left_s := deadline - time.monotonic()) > 0:
            self._link.receive(left_s)

    def _take(self, request: Request, received_ns: int) -> None:
        match request.kind:
            case "hello":
                self._lease_s = request.lease_s
                self.send(Answer(number=request.number, hello=self._hello()))
            case "clock":
                reading = ClockReading(received_ns=received_ns, sent_ns=time.monotonic_ns())
                self.send(Answer(number=request.number, clock=reading))
            case "cancel":
                for lane in self._lanes.values():
                    lane.cancel(request.cancels)
                self.send(Answer(number=request.number))
            case _:
                self._lanes[request.lane].add(request)

    def _object(self, kind: str, names: list[str]) -> object:
        match kind, names:
            case "host", []:
                return HOST
            case "run", []:
                return self._run
            case "sampler", []:
                return self._sampling
            case "storage", [name]:
                return self._run.storage(name)
            case "rejoined", [cluster, node]:
                return self._run.rejoined(cluster, node)
            case "copy", [cluster, node]:
                return self._run.copy(cluster, node)
            case "snapshot", [cluster, number]:
                return self._run.snapshot(cluster, int(number))
            case "patroni", [cluster]:
                return self._run.patroni(cluster)
            case "disk", [storage, index]:
                return self._run.disk(storage, index)
            case "files", [cluster, node]:
                return self._run.files(cluster, node)
            case "server", [cluster, node]:
                return self._run.server(cluster, node)
            case _:
                raise UsageError(f"the agent of a host has no {'/'.join([kind, *names])}")

    def _hello(self) -> Hello:
        """Return who and what this process is: SSH_CONNECTION is two addresses, each with its port (ssh(1))."""
        client, _, server, _ = (self._ssh_connection.split() + [""] * 4)[:4]
        return Hello(
            plinth=__version__,
            python=platform.python_version(),
            host=socket.gethostname(),
            boot_id=boot_id(),
            address=server or None,
            coordinator_address=client or None,
        )

    def _end(self) -> tuple[Any, ...]:
        """End what is under way, and undo what was made, once."""
        for lane in self._lanes.values():
            lane.begin_to_end()
        for lane in self._lanes.values():
            lane.join(_END_TIMEOUT_S)
        return self._run.end()


class _LaneThread:
    """Does the calls of a lane, one after the other."""

    def __init__(self, lane: Lane, agent: HostAgent) -> None:
        self._agent = agent
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._current: tuple[int, cancel.CancelToken] | None = None
        self._cancelled: set[int] = set()
        self._is_ending = False
        self._thread = threading.Thread(target=self._work, name=f"lane {lane}", daemon=True)
        self._thread.start()

    def add(self, request: Request) -> None:
        self._requests.put(request)

    def cancel(self, number: int) -> None:
        """Cancel the call of this number, if it is one of ours: those of other threads of the coordinator go on."""
        with self._lock:
            self._cancelled.add(number)
            if self._current is not None and self._current[0] == number:
                self._current[1].cancel(Interrupted("the coordinator ended it"))

    def begin_to_end(self) -> None:
        """Cancel the call under way, and begin no other."""
        with self._lock:
            self._is_ending = True
            if self._current is not None:
                self._current[1].cancel(Interrupted("the coordinator ended it"))
        self._requests.put(None)

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def _work(self) -> None:
        while (request := self._requests.get()) is not None and not self._is_ending:
            self._agent.send(self._answer(request))

    def _answer(self, request: Request) -> Answer:
        try:
            with cancel.scope() as token:
                with self._lock:
                    self._current = (request.number, token)
                    if request.number in self._cancelled or self._is_ending:
                        token.cancel(Interrupted("the coordinator ended it"))
                cancel.check()
                return Answer(number=request.number, result=self._agent.call(request))
        except Reported as error:
            return Answer(number=request.number, error=CallError.of(error))
        except Exception as error:  # noqa: BLE001 - what goes wrong here is the coordinator's to hear
            broken = RunError(f"the agent broke: {type(error).__name__}: {error}")
            return Answer(number=request.number, error=CallError.of(broken))
        finally:
            with self._lock:
                self._current = None
                self._cancelled.discard(request.number)


def main(words: Sequence[str], handlers: UndoHandlers) -> int:
    """Run the hidden command `plinth host-agent [--detach] [SSH_CONNECTION]`, whose standard streams are the connection to the coordinator.

    `--detach`: in a process that outlives the one that started it, such as an actor of Ray, whose children are killed with it. It ends
    with its connection, once all is undone. `handlers` undo it.
    """
    if words[:1] == ["--detach"]:
        words = words[1:]
        if os.fork():
            os._exit(0)
        os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return HostAgent(Link(connection_of_standard_streams()), " ".join(words), handlers).serve()
