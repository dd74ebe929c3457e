"""Three etcds of a trial on this machine: they agree, outlive one of them, and answer nobody without the trial's key."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from plinth.run.undo import UNDO_HANDLERS
from plinth.server.port import LOCALHOST
from plinth.server.replication.etcd import EtcdMember
from plinth.server.replication.etcd_client import EtcdClient
from plinth.server.replication.patroni_machine import LocalPatroniMachine, patroni_folder
from plinth.system.certificates import new_identity
from plinth.system.framed_tls import tls_context
from plinth.system.http import HttpsDaemon
from plinth.system.journal import Journal
from plinth.system.log_file import LogFile
from plinth.system.owner import server_owner
from plinth.system.paths import work_dir
from plinth.system.runner import CommandRecord, Runner
from waiting import wait_until

IDENTITY = new_identity("plinth", (LOCALHOST,))
OTHERS = new_identity("plinth", (LOCALHOST,))
COMMANDS: list[CommandRecord] = []


@pytest.fixture
def machine(scratch: Path, state_dir: Path) -> Iterator[LocalPatroniMachine]:
    journal, owner = Journal.create("etcds", UNDO_HANDLERS), server_owner()
    folder = patroni_folder(journal.label, "c")
    made = LocalPatroniMachine(
        "c", folder, {}, owner, lambda name: LogFile(scratch / name), Runner(COMMANDS.append), journal
    )
    made.begin(IDENTITY.certificate, IDENTITY.key)
    yield made
    made.end()
    journal.close()
    assert not folder.exists() and list(work_dir().iterdir()) == []


def _started(machine: LocalPatroniMachine) -> tuple[EtcdMember, ...]:
    members = tuple(
        EtcdMember(
            name=f"{number}",
            address=LOCALHOST,
            client_port=machine.free_port(LOCALHOST),
            peer_port=machine.free_port(LOCALHOST),
        )
        for number in (1, 2, 3)
    )
    for member in members:
        machine.start_etcd(member, members)
    return members


def test_two_of_three_go_on_and_nobody_else_is_answered(machine: LocalPatroniMachine, scratch: Path) -> None:
    members = _started(machine)
    context = tls_context("client", IDENTITY, IDENTITY.certificate)
    client = EtcdClient(members, context)
    for member in members:
        wait_until(lambda member=member: client.is_healthy(member.name), timeout_s=60)
    client.put("key", "value")
    first = members[0]
    for refused in (tls_context("client", None, IDENTITY.certificate), tls_context("client", OTHERS)):
        assert HttpsDaemon(LOCALHOST, first.client_port, refused).status("/health") is None
        assert HttpsDaemon(LOCALHOST, first.peer_port, refused).status("/members") is None
    machine.kill(first.program)
    assert not machine.runs(first.program) and machine.runs(members[1].program)
    wait_until(lambda: client.get("key") == "value", timeout_s=60)
    wait_until(lambda: client.is_healthy(members[1].name), timeout_s=60)  # it has a leader
    client.put("key", "later")
    machine.start_etcd(first, members)
    again = EtcdClient([first], context)
    wait_until(lambda: again.is_healthy(first.name), timeout_s=60)
    wait_until(lambda: again.get("key") == "later", timeout_s=60)
    said = "".join(log.read_text(errors="replace") for log in scratch.glob("*.log"))
    words = " ".join(word for command in COMMANDS for word in command.argv)
    assert "etcd-1" in words and "PRIVATE KEY" not in said + words
