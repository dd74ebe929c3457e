"""Requests by HTTPS to daemons of a run, past any proxy."""

import http.client
import json
import ssl
from collections.abc import Mapping
from typing import Any

from plinth.model.errors import RunError

_TIMEOUT_S = 2.0
_LONGEST_ANSWER = 200
_MOST_BYTES = 2**20


class HttpsDaemon:
    """A daemon that answers at a port of an address; `context` has the certificates of both sides.

    It keeps its connection, since a handshake takes both sides milliseconds of CPU time. Of one thread at a time.
    """

    def __init__(self, address: str, port: int, context: ssl.SSLContext) -> None:
        self._where = f"https://{address}:{port}"
        self._connection = http.client.HTTPSConnection(address, port, timeout=_TIMEOUT_S, context=context)

    def close(self) -> None:
        """End the connection; the next request makes another."""
        self._connection.close()

    def status(self, path: str) -> int | None:
        """Return the status of a GET; None while nothing answers."""
        try:
            return self._asked("GET", path, None, {})[0]
        except (OSError, http.client.HTTPException):
            return None

    def get(self, path: str) -> dict[str, Any]:
        """Return the object that answers a GET. Raises RunError for another status than 200, and where there is no such answer."""
        return self._object("GET", path, None, {})

    def post(self, path: str, content: Mapping[str, object]) -> dict[str, Any]:
        """Return the object that answers a POST; raises as `get` does."""
        return self._object("POST", path, json.dumps(content), {"Content-Type": "application/json"})

    def _object(self, method: str, path: str, content: str | None, headers: Mapping[str, str]) -> dict[str, Any]:
        where = self._where + path
        try:
            status, body = self._asked(method, path, content, headers)
            answer = json.loads(body) if status == 200 else None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise RunError(f"no answer: {error}", where=where) from error
        if status != 200:
            raise RunError(f"got status {status}: {body.decode(errors='replace')[:_LONGEST_ANSWER]}", where=where)
        if not isinstance(answer, dict):
            raise RunError("the answer is no object", where=where)
        return answer

    def _asked(self, method: str, path: str, content: str | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Return the status and the body of an answer: by a new connection where the one that was kept has ended."""
        for is_kept in (self._connection.sock is not None, False):
            try:
                self._connection.request(method, path, content, dict(headers))
                response = self._connection.getresponse()
                return response.status, response.read(_MOST_BYTES)
            except (OSError, http.client.HTTPException):
                self._connection.close()
                if not is_kept:
                    raise
        raise AssertionError("the second try returns or raises")
