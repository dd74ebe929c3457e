"""How a server recovered, as it logs it: xlogrecovery.c and postmaster.c of PostgreSQL have the messages."""

import re
from collections.abc import Iterable
from datetime import datetime

from plinth.model.recovery import Recovery

# With the log_line_prefix of PostgreSQL, '%m [%p] '. All lines of a start have one time zone.
_LINE = re.compile(r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) \S+ \[\d+\] LOG:  (?P<message>.*)")
_LSN = r"(?P<high>[0-9A-F]{1,8})/(?P<low>[0-9A-F]{1,8})"
_BEGINS = re.compile(r"starting PostgreSQL \d+")
_REDO_BEGINS = re.compile(rf"redo starts at {_LSN}")
_REDO_ENDS = re.compile(rf"redo done at {_LSN}")
_NO_REDO = "redo is not required"
_READY = "database system is ready to accept connections"


def recovery_of(lines: Iterable[str]) -> Recovery | None:
    """Return how the server whose log this is recovered when it was started last; None where it had nothing to recover from, and of a log
    with another prefix or language."""
    began: datetime | None = None
    redo_from: tuple[datetime, int] | None = None
    redo_to: tuple[datetime, int] | None = None
    ready: datetime | None = None
    for line in lines:
        match = _LINE.fullmatch(line.rstrip())
        if match is None:
            continue
        time, message = datetime.fromisoformat(match["time"]), match["message"]
        if _BEGINS.match(message):
            began, redo_from, redo_to, ready = time, None, None, None
        elif found := _REDO_BEGINS.match(message):
            redo_from = time, _position(found)
        elif found := _REDO_ENDS.match(message):
            redo_to = time, _position(found)
        elif message.startswith(_NO_REDO):
            redo_from = redo_to = time, 0
        elif message.startswith(_READY) and ready is None:
            ready = time
    if began is None or redo_from is None or redo_to is None or ready is None:
        return None
    times = [began, redo_from[0], redo_to[0], ready]
    if times != sorted(times):  # the clock was set
        return None
    return Recovery(
        before_redo_s=(redo_from[0] - began).total_seconds(),
        redo_s=(redo_to[0] - redo_from[0]).total_seconds(),
        redo_bytes=max(0, redo_to[1] - redo_from[1]),
        after_redo_s=(ready - redo_to[0]).total_seconds(),
    )


def _position(match: re.Match[str]) -> int:
    """Return a position of the WAL in bytes."""
    return (int(match["high"], 16) << 32) + int(match["low"], 16)
