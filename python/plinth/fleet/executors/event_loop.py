"""An asyncio loop beside code that waits: connections are served while the coordinator does something else."""

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from plinth.system import cancel

_POLL_S = 0.1
_CLOSE_TIMEOUT_S = 2.0
_PIECE_BYTES = 64 * 1024
_Result = TypeVar("_Result")


class EventLoop:
    """An asyncio loop in a thread of its own, so that connections are served while the caller waits."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> "EventLoop":
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
        self._thread.start()
        return self

    def run(self, work: "Coroutine[Any, Any, _Result]") -> _Result:
        """Run to its end. Cancelled with the caller's work."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            while True:
                with suppress(TimeoutError):
                    return future.result(_POLL_S)
                if future.done():
                    return future.result()
                cancel.check()
        except BaseException:
            future.cancel()
            raise

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSE_TIMEOUT_S)
        if not self._thread.is_alive():
            self._loop.close()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what is read until there is no more, or one side is gone, which the other side's reader sees."""
    with suppress(OSError):
        while piece := await reader.read(_PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
