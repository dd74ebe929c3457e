"""Patroni and etcd on another host, whose agent starts and ends them."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from plinth.run.hosts.answers import shown_value
from plinth.run.hosts.fetched import append_within
from plinth.run.hosts.limits import MAX_LOG_BYTES, Room
from plinth.run.hosts.link import HostLink
from plinth.server.replication.etcd import EtcdMember
from plinth.server.replication.patroni_machine import PatroniMachine, PatroniMember, log_name
from plinth.system.log_file import LogFile


class RemotePatroniMachine(PatroniMachine):
    """Those of a cluster's programs that are on the host of `link`; `log_of` opens what their logs are kept in here."""

    def __init__(self, link: HostLink, cluster: str, log_of: Callable[[str], LogFile]) -> None:
        # Not as one of this machine, which has a journal here.
        self._link = link
        self._on = ("patroni", cluster)
        self._log_of = log_of
        self._cluster = cluster
        self._started: set[str] = set()
        self._cut: set[str] = set()
        self._rooms: defaultdict[str, Room] = defaultdict(lambda: Room(MAX_LOG_BYTES))

    def _ask(self, method: str, **arguments: Any) -> Any:
        return self._link.call(self._on, method, arguments)

    def free_port(self, address: str) -> int:
        """Find a free port of an address there."""
        return self._ask("free_port", address=address)

    def begin(self, certificate: str, key: str) -> None:
        """Make the folder there."""
        self._ask("begin", certificate=certificate, key=key)

    def start_etcd(self, own: EtcdMember, members: tuple[EtcdMember, ...]) -> None:
        """Start an etcd there."""
        self._started.add(log_name(own.program, self._cluster))
        self._ask("start_etcd", own=own, members=members)

    def start_patroni(self, member: PatroniMember) -> None:
        """Start the Patroni of a node there."""
        self._started.add(log_name(member.program, self._cluster))
        self._ask("start_patroni", member=member)

    def kill(self, program: str) -> None:
        """Kill a program there."""
        self._ask("kill", program=program)

    def runs(self, program: str) -> bool:
        """Return whether a program runs there."""
        return self._ask("runs", program=program)

    def log(self, program: str) -> str:
        """Return the end of what a program has logged since it was started last."""
        return self._ask("log", program=program)

    def logs(self) -> dict[str, str]:
        """Return the end of what all programs have logged since `begin`. Raises ProtocolError for a log of none that was started."""
        found: dict[str, str] = self._ask("logs")
        if unknown := [name for name in found if name not in self._started]:
            names = ", ".join(sorted(self._started)) or "none"
            raise self._link.break_off(f"patroni.logs: got a log {shown_value(unknown[0])}; asked was for {names}")
        return found

    def end(self) -> None:
        """Kill all of it there, and keep its logs here."""
        try:
            for name, text in self.logs().items():
                if name not in self._cut and not append_within(
                    self._log_of(name), text.encode(), self._rooms[name], self._link
                ):
                    self._cut.add(name)
        finally:  # else a Patroni would start again the servers that the trial ends
            self._ask("end")
