"""Reads and writes what is in etcd."""

import base64
import ssl
from collections.abc import Iterable
from typing import Any

from plinth.model.errors import RunError
from plinth.server.replication.etcd import EtcdMember
from plinth.system.http import HttpsDaemon


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
