"""An agent whose machine was broken into steers nothing here: anything that it may not send is an error, at any time."""

import json
import random
import struct
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from hostile_agent import Answer, Change, HostileAgents
from plinth.fleet.check import check_fleet
from plinth.fleet.copying import FleetCopy
from plinth.fleet.load import FleetLoad
from plinth.fleet.protocol import Link
from plinth.load import LoadConfig, LoadScript
from plinth.model.connection import Connection
from plinth.model.errors import PlinthError
from plinth.model.load import LoadResult

NOWHERE = Connection(host="/nowhere", port=1, user="nobody", database="none")
VALUES: tuple[object, ...] = (
    *(None, True, -1, 0, 2**63, 2**64, 10**400, 1e308, float("inf"), float("nan"), ""),
    *("\x1b]0;owned\x07\u202e", "x" * 100_000, [], {}, [[]], {"a": 1}),
)
KNOWN: dict[str, list[tuple[tuple[object, ...], object]]] = {
    "clock": [(("received_ns",), 10**400)],
    "collect": [
        (("result", "first_start_ns"), 10**400),
        (("result", "measured", "done"), 10**400),
        (("result", "scripts"), []),
        (("usage", "engine_busy"), 1e308),
    ],
}
"""What was no error once, but the end of the coordinator, or in its result."""
KINDS = ("hello", "clock", "prepare", "poll", "go", "collect", "ledger")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plinth.fleet.load.LEAD_NS", 200_000_000)
    monkeypatch.setattr("plinth.fleet.load.POLL_S", 0.001)
    monkeypatch.setattr("plinth.fleet.task.POLL_S", 0.001)


def paths(document: object, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value of a document."""
    yield way
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in items:
        yield from paths(value, (*way, key))


def changed(document: Any, way: tuple[Any, ...], value: object) -> Any:
    if not way:
        return value
    copy = deepcopy(document)
    place = copy
    for key in way[:-1]:
        place = place[key]
    place[way[-1]] = value
    return copy


def drive(change: Change, folder: Path | None = None) -> LoadResult:
    """A whole load by such agents, to its end."""
    scripts = [LoadScript(name="script", source="SELECT 1;")]
    ledger = None if folder is None else {"folder": str(folder)}
    config = LoadConfig.model_validate(
        {"connection": NOWHERE, "scripts": scripts, "clients": 2, "threads": 1, "duration_s": 1.0, "ledger": ledger}
    )
    load = FleetLoad(config, HostileAgents(change))
    try:
        load.start()
        while not load.wait(1.0):
            pass
        load.progress()
        return load.result()
    finally:
        load.close()


def as_usual(kind: str, document: dict[str, Any], binary: bytes) -> Answer:
    return document, binary


def every_document() -> dict[str, dict[str, Any]]:
    """The usual answer to each kind of request, once."""
    seen: dict[str, dict[str, Any]] = {}

    def note(kind: str, document: dict[str, Any], binary: bytes) -> Answer:
        seen.setdefault(kind, document)
        return document, binary

    drive(note)
    return seen


def test_as_usual_they_drive_a_load() -> None:
    result = drive(as_usual)
    assert result.measured.done == 2 and len(result.series) == 1 and result.fleet is not None


@pytest.mark.parametrize("kind", KINDS)
def test_any_value_in_any_place_of_an_answer_is_taken_or_refused(kind: str, tmp_path: Path) -> None:
    usual = {**every_document(), "ledger": {"thread": 1, "files": 1, "is_last": True}}[kind]
    pairs = [(way, value) for way in paths(usual) for value in VALUES]
    known = [one for one in pairs if one in KNOWN.get(kind, [])]
    assert len(known) == len(KNOWN.get(kind, []))
    refused = 0
    for way, value in (*known, *random.Random(7).sample(pairs, min(len(pairs), 4))):

        def change(asked: str, document: dict[str, Any], binary: bytes, way: Any = way, value: Any = value) -> Answer:
            return (changed(document, way, value) if asked == kind else document), binary

        folder = tmp_path / "ledger"
        folder.mkdir(exist_ok=True)
        try:
            result = drive(change, folder if kind == "ledger" else None)
        except PlinthError:
            refused += 1
        else:  # what was taken can be kept, and read again
            assert LoadResult.model_validate_json(result.model_dump_json()) == result
            assert result.fleet is not None and result.fleet.excluded != ""
        for file in folder.iterdir():
            file.unlink()
    assert refused >= len(known)


@pytest.mark.parametrize("kind", KINDS[:-1])
@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"null",
        b"[" * 200_000,
        b'{"a":' * 200_000,
        json.dumps({"refused": "\x1b[2J" * 1000}).encode(),
        b'{"x": 1' + b"0" * 100_000 + b"}",
    ],
    ids=["nothing", "cut off", "no text", "null", "lists", "tables", "refused", "digits"],
)
def test_what_is_no_answer_is_refused(kind: str, answer: bytes) -> None:
    def change(asked: str, document: dict[str, Any], binary: bytes) -> Answer:
        return (answer if asked == kind else document), binary

    with pytest.raises(PlinthError):
        drive(change)


@pytest.mark.parametrize("numbers", [[0], [0, 1, 2, 3, 4, 2**60], [2**64 - 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [0] * 11])
def test_histograms_that_claim_more_than_is_there_are_refused_or_counted(numbers: list[int]) -> None:
    def change(asked: str, document: dict[str, Any], binary: bytes) -> Answer:
        return document, struct.pack(f"<{len(numbers)}Q", *numbers) if asked == "poll" else binary

    try:
        assert drive(change).measured.done == 2
    except PlinthError:
        assert len(numbers) < 11 or max(numbers) > 2**60


def test_no_agent_writes_another_ones_ledger_or_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plinth.fleet.ledger._MOST_BYTES", 4096)

    def anothers(asked: str, document: dict[str, Any], binary: bytes) -> Answer:
        return ({**document, "thread": 0, "files": 2**16} if asked == "ledger" else document), binary

    def without_end(asked: str, document: dict[str, Any], binary: bytes) -> Answer:
        return ({**document, "is_last": False}, b"x" * 1024) if asked == "ledger" else (document, binary)

    for change, words in (
        (anothers, "a piece of another agent.s ledger"),
        (without_end, "more of a ledger"),
    ):
        (tmp_path / change.__name__).mkdir()
        with pytest.raises(PlinthError, match=words):
            drive(change, tmp_path / change.__name__)
        assert [path.name for path in (tmp_path / change.__name__).iterdir()] == ["0.ledger"]


def test_no_agent_connects_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plinth.fleet.task._MOST_CONNECTING_S", 0.1)

    def connecting(asked: str, document: dict[str, Any], binary: bytes) -> Answer:
        return ({"state": "connecting"} if asked in ("poll", "copied") else document), binary

    with pytest.raises(PlinthError, match="not connected after") as refused:
        drive(connecting)
    assert refused.value.where is not None and refused.value.where.startswith("machine ")
    copy = FleetCopy({"pieces": [{"rows": 1}, {"rows": 1}], "streams": 2}, HostileAgents(connecting))
    with pytest.raises(PlinthError, match="not connected after"):
        copy.start()


def test_a_check_of_such_agents_is_taken_or_refused() -> None:
    for value in VALUES:
        for kind, key in (
            ("hello", "wall_clock_ns"),
            ("hello", "cores"),
            ("clock", "sent_ns"),
            ("clock", "received_ns"),
        ):

            def change(
                asked: str,
                document: dict[str, Any],
                binary: bytes,
                of: str = kind,
                key: str = key,
                value: object = value,
            ) -> Answer:
                return ({**document, key: value} if asked == of else document), binary

            try:
                found = check_fleet(HostileAgents(change), None)
            except PlinthError:
                continue
            assert len(found) == 2 and f"{found[0].wall_clock_offset_ns / 1e6:+.0f}"


def test_rows_that_such_agents_say_they_have_sent_are_taken_or_refused() -> None:
    usual = {"state": "ended", "result": {"rows": 1, "bytes_sent": 1, "elapsed_ns": 1, "user_cpu_ns": 1}}
    for way in [*paths(usual), ("result", "errors"), ("progress",)]:
        for value in VALUES[::3]:
            if not way and value == {}:
                continue  # it has not begun, as at first

            def change(
                asked: str, document: dict[str, Any], binary: bytes, way: Any = way, value: Any = value
            ) -> Answer:
                return (changed(document, way, value) if asked == "copied" else document), binary

            copy = FleetCopy({"pieces": [{"rows": 1}, {"rows": 1}], "streams": 2}, HostileAgents(change))
            try:
                copy.start()
                assert copy.wait(5.0)
                assert json.loads(copy.result()) and json.loads(copy.progress())
            except PlinthError:
                pass
            finally:
                copy.close()


def test_a_frame_is_read_no_further_than_it_is_allowed_to_be() -> None:
    import socket

    ours, theirs = socket.socketpair()
    with theirs:
        theirs.sendall(struct.pack("<II", 2**32 - 1, 2**32 - 1))
        with pytest.raises(PlinthError, match="4,294,967,295 bytes; at most"):
            Link(ours).receive(1.0)
    ours.close()


def raw(document: dict[str, Any], of: str, text: str) -> bytes:
    """A document in which a value was replaced that json.dumps does not write."""
    return json.dumps({**document, of: "HERE"}).replace('"HERE"', text).encode()


LIES: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "a count as text": ("poll", lambda usual: changed(usual, ("progress", "done"), "1")),
    "a count that is true": ("poll", lambda usual: changed(usual, ("progress", "done"), True)),
    "a count with a fraction": ("collect", lambda usual: changed(usual, ("result", "measured", "done"), 1.5)),
    "a truth as a number": ("collect", lambda usual: changed(usual, ("result", "interrupted"), 1)),
    "a state twice": ("poll", lambda usual: b'{"state": "ended", "state": "running"}'),
    "half of a character in a long message": (
        "prepare",
        lambda usual: raw({"x": "x" * 70_000}, "refused", '"\\ud800"'),
    ),
    "no reason": ("prepare", lambda usual: {"refused": ""}),
    "a reason of a megabyte": ("go", lambda usual: {"refused": "x" * 2**20}),
    "a failure of a megabyte": ("poll", lambda usual: {"state": "failed", "failure": "x" * 2**20}),
    "a version of a megabyte": ("hello", lambda usual: {**usual, "plinth": "1" * 2**20}),
    "a driver of a megabyte": ("poll", lambda usual: {**usual, "driver": "x" * 2**20}),
    "a clock that is true": ("clock", lambda usual: {"received_ns": True, "sent_ns": 5}),
    "an exit code": ("collect", lambda usual: {**usual, "exit_code": 0}),
    "text at login": ("hello", lambda usual: b"Welcome to client2"),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_an_error_that_is_short_and_no_success(name: str) -> None:
    kind, lie = LIES[name]

    def change(asked: str, document: dict[str, Any], binary: bytes) -> Answer:
        return (lie(document) if asked == kind else document), binary

    with pytest.raises(PlinthError) as failed:
        drive(change)
    assert failed.value.exit_code != 0 and len(str(failed.value)) < 2000
    assert "no agent sends" in str(failed.value) or "is lost" in str(failed.value)
