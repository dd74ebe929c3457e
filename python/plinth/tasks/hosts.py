"""`plinth host check`: look at the hosts of an experiment, and at what keeps it from running on them."""

import socket
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from plinth.experiment import ParsedExperiment
from plinth.fleet.asking import ClockOffset
from plinth.model.doctor import Examination
from plinth.model.errors import PlinthError, UsageError
from plinth.model.facts import HostFacts
from plinth.run.checks.obstacles import find_obstacles
from plinth.run.hosts.connect import start_agents
from plinth.run.hosts.protocol import Hello
from plinth.run.hosts.remote_host import RemoteHost
from plinth.run.interrupt import InterruptGuard
from plinth.run.planning.make_plan import make_plan
from plinth.system.owner import Owner
from plinth.system.process import boot_id

_REACH_TIMEOUT_S = 5.0


class HostFound(NamedTuple):
    """What was found of one host, and what to know about it."""

    name: str
    hello: Hello
    facts: HostFacts
    owner: Owner
    clock: ClockOffset
    listen_address: str | None
    examination: Examination
    notes: tuple[str, ...]


class HostsFound(NamedTuple):
    """What was found of the hosts on which an agent ran, why none could be started on the others, and what keeps the experiment from
    running on them; None: nothing does, or not all of them could be asked."""

    hosts: list[HostFound]
    not_started: dict[str, PlinthError]
    error: PlinthError | None


def check_hosts(
    loaded: ParsedExperiment, bundle: Path, ssh_config: Path | None = None, destroy: Collection[str] | None = None
) -> HostsFound:
    """Start an agent on each host, ask it, plan the experiment there, and end the agents. Nothing is changed there."""
    specs = loaded.experiment.host
    if not specs:
        raise UsageError(
            "the experiment has no hosts", where=loaded.file, hint='[host.db1] with address = "ssh://db1" describes one'
        )
    found: list[HostFound] = []
    boots = {boot_id(): "this machine"}
    error = None
    with ExitStack() as stack, InterruptGuard(lambda _: None):
        hosts, not_started = start_agents(stack, specs, ssh_config)
        for host in hosts.values():
            if isinstance(host, RemoteHost):
                found.append(_found(host, boots))
        if not not_started:
            used = {name: host for name, host in hosts.items() if name is None or name in loaded.experiment.used_hosts}
            try:
                plan = make_plan(loaded, run_id="RUN", bundle=bundle, destroy=destroy, hosts=used)
                error = find_obstacles(plan, bundle, loaded.connections, destroy, used).error()
            except PlinthError as reason:
                error = reason
    return HostsFound(found, not_started, error)


def _found(host: RemoteHost, boots: dict[str, str]) -> HostFound:
    """Ask a host; `boots` are the machines that were asked before by their boot ids, to which it is added."""
    hello, facts, notes = host.link.hello, host.facts(), []
    assert hello is not None, "it has answered"
    if (same := boots.setdefault(hello.boot_id, f"host {host.link.name}")) != f"host {host.link.name}":
        notes.append(f"it is the same machine as {same}: they share processors, memory and disks")
    if not facts.can_mount:
        notes.append("no right to mount there: of storages only directory and tmpfs can be made")
    if host.listen_address is None:
        notes.append("by which address servers there are reached is not known: give listen_address")
    elif (reason := _unreached(host, host.listen_address)) is not None:
        notes.append(
            f"a port of {host.listen_address} there is not reached from here ({reason}): let the ports of servers through "
            "the firewall, or give another listen_address"
        )
    examination = host.examine((), {}, measures_a_server=True, load_average=None)
    clock = host.link.clock()
    return HostFound(host.link.name, hello, facts, host.owner(), clock, host.listen_address, examination, tuple(notes))


def _unreached(host: RemoteHost, address: str) -> str | None:
    """Return why a port that the host listens on is not reached from here."""
    port = host.open_port(address)
    try:
        with socket.create_connection((address, port), _REACH_TIMEOUT_S):
            return None
    except OSError as error:
        return error.strerror or str(error)
    finally:
        host.close_port()
