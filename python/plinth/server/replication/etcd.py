"""The etcds that hold Patroni's lock: each is a voter, and whoever has the run's key may read and write them."""

import ipaddress
from collections.abc import Sequence
from pathlib import Path

from plinth.model.base import Frozen
from plinth.model.patroni import ETCD


class EtcdMember(Frozen):
    """An etcd, and where it listens: for its clients, and for the other etcds."""

    name: str
    address: str
    client_port: int
    peer_port: int

    @property
    def program(self) -> str:
        """Return what it is called on its machine."""
        return f"etcd-{self.name}"

    @property
    def client(self) -> str:
        """Return where clients reach it, as host:port."""
        return f"{in_url(self.address)}:{self.client_port}"

    @property
    def peer_url(self) -> str:
        """Return where the other etcds reach it."""
        return f"https://{in_url(self.address)}:{self.peer_port}"


def in_url(address: str) -> str:
    """Return an IP address as a URL has it: one of IPv6 in brackets (RFC 3986, 3.2.2)."""
    return f"[{address}]" if ipaddress.ip_address(address).version == 6 else address


def etcd_command(
    own: EtcdMember, members: Sequence[EtcdMember], data: Path, certificate: Path, key: Path
) -> tuple[str, ...]:
    """Return the command that starts one of `members`, its data in `data`. Both sides of each connection show the certificate."""
    client = f"https://{own.client}"
    return (
        ETCD,
        f"--name={own.name}",
        f"--data-dir={data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={own.peer_url}",
        f"--initial-advertise-peer-urls={own.peer_url}",
        f"--initial-cluster={','.join(f'{one.name}={one.peer_url}' for one in members)}",
        "--client-cert-auth",
        f"--trusted-ca-file={certificate}",
        f"--cert-file={certificate}",
        f"--key-file={key}",
        "--peer-client-cert-auth",
        f"--peer-trusted-ca-file={certificate}",
        f"--peer-cert-file={certificate}",
        f"--peer-key-file={key}",
    )
