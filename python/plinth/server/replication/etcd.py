"""An etcd with one member on this machine, which holds Patroni's lock and requires the password of this run."""

import base64
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plinth.model.errors import RunError
from plinth.model.patroni import ETCD
from plinth.server.port import LOCALHOST, find_free
from plinth.server.replication.cluster_manager import MARK
from plinth.system import cancel
from plinth.system.http import HttpError, get_status, post_json
from plinth.system.log_file import LogFile
from plinth.system.owner import Owner
from plinth.system.process import Child
from plinth.system.runner import Runner

USER = "root"
"""etcd has this user when passwords are asked for."""
_READY_TIMEOUT_S = 30.0
_LOOK_AGAIN_S = 0.02
_LOG_LINES = 10
_LOG_BYTES = 2**14
_TOKEN_REFUSED = 401


class Etcd:
    """Its data are in `path`, which it makes itself."""

    def __init__(self, path: Path, owner: Owner, log: LogFile, runner: Runner) -> None:
        self.path = path
        self.password = secrets.token_urlsafe(24)
        self.child: Child | None = None
        self._owner = owner
        self._log = log
        self._runner = runner
        self._port = find_free()
        self._peer_port = find_free()
        self._token: str | None = None

    @property
    def address(self) -> str:
        """Return where its clients reach it."""
        return f"{LOCALHOST}:{self._port}"

    def command(self) -> tuple[str, ...]:
        """Return the command that starts it."""
        client, peer = f"http://{self.address}", f"http://{LOCALHOST}:{self._peer_port}"
        return (
            ETCD,
            f"--name={ETCD}",
            f"--data-dir={self.path}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster={ETCD}={peer}",
        )

    def start(self) -> None:
        """Start it, wait until it is healthy, and have it ask for the password. Raises RunError when that fails."""
        self.child = self._runner.spawn(
            self.command(), owner=self._owner, cwd=self.path.parent, env={MARK: str(self.path)}, log=self._log
        )
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while get_status(LOCALHOST, self._port, "/health") != 200:
            if self.child.has_ended() or time.monotonic() > deadline:
                how = "has ended" if self.child.has_ended() else f"is not healthy after {_READY_TIMEOUT_S:g} s"
                tail = self._log.tail(_LOG_BYTES).splitlines()[-_LOG_LINES:]
                raise RunError(f"{ETCD} {how}", where=str(self._log.path), details=tail)
            cancel.sleep(_LOOK_AGAIN_S)
        self._ask_for_password()

    def put(self, key: str, value: str) -> None:
        """Store a value. Raises RunError when etcd does not answer."""
        self._post("kv/put", {"key": _encoded(key), "value": _encoded(value)})

    def get(self, key: str) -> str | None:
        """Return the value of a key; None without one. Raises RunError when etcd does not answer."""
        found = self._post("kv/range", {"key": _encoded(key)}).get("kvs", [])
        return base64.b64decode(found[0].get("value", "")).decode() if found else None

    def _ask_for_password(self) -> None:
        for what, content in (
            ("user/add", {"name": USER, "password": self.password}),
            ("role/add", {"name": USER}),
            ("user/grant", {"user": USER, "role": USER}),
            ("enable", {}),
        ):
            self._call(f"auth/{what}", content)

    def _post(self, path: str, content: Mapping[str, object]) -> dict[str, Any]:
        """Send a request with a token, which etcd forgets when it was not used for a while."""
        if self._token is not None:
            try:
                return self._call(path, content)
            except HttpError as error:
                if error.status != _TOKEN_REFUSED:
                    raise
        self._token = None
        self._token = self._call("auth/authenticate", {"name": USER, "password": self.password})["token"]
        return self._call(path, content)

    def _call(self, path: str, content: Mapping[str, object]) -> dict[str, Any]:
        headers = {} if self._token is None else {"Authorization": self._token}
        return post_json(LOCALHOST, self._port, f"/v3/{path}", content, headers)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
