"""Removes secrets of connection strings from an experiment's document before it is processed further.

What is validated, planned, shown and kept has only connection strings without secrets; the whole ones stay outside of it, in
memory, for the code that connects.
"""

from typing import Any

from plinth.common.secrets import UnreadableConnection, holds_secrets, split
from plinth.model.errors import Problem

_CONNECTION = "server.connection"
"""The key of a connection string; it also occurs in [matrix], [full] and measure.baseline."""
_MASK = "***"
_FORMS = 'write it as "host=db1 dbname=bench" or "postgresql://user@db1/bench"'


class SecretsTaken:
    """Removes secrets from documents. `connections` maps each reduced connection string to the full one."""

    def __init__(self) -> None:
        self.connections: dict[str, str] = {}
        self.problems: list[Problem] = []

    def without(self, value: Any, path: tuple[str | int, ...] = ()) -> Any:
        """Return a copy of `value`, located at `path` of the document, without secrets.

        Adds to `problems` each connection string that cannot be read, and each secret where it does not belong.
        """
        if isinstance(value, dict):
            return {key: self.without(one, (*path, key)) for key, one in value.items()}
        if isinstance(value, list):
            return [self.without(one, (*path, index)) for index, one in enumerate(value)]
        if not isinstance(value, str):
            return value
        dotted = ".".join(part for part in path if isinstance(part, str))
        if dotted.endswith(_CONNECTION) and dotted.removesuffix(_CONNECTION)[-1:] in ("", "."):
            return self._bare(value, path)
        if f"{_CONNECTION}." in dotted:
            self._complain(f"{_CONNECTION} is one string, not a table", path, _FORMS)
            return _MASK
        if holds_secrets(value):
            message = "it holds a connection string with a password, or PGPASSWORD, which would be kept and shown"
            self._complain(message, path, "only server.connection may have one")
            return _MASK
        return value

    def _bare(self, connection: str, path: tuple[str | int, ...]) -> str:
        try:
            bare, secrets = split(connection)
        except UnreadableConnection as error:
            self._complain(f"the connection string cannot be read: {error}", path, error.hint or _FORMS)
            return _MASK
        if secrets and self.connections.setdefault(bare, connection) != connection:
            self._complain(f"another password for the same connection: {bare}", path, "give one of them only")
        return bare

    def _complain(self, message: str, path: tuple[str | int, ...], hint: str) -> None:
        self.problems.append(Problem(message, path=_key_of(path), hint=hint))


def _key_of(path: tuple[str | int, ...]) -> list[str | int]:
    """Return the path in the form used by the checks, where [matrix] and [full] are flat."""
    if len(path) > 1 and path[0] in ("matrix", "full"):
        return [path[0], ".".join(part for part in path[1:] if isinstance(part, str))]
    return list(path)
