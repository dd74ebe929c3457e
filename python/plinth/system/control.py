"""The class of control connections: closed when their block is left, however it is left; their text is always text."""

import logging
from types import TracebackType
from typing import Any

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader

# psycopg warns of what it ignores while an error is on its way, and Python prints that on stderr where nobody handles it.
# The error itself is raised; whoever sets up logging still sees both.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

_TEXTS = ("text", "varchar", "bpchar", "name", '"char"')


class _Text(Loader):
    """Names in shared catalogs are in the encoding of whichever database they were made in: those are shown with \\x."""

    def load(self, data: Buffer) -> str:
        return bytes(data).decode(errors="backslashreplace")


class ControlConnection(psycopg.Connection[tuple[Any, ...]]):
    """Each statement is committed at once, so that leaving the block closes the connection and has nothing to undo.

    psycopg's own would roll back, which fails where the connection is broken or a statement was interrupted.
    """

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        self.close()


def open_control(conninfo: str = "", **parameters: Any) -> ControlConnection:
    """Connect by libpq's rules. Text comes in UTF-8, from a database in SQL_ASCII too, whose text would else be bytes."""
    connection = ControlConnection.connect(conninfo, **{**parameters, "autocommit": True, "client_encoding": "UTF8"})
    for name in _TEXTS:
        connection.adapters.register_loader(name, _Text)
    return connection
