"""Patroni and etcd on another host, whose agent starts and ends them."""

from collections.abc import Callable
from typing import Any

from plinth.run.hosts.link import HostLink
from plinth.server.replication.etcd import EtcdMember
from plinth.server.replication.patroni_machine import PatroniMachine, PatroniMember
from plinth.system.log_file import LogFile


class RemotePatroniMachine(PatroniMachine):
    """Those of a cluster's programs that are on the host of `link`; `log_of` opens what their logs are kept in here."""

    def __init__(self, link: HostLink, cluster: str, log_of: Callable[[str], LogFile]) -> None:
        # Not as one of this machine, which has a journal here.
        self._link = link
        self._on = ("patroni", cluster)
        self._log_of = log_of

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
        self._ask("start_etcd", own=own, members=members)

    def start_patroni(self, member: PatroniMember) -> None:
        """Start the Patroni of a node there."""
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
        """Return the end of what all programs have logged since `begin`."""
        return self._ask("logs")

    def end(self) -> None:
        """Kill all of it there, and keep its logs here."""
        try:
            for name, text in self.logs().items():
                with self._log_of(name).to_append() as log:
                    log.write(text.encode())
        finally:  # else a Patroni would start again the servers that the trial ends
            self._ask("end")
