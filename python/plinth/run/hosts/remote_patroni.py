"""Patroni and etcd on another host, whose agent starts and ends them."""

from collections import defaultdict
from collections.abc import Callable

from typing_extensions import override

from plinth.common.untrusted import Room
from plinth.run.hosts.answers import shown_value
from plinth.run.hosts.fetched import append_within
from plinth.run.hosts.limits import MAX_LOG_BYTES
from plinth.run.hosts.link import HostLink
from plinth.run.hosts.remote_object import RemoteObject, remote
from plinth.server.replication.etcd import EtcdMember
from plinth.server.replication.patroni_machine import PatroniMachine, PatroniMember, log_name
from plinth.system.log_file import LogFile


@remote("patroni")
class RemotePatroniMachine(RemoteObject, PatroniMachine):
    """Those of a cluster's programs that are on the host of `link`; `log_of` opens what their logs are kept in here."""

    def __init__(self, link: HostLink, cluster: str, log_of: Callable[[str], LogFile]) -> None:
        super().__init__(link, ("patroni", cluster))
        self._log_of = log_of
        self._cluster = cluster
        self._started: set[str] = set()
        self._cut: set[str] = set()
        self._rooms: defaultdict[str, Room] = defaultdict(lambda: Room(MAX_LOG_BYTES))

    @override
    def start_etcd(self, own: EtcdMember, members: tuple[EtcdMember, ...]) -> None:
        self._started.add(log_name(own.program, self._cluster))
        self._ask("start_etcd", own=own, members=members)

    @override
    def start_patroni(self, member: PatroniMember) -> None:
        self._started.add(log_name(member.program, self._cluster))
        self._ask("start_patroni", member=member)

    @override
    def logs(self) -> dict[str, str]:
        """Return the end of what all programs have logged since `begin`. Raises ProtocolError for a log of none that was started."""
        found: dict[str, str] = self._ask("logs")
        if unknown := [name for name in found if name not in self._started]:
            names = ", ".join(sorted(self._started)) or "none"
            raise self._link.break_off(f"patroni.logs: got a log {shown_value(unknown[0])}; asked was for {names}")
        return found

    @override
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
