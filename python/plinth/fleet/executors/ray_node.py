"""The actor that Ray places on a machine of the fleet: it starts `plinth agent` there, and joins it to the coordinator.

Ray carries public certificates, a port and how the agent ended: nothing else of a load, and no secret. What the coordinator and
the agent say to each other goes through one TLS connection between them.
"""

import asyncio
import os
import platform
import socket
import sys
import threading
from contextlib import suppress
from typing import TypedDict

from plinth import __version__
from plinth.fleet.executors.ray_messages import AgentCommand
from plinth.fleet.protocol import AGENT_END_TIMEOUT_S
from plinth.model.errors import PlinthError
from plinth.system.certificates import Identity, new_identity
from plinth.system.framed_tls import tls_context
from plinth.system.log_file import LogFile, log_in_memory
from plinth.system.process import Child, wait_or_kill
from plinth.system.runner import Runner

_HANDSHAKE_TIMEOUT_S = 10.0
_DRAIN_TIMEOUT_S = 2.0
_PIECE_BYTES, _MOST_BYTES = 64 * 1024, 64 * 1024


class Listening(TypedDict):
    """How the coordinator reaches the machine, and what runs there."""

    port: int
    certificate: str
    plinth: str
    python: str
    ray: str


class RayNode:
    """One agent, once. It ends with the coordinator's connection, and with this process."""

    def __init__(self) -> None:
        self._said = ""
        self._command: AgentCommand = "agent"
        self._thread: threading.Thread | None = None

    def listen(self, address: str, certificate: str, timeout_s: float, command: AgentCommand = "agent") -> Listening:
        """Wait, at an address of this machine, for the coordinator, who has this certificate; nobody else gets in."""
        import ray

        own = new_identity()
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listener = socket.create_server((address, 0), family=family)
        self._command = command
        serving = self._serve(listener, own, certificate, timeout_s)
        self._thread = threading.Thread(target=lambda: asyncio.run(serving), name="agent", daemon=True)
        self._thread.start()
        return {
            "port": listener.getsockname()[1],
            "certificate": own.certificate,
            "plinth": __version__,
            "python": platform.python_version(),
            "ray": ray.__version__,
        }

    def ended(self) -> str:
        """Wait until the agent has ended; what it has printed, and how it ended."""
        if self._thread is not None:
            self._thread.join()
        return self._said

    async def _serve(self, listener: socket.socket, own: Identity, peer: str, timeout_s: float) -> None:
        came: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Future()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if came.done():
                writer.close()
            else:
                came.set_result((reader, writer))

        context = tls_context("server", own, peer)
        server = await asyncio.start_server(
            connected, sock=listener, ssl=context, ssl_handshake_timeout=_HANDSHAKE_TIMEOUT_S
        )
        try:
            reader, writer = await asyncio.wait_for(came, timeout_s)
        except TimeoutError:
            self._said = f"no coordinator connected within {timeout_s:g} s"
            return
        finally:
            server.close()
        await self._run_agent(reader, writer)

    async def _run_agent(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with log_in_memory() as log:
            try:
                child, ours = _started(log, self._argv(writer))
                from_agent, to_agent = await asyncio.open_connection(sock=ours)
                pumps = [
                    asyncio.ensure_future(_pump(reader, to_agent)),
                    asyncio.ensure_future(_pump(from_agent, writer)),
                ]
                orphaned = asyncio.ensure_future(_parent_ends())
                await asyncio.wait([*pumps, orphaned], return_when=asyncio.FIRST_COMPLETED)
                orphaned.cancel()
                to_agent.close()  # if it still runs, it ends now
                await asyncio.to_thread(wait_or_kill, [child], AGENT_END_TIMEOUT_S)
                self._said = f"{log.tail(_MOST_BYTES)}{_end_of(child.wait())}"
                await asyncio.wait(pumps, timeout=_DRAIN_TIMEOUT_S)
            except PlinthError as error:
                self._said = str(error)
            writer.close()
            with suppress(OSError, TimeoutError):  # the coordinator is gone already
                await asyncio.wait_for(writer.wait_closed(), _DRAIN_TIMEOUT_S)

    def _argv(self, writer: asyncio.StreamWriter) -> list[str]:
        """Return the command of the agent; that of a host learns the addresses of both ends, as from ssh."""
        program = [sys.executable, "-m", "plinth", self._command]
        if self._command == "agent":
            return program
        ends = (writer.get_extra_info(end)[:2] for end in ("peername", "sockname"))
        return [*program, "--detach", *(str(word) for end in ends for word in end)]


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what is read until there is no more, or one side is gone, which the other side's reader sees."""
    with suppress(OSError):
        while piece := await reader.read(_PIECE_BYTES):
            writer.write(piece)
            await writer.drain()


async def _parent_ends() -> None:
    """Wait for the end of the raylet that started this worker: Ray ends an orphan only once its methods have returned."""
    parent = os.getppid()
    if parent == 0:  # it is outside of this process namespace
        await asyncio.get_running_loop().create_future()
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    descriptor = os.pidfd_open(parent)
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _started(log: LogFile, argv: list[str]) -> tuple[Child, socket.socket]:
    """Start an agent; return it with our end of the connection to it."""
    ours, theirs = socket.socketpair()
    with theirs:
        return Runner().spawn_connected(argv, theirs, log=log), ours


def _end_of(code: int) -> str:
    """Return how a process was killed; nothing for another end."""
    return f"it was killed by signal {-code}" if code < 0 else ""
