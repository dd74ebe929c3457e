"""Streams an active run as server-sent events (HTML Standard, "Server-sent events").

A stream keeps no history: that is in the bundle's live log, and a reader that comes back says up to where it has it.
"""

import time
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Literal, TypeVar

import anyio
from anyio import CapacityLimiter, to_thread
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from plinth.bundle import BundleFolder, LivePlace, LiveTail, read_manifest
from plinth.bundle.live import LiveChunk
from plinth.common.shown import shown_in_json
from plinth.model.errors import PlinthError
from plinth.model.live import LiveEnd, LiveLine, LiveMessage, LivePage
from plinth.report.catalogue import LOAD, LOAD_LINES, PANEL_SOURCES, PANELS
from plinth.system.lock import is_locked
from plinth.tasks.history import reason_of_end

LIVE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; font-src data:; "
    "img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy of the live page, which runs a script of the server's, which asks the server alone."""
MAX_STREAMS = 100
"""Maximum number of open streams: half of the server's connections, so that pages can still be opened."""
_POLL_S = 0.25
_LOOK_FOR_END_EVERY_S = 1.0
_KEEP_ALIVE_EVERY_S = 15.0
_READERS = 4
"""Number of threads that read logs, separate from those of pages, so that a hung disk only blocks streams."""
Read = TypeVar("Read")


def live_page_of(root: str, key: str) -> LivePage:
    """Return the report's panels of the load engine's counters for the bundle of this key."""
    return LivePage(
        panels=tuple(panel for panel in PANELS if PANEL_SOURCES[panel.id] == LOAD),
        lines=tuple(
            LiveLine(panel=line.panel, label=line.label, metric=line.readings[0].metric) for line in LOAD_LINES
        ),
        events=f"{root}/live/{key}/events",
    )


def end_of(folder: BundleFolder) -> LiveEnd | None:
    """Return how the run of a bundle ended; None while it is active. A killed run does not hold its lock."""
    if is_locked(folder.descriptor):
        return None
    try:
        manifest = read_manifest(folder)
    except PlinthError as error:
        return LiveEnd(state="unreadable", reason=error.message)
    reason = reason_of_end(folder, manifest)
    state: Literal["complete", "interrupted", "failed", "killed"]
    state = "killed" if manifest.status == "running" else manifest.status
    return LiveEnd(state=state, reason=reason)


class LiveStreams:
    """The open streams of a server."""

    def __init__(self) -> None:
        self._open = 0
        self._is_ending = False
        self._readers = CapacityLimiter(_READERS)

    def end(self) -> None:
        """End all streams."""
        self._is_ending = True

    def response(self, folder: BundleFolder, after: str | None) -> Response:
        """Return the stream of a bundle from the place that a reader has sent back; `folder` is closed at its end."""
        if self._open >= MAX_STREAMS:
            reason = f"{MAX_STREAMS} live pages are open: close one\n"
            return PlainTextResponse(reason, HTTPStatus.SERVICE_UNAVAILABLE)
        tail = LiveTail(folder, LivePlace.parse(after) if after else None)
        return StreamingResponse(self._counted(folder, tail), media_type="text/event-stream")

    async def _counted(self, folder: BundleFolder, tail: LiveTail) -> AsyncIterator[str]:
        self._open += 1
        try:
            async for event in self._events(folder, tail):
                yield event
        finally:
            self._open -= 1
            tail.close()
            folder.close()

    async def _events(self, folder: BundleFolder, tail: LiveTail) -> AsyncIterator[str]:
        looked_s = said_s = 0.0
        end: LiveEnd | None = None
        while not self._is_ending:
            chunk = await self._read(tail.read)
            if chunk is not None:
                said_s = time.monotonic()
                yield _message(chunk)
            elif end is not None:  # everything written before the end has been read
                yield f"event: end\ndata: {shown_in_json(end.model_dump_json())}\n\n"
                return
            elif time.monotonic() >= looked_s + _LOOK_FOR_END_EVERY_S:
                looked_s = time.monotonic()
                end = await self._read(lambda: end_of(folder))
            elif time.monotonic() >= said_s + _KEEP_ALIVE_EVERY_S:
                said_s = time.monotonic()
                yield ":\n\n"  # a comment, whose sending fails if the reader has disconnected
            else:
                await anyio.sleep(_POLL_S)

    async def _read(self, read: Callable[[], Read]) -> Read:
        return await to_thread.run_sync(read, limiter=self._readers)


def _message(chunk: LiveChunk) -> str:
    """Format a chunk as one event: JSON has line ends only in strings, escaped, and so is one line of the stream."""
    message = LiveMessage(events=chunk.events, problems=chunk.problems)
    return f"id: {chunk.place}\ndata: {shown_in_json(message.model_dump_json())}\n\n"
