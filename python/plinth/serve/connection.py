"""HTTP connections that wait for a request for a limited time, and end with a damaged one."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_TIMEOUT_S = 3.0
"""On the loopback interface, a request arrives within milliseconds."""


class TimedConnection(H11Protocol):
    """uvicorn's, closed when no whole request has arrived within `REQUEST_TIMEOUT_S`, or twice that after a former one.

    uvicorn has no such limit, so that any user of the machine could occupy all connections, without the token.
    """

    _timer: asyncio.TimerHandle | None = None
    _answered: Any = None
    """The last request that was answered when the timer ran out; None is none."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Say that the request is damaged; if its answer has begun, as where a body is damaged, end the connection instead.

        h11 refuses a second answer by an exception, which asyncio would print with a traceback.
        """
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def _wait(self) -> None:
        self._timer = self.loop.call_later(REQUEST_TIMEOUT_S, self._close_or_wait)

    def _close_or_wait(self) -> None:
        is_waiting = self.cycle is None or self.cycle.response_complete
        if is_waiting and self.cycle is self._answered:
            self.transport.close()
            return
        if is_waiting:
            self._answered = self.cycle
        self._wait()
