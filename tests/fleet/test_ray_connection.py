"""What needs no cluster of Ray's executor: who gets to an agent, what is asked for, and what is said where Ray is not installed."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from both import Both
from fleets import running_agents
from plinth.fleet.executors import executor_of
from plinth.fleet.executors.executor import NotStarted
from plinth.fleet.executors.ray import _connected
from plinth.fleet.executors.ray_driver import _of_own_users
from plinth.fleet.executors.ray_messages import Placed, Versions
from plinth.fleet.executors.ray_node import RayNode
from plinth.fleet.protocol import Hello, Link, Request
from plinth.model.errors import MissingCapability, RunError
from plinth.model.fleet import FleetSpec
from plinth.system.certificates import Identity, new_identity
from plinth.system.framed_tls import Disconnected, connect_tls, parsed, tls_context
from plinth.system.log_file import LogFile
from plinth.system.runner import Runner
from waiting import wait_until

HOST = "127.0.0.1"


@contextlib.contextmanager
def _joined(placed: Placed, own: Identity) -> Iterator[Link]:
    with contextlib.ExitStack() as links:
        (link,) = _connected([placed], own, links)
        yield link


def _placed(node: RayNode, own: Identity) -> Placed:
    listening = node.listen(HOST, own.certificate, timeout_s=60)
    versions = Versions(plinth=listening["plinth"], python=listening["python"], ray=listening["ray"])
    return Placed(
        name="node", address=HOST, port=listening["port"], certificate=listening["certificate"], versions=versions
    )


def test_the_coordinator_gets_to_the_agent_and_nobody_else_does() -> None:
    own, stranger, node = new_identity(), new_identity(), RayNode()
    before = running_agents()
    placed = _placed(node, own)
    for identity in (stranger, None):
        context = tls_context("client", identity)
        with pytest.raises(Disconnected):  # with TLS 1.3 a certificate is refused after the handshake
            Link(connect_tls(placed.address, placed.port, context, 10)).receive(10)
    assert running_agents() <= before, "no agent is started for a stranger"
    with _joined(placed, own) as link:
        link.send(Request(kind="hello").model_dump_json().encode())
        assert parsed(Hello, link.receive(20).document).python == placed.versions.python
        (agent,) = running_agents() - before
    assert node.ended() == ""
    assert not Path(f"/proc/{agent}").exists()


def test_a_coordinator_takes_no_other_for_the_agent() -> None:
    own, node = new_identity(), RayNode()
    placed = _placed(node, own)
    other = placed.model_copy(update={"certificate": new_identity().certificate})
    with pytest.raises(NotStarted, match="certificate verify failed"), _joined(other, own):
        raise AssertionError("it was taken for the agent")
    with _joined(placed, own):
        pass
    node.ended()


def test_an_agent_that_is_killed_is_said_to_be() -> None:
    own, node = new_identity(), RayNode()
    before = running_agents()
    with _joined(_placed(node, own), own):
        wait_until(lambda: running_agents() - before)
        (agent,) = running_agents() - before
        os.kill(agent, signal.SIGKILL)
        assert node.ended() == "it was killed by signal 9"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"executor": "ray"}, "needs machines"),
        ({"executor": "ray", "ray_address": "ray://head:10001"}, "needs machines"),
        ({"executor": "ray", "ray_address": "ray://head", "machines": 2}, 'allowed: "auto"'),
        ({"executor": "ray", "ray_address": "ray", "machines": 2}, 'allowed: "auto"'),
        ({"executor": "ssh", "ray_address": "ray://head:1", "hosts": ["a"]}, 'ray_address: only with executor = "ray"'),
        ({"executor": "ray", "machines": 2, "hosts": ["a"]}, 'only with executor = "ssh"'),
    ],
)
def test_what_a_fleet_on_ray_has_to_say(keys: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        FleetSpec.model_validate(keys)


REFUSED = [
    ("--fleet=auto", "--fleet=auto does not say how many machines"),
    ("--fleet=ray://head:10001", "does not say how many machines"),
    ("--fleet=0@auto", "--fleet must be in range 1..1000"),
    ("--fleet=3@auto", "got 1 for -c/--client with a fleet of 3 machines"),
    ("--fleet=1@auto --fleet-command=plinth", "machines of a Ray cluster need none"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED, ids=[words for words, _ in REFUSED])
def test_what_bench_refuses_before_anything_connects(words: str, message: str) -> None:
    refused = Both({"PGHOST": "/nonexistent", "PGUSER": "nobody"}).plinth(*words.split())
    assert (refused.code, refused.out) == (1, "") and message in refused.err


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    refused = Both({"PGHOST": "/nonexistent", "PGUSER": "nobody"}).plinth("--fleet=1@auto")
    assert refused.code == 1 and "--fleet on Ray needs the Python package ray, which is not installed" in refused.err
    assert "hint: pip install 'pgplinth[fleet]'" in refused.err
    with pytest.raises(MissingCapability, match="a fleet on Ray needs the Python package ray"):
        executor_of(FleetSpec(executor="ray", machines=1), Runner(), LogFile(tmp_path / "log"))


def test_root_joins_no_cluster_of_this_machine_that_another_user_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert os.geteuid() == 0, "what is tested is what root must not do"
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(RunError, match="no Ray cluster answers at 'auto'"):
        _of_own_users("auto")
    file = tmp_path / "ray" / "ray_current_cluster"
    file.parent.mkdir()
    file.write_text("192.0.2.1:6379\n")
    assert _of_own_users("auto") == "192.0.2.1:6379"
    for anothers in (file, file.parent):
        os.chown(anothers, 65534, -1)
        with pytest.raises(RunError, match="belongs to user id 65534") as refused:
            _of_own_users("auto")
        assert "RAY_ADDRESS" in str(refused.value.hint)
        monkeypatch.setenv("SUDO_UID", "65534")
        assert _of_own_users("auto") == "192.0.2.1:6379"
        monkeypatch.delenv("SUDO_UID")
        os.chown(anothers, 0, -1)
    os.chown(file, 65534, -1)
    assert _of_own_users("ray://head:10001") == "ray://head:10001"
    monkeypatch.setenv("RAY_ADDRESS", "192.0.2.2:6379")
    assert _of_own_users("auto") == "auto"
