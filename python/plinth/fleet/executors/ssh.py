"""Agents on hosts by ssh: the user's own keys, agent and configuration, and hosts that are in known_hosts only."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plinth.fleet.executors import NotStarted, Started
from plinth.fleet.executors.event_loop import EventLoop
from plinth.fleet.link import Link
from plinth.model.errors import RunError, UsageError
from plinth.model.fleet import FleetSpec
from plinth.system import cancel
from plinth.system.extras import require_package
from plinth.system.log_file import LogFile

if TYPE_CHECKING:
    import asyncssh

_CONNECT_TIMEOUT_S = 15.0
_CLOSE_TIMEOUT_S = 2.0
_KEEPALIVE_S = 5.0
_PIECE_BYTES, _MOST_BYTES = 64 * 1024, 64 * 1024


class SshExecutor:
    """Starts `plinth agent` on each host; the connection is its standard input and output, within ssh."""

    def __init__(self, fleet: FleetSpec, log: LogFile, config: Path | None = None) -> None:
        require_package("asyncssh", 'a fleet with address = "ssh"', where="fleet.address")
        self._fleet = fleet
        self._config = config
        self._log = log
        self._hosts = fleet.hosts[: fleet.number_of_machines]

    @contextmanager
    def agents(self) -> Iterator[list[Started]]:
        """While it is entered, the agents run; they end with the connection."""
        with EventLoop("ssh") as loop:
            opened = loop.run(self._open_all())
            try:
                errors = {
                    host: self._not_started(host, one)
                    for host, one in zip(self._hosts, opened, strict=True)
                    if isinstance(one, BaseException)
                }
                if errors:
                    raise NotStarted(errors)
                agents = [one for one in opened if isinstance(one, _SshAgent)]
                yield [
                    Started(host, one.link, one.text, f"ssh {host} {self._fleet.command} --version")
                    for host, one in zip(self._hosts, agents, strict=True)
                ]
            finally:
                with cancel.masked():
                    loop.run(_close_all([one for one in opened if isinstance(one, _SshAgent)], self._log))

    async def _open_all(self) -> "list[_SshAgent | BaseException]":
        return await asyncio.gather(*map(self._open, self._hosts), return_exceptions=True)

    async def _open(self, host: str) -> "_SshAgent":
        import asyncssh

        user, _, name = host.rpartition("@")
        given: dict[str, Any] = {"username": user} if user else {}
        if self._config is not None:
            given["config"] = [str(self._config)]
        options = await asyncssh.SSHClientConnectionOptions.construct(host=name, **given)
        if options.known_hosts is None:
            raise UsageError(
                f"{host}: the configuration of ssh does not check who the host is (UserKnownHostsFile none)",
                where="fleet.hosts",
                hint="the server's password goes to that host: put its key into known_hosts",
            )
        connection = await asyncssh.connect(
            name,
            options=options,
            connect_timeout=_CONNECT_TIMEOUT_S,
            keepalive_interval=_KEEPALIVE_S,
            keepalive_count_max=2,
        )
        try:
            process = await connection.create_process(f"exec {self._fleet.command} agent", encoding=None)
            ours, theirs = socket.socketpair()
            reader, writer = await asyncio.open_connection(sock=theirs)
        except BaseException:
            connection.abort()
            raise
        return _SshAgent(Link(ours), connection, process, reader, writer)

    def _not_started(self, host: str, error: BaseException) -> RunError:
        """Raises UsageError of a configuration that must not be used."""
        if isinstance(error, UsageError):
            raise error
        import asyncssh

        hint = None
        if isinstance(error, asyncssh.HostKeyNotVerifiable):
            hint = f"`ssh {host}` once, and compare the key that it shows with the host's own"
        elif isinstance(error, asyncssh.PermissionDenied):
            hint = "a key of yours must be in authorized_keys there; nothing is asked at the terminal"
        elif isinstance(error, socket.gaierror):
            hint = "a name that this machine can look up, or a Host of the OpenSSH configuration"
        reason = str(error) or type(error).__name__
        return RunError(f"no agent could be started on {host}: {reason}", where="fleet.hosts", hint=hint)


class _SshAgent:
    """An agent's process on a host, its streams joined to the socket whose other end `link` has."""

    def __init__(
        self,
        link: Link,
        connection: "asyncssh.SSHClientConnection",
        process: "asyncssh.SSHClientProcess[bytes]",
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.link = link
        self.connection = connection
        self._process = process
        self._said = bytearray()
        self._tasks = [
            asyncio.ensure_future(work) for work in (self._to_agent(reader), self._from_agent(writer), self._listen())
        ]

    def text(self) -> str:
        """What it has printed so far."""
        return self._said.decode(errors="replace")

    async def close(self) -> None:
        """End the connection, with which the agent ends; first it may say why it has ended, if it has."""
        await asyncio.wait(self._tasks, timeout=_CLOSE_TIMEOUT_S)
        for task in self._tasks:
            task.cancel()
        self.connection.abort()
        await asyncio.wait([asyncio.ensure_future(self.connection.wait_closed())], timeout=_CLOSE_TIMEOUT_S)

    async def _to_agent(self, reader: asyncio.StreamReader) -> None:
        with suppress(OSError):  # the agent has ended, which its output shows
            while piece := await reader.read(_PIECE_BYTES):
                self._process.stdin.write(piece)
                await self._process.stdin.drain()
            self._process.stdin.write_eof()

    async def _from_agent(self, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):  # the coordinator has closed its end
            while piece := await self._process.stdout.read(_PIECE_BYTES):
                writer.write(piece)
                await writer.drain()
        with suppress(TimeoutError):  # what it said last comes with its end
            await asyncio.wait_for(self._process.wait_closed(), _CLOSE_TIMEOUT_S)
        writer.close()

    async def _listen(self) -> None:
        while piece := await self._process.stderr.read(_PIECE_BYTES):
            self._said += piece
            del self._said[:-_MOST_BYTES]


async def _close_all(agents: "list[_SshAgent]", log: LogFile) -> None:
    """End the connections, and keep what agents have said besides."""
    for one in agents:
        one.link.close()
    await asyncio.gather(*(one.close() for one in agents))
    if said := "".join(one.text() for one in agents):
        with log.to_append() as file:
            file.write(said.encode())
