"""Figures that no agent sends, in every numeric field of every message: the trial fails with the name of the machine."""

import json
import re
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from fleets import MakeConfig
from plinth.fleet.executors import executor_of
from plinth.fleet.executors.executor import Started
from plinth.fleet.figures import check_figures
from plinth.fleet.load import FleetLoad
from plinth.fleet.merge import add_histograms
from plinth.fleet.protocol import (
    ClockReading,
    Collected,
    Copied,
    Hello,
    LedgerPiece,
    Link,
    Measuring,
    Message,
    Polled,
    Reached,
    Reply,
    Usage,
)
from plinth.model.errors import RunError
from plinth.model.fleet import FleetSpec
from plinth.model.load import (
    BulkProgress,
    BulkResult,
    EngineCost,
    Histogram,
    LoadError,
    LoadEvent,
    LoadProgress,
    LoadResult,
    ScriptTotals,
    Second,
    Totals,
)
from plinth.system.framed_tls import ProtocolError, parsed
from plinth.system.log_file import LogFile
from plinth.system.runner import Runner

BAD = {"negative": "-1", "no number": "NaN", "infinite": "Infinity", "1e308": "1e308", "400 digits": "1" + "0" * 400}
TOTALS = Totals(scheduled=3, done=2, failed=1, skipped=0, open=0, retries=1, retried=1, late=1).model_copy(
    update={"serialization_failures": 1, "deadlock_failures": 0, "rolled_back": 0}
)
SECOND = Second(
    second=0,
    phase="measure",
    t_ns=0,
    length_ns=10**9,
    done=2,
    failed=1,
    retried=1,
    latency_mean_ns=1e6,
    latency_p50_ns=10**6,
    latency_p95_ns=10**6,
    latency_p99_ns=10**6,
    latency_max_ns=10**6,
    retries=1,
    skipped=0,
    late=0,
    latency_stddev_ns=1.0,
    schedule_lag_mean_ns=1.0,
    schedule_lag_p99_ns=1,
    schedule_lag_max_ns=1,
)
EVENT = LoadEvent(
    t_ns=1,
    kind="failed",
    client=0,
    script=0,
    command=0,
    is_connecting=False,
    query=0,
    sqlstate=None,
    message="",
    tries=1,
    latency_ns=1,
)
PROGRESS = LoadProgress(
    elapsed_ns=1,
    phase="measure",
    done=2,
    failed=1,
    retried=1,
    clients_open=1,
    seconds=(SECOND,),
    events=(EVENT,),
    events_dropped=0,
)
HISTOGRAM = Histogram(
    scope="transaction",
    script="s",
    statement=0,
    line=1,
    text=None,
    count=2,
    sum_ns=3,
    min_ns=1,
    max_ns=2,
    buckets=((1, 1), (2, 1)),
)
ERROR = LoadError(kind="x", sqlstate=None, script="s", statement=0, line=1, message="", count=1, retried=1, first_ns=1)
COST = EngineCost(
    user_cpu_ns=1,
    system_cpu_ns=1,
    loop_lag_p99_ns=1,
    bytes_sent=1,
    bytes_received=1,
    threads=1,
    server_version=None,
)
RESULT = LoadResult(
    started_unix_ns=1,
    first_start_ns=1,
    connect_ns=1,
    warmup_ns=1,
    measured_ns=1,
    interrupted=False,
    clients_aborted=0,
    totals=TOTALS,
    server_transactions=1,
    measured=TOTALS,
    scripts=(ScriptTotals(name="s", weight=1, measured=TOTALS),),
    series=(SECOND,),
    histograms=(HISTOGRAM,),
    errors=(ERROR,),
    engine=COST,
)
COPY = BulkProgress(rows_done=1, rows_total=2, bytes_sent=3, streams_open=1, finished=False)
COPIED = BulkResult(rows=1, bytes_sent=1, elapsed_ns=1, user_cpu_ns=1, system_cpu_ns=1, interrupted=False, errors=())
MESSAGES: tuple[Reply, ...] = (
    Hello(pid=1, wall_clock_ns=1),
    ClockReading(received_ns=1, sent_ns=2),
    Reached(round_trip_ns=1),
    Polled(state="running", progress=PROGRESS),
    Measuring(warmup_ns=1),
    Collected(result=RESULT, usage=Usage(engine_busy=0.5, host_busy=0.5)),
    LedgerPiece(thread=0, files=1),
    Copied(state="ended", progress=COPY, result=COPIED),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the numbers of a document are."""
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(one, (*path, key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


def replaced(document: Any, path: tuple[Any, ...], number: str) -> str:
    """The document as JSON, with a number that Python may not be able to write."""
    copy = json.loads(json.dumps(document))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = "HERE"
    return json.dumps(copy).replace('"HERE"', number)


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_every_number_of_every_message_is_checked(message: Reply, bad: str) -> None:
    document = message.model_dump()
    document = json.loads(json.dumps(document))
    check_figures(parsed(type(message), json.dumps(document).encode()))
    found = list(places(document))
    assert found
    for path in found:
        with pytest.raises(ProtocolError) as refused:
            check_figures(parsed(type(message), replaced(document, path, bad).encode()))
        assert str(path[-1]) in str(refused.value) or ".".join(map(str, path[:-1])) in str(refused.value)
        assert len(str(refused.value)) < 500


def test_every_field_that_may_have_a_number_has_one_in_these_messages() -> None:
    """So that the test before leaves none out."""
    assert [place for message in MESSAGES for place in _unknown(message)] == []


def _unknown(value: object) -> Iterator[str]:
    if isinstance(value, BaseModel):
        for name, field in type(value).model_fields.items():
            one = getattr(value, name)
            if one is None and re.search(r"\b(int|float)\b", str(field.annotation)):
                yield f"{type(value).__name__}.{name}"
            yield from _unknown(one)
    elif isinstance(value, tuple):
        for one in value:
            yield from _unknown(one)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"buckets": ((1, 1),)}, "count"),
        ({"count": 3}, "count"),
        ({"min_ns": 3}, "shortest"),
    ],
)
def test_histograms_that_contradict_themselves_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        check_figures(HISTOGRAM.model_copy(update=changes))


def test_totals_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(ProtocolError, match="scheduled"):
        check_figures(TOTALS.model_copy(update={"open": 1}))


@pytest.mark.parametrize("place", range(1, 8))
def test_histograms_of_seconds_beyond_every_measure_are_refused(place: int) -> None:
    numbers = [0, 1, 5, 5, 5, 1, 5, 1, 0, 0, 0, 0, 0]
    add_histograms({}, struct.pack("<13Q", *numbers))
    numbers[place] = 2**64 - 1
    with pytest.raises(ProtocolError):
        add_histograms({}, struct.pack("<13Q", *numbers))


class Relayed:
    """Agents of this machine, the last of which has its replies changed on the way: as another's machine may send them."""

    def __init__(self, log: LogFile, change: Callable[[str, Message], Message]) -> None:
        self._real = executor_of(FleetSpec(executor="local", machines=2), Runner(), log)
        self._change = change

    @contextmanager
    def agents(self) -> Iterator[list[Started]]:
        with self._real.agents() as (first, second):
            ours, theirs = socket.socketpair()
            relay = threading.Thread(target=self._relay, args=(Link(theirs), second.link))
            relay.start()
            link = Link(ours)
            try:
                yield [first, second._replace(link=link)]
            finally:
                link.close()
                relay.join(30)
                assert not relay.is_alive()

    def _relay(self, coordinator: Link, agent: Link) -> None:
        with suppress(RunError):  # the coordinator has closed its end
            while True:
                request = coordinator.receive(60)
                agent.send(request.document)
                reply = self._change(json.loads(request.document)["kind"], agent.receive(60))
                coordinator.send(reply.document, reply.binary)
        coordinator.close()


def with_number(of: str, path: tuple[Any, ...], number: str) -> Callable[[str, Message], Message]:
    """Changes the number at a place in replies to one kind of request, once it is there."""

    def change(kind: str, reply: Message) -> Message:
        document = json.loads(reply.document)
        if kind != of or path not in places(document):
            return reply
        return Message(replaced(document, path, number).encode(), reply.binary)

    return change


def without_second_counted(kind: str, reply: Message) -> Message:
    return Message(reply.document, b"\xff" * len(reply.binary)) if kind == "poll" else reply


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(with_number("hello", ("cores",), "-1"), id="cores"),
        pytest.param(without_second_counted, id="histograms"),
        pytest.param(
            with_number("poll", ("progress", "seconds", 0, "done"), BAD["400 digits"]), id="a count of 400 digits"
        ),
        *(
            pytest.param(change, id=name, marks=pytest.mark.long)
            for name, change in {
                "a time of 400 digits": with_number("clock", ("sent_ns",), BAD["400 digits"]),
                "a reply before its request": with_number("clock", ("received_ns",), str(2**61)),
                "a mean that is no number": with_number(
                    "poll", ("progress", "seconds", 0, "latency_mean_ns"), BAD["no number"]
                ),
                "a load of a year": with_number("collect", ("result", "measured_ns"), str(2**55)),
                "a negative count": with_number("collect", ("result", "totals", "done"), "-5"),
                "a share of 1e308": with_number("collect", ("usage", "engine_busy"), BAD["1e308"]),
            }.items()
        ),
    ],
)
def test_a_trial_with_figures_that_no_agent_sends_fails_with_the_machine(
    change: Callable[[str, Message], Message], config: MakeConfig, tmp_path: Path
) -> None:
    log = LogFile(tmp_path / "log")
    load = FleetLoad(config("SELECT pg_sleep(0.01);", duration_s=2.0), Relayed(log, change))
    with pytest.raises(RunError, match="machine local-2 "):
        load.start()
        while not load.wait(0.5):
            pass
    with pytest.raises(RunError):
        load.result()
    honest = FleetLoad(config(), Relayed(log, lambda _, reply: reply))  # as the next trial is
    honest.start()
    while not honest.wait(0.5):
        pass
    assert honest.result().measured.done > 0
