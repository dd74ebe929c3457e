"""Patroni as the cluster manager of a failover: one for each server, on the servers as they run, and an etcd for all of them.

A Patroni that finds a running server takes it over as it is, and starts, promotes and rewinds it from then on.
"""

import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from plinth.model.errors import RunError
from plinth.model.patroni import PATRONI, PatroniSpec
from plinth.model.standby import PRIMARY
from plinth.model.step import Step, Undo
from plinth.server.layout import SUPERUSER
from plinth.server.port import LOCALHOST, find_free
from plinth.server.replication.cluster_manager import MARK, end_cluster_manager
from plinth.server.replication.etcd import USER, Etcd
from plinth.server.replication.promotion import streams_from
from plinth.server.server import Server
from plinth.server.settings.configuration import HBA, replace_file
from plinth.system import cancel
from plinth.system.database import connect, database_errors
from plinth.system.directory import make_directory
from plinth.system.http import get_json, get_status
from plinth.system.journal import Journal
from plinth.system.log_file import LogFile
from plinth.system.process import Child
from plinth.system.runner import Runner

PATRONI_STEPS = "patroni."
"""What the ids of all its steps begin with."""
SCOPE = "plinth"
READY_TIMEOUT_S = 120.0
_LOOK_AGAIN_S = 0.02
_LOG_BYTES = 2**20
_LOG_LINES = 20
_HBA_MEMBERS = ("host all all samehost scram-sha-256", "host replication all samehost scram-sha-256")
"""Members reach one another's servers by TCP."""
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


@dataclass
class _Member:
    """The Patroni of one node."""

    config: Path
    rest_port: int
    log: LogFile
    child: Child | None = None
    log_begin_bytes: int = 0


class PatroniCluster:
    """The Patronis of the servers of one cluster, each by its node's name. Call `end` in any case."""

    def __init__(
        self,
        name: str,
        folder: Path,
        servers: Mapping[str, Server],
        spec: PatroniSpec,
        log_of: Callable[[str], LogFile],
        runner: Runner,
        journal: Journal,
        *,
        by_rewind: bool,
    ) -> None:
        self._name = name
        self._folder = folder
        self._servers = dict(servers)
        self._spec = spec
        self._runner = runner
        self._journal = journal
        self._by_rewind = by_rewind
        self._rest_login = {"username": SCOPE, "password": secrets.token_urlsafe(24)}
        self.words = spec.words()
        self._owner = servers[PRIMARY].layout.owner
        self._etcd = Etcd(folder / "etcd", self._owner, log_of(f"etcd-{name}.log"), runner)
        self._members = {
            node: _Member(folder / f"{node}.json", find_free(), log_of(f"patroni-{server.layout.name}.log"))
            for node, server in servers.items()
        }

    def start(self) -> None:
        """Start etcd and every Patroni, the primary's first, and wait until each has taken its server over and all standbys stream.

        From then on `words` names it by its version.

        Raises RunError, with the end of a log, for one that does not.
        """
        folder = Undo(kind="remove_directory", path=str(self._folder), label=self._journal.label)
        self._journal.record(self._step("folder", f"make the folder {self._folder}", folder))
        make_directory(self._folder, self._journal.label, self._owner)
        self._journal.record(self._step("etcd", "start etcd", self._stopping(self._etcd.path)))
        self._etcd.start()
        self._etcd.put(f"/service/{SCOPE}/config", json.dumps(self._dynamic()))
        for node in self._members:
            self.start_member(node)
            self._await_role(node, "primary" if node == PRIMARY else "replica")
        for node in self._members:
            if node != PRIMARY:
                self._await_streaming(node, PRIMARY)
        about = get_json(LOCALHOST, self._members[PRIMARY].rest_port, "/patroni").get("patroni", {})
        self.words = self._spec.words(str(about.get("version", "")))

    def start_member(self, node: str) -> None:
        """Start the Patroni of a node."""
        member = self._members[node]
        replace_file(member.config, json.dumps(self._config(node), indent=1), self._owner)
        self._journal.record(self._step(node, f"start the Patroni of {node}", self._stopping(member.config)))
        member.log_begin_bytes = member.log.size_bytes()
        member.child = self._runner.spawn(
            (PATRONI, str(member.config)),
            owner=self._owner,
            cwd=self._folder,
            env={MARK: str(member.config)},
            log=member.log,
        )

    def kill_member(self, node: str) -> None:
        """Kill the Patroni of a node and the programs that it is running (SIGKILL). Its server goes on."""
        member = self._members[node]
        end_cluster_manager(member.config)
        if member.child is not None:
            member.child.wait()
            member.child = None

    def has_member(self, node: str) -> bool:
        """Return whether the Patroni of a node runs."""
        child = self._members[node].child
        return child is not None and not child.has_ended()

    def leader(self) -> str | None:
        """Return the node whose Patroni has the lock, as etcd says; None if none has it."""
        return self._etcd.get(f"/service/{SCOPE}/leader")

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
        """Kill all of it, and remove its folder; servers stay. Raises what keeps one from being undone."""
        with cancel.masked():
            kept = self._journal.undo_steps(self._step_id(""), self._runner)
            for child in (self._etcd.child, *(member.child for member in self._members.values())):
                if child is not None and not kept:
                    child.wait()
            for server in self._servers.values():  # it may have been killed while it was replacing one
                directory = ("mkdir", "--parents", "--mode=700", "--", str(server.layout.data_directory))
                self._runner.run(directory, owner=self._owner)
            if kept:
                raise kept[0].error

    def _step_id(self, what: str) -> str:
        return f"{PATRONI_STEPS}{self._name}.{what}"

    def _step(self, what: str, title: str, undo: Undo) -> Step:
        return Step(id=self._step_id(what), title=title, undo=undo)

    def _stopping(self, path: Path) -> Undo:
        return Undo(kind="stop_cluster_manager", path=str(path), label=self._journal.label)

    def _dynamic(self) -> dict[str, Any]:
        """Return the configuration that all members share, which is in etcd."""
        primary = self._servers[PRIMARY]
        query = "select name, setting from pg_settings where name = any(%s)"
        with database_errors("read settings for Patroni", primary.where), connect(primary.control) as control:
            same = dict(control.execute(query.encode(), (list(_SAME_EVERYWHERE),)).fetchall())
        spec = self._spec
        return {
            "ttl": round(spec.ttl_s),
            "loop_wait": round(spec.loop_wait_s),
            "retry_timeout": round(spec.retry_timeout_s),
            "primary_start_timeout": round(spec.primary_start_timeout_s),
            "postgresql": {"use_pg_rewind": self._by_rewind, "use_slots": True, "parameters": same},
        }

    def _config(self, node: str) -> dict[str, Any]:
        """Return the configuration of one member; JSON is YAML."""
        server, member = self._servers[node], self._members[node]
        address = server.layout.spec.listen_address or LOCALHOST
        login = {"username": SUPERUSER, "password": server.password}
        rest = f"{LOCALHOST}:{member.rest_port}"
        return {
            "scope": SCOPE,
            "name": node,
            "restapi": {"listen": rest, "connect_address": rest, "authentication": self._rest_login},
            "etcd3": {"host": self._etcd.address, "username": USER, "password": self._etcd.password},
            "watchdog": {"mode": "off"},  # one that Patroni held when it was killed would reset this machine
            "postgresql": {
                "listen": f"{address}:{server.port}",
                "connect_address": f"{address}:{server.port}",
                "data_dir": str(server.layout.data_directory),
                "bin_dir": server.layout.installation.bindir,
                "pgpass": str(self._folder / f"{node}.pgpass"),
                "authentication": {"superuser": login, "replication": login, "rewind": login},
                "parameters": {"unix_socket_directories": str(server.layout.socket_directory)},
                "pg_hba": [*HBA.splitlines(), *_HBA_MEMBERS],
                "remove_data_directory_on_rewind_failure": True,
                "remove_data_directory_on_diverged_timelines": not self._by_rewind,
            },
        }

    def _await_role(self, node: str, role: str) -> None:
        member = self._members[node]
        what = f"the Patroni of {node} has not taken its server over as {role}"
        self._await(node, lambda: get_status(LOCALHOST, member.rest_port, f"/{role}") == 200, what)

    def _await_streaming(self, node: str, leader: str) -> None:
        def streams() -> bool:
            return streams_from(self._servers[node], self._servers[leader], node)

        self._await(node, streams, f"{node} does not stream from {leader}")

    def _await(self, node: str, happened: Callable[[], bool], failing: str) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not happened():
            if not self.has_member(node):
                raise RunError(f"the Patroni of {node} has ended", details=self._log(node).splitlines()[-_LOG_LINES:])
            if time.monotonic() > deadline:
                raise RunError(
                    f"{failing} within {READY_TIMEOUT_S:g} s", details=self._log(node).splitlines()[-_LOG_LINES:]
                )
            cancel.sleep(_LOOK_AGAIN_S)

    def _log(self, node: str) -> str:
        """Return what the Patroni of a node has logged since it was started last."""
        member = self._members[node]
        return member.log.tail(_LOG_BYTES, since=member.log_begin_bytes)
