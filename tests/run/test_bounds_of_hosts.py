"""How much of a host's answers is taken and kept, and how long one is waited for."""

import dataclasses
import inspect
import random
import time
from collections.abc import Iterator
from copy import deepcopy
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from false_hosts import error, false_host, result
from plinth import exit_codes
from plinth.common.untrusted import Room
from plinth.model.errors import Interrupted, MissingCapability, Refused, Reported, RunError, UsageError
from plinth.model.facts import Installation, StorageFacts
from plinth.model.host import HostSpec
from plinth.model.progress import Progress
from plinth.model.server_spec import ServerSpec
from plinth.observe.host_sampler import SOURCES, HostRequest
from plinth.run.failures import Failures
from plinth.run.hosts import limits, link, remote_sampler, remote_server, undo
from plinth.run.hosts.agreement import Asked
from plinth.run.hosts.answers import Wrong, untyped
from plinth.run.hosts.calls import CallError, Method
from plinth.run.hosts.limits import LOG_PIECE_BYTES, Allowance
from plinth.run.hosts.methods import METHODS
from plinth.run.hosts.remote_host import RemoteHost
from plinth.run.hosts.remote_patroni import RemotePatroniMachine
from plinth.run.hosts.remote_sampler import RemoteSampler
from plinth.run.hosts.remote_server import RemoteServer
from plinth.run.hosts.undo import HOST_UNDO, host_step
from plinth.run.local_host import HOST as HOST_HERE
from plinth.run.run_bundle import MAX_COMMANDS_BYTES, CommandLog
from plinth.server.layout import ServerLayout
from plinth.system import cancel
from plinth.system.framed_tls import ProtocolError
from plinth.system.log_file import LogFile
from plinth.system.owner import current_user
from plinth.system.runner import CommandRecord, Runner

HOST = ("host",)
SERVER = {"call.listening": result({"port": 5432, "password": "x"})}
FULL_PIECE = "eHh4" * (LOG_PIECE_BYTES // 3) + "eA=="
"""Of 3 bytes each, and of one."""
PROGRESS = {"send": {"number": "NUMBER", "progress": ["t", 1, 2, "s", "", None, None]}}


@pytest.fixture
def connect(tmp_path, monkeypatch):
    """The link to a host that tells lies."""

    def connected(lies, first=None) -> link.HostLink:
        host = false_host(tmp_path, lies, first)
        monkeypatch.setenv("PATH", f"{host.programs}:/usr/bin:/bin")
        return host.link()

    return connected


def server_on(to: link.HostLink, folder: Path, name: str = "c") -> RemoteServer:
    installation = Installation(bindir="/none", version="18.1", major=18, origin="path")
    layout = ServerLayout(
        "run",
        name,
        installation,
        current_user(),
        ServerSpec(listen="tcp"),
        folder / "data",
        LogFile(folder / f"{name}.log"),
    )
    return RemoteServer(layout, to, name, "primary")


def test_a_log_without_end_is_cut_with_a_note(connect, tmp_path, monkeypatch) -> None:
    most_bytes = 10 * 2**20
    monkeypatch.setattr(remote_server, "MAX_LOG_BYTES", most_bytes)  # 64 MiB take a quarter of a minute here
    assert limits.MAX_LOG_BYTES == 64 * 2**20
    notes: list[str] = []
    with connect({**SERVER, "call.log_piece": result(FULL_PIECE)}) as to:
        to.note = notes.append
        server = server_on(to, tmp_path)
        server.fetch_log()
        server.fetch_log()  # there is no more room
    log = tmp_path / "c.log"
    size = log.stat().st_size
    assert most_bytes < size < most_bytes + 200
    assert (
        "cut by plinth: host db1 has more of it than the 10 MiB that are kept of one log"
        in log.read_bytes()[-200:].decode()
    )
    assert len(notes) == 1 and notes[0].startswith("c.log was cut: ")


def test_the_logs_of_a_host_are_bounded_in_sum(connect, tmp_path) -> None:
    notes: list[str] = []
    with connect({**SERVER, "call.log_piece": result(FULL_PIECE)}) as to:
        to.note, to.logs_room = notes.append, Room(2 * LOG_PIECE_BYTES + 10)
        for name in ("a", "b"):
            server_on(to, tmp_path, name).fetch_log()
    kept = sum((tmp_path / f"{name}.log").read_bytes().count(b"x") for name in ("a", "b"))
    assert 2 * LOG_PIECE_BYTES <= kept <= 2 * LOG_PIECE_BYTES + 20
    assert all("kept of all logs of a host in a run" in note for note in notes) and notes


def test_a_log_that_comes_byte_by_byte_ends_with_the_first_short_piece(connect, tmp_path) -> None:
    with connect({**SERVER, "call.log_piece": result("eA==")}) as to:
        server_on(to, tmp_path).fetch_log()
    assert (tmp_path / "c.log").read_bytes() == b"x"


def test_a_log_of_a_program_that_was_not_started_is_not_opened(connect, tmp_path) -> None:
    opened: list[str] = []

    def log_of(name: str) -> LogFile:
        opened.append(name)
        return LogFile(tmp_path / name)

    with connect({"call.logs": result({"../../etc/cron.d/x": "* * * * * root sh"})}) as to:
        with pytest.raises(ProtocolError, match=r"patroni\.logs: got a log"):
            RemotePatroniMachine(to, "c", log_of).end()
    assert opened == []


def test_the_commands_of_a_host_are_bounded_with_one_note(tmp_path) -> None:
    notes: list[str] = []
    log = CommandLog(LogFile(tmp_path / "commands.jsonl"), notes.append)
    command = CommandRecord(("true",), None, 0, 0.1, "x" * 2**20, "")
    for _ in range(40):
        log.record(command, "db1")
    log.record(CommandRecord(("echo",), None, 0, 0.1, "", ""), "db2")
    text = (tmp_path / "commands.jsonl").read_text()
    assert MAX_COMMANDS_BYTES - 2**21 < len(text) <= MAX_COMMANDS_BYTES + 200 and '"host": "db2"' in text
    assert len(notes) == 1 and "host db1 has run more commands than fit into the 32 MiB" in notes[0]


def test_a_flood_of_progress_ends_the_connection(connect) -> None:
    with (
        pytest.raises(ProtocolError, match="more progress and commands than 500 messages"),
        connect({"call.facts": [{"repeat": 100_000, "do": [PROGRESS]}, *result(None)]}) as to,
    ):
        to.call(HOST, "facts")


def test_of_much_progress_the_latest_is_reported(connect) -> None:
    told: list[Progress] = []
    last = {"send": {"number": "NUMBER", "progress": ["t", 2, 2, "s", "", None, None]}}
    with connect(
        {"call.facts": [{"repeat": 5000, "do": [PROGRESS]}, last, *error(kind="RunError", message="m")]}
    ) as to:
        with pytest.raises(RunError, match="m"):
            to.call(HOST, "facts", report=told.append)
    assert 1 <= len(told) < 1000 and told[-1].done == 2


def test_what_a_host_prints_without_end_is_not_kept(connect) -> None:
    with connect({"call.facts": [{"stderr": 20 * 2**20}, *error(kind="RunError", message="m")]}) as to:
        with pytest.raises(RunError, match="m"):
            to.call(HOST, "facts")
        assert 0 < len(to._agent.said()) <= 64 * 1024


def test_text_before_the_first_message_is_shown_with_what_to_do(connect) -> None:
    with (
        pytest.raises(
            ProtocolError, match=r'text came before its first message: "Welcome to \\x1b\[31mdb1"$'
        ) as failed,
        connect({}, first=[{"raw": b"Welcome to \x1b[31mdb1\n".hex()}]) as _,
    ):
        pytest.fail("it was greeted")
    assert "~/.bashrc" in (failed.value.hint or "") and "\x1b" not in failed.value.message


def test_a_host_that_is_silent_in_the_middle_of_a_frame_is_lost(connect) -> None:
    began = time.monotonic()
    with (
        pytest.raises(RunError, match="host db1 is lost: nothing came in time"),
        connect({"call.facts": [{"raw": "ff0000000000000041"}, {"sleep": 8}]}) as to,
    ):
        to.call(HOST, "facts")
    assert time.monotonic() - began < 20, "its lease is 5 s"


def limited(monkeypatch: pytest.MonkeyPatch, limit_s: float) -> None:
    quick = {name: dataclasses.replace(method, limit_s=limit_s) for name, method in METHODS["host"].items()}
    monkeypatch.setattr(link, "METHODS", {**METHODS, "host": quick})


def test_an_answer_that_never_comes_is_not_waited_for(connect, monkeypatch) -> None:
    limited(monkeypatch, 0.3)
    with connect({"call.facts": []}) as to:
        with pytest.raises(RunError, match=r"host db1 does not answer: for 0\.3 s"):
            to.call(HOST, "facts")
        assert to.clock().error_ns >= 0, "the connection goes on"


def test_progress_without_end_is_waited_for_until_the_work_is_cancelled(connect, monkeypatch) -> None:
    monkeypatch.setattr(link, "_ANSWER_TIMEOUT_S", 0.3)
    limited(monkeypatch, 5)
    told: list[Progress] = []

    def report(progress: Progress) -> None:
        told.append(progress)
        token.cancel(Interrupted("Ctrl-C"))

    slow = [{"repeat": 160, "do": [PROGRESS, {"sleep": 0.05}]}]
    with connect({"call.facts": slow}) as to:
        began = time.monotonic()
        with pytest.raises(Interrupted), cancel.scope() as token:
            to.call(HOST, "facts", report=report)
        assert time.monotonic() - began < 5, "progress goes on for 8 s"
    assert len(told) == 1


@pytest.mark.parametrize(
    ("kind", "expected", "code"),
    [
        ("UsageError", UsageError, exit_codes.USAGE),
        ("MissingCapability", MissingCapability, exit_codes.MISSING),
        ("Refused", Refused, exit_codes.REFUSED),
        ("RunError", RunError, exit_codes.FAILED),
        ("Interrupted", RunError, exit_codes.FAILED),
    ],
)
def test_a_failure_there_is_a_failure_here(connect, kind, expected, code) -> None:
    with connect({"call.facts": error(kind=kind, message="m", details=["x"])}) as to:
        with pytest.raises(Reported) as failed:
            to.call(HOST, "facts")
    assert type(failed.value) is expected and failed.value.exit_code == code
    assert (failed.value.where, failed.value.details) == ("host db1", ("x",))


def test_every_class_of_error_has_an_exit_code_of_the_table_that_is_no_success() -> None:
    kinds: Any = CallError.model_fields["kind"].annotation
    for kind in kinds.__args__:
        raised = CallError(kind=kind, message="m").error("db1")
        assert raised.exit_code in vars(exit_codes).values() and raised.exit_code != exit_codes.OK
    odd = Reported("")
    odd.exit_code = 0
    assert CallError.of(odd).error("db1").exit_code == exit_codes.FAILED


def test_every_method_of_the_table_has_a_result_that_is_checked() -> None:
    methods = [method for of_kind in METHODS.values() for method in of_kind.values()]
    assert len(methods) > 100 and all(untyped(method.hints["return"]) is None for method in methods)


VALUES = (
    None,
    True,
    -1,
    0,
    1,
    0.5,
    2**64,
    -(10**30),
    "",
    "1",
    "\x1b[2J",
    "x" * 2**21,
    [],
    {},
    [[]],
    {"a": 1},
    [None] * 30,
)


def ways(document: object, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value of a document."""
    yield way
    inner = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in inner:
        yield from ways(value, (*way, key))


def changed(document: Any, way: tuple[Any, ...], value: object) -> Any:
    if not way:
        return value
    copy = deepcopy(document)
    reduce(lambda place, key: place[key], way[:-1], copy)[way[-1]] = value
    return copy


@pytest.mark.parametrize("name", ["facts", "owner", "diskstats", "work_root", "load_average", "examine"])
def test_any_value_in_any_place_of_a_result_is_taken_or_refused(name: str) -> None:
    asked = {"storages": (), "asked": {}, "measures_a_server": False, "load_average": None} if name == "examine" else {}
    method = METHODS["host"][name]
    usual = method.call(HOST_HERE, asked, str)
    assert method.result(Asked(HOST, asked), usual) is not None
    pairs = [(way, value) for way in ways(usual) for value in VALUES]
    refused = 0
    for way, value in random.Random(11).sample(pairs, min(len(pairs), 300)):
        try:
            method.result(Asked(HOST, asked), changed(usual, way, value))
        except Wrong as wrong:
            refused += 1
            assert len(str(wrong)) < 500 and "\x1b" not in str(wrong)
    assert refused > len(VALUES) / 2


class Model(Room):
    """Something that the table could name."""

    def nothing_said(self):
        pass

    def anything(self) -> Any:
        return 1

    def any_table(self) -> dict:
        return {}

    def within(self) -> tuple[int, list[dict[str, Any]]]:
        return 1, []


@pytest.mark.parametrize("name", ["nothing_said", "anything", "any_table", "within"])
def test_a_method_whose_result_cannot_be_checked_is_not_taken_into_the_table(name) -> None:
    with pytest.raises(TypeError, match=f"Model.{name}: a host's result must have a type"):
        Method.of(inspect.getattr_static(Model, name), {}, 1.0, "work")


REQUEST = HostRequest(t0_ns=0, interval_s=60, devices=())


def begun(readings: object) -> dict[str, list[dict[str, Any]]]:
    names = [{"name": name, "sparse": False} for name in SOURCES[:1]]
    return {"call.begin": result(names), "call.readings": result(readings)}


@pytest.mark.parametrize(
    ("readings", "said"),
    [
        ({"../x": []}, 'sampler.readings: got "../x"; asked was for host_cpu'),
        ({SOURCES[0]: [[1, []]]}, "got an instant"),
        ({SOURCES[0]: [[2**62, []]]}, "got an instant"),
    ],
)
def test_readings_of_what_was_not_asked_for_or_of_another_time_end_the_connection(connect, readings, said) -> None:
    with connect(begun(readings)) as to:
        sampler = RemoteSampler(to, REQUEST)
        assert not sampler._fetch()
        assert to.violation is not None and said in to.violation.message
        with pytest.raises(ProtocolError, match="answered against the protocol"):
            to.call(HOST, "facts")


def test_sources_that_are_none_are_refused(connect) -> None:
    with connect({"call.begin": result([{"name": "shell", "sparse": False}])}) as to:
        with pytest.raises(ProtocolError, match=r"sampler\.begin: got"):
            RemoteSampler(to, REQUEST)


def test_more_readings_than_a_trial_keeps_are_a_gap(connect, monkeypatch) -> None:
    monkeypatch.setattr(remote_sampler, "MAX_READINGS", 5)
    now_ns = time.monotonic_ns()
    with connect(begun({SOURCES[0]: [[now_ns, [["a", "b", 1.0]] * 3]]})) as to:
        sampler = RemoteSampler(to, REQUEST)
        assert sampler._fetch() and not sampler._fetch()
        assert len(sampler.series[SOURCES[0]]) == 1 and to.violation is None
        (gap,) = (gap for gap in sampler.outages.gaps(now_ns))
        assert "more than the 5 readings that are kept of one trial" in gap.reason


def test_a_path_that_another_machine_has_named_is_not_looked_at_here(tmp_path) -> None:
    here = StorageFacts(
        name="here", kind="directory", path=str(tmp_path), filesystem="ext4", mount_options=(), total_bytes=1, free_bytes=1,
        volatile=False,
    )  # fmt: skip
    there = here.model_copy(update={"name": "there", "host": "db1"})
    found = HOST_HERE.storage_of(str(tmp_path), (there,))
    assert isinstance(found, StorageFacts) and found.name != "there"
    assert HOST_HERE.storage_of(str(tmp_path), (there, here)) == "here"


def test_of_the_storages_of_a_run_a_host_is_asked_for_its_own(connect) -> None:
    with connect({"call.storage_of": result("disk")}) as to:
        asked = RemoteHost(to, to._spec)
        disk = StorageFacts.model_validate(
            {"name": "disk", "kind": "directory", "path": "/x", "filesystem": "ext4", "mount_options": [], "total_bytes": 1,
             "free_bytes": 1, "volatile": False, "host": "db1"}
        )  # fmt: skip
        assert asked.storage_of("/x", [disk]) == "disk"
        with pytest.raises(ProtocolError, match="asked was for one of no storage"):
            asked.storage_of("/x", [disk.model_copy(update={"host": None})])


def test_a_host_that_answered_against_the_protocol_fails_the_run() -> None:
    failures = Failures()
    assert failures.first() is None
    failures.hosts["db1"] = ProtocolError("host db1 answered against the protocol: x")
    found = failures.first()
    assert found is not None and found.exit_code == exit_codes.FAILED
    assert [(one.what, one.exit_code) for one in failures.recorded()] == [("host db1", exit_codes.FAILED)]


def clean_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    """Run `plinth clean` on a host, which is this shell command."""
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\n{shell}\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    step = host_step("db1", HostSpec(address="ssh://db1"), "run", None)
    assert step.undo is not None
    HOST_UNDO[step.undo.kind].undo(step.undo, Runner())


def test_what_plinth_clean_of_a_host_prints_is_bounded(tmp_path, monkeypatch) -> None:
    with pytest.raises(RunError, match=r"wrote more than 1\.0 MiB of output and was ended"):
        clean_there(tmp_path, monkeypatch, "exec yes")


def test_a_host_on_which_the_run_never_ends_is_given_up(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(undo, "_WAIT_S", 0.5)
    monkeypatch.setattr(undo, "_LOOK_AGAIN_S", 0.1)
    with pytest.raises(Refused, match="could not be undone from here"):
        clean_there(tmp_path, monkeypatch, "echo 'run is still going' >&2; exit 4")


@pytest.mark.parametrize("code", [1, 2, 5, 99, 130, 141, 255])
def test_any_other_end_of_plinth_clean_there_is_a_failure(tmp_path, monkeypatch, code) -> None:
    with pytest.raises(RunError) as failed:
        clean_there(tmp_path, monkeypatch, f"exit {code}")
    assert failed.value.exit_code == exit_codes.FAILED


def test_an_allowance_comes_back_with_time() -> None:
    now_s = 0.0
    allowance = Allowance(10, 100, lambda: now_s)
    assert allowance.allows(100) and not allowance.allows(1)
    now_s = 1.0
    assert allowance.allows(9) and not allowance.allows(5)
