"""Patroni as the cluster manager of a failover: one for each server, on the servers as they run, and an etcd on each machine.

A Patroni that finds a running server takes it over as it is, and starts, promotes and rewinds it from then on.
"""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, Literal

from plinth.model.errors import PlinthError, RunError
from plinth.model.patroni import ETCD, PatroniSpec, etcd_machines
from plinth.model.standby import PRIMARY
from plinth.server.layout import SUPERUSER
from plinth.server.node import Server
from plinth.server.replication.etcd import EtcdMember
from plinth.server.replication.etcd_client import EtcdClient
from plinth.server.replication.patroni_machine import SCOPE, PatroniMachine, PatroniMember
from plinth.server.replication.promotion import streams_from
from plinth.system import cancel
from plinth.system.certificates import new_identity
from plinth.system.database import connect, database_errors
from plinth.system.framed_tls import tls_context
from plinth.system.http import HttpsDaemon

READY_TIMEOUT_S = 120.0
_LOOK_AGAIN_S = 0.02
_LOG_LINES = 20
_SAME_EVERYWHERE = (
    "max_connections",
    "max_locks_per_transaction",
    "max_prepared_transactions",
    "max_replication_slots",
    "max_wal_senders",
    "max_worker_processes",
    "track_commit_timestamp",
    "wal_level",
    "wal_log_hints",
)
"""Settings that Patroni gives servers on their command line."""


class PatroniCluster:
    """The Patronis of the servers of one cluster, each by its node's name. Call `end` in any case.

    `places` are the machines of the nodes, `machines` those of the nodes and of the etcds, each with the address at which its
    programs are reached.
    """

    def __init__(
        self,
        servers: Mapping[str, Server],
        places: Mapping[str, str | None],
        machines: Mapping[str | None, tuple[PatroniMachine, str]],
        spec: PatroniSpec,
        *,
        by_rewind: bool,
    ) -> None:
        self._servers = dict(servers)
        self._places = dict(places)
        self._machines = {name: machine for name, (machine, _) in machines.items()}
        self._addresses = {name: address for name, (_, address) in machines.items()}
        self._spec = spec
        self._by_rewind = by_rewind
        self.words = spec.words()
        identity = new_identity(SCOPE, tuple(dict.fromkeys(self._addresses.values())))
        self._identity = identity
        self._context = tls_context("client", identity, identity.certificate)
        self._etcds = {f"{number}": machine for number, machine in enumerate(etcd_machines(places.values()), 1)}
        self._etcd_members: dict[str, EtcdMember] = {}
        self._etcd_client = EtcdClient((), self._context)
        self._members: dict[str, PatroniMember] = {}

    def start(self) -> None:
        """Start the etcds and every Patroni, the primary's first, and wait until each has taken its server over and all standbys stream.

        From then on `words` names it by its version.

        Raises RunError, with the end of a log, for one that does not.
        """
        for machine in self._machines.values():
            machine.begin(self._identity.certificate, self._identity.key)
        self._start_etcds()
        for node in self._servers:
            self._members[node] = self._member(node)
            self.start_member(node)
            self._await_role(node, "primary" if node == PRIMARY else "replica")
        for node in self._servers:
            if node != PRIMARY:
                self._await_streaming(node, PRIMARY)
        with closing(self._rest(PRIMARY)) as rest:
            about = rest.get("/patroni").get("patroni", {})
        self.words = self._spec.words(str(about.get("version", "")))

    def start_member(self, node: str) -> None:
        """Start the Patroni of a node, and the etcd of its machine if that does not run."""
        machine = self._machine(node)
        for etcd in self._etcds_with(node):
            if not machine.runs(etcd.program):
                machine.start_etcd(etcd, tuple(self._etcd_members.values()))
        machine.start_patroni(self._members[node])

    def kill_member(self, node: str) -> None:
        """Kill the Patroni of a node and the programs that it is running (SIGKILL), and the etcd of a machine that fails with it.

        Its server goes on.
        """
        machine = self._machine(node)
        machine.kill(self._members[node].program)
        for etcd in self._etcds_with(node):
            machine.kill(etcd.program)

    def has_member(self, node: str) -> bool:
        """Return whether the Patroni of a node runs."""
        return self._machine(node).runs(self._members[node].program)

    def leader(self) -> str | None:
        """Return the node whose Patroni has the lock, as etcd says; None if none has it."""
        return self._etcd_client.get(f"/service/{SCOPE}/leader")

    def await_rejoined(self, node: str, leader: str) -> None:
        """Wait until a node streams from the leader. Raises RunError when it does not."""
        self._await_streaming(node, leader)

    def how_rejoined(self, node: str) -> Literal["rewind", "backup", "restart"]:
        """Return how a node came back, by the log of its Patroni: "rewind", "backup", or "restart" where neither was needed."""
        log = self._log(node)
        if "replica has been created" in log or "trying to bootstrap from leader" in log:
            return "backup"
        return "rewind" if "running pg_rewind" in log else "restart"

    def end(self) -> None:
        """Kill all of it, and remove its folders; servers stay. Raises what keeps one from being undone."""
        failed: PlinthError | None = None
        self._etcd_client.close()
        with cancel.masked():
            for machine in self._machines.values():
                try:
                    machine.end()
                except PlinthError as error:
                    failed = failed or error
        if failed is not None:
            raise failed

    def _machine(self, node: str) -> PatroniMachine:
        return self._machines[self._places[node]]

    def _etcds_with(self, node: str) -> list[EtcdMember]:
        """Return the etcd that fails with a node's machine: none where all nodes are on one, or another node is on it, too."""
        place = self._places[node]
        if len(self._etcds) == 1 or list(self._places.values()).count(place) > 1:
            return []
        # Of two that are on one machine, the second is the one that no fault ends.
        return [self._etcd_members[name] for name, machine in self._etcds.items() if machine == place][:1]

    def _start_etcds(self) -> None:
        for name, place in self._etcds.items():
            machine, address = self._machines[place], self._addresses[place]
            client_port, peer_port = machine.free_port(address), machine.free_port(address)
            self._etcd_members[name] = EtcdMember(
                name=name, address=address, client_port=client_port, peer_port=peer_port
            )
        members = tuple(self._etcd_members.values())
        for one in members:
            self._machines[self._etcds[one.name]].start_etcd(one, members)
        client = self._etcd_client = EtcdClient(members, self._context)
        for one in members:
            machine = self._machines[self._etcds[one.name]]
            self._await(
                machine, one.program, lambda one=one: client.is_healthy(one.name), f"{ETCD} {one.name} is not healthy"
            )
        client.put(f"/service/{SCOPE}/config", json.dumps(self._dynamic()))

    def _member(self, node: str) -> PatroniMember:
        address = self._addresses[self._places[node]]
        return PatroniMember(
            node=node,
            address=address,
            rest_port=self._machine(node).free_port(address),
            etcds=tuple(one.client for one in self._etcd_members.values()),
            by_rewind=self._by_rewind,
        )

    def _dynamic(self) -> dict[str, Any]:
        """Return the configuration that all members share, which is in etcd."""
        primary = self._servers[PRIMARY]
        query = "select name, setting from pg_settings where name = any(%s)"
        with database_errors("read settings for Patroni", primary.where), connect(primary.control) as control:
            same = dict(control.execute(query.encode(), (list(_SAME_EVERYWHERE),)).fetchall())
            is_asked = "search_path" in map(str.lower, primary.settings)
            if (
                primary.layout.load_role is not None and not is_asked
            ):  # Patroni's own queries are a superuser's, in a database of others
                control.execute(f"alter role {SUPERUSER} set search_path = pg_catalog, pg_temp".encode())
        spec = self._spec
        return {
            "ttl": round(spec.ttl_s),
            "loop_wait": round(spec.loop_wait_s),
            "retry_timeout": round(spec.retry_timeout_s),
            "primary_start_timeout": round(spec.primary_start_timeout_s),
            "postgresql": {"use_pg_rewind": self._by_rewind, "use_slots": True, "parameters": same},
        }

    def _rest(self, node: str) -> HttpsDaemon:
        member = self._members[node]
        return HttpsDaemon(member.address, member.rest_port, self._context)

    def _await_role(self, node: str, role: str) -> None:
        what = f"the Patroni of {node} has not taken its server over as {role}"
        with closing(self._rest(node)) as rest:
            self._await_member(node, lambda: rest.status(f"/{role}") == 200, what)

    def _await_streaming(self, node: str, leader: str) -> None:
        def streams() -> bool:
            return streams_from(self._servers[node], self._servers[leader], node)

        self._await_member(node, streams, f"{node} does not stream from {leader}")

    def _await_member(self, node: str, happened: Callable[[], bool], failing: str) -> None:
        self._await(self._machine(node), self._members[node].program, happened, failing)

    def _await(self, machine: PatroniMachine, program: str, happened: Callable[[], bool], failing: str) -> None:
        """Wait until something has happened for which a program has to run."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not happened():
            if not machine.runs(program):
                raise RunError(f"{program} has ended", details=machine.log(program).splitlines()[-_LOG_LINES:])
            if time.monotonic() > deadline:
                raise RunError(
                    f"{failing} within {READY_TIMEOUT_S:g} s", details=machine.log(program).splitlines()[-_LOG_LINES:]
                )
            cancel.sleep(_LOOK_AGAIN_S)

    def _log(self, node: str) -> str:
        """Return what the Patroni of a node has logged since it was started last."""
        return self._machine(node).log(self._members[node].program)
