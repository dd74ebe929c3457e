"""The etcds that hold Patroni's lock: each is a voter, and whoever has the run's key may read and write them."""

import base64
import ipaddress
import ssl
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from plinth.model.base import Frozen
from plinth.model.errors import RunError
from plinth.model.patroni import ETCD
from plinth.system.http import HttpsDaemon


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


class EtcdClient:
    """Asks etcds through their JSON gateway (etcd's "gRPC gateway")."""

    def __init__(self, members: Iterable[EtcdMember], context: ssl.SSLContext) -> None:
        self._daemons = {one.name: HttpsDaemon(one.address, one.client_port, context) for one in members}

    def close(self) -> None:
        """End the connections."""
        for daemon in self._daemons.values():
            daemon.close()

    def is_healthy(self, name: str) -> bool:
        """Return whether an etcd answers, and knows a leader."""
        return self._daemons[name].status("/health") == 200

    def put(self, key: str, value: str) -> None:
        """Store a value. Raises RunError when no etcd does."""
        self._first_answer("kv/put", {"key": _encoded(key), "value": _encoded(value)})

    def get(self, key: str) -> str | None:
        """Return the value of a key as the first etcd that answers knows it; None without one. Raises RunError when none answers.

        It is not asked whether a majority agrees: that would wait for an election, and a value that is old is seen a little later.
        """
        found = self._first_answer("kv/range", {"key": _encoded(key), "serializable": True}).get("kvs", [])
        return base64.b64decode(found[0].get("value", "")).decode() if found else None

    def _first_answer(self, path: str, content: dict[str, object]) -> dict[str, Any]:
        failed: RunError | None = None
        for daemon in self._daemons.values():
            try:
                return daemon.post(f"/v3/{path}", content)
            except RunError as error:
                failed = failed or error
        assert failed is not None, "there is an etcd"
        raise failed


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
