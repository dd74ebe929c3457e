"""Requests to daemons of this run on this machine, past any proxy."""

import http.client
import json
from collections.abc import Mapping
from typing import Any

from plinth.model.errors import RunError

_TIMEOUT_S = 2.0
_LONGEST_ANSWER = 200
_MOST_BYTES = 2**20


class HttpError(RunError):
    """An answer with another status than 200."""

    def __init__(self, status: int, answer: str, where: str) -> None:
        super().__init__(f"got status {status}: {answer[:_LONGEST_ANSWER]}", where=where)
        self.status = status


def get_status(host: str, port: int, path: str) -> int | None:
    """Return the status of a GET; None while nothing answers."""
    connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def get_json(host: str, port: int, path: str) -> dict[str, Any]:
    """Return the object that answers a GET; raises as `post_json` does."""
    return _object(host, port, "GET", path, None, {})


def post_json(
    host: str, port: int, path: str, content: Mapping[str, object], headers: Mapping[str, str]
) -> dict[str, Any]:
    """Return the object that answers a POST. Raises HttpError for another status than 200, and RunError where there is no such answer."""
    return _object(host, port, "POST", path, json.dumps(content), {"Content-Type": "application/json", **headers})


def _object(
    host: str, port: int, method: str, path: str, content: str | None, headers: Mapping[str, str]
) -> dict[str, Any]:
    connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)
    where = f"http://{host}:{port}{path}"
    try:
        connection.request(method, path, content, dict(headers))
        response = connection.getresponse()
        body = response.read(_MOST_BYTES)
        if response.status != 200:
            raise HttpError(response.status, body.decode(errors="replace"), where)
        answer = json.loads(body)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise RunError(f"no answer: {error}", where=where) from error
    finally:
        connection.close()
    if not isinstance(answer, dict):
        raise RunError("the answer is no object", where=where)
    return answer
