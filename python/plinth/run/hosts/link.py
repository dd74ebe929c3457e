"""The coordinator's end of the connection to a host: calls of several threads over one connection, and a sign of life between them.

The host is not trusted. All that it sends and the protocol does not allow breaks the connection off for good, by which its agent undoes
what it has made; the run fails with what was wrong (`break_off`).
"""

import platform
import queue
import re
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Any

from plinth import __version__
from plinth.common.untrusted import Room
from plinth.fleet.asking import ClockOffset, Exchange, clock_offset
from plinth.model.base import BUG
from plinth.model.errors import MissingCapability, Reported, RunError
from plinth.model.host import HostSpec
from plinth.model.progress import Progress, Report
from plinth.run.hosts.agreement import Asked
from plinth.run.hosts.answers import Wrong, shown_value
from plinth.run.hosts.calls import CallError
from plinth.run.hosts.limits import (
    MAX_FRAME_BYTES,
    MAX_LOGS_BYTES,
    MAX_UNASKED_AT_ONCE,
    MAX_UNASKED_BYTES_AT_ONCE,
    MAX_UNASKED_BYTES_PER_S,
    MAX_UNASKED_PER_S,
    Allowance,
)
from plinth.run.hosts.methods import METHODS
from plinth.run.hosts.protocol import PROTOCOL_VERSION, Answer, Hello, Kind, Request, read_answer
from plinth.run.hosts.starting import started_agent
from plinth.system import cancel
from plinth.system.framed_tls import ProtocolError
from plinth.system.journal import NotUndone
from plinth.system.runner import CommandRecord, Runner

_START_TIMEOUT_S = 60.0
_ANSWER_TIMEOUT_S = 30.0
_END_TIMEOUT_S = 600.0
"""For everything to be undone there, such as the write-back of a slow disk."""
_POLL_S = 0.05
_EXCHANGES = 50
_SAID_LINES, _SAID_CHARACTERS = 10, 500
_SHOWN_BYTES = 200
_TEXT = re.compile(rb"[\t\n\r\x1b -~\xc2-\xf4\x80-\xbf]{4,}")
_HINT = "the agent there is broken, or is not Plinth's: its connection was ended, and nothing more is asked of it"
_HINT_OF_TEXT = "the command there must print nothing but its answers: let ~/.bashrc and the like print only where standard output is a terminal"


class _Waiting:
    """Who waits for the answer to a request: what it gets is the end, and before that the latest progress."""

    def __init__(self, kind: Kind) -> None:
        self.kind: Kind = kind
        self.end: queue.SimpleQueue[tuple[Answer, int] | RunError] = queue.SimpleQueue()
        self.progress: deque[Progress] = deque(maxlen=1)

    def ended(self, timeout_s: float) -> "tuple[Answer, int] | RunError | None":
        """Wait for the end; return the answer and when it came, or why there is none, or None when it has not come."""
        try:
            return self.end.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def news(self) -> Iterator[Progress]:
        """Yield the latest progress, if it was not yielded before."""
        with suppress(IndexError):
            yield self.progress.popleft()


class HostLink:
    """An agent on a host. Calls may come from several threads; those of one lane are done one after the other."""

    def __init__(self, name: str, spec: HostSpec, runner: Runner, ssh_config: Path | None) -> None:
        self.name = name
        self._spec = spec
        self._runner = runner
        self._ssh_config = ssh_config
        self._numbers = count(1)
        self._sending = threading.Lock()
        self._state = threading.Lock()
        """Of what follows; not held while something is sent, for which the host may not be ready before its own answers are taken."""
        self._waiting: dict[int, _Waiting] = {}
        self._unawaited: dict[int, Kind] = {}
        """Requests whose answers nobody waits for any more, such as those of calls that were cancelled."""
        self._lost: RunError | None = None
        self.violation: ProtocolError | None = None
        """What the host has sent against the protocol."""
        self.storages: Collection[str] = ()
        """The run's storages there, which are the only ones that the host can say have failed."""
        self.logs_room = Room(MAX_LOGS_BYTES)
        self.note: Callable[[str], None] = lambda text: None
        """Called with what the reader of the run must know of the host."""
        self._has_heard = False
        self._unasked = Allowance(MAX_UNASKED_PER_S, MAX_UNASKED_AT_ONCE)
        self._unasked_bytes = Allowance(MAX_UNASKED_BYTES_PER_S, MAX_UNASKED_BYTES_AT_ONCE)
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
        report: Report | None = None,
    ) -> Any:
        """Call a method of an object there, and return its result. Raises what it raises, with the host in it.

        Where this work is cancelled, so is the call. Raises ProtocolError for a result that is none of the method's.
        """
        known = METHODS[on[0]][method]
        sent = known.arguments(arguments or {})
        request = Request(number=0, kind="call", lane=known.lane, on=on, method=method, arguments=sent)
        answer = self._ask(request, known.limit_s, report)
        try:
            return known.result(Asked(on, arguments or {}), answer.result)
        except Wrong as error:
            raise self.break_off(f"{on[0]}.{method}: {error}") from None

    def break_off(self, what: str, hint: str = _HINT) -> ProtocolError:
        """End the connection to a host that has sent what the protocol does not allow, for good; return the error that says so."""
        where = f"host.{self.name}"
        error = ProtocolError(
            f"host {self.name} answered against the protocol: {what}",
            where=where,
            hint=hint,
            details=self._said_lines(),
        )
        with self._state:
            self.violation = self.violation or error
            self._lost = self._lost or error
            for waiting in self._waiting.values():
                waiting.end.put(self._lost)
        with suppress(OSError):  # it has ended; the thread that receives closes nothing
            self._link.socket.shutdown(socket.SHUT_RDWR)
        return error

    def _said_lines(self) -> list[str]:
        lines = [line[:_SAID_CHARACTERS] for line in self._agent.said().splitlines() if line.strip()]
        return lines[-_SAID_LINES:]

    def clock(self) -> ClockOffset:
        """Return the offset of the host's monotonic clock."""
        exchanges = []
        for _ in range(_EXCHANGES):
            sent_ns = time.monotonic_ns()
            answer, received_ns = self._asked(Request(number=0, kind="clock"), _ANSWER_TIMEOUT_S, None)
            assert answer.clock is not None, "it was checked"
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

    def _ask(self, request: Request, timeout_s: float, report: Report | None = None) -> Answer:
        """Send a request and wait for its end. Raises the error of the answer; RunError where the host is lost."""
        return self._asked(request, timeout_s, report)[0]

    def _asked(self, request: Request, timeout_s: float, report: Report | None) -> tuple[Answer, int]:
        waiting = _Waiting(request.kind)
        with self._state:
            if self._lost is not None:
                raise self._lost
            numbered = request.model_copy(update={"number": next(self._numbers)})
            self._waiting[numbered.number] = waiting
        try:
            self._send_or_lose(numbered)
            return self._awaited(numbered.number, waiting, timeout_s, report)
        finally:
            with self._state:
                if self._waiting.pop(numbered.number, None) is not None:
                    self._unawaited[numbered.number] = request.kind

    def _cancel(self, number: int, waiting: "_Waiting") -> None:
        """End a call there, and wait for that."""
        with suppress(Reported), cancel.masked():
            with self._state:
                own_number = next(self._numbers)
                self._unawaited[own_number] = "cancel"
            self._send_or_lose(Request(number=own_number, kind="cancel", cancels=number))
            self._awaited(number, waiting, _ANSWER_TIMEOUT_S, None)

    def _send_or_lose(self, request: Request) -> None:
        """Send a request. Where that fails, whoever waits for an answer is told why the host is lost."""
        try:
            with self._sending:
                self._link.send(request.model_dump_json(exclude_defaults=True).encode())
        except RunError as error:  # its reason is for instance a broken pipe, where ssh has printed the real one
            self._lose(error.message)

    def _awaited(self, number: int, waiting: "_Waiting", timeout_s: float, report: Report | None) -> tuple[Answer, int]:
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                cancel.check()
            except Reported:
                self._cancel(number, waiting)
                raise
            ended = waiting.ended(_POLL_S)
            for progress in waiting.news():
                if report is not None:
                    deadline = time.monotonic() + timeout_s
                    report(progress)
            if ended is None:
                if time.monotonic() > deadline:
                    raise RunError(
                        f"host {self.name} does not answer: for {timeout_s:g} s nothing came of a request",
                        where=f"host.{self.name}",
                    )
                continue
            if isinstance(ended, RunError):
                raise ended
            answer, received_ns = ended
            if answer.error is not None:
                raise self._error(answer.error)
            return answer, received_ns

    def _error(self, error: CallError) -> Reported:
        """Return the error of an answer as it is raised here."""
        if error.storage is not None and error.storage not in self.storages:
            return self.break_off(f"it says that storage {shown_value(error.storage)} has failed, which is not there")
        return error.error(self.name)

    def _receive(self) -> None:
        """Give each answer to who waits for it, until the connection ends."""
        try:
            while True:
                frame = self._link.receive(self._spec.lease_s, MAX_FRAME_BYTES, 0)
                self._has_heard = True
                self._take(read_answer(frame.document), len(frame.document), time.monotonic_ns())
        except ProtocolError as error:
            text = self._before_hello()
            if text is None:
                self.break_off(error.message)
            else:
                self.break_off(f"text came before its first message: {shown_value(text)}", _HINT_OF_TEXT)
        except RunError as error:
            self._lose(error.message)
        except OSError as error:  # it was closed here
            self._lose(str(error))
        except Exception as error:  # whoever waits would wait for ever
            self._lose(f"{BUG}: {type(error).__name__}: {error}")
            if not self._ended.is_set():  # else the socket was closed here while it was waited for
                raise

    def _take(self, answer: Answer, size_bytes: int, received_ns: int) -> None:
        """Take one answer. Raises ProtocolError for one that the protocol does not allow here."""
        with self._state:
            waiting = self._waiting.get(answer.number)
            kind = waiting.kind if waiting is not None else self._unawaited.get(answer.number)
        if answer.number and kind is None:
            raise ProtocolError(f"an answer to request {answer.number:,}, which was never made, or is answered already")
        if reason := answer.mistake(kind):
            raise ProtocolError(reason)
        is_asked = answer.command is None and answer.progress is None
        if not (is_asked or (self._unasked.allows(1) and self._unasked_bytes.allows(size_bytes))):
            most = f"{MAX_UNASKED_PER_S:g} messages or {MAX_UNASKED_BYTES_PER_S // 2**20} MiB a second"
            raise ProtocolError(f"more progress and commands than {most}")
        if answer.command is not None:
            self.on_command(answer.command)
        elif answer.progress is not None:
            if waiting is not None:
                waiting.progress.append(answer.progress)
        else:
            with self._state:
                self._waiting.pop(answer.number, None)
                self._unawaited.pop(answer.number, None)
            if waiting is not None:
                waiting.end.put((answer, received_ns))

    def _before_hello(self) -> str | None:
        """Return the text that came in the place of the first message, such as what a shell prints at login."""
        text = _TEXT.match(b"" if self._has_heard else self._link.unread(_SHOWN_BYTES))
        return None if text is None else text[0].decode(errors="ignore").strip()

    def _lose(self, message: str) -> None:
        reason = self._why_lost(message)
        with self._state:
            self._lost = self._lost or reason
            for waiting in self._waiting.values():
                waiting.end.put(self._lost)

    def _why_lost(self, message: str) -> RunError:
        where = f"host.{self.name}"
        if self._ended.is_set():
            return RunError(f"the agent on host {self.name} has ended", where=where)
        if self.hello is None:
            if error := self._agent.unreached():
                return error
            said = self._said_lines()
            return RunError(
                f"no agent could be started on host {self.name}: {said[-1].strip() if said else message}",
                where=f"{where}.address" if self._spec.is_on_ray else f"{where}.command",
                hint=f"see what `{self._agent.to_try}` says",
                details=said[:-1],
            )
        return RunError(
            f"host {self.name} is lost: {message}",
            where=where,
            hint="what the run has made there is undone by its agent, at the latest when its lease is over; else by `plinth clean` there",
            details=self._said_lines(),
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
