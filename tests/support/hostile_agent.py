"""An agent of a fleet that answers what it likes, in its own thread, in the place of one that was broken into."""

import json
import platform
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from plinth import __version__
from plinth.fleet.executors.executor import Started
from plinth.fleet.protocol import Hello, Link
from plinth.model.errors import RunError

Answer = tuple[object, bytes]
Change = Callable[[str, dict[str, Any], bytes], Answer]
"""What is sent in the place of an answer: the kind of the request, the usual document, and the bytes behind it."""


class HostileAgents:
    """An executor of two agents, of which the second one's answers are changed."""

    def __init__(self, change: Change) -> None:
        self._changes = (_as_usual, change)

    @contextmanager
    def agents(self) -> Iterator[list[Started]]:
        links = []
        for number, change in enumerate(self._changes):
            ours, theirs = socket.socketpair()
            threading.Thread(target=_serve, args=(Link(theirs), change, number), daemon=True).start()
            links.append(Link(ours))
        try:
            yield [Started(f"agent-{number}", link) for number, link in enumerate(links)]
        finally:
            for link in links:
                link.close()


def _as_usual(kind: str, document: dict[str, Any], binary: bytes) -> Answer:
    return document, binary


def _serve(link: Link, change: Change, number: int) -> None:
    state = {"polls": 0, "number": number, "threads": 1}
    with suppress(RunError):
        while True:
            request = json.loads(link.receive(10.0).document)
            usual, binary = _usual(request, state)
            document, binary = change(request["kind"], usual, binary)
            link.send(document if isinstance(document, bytes) else json.dumps(document).encode(), binary)
    link.close()


def _usual(request: dict[str, Any], state: dict[str, int]) -> tuple[dict[str, Any], bytes]:
    now_ns = time.monotonic_ns()
    match request["kind"]:
        case "hello":
            ours = Hello(
                plinth=__version__, python=platform.python_version(), host="h", cores=1, pid=1, wall_clock_ns=1
            )
            return json.loads(ours.model_dump_json()), b""
        case "clock":
            return {"received_ns": now_ns, "sent_ns": now_ns}, b""
        case "poll":
            state["polls"] += 1
            return {"state": "connected" if state["polls"] == 1 else "ended", "progress": _PROGRESS}, b""
        case "collect":
            return {"result": _RESULT, "usage": {"engine_busy": 0.5, "host_busy": 0.5}}, b""
        case "ledger":
            head = (b"PLINTHLG", 1, 64, 32, state["number"], 1, 2, 1, 1)  # without a record: docs/internals/ledger.md
            return {"thread": state["number"], "files": 1, "is_last": True}, struct.pack("<8sIIIIB3xIQQ16x", *head)
        case "copied":
            return {"state": "ended", "result": _COPIED}, b""
        case _:
            return {}, b""


_SECOND = {
    "second": 0, "phase": "measure", "t_ns": 0, "length_ns": 1_000_000_000, "done": 1, "failed": 0, "retried": 0,
    "latency_mean_ns": 1.5, "latency_p50_ns": 1, "latency_p95_ns": 1, "latency_p99_ns": 1, "latency_max_ns": 1,
}  # fmt: skip
_EVENT = {
    "t_ns": 0, "kind": "failed", "client": 0, "script": 0, "command": 0, "is_connecting": False, "query": 0, "sqlstate": "40001",
    "message": "could not serialize", "tries": 1, "latency_ns": 1,
}  # fmt: skip
_PROGRESS = {
    "elapsed_ns": 1, "phase": "measure", "done": 1, "failed": 0, "retried": 0, "clients_open": 1,
    "seconds": [_SECOND], "events": [_EVENT], "events_dropped": 0,
}  # fmt: skip
_TOTALS = {"scheduled": 1, "done": 1, "failed": 0, "skipped": 0, "open": 0, "retries": 0, "retried": 0}
_RESULT = {
    "started_unix_ns": 1, "first_start_ns": 1, "connect_ns": 1, "warmup_ns": 0, "measured_ns": 1_000_000_000, "interrupted": False,
    "clients_aborted": 0, "totals": _TOTALS, "measured": _TOTALS,
    "scripts": [{"name": "script", "weight": 1, "measured": _TOTALS}],
    "series": [_SECOND],
    "histograms": [
        {"scope": "transaction", "script": "script", "statement": None, "line": None, "text": None, "count": 1, "sum_ns": 600,
         "min_ns": 600, "max_ns": 600, "buckets": [[1023, 1]]}
    ],
    "errors": [
        {"kind": "server", "sqlstate": "40001", "script": "script", "statement": 0, "line": 1, "message": "m", "count": 1,
         "retried": 0, "first_ns": 1}
    ],
    "engine": {"user_cpu_ns": 1, "system_cpu_ns": 1, "loop_lag_p99_ns": 1, "bytes_sent": 1, "bytes_received": 1, "threads": 1,
               "server_version": "18.0"},
}  # fmt: skip
_COPIED = {
    "rows": 1,
    "bytes_sent": 1,
    "elapsed_ns": 1,
    "user_cpu_ns": 1,
    "system_cpu_ns": 1,
    "interrupted": False,
    "errors": [],
}
