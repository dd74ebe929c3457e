"""Messages about single transactions while a load runs, as pgbench prints them."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from plinth.bench.options import BenchOptions

_QUERIES = ("SQL", "gset", "aset", "endpipeline")
_LOST = ("the server closed the connection", "the connection was lost", "cannot send")
_COPY = "the statement is a COPY, which a load cannot run"
_PIPELINE = ("startpipeline", "syncpipeline", "endpipeline")
_EXECUTED = ("shell", "setshell", "sleep")


class EventPrinter:
    """Prints messages about clients that ended, and with --verbose-errors about every error. `command_names` are
    those of each script."""

    def __init__(self, asked: BenchOptions, command_names: Sequence[Sequence[str]]) -> None:
        self._asked = asked
        self._names = command_names
        self.first_aborted: int | None = None
        """The first client that ended early."""

    def print_events(self, events: Iterable[dict[str, Any]], dropped: int) -> None:
        """Print the engine's `events`; `dropped` is how many came too fast to be kept."""
        for event in events:
            if event["kind"] == "aborted" and self.first_aborted is None:
                self.first_aborted = event["client"]
            for line in self._lines(event):
                self._asked.print_message(line)
        if dropped:
            self._asked.print_message(f"warning: {dropped} further errors came too fast to be reported one by one")

    def _lines(self, event: dict[str, Any]) -> Iterable[str]:
        client: int = event["client"]
        script: int = event["script"]
        command: int = event["command"]
        name = self._names[script][command] if command < len(self._names[script]) else "SQL"
        said = event["in_full"] or as_libpq(event["message"])
        is_lost = said.startswith(_LOST)
        if is_lost:
            said = "perhaps the backend died while processing"
        query = event["query"] if name in _QUERIES else 0
        if event["kind"] != "aborted":
            # Also of \gset and \endpipeline, as pgbench has it.
            yield f"client {client} got an error in command {command} (SQL) of script {script}; {said}"
            yield self._tries(event)
        elif event["is_connecting"]:
            yield f"error: {said}"
            yield f"error: client {client} aborted while establishing connection"
        elif event["sqlstate"] is not None:
            yield f"error: client {client} script {script} aborted in command {command} query {query}: {said}"
        elif said.startswith("end of script reached"):
            yield f"error: client {client} aborted: {said.partition(';')[0]}"
        elif said == _COPY:
            yield "error: COPY is not supported in plinth bench, aborting"
            yield f"error: client {client} aborted in command {command} ({name}) of script {script}"
        elif is_lost or name in ("SQL", *_PIPELINE) or said.endswith("pipeline mode"):
            yield f"error: client {client} aborted in command {command} ({name}) of script {script}; {said}"
        elif name in ("gset", "aset"):
            where = f"client {client} script {script} command {command} query {query}"
            yield from (f"error: {line}" for line in _not_stored(where, said))
        else:
            yield f"error: {said}"
            yield (
                f"error: client {client} aborted in command {command} ({name}) of script {script}; "
                f"{_failed_part(name, said)} of meta-command failed"
            )

    def _tries(self, event: dict[str, Any]) -> str:
        what = (
            "repeats the transaction after the error" if event["kind"] == "retried" else "ends the failed transaction"
        )
        tries = f"try {event['tries']}" + (f"/{self._asked.max_tries}" if self._asked.max_tries else "")
        if self._asked.latency_limit_ms is not None:
            used = event["latency_ns"] / (self._asked.latency_limit_ms * 1e6) * 100
            tries += f", {used:.3f}% of the maximum time of tries was used"
        return f"client {event['client']} {what} ({tries})"


def _failed_part(name: str, said: str) -> str:
    """Return the part of the meta command `name` that failed with the message `said`."""
    if name in _EXECUTED:
        return "execution"
    return "assignment" if said.startswith("set: invalid variable name") else "evaluation"


def _not_stored(where: str, said: str) -> Iterable[str]:
    """Return the lines about a result that cannot become variables; pgbench names the column in a separate one."""
    name = re.search(r'invalid variable name: "(.*)"$', said, re.DOTALL)
    if name is None:
        return (f"{where}: {said}",)
    return (said, f"{where}: error storing into variable {name[1]}")


_SERVERS = re.compile(r"^([A-Z]+): (.*?) \(SQLSTATE \w{5}\)(?:; detail: (.*?))?(?:; hint: (.*))?$", re.DOTALL)
_LOGIN = re.compile(r"^cannot log in at (\S+): (.*)$", re.DOTALL)
_REFUSED = re.compile(r"^cannot connect to (\S+): (.*?)(?: \(os error \d+\))?; is the server running")


def as_libpq(message: str) -> str:
    """Return the message of a server, a refused login or a refused connection in libpq's words; any other message unchanged."""
    if login := _LOGIN.match(message):
        return f"connection to server {_place(login[1])} failed: {_servers(login[2])}"
    if refused := _REFUSED.match(message):
        where = "locally" if _is_socket(refused[1]) else "on that host"
        how = "connections on that socket" if _is_socket(refused[1]) else "TCP/IP connections"
        question = f"Is the server running {where} and accepting {how}?"
        return f"connection to server {_place(refused[1])} failed: {refused[2]}\n\t{question}"
    return _servers(message)


def _servers(message: str) -> str:
    """Return a server's message as libpq has it: no SQLSTATE, detail and hint in separate lines, two blanks after the severity."""
    match = _SERVERS.match(message)
    if match is None:
        return message
    severity, primary, detail, hint = match.groups()
    lines = [f"{severity}:  {primary}"]
    lines += [f"{name}:  {text}" for name, text in (("DETAIL", detail), ("HINT", hint)) if text is not None]
    return "\n".join(lines)


def _is_socket(address: str) -> bool:
    return address.startswith(("/", "@"))


def _place(address: str) -> str:
    if _is_socket(address):
        return f'on socket "{address}"'
    host, _, port = address.rpartition(":")
    return f'at "{host.strip("[]")}", port {port}'
