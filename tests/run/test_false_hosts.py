"""Agents of hosts that were broken into: any wrong answer ends in an error that names the host, and in no other way.

Each row is one lie of a real process that otherwise answers as the protocol has it (support/false_host.py).
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from false_hosts import HELLO, Lies, error, false_host, result
from plinth import exit_codes
from plinth.model.errors import RunError
from plinth.run.hosts.limits import LOG_PIECE_BYTES, MAX_TEXT
from plinth.system.framed_tls import ProtocolError

MOST_S = 20.0
"""Of every row: an agent starts within a tenth of a second, and nothing waits for one that has answered."""
FACTS: dict[str, Any] = {
    "cores": 2, "memory_total_bytes": 2**30, "memory_available_bytes": 2**29, "is_root": True, "can_mount": True,
    "kernel": "6.1", "os": "Debian", "cpu_model": "x",
}  # fmt: skip
STORAGE: dict[str, Any] = {
    "name": "disk", "kind": "directory", "path": "/x", "filesystem": "ext4", "mount_options": [], "total_bytes": 1, "free_bytes": 1,
    "volatile": False,
}  # fmt: skip
INSTALLATION = {"bindir": "/usr/bin", "version": "18.1", "major": 18, "origin": "path"}
KEPT_ERROR = {"kind": "RunError", "message": "busy"}


class Row(NamedTuple):
    """One lie, the call that meets it, and what the error says next to the name of the host."""

    lies: Lies
    said: str
    on: tuple[str, ...] = ("host",)
    method: str = "facts"
    arguments: Mapping[str, Any] = {}


def of(method: str, document: object, said: str, on: tuple[str, ...] = ("host",), **arguments: object) -> Row:
    """A wrong result of one method."""
    return Row({f"call.{method}": result(document)}, f"{on[0]}.{method}: {said}", on, method, arguments)


def facts(said: str, **changed: object) -> Row:
    """Wrong facts of the machine."""
    return of("facts", {**FACTS, **changed}, said)


def sent(document: object, said: str) -> Row:
    """A wrong message in the place of the answer to a call."""
    return Row({"call.facts": [{"send": document}]}, said)


def text(document: str, said: str) -> Row:
    """The same, of one that is no JSON, or is what json.dumps does not write."""
    return Row({"call.facts": [{"text": document}]}, said)


def hello(said: str, **changed: object) -> Row:
    """A wrong greeting."""
    return Row({"hello": [{"send": {"number": "NUMBER", "hello": {**HELLO, **changed}}}]}, said)


def failed(said: str, **fields: object) -> Row:
    """A call that is said to have failed, in a wrong way."""
    return Row({"call.facts": error(**fields)}, said)


def clock(said: str, **reading: object) -> Row:
    """A wrong reading of its clock."""
    return Row({"clock": [{"send": {"number": "NUMBER", "clock": reading}}]}, said, method="")


def told(said: str, **fields: object) -> Row:
    """Wrong progress, or a wrong command, before the true answer."""
    answer = {"send": {"number": 0 if "command" in fields else "NUMBER", **fields}}
    return Row({"call.facts": [answer, *result(FACTS)]}, said)


DEEP = '{"number": "NUMBER", "result": ' + "[" * 100_000 + "]" * 100_000 + "}"
COMMAND: list[Any] = [["true"], None, 0, 0.1, "", ""]
FRAMES = {
    "longer than a frame may be": Row(
        {"call.facts": [{"raw": "ffffff7f00000000"}]}, "at most 33,554,432 and 0 are allowed"
    ),
    "bytes behind the document": Row({"call.facts": [{"raw": "0200000001000000" + "7b7d00"}]}, "2 and 1 bytes"),
    "no text in UTF-8": Row({"call.facts": [{"hex": "ff00fe"}]}, "no text in UTF-8"),
    "empty": Row({"call.facts": [{"hex": ""}]}, "no JSON"),
    "no JSON": text("plinth", "no JSON"),
    "half of a document": text('{"number": ', "no JSON"),
    "two documents": text('{"number": "NUMBER"} {}', "no JSON"),
    "a list": text("[1]", "Input should be an object"),
    "a number": text("1", "Input should be an object"),
    "nested deeply": text(DEEP, "nested too deeply"),
    "a key twice": text('{"number": "NUMBER", "number": "NUMBER"}', "a key twice"),
    "a key twice within the result": text('{"number": "NUMBER", "result": {"cores": 1, "cores": 2}}', "a key twice"),
    "3000 keys": sent({"number": "NUMBER", "result": {str(n): 0 for n in range(3000)}}, "3,000 keys"),
    "not a number": text('{"number": "NUMBER", "result": NaN}', "a number that no load has"),
    "infinite": text('{"number": "NUMBER", "result": [-Infinity]}', "a number that no load has"),
    "a float that is infinite": text('{"number": "NUMBER", "result": 1e999}', "a number that no load has"),
    "of 5000 digits": text(f'{{"number": "NUMBER", "result": {"9" * 5000}}}', "a message is not what it has to be"),
    "half of a character": text(
        '{"number": "NUMBER", "error": {"kind": "RunError", "message": "\\ud800"}}', "Invalid JSON: "
    ),
    "an unknown key": sent({"number": "NUMBER", "sudo": True}, "Extra inputs"),
    "no number": sent({"result": FACTS}, "number: Field required"),
    "a number as text": text('{"number": "1"}', "number: Input should be a valid integer"),
    "a number that is true": sent({"number": True}, "number: Input should be a valid integer"),
    "a number with a fraction": sent({"number": 1.5}, "number: Input should be a valid integer"),
    "a negative number": sent({"number": -1}, "number: Input should be greater than or equal to 0"),
    "many values": Row(
        {"call.facts": [{"text": f'{{"number": 1, "result": [{"[]," * 300_000}0]}}'}]}, "at most 500,000 are allowed"
    ),
    "text at login": Row({"call.facts": [{"raw": b"Welcome to db1\n".hex()}]}, "bytes; at most"),
}
ORDER = {
    "an answer to no request": sent({"number": 99_999}, "request 99,999, which was never made"),
    "nothing unasked": sent({"number": 0}, "it may have command"),
    "two answers": Row({"call.facts": [*error(**KEPT_ERROR), *error(**KEPT_ERROR)]}, "answered already", method="twice"),
    "progress after the end": Row(
        {"call.facts": [*error(**KEPT_ERROR), {"send": {"number": "NUMBER", "progress": ["t", 1, 2, "s", "", 1, 1]}}]},
        "answered already",
        method="twice",
    ),
    "a greeting in the place of a result": sent({"number": "NUMBER", "hello": HELLO}, "has hello; it may have"),
    "a clock in the place of a result": sent({"number": "NUMBER", "clock": {"received_ns": 1, "sent_ns": 2}}, "has clock; it may have"),
    "what was kept in the place of a result": sent({"number": "NUMBER", "kept": []}, "has kept; it may have"),
    "a result and an error": sent({"number": "NUMBER", "result": 1, "error": KEPT_ERROR}, "has error and result"),
    "progress and a result": sent({"number": "NUMBER", "result": 1, "progress": ["t", 1, 2, "s", "", 1, 1]}, "progress and result"),
    "a command with a number": sent({"number": "NUMBER", "command": COMMAND}, "has command; it may have"),
    "a result in the place of a greeting": Row({"hello": result(None)}, "a request of kind hello has result"),
    "no greeting": Row({"hello": [{"send": {"number": "NUMBER"}}]}, "has nothing; it may have hello"),
    "a result in the place of a clock": Row({"clock": result(1)}, "a request of kind clock has result", method=""),
    "an error in the place of a clock": Row({"clock": error(**KEPT_ERROR)}, "has error; it may have clock", method=""),
}  # fmt: skip
GREETINGS = {
    "a protocol as text": hello("hello.protocol", protocol="2"),
    "no version": hello("hello.plinth", plinth=None),
    "a long name": hello("hello.host: String should have at most 255", host="x" * 300),
    "a name for an address": hello("a numeric address is needed", address="evil.example"),
    "all addresses": hello("one address of this machine is needed", coordinator_address="0.0.0.0"),
    "an unknown key": hello("hello.shell", shell="/bin/sh"),
    "a clock that goes back": clock("a reading of its clock", received_ns=5, sent_ns=4),
    "a clock before it began": clock("a reading of its clock", received_ns=-5, sent_ns=4),
    "a clock with a fraction": clock("clock.sent_ns", received_ns=1, sent_ns=2.5),
    "a clock in the year 3000": clock("a reading of its clock", received_ns=1, sent_ns=2**63),
}
ERRORS = {
    "an exit code": failed("error.exit_code: Extra inputs", kind="RunError", message="m", exit_code=0),
    "a class of Python": failed("error.kind", kind="SystemExit", message="m"),
    "a class of ours that ends with nothing": failed("error.kind", kind="Reported", message="m"),
    "no class": failed("error.kind: Field required", message="m"),
    "no message": failed("error.message: Field required", kind="RunError"),
    "an empty message": failed("error.message: String should match", kind="RunError", message=" \n"),
    "a long message": failed("error.message: String should have at most", kind="RunError", message="x" * 20_000),
    "details as text": failed("error.details", kind="RunError", message="m", details="x"),
    "nested details": failed("error.details.0", kind="RunError", message="m", details=[["x"]]),
    "many details": failed("error.details: Tuple should have at most 200", kind="RunError", message="m", details=["x"] * 201),
    "a storage that is not there": failed("storage \"other\" has failed", kind="RunError", message="m", storage="other"),
    "a hint as a number": failed("error.hint", kind="RunError", message="m", hint=5),
}  # fmt: skip
TOLD = {
    "progress that is no number": told("progress.1", progress=["t", "1", 2, "s", "", 1, 1]),
    "progress below 0": told("done is -1", progress=["t", -1, 2, "s", "", 1, 1]),
    "progress without end": told("the time that is left is ", progress=["t", 1, 1e18, "s", "", 1e-300, 1]),
    "progress with too much": told("progress", progress=["t", 1, 2, "s", "", 1, 1, 1]),
    "progress with a long text": told("a text of more than", progress=["t" * 300_000, 1, 2, "s", "", 1, 1]),
    "a command without arguments": told("command.0", command=["rm -rf /", None, 0, 0.1, "", ""]),
    "a command whose exit code is text": told("command.2", command=[["true"], None, "0", 0.1, "", ""]),
    "a command with a long output": told("a text of more than", command=[["true"], None, 0, 0.1, "x" * 300_000, ""]),
}
MACHINES = {
    "cores as text": facts('cores: got "four"; allowed: a valid integer', cores="four"),
    "cores in figures as text": facts('cores: got "4"', cores="4"),
    "cores that are true": facts("cores: got true", cores=True),
    "half a core": facts("cores: got 2.5", cores=2.5),
    "no core": facts("cores: got 0; allowed is 1 to", cores=0),
    "no memory": facts("memory_total_bytes: got 0", memory_total_bytes=0),
    "negative memory": facts("memory_available_bytes: got -1", memory_available_bytes=-1),
    "a right as a number": facts("is_root: got 1", is_root=1),
    "a long text": facts(f"cpu_model: got a text of {MAX_TEXT + 1:,} characters", cpu_model="x" * (MAX_TEXT + 1)),
    "steering text": facts("cores: got \"\\x1b[2J\\u202e\"", cores="\x1b[2J\u202e"),
    "a surplus key": facts("rank: got a key that there is not", rank=1),
    "nothing": of("facts", None, "got nothing (null)"),
    "a list": of("facts", [], "got a list of 0"),
    "a missing key": of("facts", {"cores": 1}, "memory_total_bytes: got nothing; it must be there"),
    "a path as a number": of("work_root", 1, "got 1"),
    "a load as a number": of("load_average", 0.5, "got 0.5"),
    "few counters": of("diskstats", {"sda": [1, 2]}, '"sda": got 2 counters'),
    "negative counters": of("diskstats", {"sda": [-1] * 11}, "sda.0: got -1"),
    "bytes as text": of("read_bytes", "5", 'got "5"', devices=["sda"]),
    "more stopped than there are": of("stopped_processes", [[1, 2], 1], "got 2 processes that are stopped, of 1", postmaster_pid=1),
    "half of an answer": of("free_space", ["x"], "1: got nothing", path=Path("/")),
    "negative space": of("free_space", ["x", -1], "1: got -1", path=Path("/")),
    "a storage of another run": of("storage_of", "other", 'got "other"', directory="/", storages=[]),
    "another version": of("installation", INSTALLATION, "major: got 18; asked was for 17", version=17, bindir=None),
    "a truth as a number": of("may_drop_page_cache", 1, "got 1"),
    "something for nothing": of("drop_page_cache", "done", 'got "done"', paths=[]),
    "a round trip below 0": of("round_trip_ns", -1, "got -1", address="::1", port=1),
    "wear without a disk": of("smart", [{"percentage_used": -5}, None], "0.", disk="sda"),
}  # fmt: skip
OBJECTS = {
    "port 0": of("open_port", 0, "got 0; allowed: greater than or equal to 1", ("run",), address="::1"),
    "port 70000": of("free_port", 70_000, "got 70,000", ("patroni", "c"), address="::1"),
    "kept as a table": of("undo_steps", {}, "got a table of 0 keys", ("run",), id_prefix="x"),
    "kept without an error": of("undo_steps", [{"step": {"id": "a", "title": "t"}}], "0.error: got nothing", ("run",), id_prefix="x"),
    "kept with an exit code": of(
        "undo_steps", [{"step": {"id": "a", "title": "t"}, "error": {**KEPT_ERROR, "exit_code": 0}}], "0.error.exit_code", ("run",),
        id_prefix="x",
    ),
    "a dataset of another cluster": of(
        "populate", {"cluster": "../../x", "kind": "tpcb", "load_s": 1, "tasks": [], "tables": []}, 'cluster: got "../../x"', ("run",),
        cluster="c",
    ),
    "1001 steps": of(
        "undo_steps", [{"step": {"id": "a", "title": "t"}, "error": KEPT_ERROR}] * 1001, "got a list of 1,001; allowed:", ("run",),
        id_prefix="x",
    ),
    "requests as a fraction": of("end_failing", 0.5, "got 0.5", ("run",)),
    "another storage": of("facts", {**STORAGE, "name": "../../x"}, 'name: got "../../x"; asked was for "disk"', ("storage", "disk")),
    "a storage without size": of("facts", {**STORAGE, "total_bytes": None}, "total_bytes: got nothing (null)", ("storage", "disk")),
    "a negative size": of("prepare", {**STORAGE, "free_bytes": -1}, "free_bytes: got -1", ("storage", "disk")),
    "an unknown space": of("space_of", {"kind": "root"}, "kind: got \"root\"", ("storage", "disk")),
    "a failure as a list": of("failure", ["x"], "got a list of 1", ("storage", "disk")),
    "a state without fields": of("status", {}, "pid: got nothing; it must be there", ("disk", "disk", "0")),
    "negative bytes": of("flush_now", -1, "got -1", ("disk", "disk", "0")),
    "a time before it began": of("go_back", -1.0, "got -1.0", ("snapshot", "c", "1")),
    "a whole copy as text": of("is_whole_of", "yes", 'got "yes"', ("copy", "c", "primary")),
    "alive as nothing": of("alive", None, "got nothing (null)", ("server", "c", "primary")),
    "a negative pid": of("pid_of", -1, "got -1", ("server", "c", "primary")),
    "a password with a quote of nothing": of(
        "listening", {"port": 5432, "password": "a\0b"}, "password: got something else", ("server", "c", "primary")
    ),
    "port of a server": of("listening", {"port": 0, "password": "x"}, "port: got 0", ("server", "c", "primary")),
    "where a server is": of("listening", {"port": 1, "password": "x", "host": "evil"}, "host: got a key", ("server", "c", "primary")),
    "a log that is no Base64": of("log_piece", "plinth!", 'got "plinth!"', ("server", "c", "primary"), offset=0),
    "too much of a log": of("log_piece", "AAAA" * (LOG_PIECE_BYTES // 3 + 1), "got 4,194,306 bytes; allowed are 4,194,304", ("server", "c", "primary"), offset=0),
    "lines as one text": of("log_tail", "x", 'got "x"', ("server", "c", "primary"), lines=1),
    "damage without a count": of("check_checksums", {"damage": [{}]}, "damage.0.", ("files", "c", "primary"), enabled=True),
    "readings as texts": of("readings", {"host": [["1", []]]}, "host.0.0: got \"1\"", ("sampler",)),
    "readings of 4 parts": of("readings", {"host": [[1, [["a", "b", 1, 2]]]]}, "host.0.1.0", ("sampler",)),
    "CPU time of one": of("cpu_ns", [1], "1: got nothing", ("sampler",)),
}  # fmt: skip
ROWS = {
    f"{kind}: {name}": row
    for kind, rows in (
        ("frame", FRAMES),
        ("order", ORDER),
        ("greeting", GREETINGS),
        ("error", ERRORS),
        ("told", TOLD),
        ("machine", MACHINES),
        ("object", OBJECTS),
    )
    for name, row in rows.items()
}


@pytest.mark.parametrize("name", ROWS)
def test_a_wrong_answer_is_an_error_that_names_the_host(name: str, tmp_path, monkeypatch) -> None:
    row = ROWS[name]
    host = false_host(tmp_path, row.lies)
    monkeypatch.setenv("PATH", f"{host.programs}:/usr/bin:/bin")
    began = time.monotonic()
    with pytest.raises(ProtocolError) as failed, host.link() as link:
        if row.method == "twice":
            for _ in range(2):
                with pytest.raises(RunError):
                    link.call(row.on, "facts")
            link.clock()
        elif row.method:
            link.call(row.on, row.method, row.arguments)
        else:
            link.clock()
    assert time.monotonic() - began < MOST_S
    assert failed.value.message.startswith("host db1 answered against the protocol: ")
    assert row.said in failed.value.message and len(failed.value.message) < 600
    assert failed.value.where == "host.db1" and failed.value.exit_code == exit_codes.FAILED
