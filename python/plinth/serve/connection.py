"""HTTP connections that wait for a request for a limited time, and end with a damaged one."""

import asyncio
from collections.abc import Callable
from typing import cast

import h11
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

REQUEST_TIMEOUT_S = 3.0
"""On the loopback interface, a request arrives within milliseconds."""


class TimedConnections:
    """An application, and the connections that its requests come by.

    A connection is closed when no request has begun within `REQUEST_TIMEOUT_S`, or twice that after a former one. uvicorn has
    no such limit, so that any user of the machine could occupy all connections, without the token.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._by_client: dict[tuple[str, int], _Connection] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request of ASGI, during which its connection does not wait."""
        connection = self._by_client.get(tuple(scope["client"]))
        if connection is None:  # it was lost in the meantime
            await self._app(scope, receive, send)
            return
        connection.begun += 1
        connection.active += 1
        try:
            await self._app(scope, receive, send)
        finally:
            connection.active -= 1

    def watch(self, config: uvicorn.Config) -> None:
        """Have the server of this configuration make its connections by this object."""
        config.load()
        protocol = cast("Callable[..., asyncio.Protocol]", config.http_protocol_class)

        def watched(**given: object) -> _Connection:
            return _Connection(protocol(**given), self._by_client)

        config.http_protocol_class = watched  # type: ignore[assignment]


class _Connection(asyncio.Protocol):
    """Passes on to uvicorn's protocol what asyncio says, and closes the connection where that would wait for too long."""

    def __init__(self, inner: asyncio.Protocol, by_client: "dict[tuple[str, int], _Connection]") -> None:
        self._inner = inner
        self._by_client = by_client
        self.begun = 0
        """Number of requests so far."""
        self.active = 0
        """Number of requests that are being answered."""
        self._begun_before = 0
        """`begun` when the timer last ran out."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for the first request."""
        self._transport = transport
        self._client = tuple(transport.get_extra_info("peername"))
        self._by_client[self._client] = self
        self._inner.connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._timer.cancel()
        if self._by_client.get(self._client) is self:
            del self._by_client[self._client]
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass data on; end the connection if they damage a request whose answer has begun, as where a body is damaged.

        h11 refuses the second answer that uvicorn then gives by an exception, which asyncio would print with a traceback.
        """
        try:
            self._inner.data_received(data)
        except h11.LocalProtocolError:
            self._transport.close()

    def eof_received(self) -> bool | None:
        """Pass it on."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """Pass it on."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on."""
        self._inner.resume_writing()

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(REQUEST_TIMEOUT_S, self._close_or_wait)

    def _close_or_wait(self) -> None:
        if not self.active:
            if self.begun == self._begun_before:
                self._transport.close()
                return
            self._begun_before = self.begun
        self._wait()
