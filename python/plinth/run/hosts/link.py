"""The coordinator's end of the connection to a host: calls of several threads over one connection, and a sign of life between them."""

import platform
import queue
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Any

from plinth import __version__
from plinth.fleet.asking import ClockOffset, Exchange, clock_offset
from plinth.model.errors import MissingCapability, Reported, RunError
from plinth.model.host import HostSpec
from plinth.model.progress import Report
from plinth.run.hosts.methods import METHODS
from plinth.run.hosts.protocol import PROTOCOL_VERSION, Answer, Hello, Lane, Request
from plinth.run.hosts.starting import started_agent
from plinth.system import cancel
from plinth.system.framed_tls import parsed
from plinth.system.journal import NotUndone
from plinth.system.runner import CommandRecord, Runner

_START_TIMEOUT_S = 60.0
_ANSWER_TIMEOUT_S = 30.0
_END_TIMEOUT_S = 600.0
"""For everything to be undone there, such as the write-back of a slow disk."""
_POLL_S = 0.05
_EXCHANGES = 50
_SAID_LINES = 10


class HostLink:
    """An agent on a host. Calls may come from several threads; those of one lane are done one after the other."""

    def __init__(self, name: str, spec: HostSpec, runner: Runner, ssh_config: Path | None) -> None:
        self.name = name
        self._spec = spec
        self._runner = runner
        self._ssh_config = ssh_config
        self._numbers = count(1)
        self._sending = threading.Lock()
        self._waiting: dict[int, queue.SimpleQueue[Any]] = {}
        self._lost: RunError | None = None
        self._closing = ExitStack()
        self._ended = threading.Event()
        self.hello: Hello | None = None
        self.on_command: Callable[[CommandRecord], None] = lambda command: None
        """Called with each command that the agent runs, in a thread of the link."""

    def __enter__(self) -> "HostLink":
        """Start the agent. Raises RunError where it cannot be, MissingCapability for one of another version."""
        self._agent = self._closing.enter_context(started_agent(self.name, self._spec, self._runner, self._ssh_config))
        self._link = self._agent.link
        threading.Thread(target=self._receive, name=f"host {self.name}", daemon=True).start()
        try:
            self.hello = self._greet()
        except BaseException:
            self._close()
            raise
        threading.Thread(target=self._give_signs_of_life, name=f"lease of {self.name}", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the agent, which undoes what it has made and has not yet been asked to undo."""
        with suppress(Reported):
            self.end()

    def end(self) -> tuple[NotUndone, ...]:
        """Have the agent undo all that it has made, and end, once; returns what could not be undone. Raises RunError where it is lost."""
        if self._ended.is_set():
            return ()
        try:
            with cancel.masked():
                kept = self._ask(Request(number=0, kind="end"), _END_TIMEOUT_S).kept
            return tuple(one.not_undone(self.name) for one in kept)
        finally:
            self._close()

    def call(
        self,
        on: tuple[str, ...],
        method: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        lane: Lane = "work",
        report: Report | None = None,
    ) -> Any:
        """Call a method of an object there, and return its result. Raises what it raises, with the host in it.

        Where this work is cancelled, so is the call.
        """
        known = METHODS[on[0]][method]
        sent = known.arguments(arguments or {})
        request = Request(number=0, kind="call", lane=lane, on=on, method=method, arguments=sent)
        return known.result(self._ask(request, None, report).result)

    def clock(self) -> ClockOffset:
        """Return the offset of the host's monotonic clock."""
        exchanges = []
        for _ in range(_EXCHANGES):
            sent_ns = time.monotonic_ns()
            answer, received_ns = self._asked(Request(number=0, kind="clock"), _ANSWER_TIMEOUT_S, None)
            assert answer.clock is not None, "it is the answer to that"
            exchanges.append(Exchange(sent_ns, answer.clock.received_ns, answer.clock.sent_ns, received_ns))
        return clock_offset(exchanges)

    def _greet(self) -> Hello:
        request = Request(number=0, kind="hello", lease_s=self._spec.lease_s)
        hello = self._ask(request, _START_TIMEOUT_S).hello
        ours = (PROTOCOL_VERSION, __version__, platform.python_version())
        theirs = None if hello is None else (hello.protocol, hello.plinth, hello.python)
        if hello is None or theirs != ours:
            raise MissingCapability(
                f"host {self.name} has another version"
                + ("" if hello is None else f": plinth {hello.plinth} with Python {hello.python}")
                + f"; here is plinth {__version__} with Python {platform.python_version()}",
                where=f"host.{self.name}",
                hint="install the same wheel under the same Python there",
            )
        return hello

    def _ask(self, request: Request, timeout_s: float | None, report: Report | None = None) -> Answer:
        """Send a request and wait for its end. Raises the error of the answer; RunError where the host is lost."""
        return self._asked(request, timeout_s, report)[0]

    def _asked(self, request: Request, timeout_s: float | None, report: Report | None) -> tuple[Answer, int]:
        answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        with self._sending:
            if self._lost is not None:
                raise self._lost
            numbered = request.model_copy(update={"number": next(self._numbers)})
            self._waiting[numbered.number] = answers
        try:
            self._send_or_lose(numbered)
            return self._awaited(numbered.number, answers, timeout_s, report)
        finally:
            self._waiting.pop(numbered.number, None)

    def _cancel(self, number: int, answers: "queue.SimpleQueue[Any]") -> None:
        """End a call there, and wait for that."""
        with suppress(Reported), cancel.masked():
            self._send_or_lose(Request(number=0, kind="cancel", cancels=number))
            self._awaited(number, answers, _ANSWER_TIMEOUT_S, None)

    def _send_or_lose(self, request: Request) -> None:
        """Send a request. Where that fails, whoever waits for an answer is told why the host is lost."""
        try:
            with self._sending:
                self._link.send(request.model_dump_json(exclude_defaults=True).encode())
        except RunError as error:  # its reason is for instance a broken pipe, where ssh has printed the real one
            self._lose(error.message)

    def _awaited(
        self, number: int, answers: "queue.SimpleQueue[Any]", timeout_s: float | None, report: Report | None
    ) -> Any:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            try:
                cancel.check()
            except Reported:
                self._cancel(number, answers)
                raise
            try:
                answer = answers.get(timeout=_POLL_S)
            except queue.Empty:
                if deadline is not None and time.monotonic() > deadline:
                    raise RunError(f"host {self.name} does not answer", where=f"host.{self.name}") from None
                continue
            if isinstance(answer, RunError):
                raise answer
            received, received_ns = answer
            if received.progress is not None:
                if report is not None:
                    report(received.progress)
                continue
            if received.error is not None:
                raise received.error.error(self.name)
            return received, received_ns

    def _receive(self) -> None:
        try:
            while True:
                frame = self._link.receive(self._spec.lease_s)
                received_ns = time.monotonic_ns()
                answer = parsed(Answer, frame.document)
                if answer.command is not None:
                    self.on_command(answer.command)
                if (waiting := self._waiting.get(answer.number)) is not None:
                    waiting.put((answer, received_ns))
        except RunError as error:
            self._lose(error.message)
        except OSError as error:  # it was closed here
            self._lose(str(error))

    def _lose(self, message: str) -> None:
        reason = self._why_lost(message)
        with self._sending:
            self._lost = self._lost or reason
            for waiting in self._waiting.values():
                waiting.put(self._lost)

    def _why_lost(self, message: str) -> RunError:
        where = f"host.{self.name}"
        if self._ended.is_set():
            return RunError(f"the agent on host {self.name} has ended", where=where)
        if self.hello is None:
            if error := self._agent.unreached():
                return error
            said = [line for line in self._agent.said().splitlines() if line.strip()]
            return RunError(
                f"no agent could be started on host {self.name}: {said[-1].strip() if said else message}",
                where=f"{where}.address" if self._spec.is_on_ray else f"{where}.command",
                hint=f"see what `{self._agent.to_try}` says",
                details=said[-_SAID_LINES:-1],
            )
        return RunError(
            f"host {self.name} is lost: {message}",
            where=where,
            hint="what the run has made there is undone by its agent, at the latest when its lease is over; else by `plinth clean` there",
            details=self._agent.said().splitlines()[-_SAID_LINES:],
        )

    def _give_signs_of_life(self) -> None:
        """Ask for the clock often enough that the agent does not take the coordinator for lost."""
        while self._lost is None and not self._ended.wait(self._spec.lease_s / 4):
            with suppress(Reported):
                self._ask(Request(number=0, kind="clock"), self._spec.lease_s)

    def _close(self) -> None:
        self._ended.set()
        with suppress(OSError):  # it has ended; and closing alone would wait for the thread that receives
            self._link.socket.shutdown(socket.SHUT_RDWR)
        self._closing.close()
