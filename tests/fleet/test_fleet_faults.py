"""A fleet of which something fails: the trial says what, and nothing is left of any party."""

import contextlib
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from children import ChildResult
from fleets import HOSTS, MakeConfig, MakeFleet, driver_processes, running_agents
from jumping_clock import JumpingClock
from own_sshd import Sshd
from plinth.fleet import agent as agent_of_fleet
from plinth.fleet.agent import serve
from plinth.fleet.check import check_fleet
from plinth.fleet.executors import executor_of
from plinth.fleet.executors.executor import NotStarted
from plinth.fleet.load import FleetLoad
from plinth.fleet.protocol import Done, Link, Polled, Request
from plinth.model.connection import Connection
from plinth.model.errors import MissingCapability, RunError
from plinth.model.fleet import FleetSpec
from plinth.system.framed_tls import Disconnected, parsed
from plinth.system.log_file import LogFile
from plinth.system.runner import Runner
from waiting import wait_until


@pytest.mark.long
@pytest.mark.parametrize(
    ("spec", "sent"),
    [
        ("local", signal.SIGSTOP),
        ("ssh", signal.SIGKILL),
        pytest.param("ssh", signal.SIGSTOP, marks=pytest.mark.long),
        pytest.param("ray", signal.SIGSTOP, marks=pytest.mark.long),
    ],
    indirect=["spec"],
)
def test_an_agent_that_is_killed_or_stopped_is_named(
    spec: FleetSpec, fleet: MakeFleet, config: MakeConfig, sent: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plinth.fleet.asking.ANSWER_TIMEOUT_S", 1.0)
    before = running_agents()
    load = fleet(spec, config(duration_s=600.0))
    load.start()
    assert not load.wait(0.3)
    victim = max(running_agents() - before)
    os.kill(victim, sent)
    try:
        with pytest.raises(RunError, match=r"the agent on machine \S+ is lost") as failed:
            while not load.wait(0.5):
                pass
        expected = "nothing came in time" if sent == signal.SIGSTOP else "the connection has ended"
        assert expected in str(failed.value)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGCONT)
    with pytest.raises(RunError):
        load.result()


def test_clients_of_a_driver_end_with_their_agent(config: MakeConfig, tmp_path: Path) -> None:
    before, clients = running_agents(), driver_processes()
    executor = executor_of(FleetSpec(executor="local", machines=2), Runner(), LogFile(tmp_path / "log"))
    load = FleetLoad(config("SELECT pg_sleep(0.01);", duration_s=600.0), executor, "psycopg")
    load.start()
    assert not load.wait(0.3)
    assert len(driver_processes() - clients) == 2 * (1 + 3)
    os.kill(max(running_agents() - before), signal.SIGKILL)
    with pytest.raises(RunError, match=r"the agent on machine local-\d is lost"):
        while not load.wait(0.5):
            pass
    wait_until(lambda: driver_processes() <= clients)


def test_a_machine_that_does_not_reach_the_server_is_named(
    fleet: MakeFleet, config: MakeConfig, connection: Connection
) -> None:
    spec = FleetSpec(executor="local", machines=1)
    load = fleet(spec, config(connection=replace(connection, host="127.0.0.1", port=1)))
    with pytest.raises(RunError, match="refused") as failed:
        load.start()
    assert failed.value.where is not None and failed.value.where.startswith("machine ")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"host": "127.0.0.1", "port": 1},
            r"it does not reach the server \(cannot connect to 127.0.0.1:1: .*\?\): look at listen_addresses and the firewall",
        ),
        (
            {"user": "nosuch"},
            r"the server does not let it in \(cannot log in .*\): look at user, password and pg_hba.conf of the server",
        ),
    ],
)
def test_a_check_says_why_a_machine_does_not_reach_the_server_and_where_to_look(
    tmp_path: Path, connection: Connection, changes: dict[str, object], words: str
) -> None:
    executor = executor_of(FleetSpec(executor="local", machines=1), Runner(), LogFile(tmp_path / "log"))
    (found,) = check_fleet(executor, replace(connection, **changes))
    (problem,) = found.problems
    assert re.match(words, problem), problem


def test_all_hosts_that_cannot_be_reached_are_named(sshd: Sshd, tmp_path: Path) -> None:
    hosts = ("nosuch1.invalid", "client1", "nosuch2.invalid")
    spec = FleetSpec(executor="ssh", hosts=hosts, command=str(Path(sys.executable).with_name("plinth")))
    with pytest.raises(RunError, match=r"no agent could be started on nosuch1.invalid: ") as failed:
        check_fleet(executor_of(spec, Runner(), LogFile(tmp_path / "log"), sshd.config), None)
    (other,) = failed.value.details
    assert "no agent could be started on nosuch2.invalid" in other
    assert failed.value.hint is not None and "a name that this machine can look up" in failed.value.hint


def test_another_version_is_refused_before_anything_connects(
    fleet: MakeFleet, config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plinth.fleet.check.__version__", "99.0")
    with pytest.raises(MissingCapability, match="other versions than this one") as refused:
        fleet(FleetSpec(executor="local", machines=1), config()).start()
    assert [line.partition(":")[0] for line in refused.value.details] == ["this machine", "local-1"]


def test_a_host_without_plinth_says_what_its_shell_said(sshd: Sshd, fleet: MakeFleet, config: MakeConfig) -> None:
    spec = FleetSpec(executor="ssh", hosts=("client1",), command="/nowhere/plinth")
    with pytest.raises(RunError, match="the agent on machine client1 is lost") as failed:
        fleet(spec, config(), sshd.config).start()
    assert any("/nowhere/plinth" in line for line in failed.value.details)
    assert failed.value.hint is not None
    command = failed.value.hint.split("`")[1]
    assert command == f"ssh -F {sshd.config} client1 /nowhere/plinth --version"
    tried = subprocess.run(shlex.split(command), capture_output=True, text=True, timeout=30, check=False)
    assert "/nowhere/plinth" in tried.stderr


@pytest.mark.parametrize(
    ("key", "value", "words", "hint"),
    [
        ("UserKnownHostsFile", "none", "Host key verification failed", "client1` once, and compare the key"),
        ("UserKnownHostsFile", "/dev/null", "Host key verification failed", "client1` once, and compare the key"),
        (
            "UserKnownHostsFile",
            "/dev/null\n  StrictHostKeyChecking no",
            "Host key verification failed",
            "client1` once, and compare the key",
        ),
        ("IdentityFile", "/nowhere/key", "Permission denied", "authorized_keys"),
        ("Port", "1", "Connection refused", "start sshd there"),
    ],
)
def test_a_host_that_is_not_known_or_does_not_know_us_is_refused(
    sshd: Sshd, tmp_path: Path, key: str, value: str, words: str, hint: str
) -> None:
    lines = sshd.config.read_text().splitlines()
    other = tmp_path / "config"
    other.write_text("\n".join(f"  {key} {value}" if line.strip().startswith(key) else line for line in lines))
    executor = executor_of(FleetSpec(executor="ssh", hosts=("client1",)), Runner(), LogFile(tmp_path / "log"), other)
    with pytest.raises(NotStarted, match=f"no agent could be started on client1: .*{words}") as refused:
        check_fleet(executor, None)
    assert refused.value.hint is not None and hint in refused.value.hint


def test_a_host_whose_key_has_changed_is_refused_with_a_warning(sshd: Sshd, tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "other"], check=True)
    known = tmp_path / "known_hosts"
    known.write_text(f"[127.0.0.1]:{sshd.port} {(tmp_path / 'other.pub').read_text()}")
    config = tmp_path / "config"
    config.write_text(sshd.config.read_text().replace(str(sshd.known_hosts), str(known)))
    executor = executor_of(FleetSpec(executor="ssh", hosts=("client1",)), Runner(), LogFile(tmp_path / "log"), config)
    with pytest.raises(NotStarted, match="Host key verification failed") as refused:
        check_fleet(executor, None)
    assert refused.value.hint is not None and "is not the one in known_hosts" in refused.value.hint


def test_a_configuration_of_the_user_that_asks_or_forwards_changes_nothing(sshd: Sshd, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    config = tmp_path / "config"
    config.write_text(
        f"PermitLocalCommand yes\nLocalCommand touch {ran}\nLocalForward {tmp_path}/forwarded {tmp_path}/nowhere\n"
        f"RemoteCommand touch {ran}\nForwardAgent yes\nBatchMode no\nLogLevel QUIET\n{sshd.config.read_text()}"
    )
    spec = FleetSpec(executor="ssh", hosts=("client1",), command=str(Path(sys.executable).with_name("plinth")))
    (found,) = check_fleet(executor_of(spec, Runner(), LogFile(tmp_path / "log"), config), None)
    assert found.problems == ()
    assert not ran.exists() and not (tmp_path / "forwarded").exists()


def test_a_host_is_reached_by_way_of_another(sshd: Sshd, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        f"Host client1\n  ProxyCommand ssh -F {sshd.config} -W 127.0.0.1:%p client2\n{sshd.config.read_text()}"
    )
    spec = FleetSpec(executor="ssh", hosts=("client1",), command=str(Path(sys.executable).with_name("plinth")))
    (found,) = check_fleet(executor_of(spec, Runner(), LogFile(tmp_path / "log"), config), None)
    assert found.problems == ()


@pytest.mark.long
def test_a_clock_that_jumps_while_the_load_runs_excludes_the_trial(
    sshd: Sshd, fleet: MakeFleet, config: MakeConfig, tmp_path: Path
) -> None:
    clock = JumpingClock(tmp_path)
    spec = FleetSpec(executor="ssh", hosts=HOSTS[:2], command=str(clock.command))
    load = fleet(spec, config(duration_s=2.0), sshd.config)
    load.start()
    assert not load.wait(0.5)
    clock.jump(100_000_000)
    while not load.wait(0.5):
        pass
    trial = load.result().fleet
    assert trial is not None and trial.excluded is not None
    assert re.match(r"fleet clocks: that of client\d moved by \d+\.\d ms against the coordinator's", trial.excluded)
    other, moved = sorted(one.clock_moved_ns or 0 for one in trial.machines)
    assert other < 5_000_000 and 90_000_000 < moved <= 101_000_000


@contextlib.contextmanager
def _served() -> Iterator[tuple[Link, threading.Thread, list[int]]]:
    """An agent in a thread of its own, and its coordinator's end."""
    ours, theirs = socket.socketpair()
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(serve(theirs)))
    thread.start()
    link = Link(ours)
    yield link, thread, codes
    link.close()
    thread.join(20)
    assert not thread.is_alive()


def _ask(link: Link, request: Request, model):
    link.send(request.model_dump_json().encode())
    return parsed(model, link.receive(10).document)


@pytest.mark.parametrize("ending", ["lease", "connection"])
def test_an_agent_without_its_coordinator_ends_its_load(
    config: MakeConfig, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setattr(agent_of_fleet, "LEASE_S", 1.0)
    part = config(duration_s=600.0, clients=2, part={"number": 0, "of": 1})
    with _served() as (link, thread, codes):
        assert _ask(link, Request(kind="prepare", load=part), Done).refused is None
        wait_until(lambda: _ask(link, Request(kind="poll"), Polled).state == "connected")
        late = _ask(link, Request(kind="go", at_ns=time.monotonic_ns() - 1), Done).refused
        assert late is not None and "it is late" in late
        assert _ask(link, Request(kind="go", at_ns=time.monotonic_ns() + 100_000_000), Done).refused is None
        assert _ask(link, Request(kind="poll"), Polled).state == "running"
        if ending == "connection":
            link.close()
        thread.join(20)
        assert codes == ([1] if ending == "lease" else [0])


def test_requests_out_of_order_are_refused_and_garbage_ends_the_agent() -> None:
    with _served() as (link, _, codes):
        for kind in ("go", "measure", "stop", "collect", "prepare", "reach", "copy", "ledger"):
            assert _ask(link, Request(kind=kind), Done).refused
        assert _ask(link, Request(kind="poll"), Polled).state == "idle"
        link.send(b'{"kind": "shell"}')
        with pytest.raises(Disconnected):
            link.receive(10)
    assert codes == [1]


def test_more_than_any_message_may_have_is_not_waited_for() -> None:
    with _served() as (link, _, codes):
        link.socket.send(b"\xff" * 8)
        with pytest.raises(Disconnected):
            link.receive(10)
    assert codes == [1]


@pytest.mark.parametrize("spec", ["ssh"], indirect=True)
def test_agents_end_with_a_coordinator_that_is_killed(
    spec: FleetSpec, fleet: MakeFleet, config: MakeConfig, in_child: Callable[..., ChildResult]
) -> None:
    before = running_agents()

    def run_and_die() -> None:
        load = fleet(spec, config(duration_s=600.0))
        load.start()
        assert not load.wait(0.3)
        assert len(running_agents() - before) == 3
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(run_and_die).signal == signal.SIGKILL
    wait_until(lambda: running_agents() <= before)


@pytest.mark.long
@pytest.mark.parametrize("spec", ["ssh"], indirect=True)
def test_an_agent_that_is_cut_off_ends_within_its_lease(spec: FleetSpec, fleet: MakeFleet, config: MakeConfig) -> None:
    """What carries its connection is stopped, and the agent itself is not."""
    before = running_agents()
    load = fleet(spec, config(duration_s=600.0))
    load.start()
    assert not load.wait(0.3)
    victim = max(running_agents() - before)
    session = _session_of(victim)
    os.kill(session, signal.SIGSTOP)
    try:
        with pytest.raises(RunError, match=r"the agent on machine client\d is lost: nothing came in time"):
            while not load.wait(0.5):
                pass
        wait_until(lambda: running_agents() <= before)
    finally:
        os.kill(session, signal.SIGCONT)


def _session_of(agent: int) -> int:
    """The process of sshd that an agent's connection goes through."""
    process = agent
    while True:
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        if Path(f"/proc/{process}/comm").read_text().startswith("sshd"):
            return process
