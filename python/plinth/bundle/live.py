"""Follows the live log of an active run: logs/live.jsonl, which exists only until the run ends.

The file is appended to, and replaced by a shorter one with each trial. Nothing is kept between two readings but the place in it,
which has a text form for a reader that comes back. Like the rest of a bundle it is untrusted.
"""

import hashlib
import os
import re
from typing import NamedTuple, Self

from pydantic import ValidationError

from plinth.bundle.files import BundleFolder
from plinth.model.errors import PlinthError
from plinth.model.live import LIVE_EVENT, LIVE_VERSION, LiveEvent, RunBegan

LIVE = "logs/live.jsonl"
MAX_LINE_BYTES = 64 * 2**10
"""Maximum length of a line, far more than a run writes."""
MAX_LIVE_BYTES = 32 * 2**20
"""Maximum size of a log, more than a run writes (plinth.run.live_log); the rest is not read."""
_CHUNK_BYTES = 256 * 2**10
_BEGINNING_BYTES = 128
_PLACE = re.compile(r"([0-9a-f]{16})-([0-9]{1,10})")


class LivePlace(NamedTuple):
    """A position in a log, which is identified by a digest of its first line: the offset of the next byte."""

    log: str
    offset: int

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse a position that a reader has sent back; None if it is malformed."""
        found = _PLACE.fullmatch(text)
        return cls(found[1], int(found[2])) if found else None

    def __str__(self) -> str:
        return f"{self.log}-{self.offset}"


class LiveChunk(NamedTuple):
    """The events that were read in order, the problems, and the new position."""

    events: tuple[LiveEvent, ...]
    problems: tuple[str, ...]
    place: LivePlace


class LiveTail:
    """Reads a log from a position, or from the beginning if the log was replaced; `close` it afterwards.

    The log that was read last stays open: its writer removes it at the end of the run, perhaps before its last lines are read.
    """

    def __init__(self, folder: BundleFolder, after: LivePlace | None = None) -> None:
        self._folder = folder
        self._place = after
        self._is_in_long_line = False
        self._problem: str | None = None
        self._descriptor: int | None = None

    def close(self) -> None:
        """Close the log."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def read(self) -> LiveChunk | None:
        """Return the next part of what was written since, None if there is nothing; call it until it returns None."""
        try:
            if self._folder.entry(LIVE) is not None:
                with self._folder.opened(LIVE) as descriptor:
                    self.close()
                    self._descriptor = os.dup(descriptor)
            return None if self._descriptor is None else self._read(self._descriptor)
        except PlinthError as error:
            if error.message == self._problem:  # already reported
                return None
            self._problem = error.message
            return LiveChunk((), (f"{LIVE}: {error.message}",), self._place or LivePlace("0" * 16, 0))

    def _read(self, descriptor: int) -> LiveChunk | None:
        first_line = os.pread(descriptor, _BEGINNING_BYTES, 0).split(b"\n")[0]
        log = hashlib.sha256(first_line).hexdigest()[:16]
        if self._place is None or self._place.log != log or self._place.offset > os.fstat(descriptor).st_size:
            self._place, self._is_in_long_line = LivePlace(log, 0), False
        begin = self._place.offset
        if begin > MAX_LIVE_BYTES:
            return None
        data = os.pread(descriptor, _CHUNK_BYTES, begin)
        lines = data.split(b"\n")
        rest = lines.pop()
        problems: list[str] = []
        read = len(data) - len(rest)
        if lines and self._is_in_long_line:
            lines, self._is_in_long_line = lines[1:], False
        if len(rest) > MAX_LINE_BYTES:
            read = len(data)
            if not self._is_in_long_line:
                problems.append(f"{LIVE}: a line has more than {MAX_LINE_BYTES:,} bytes")
            self._is_in_long_line = True
        if not read:
            return None
        self._place = LivePlace(log, begin + read)
        events = _events(lines, problems)
        if self._place.offset > MAX_LIVE_BYTES:
            problems.append(f"{LIVE} has more than {MAX_LIVE_BYTES:,} bytes; the rest is not read")
        return LiveChunk(events, tuple(problems), self._place)


def _events(lines: list[bytes], problems: list[str]) -> tuple[LiveEvent, ...]:
    """Parse complete lines to events; all malformed lines together give one problem, with the first reason."""
    events: list[LiveEvent] = []
    reasons: list[str] = []
    for line in lines:
        try:
            event = _event(line)
        except ValueError as error:
            reasons.append(_reason(error))
        else:
            events.append(event)
    if reasons:
        count = f"{len(reasons):,} lines" if len(reasons) > 1 else "a line"
        problems.append(f"{LIVE}: {count} that cannot be read: {reasons[0]}")
    return tuple(events)


def _event(line: bytes) -> LiveEvent:
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"more than {MAX_LINE_BYTES:,} bytes")
    event = LIVE_EVENT.validate_json(line)
    if isinstance(event, RunBegan) and event.schema_version > LIVE_VERSION:
        raise ValueError(f"written in version {event.schema_version}; this Plinth reads up to {LIVE_VERSION}")
    return event


def _reason(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    key = ".".join(map(str, first["loc"]))[:200]
    return f"{key and f'{key}: '}{first['msg'][:200]}"
