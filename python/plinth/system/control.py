"""The class of control connections: closed when their block is left, however it is left; their text is always text."""

import contextlib
import logging
from collections.abc import Generator
from types import TracebackType
from typing import Any, Self, TypeVar

import psycopg
from psycopg.abc import RV, Buffer, PQGen, PQGenConn
from psycopg.adapt import Loader

from plinth.model.errors import PlinthError
from plinth.system import cancel

# psycopg warns of what it ignores while an error is on its way, and Python prints that on stderr where nobody handles it.
# The error itself is raised; whoever sets up logging still sees both.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

_CANCEL_TIMEOUT_S = 2.0
_Wanted = TypeVar("_Wanted")
_TEXTS = ("text", "varchar", "bpchar", "name", '"char"')


class _Text(Loader):
    """Names in shared catalogs are in the encoding of whichever database they were made in: those are shown with \\x."""

    def load(self, data: Buffer) -> str:
        return bytes(data).decode(errors="backslashreplace")


class ControlConnection(psycopg.Connection[tuple[Any, ...]]):
    """Each statement is committed at once, so that leaving the block closes the connection and has nothing to undo.

    psycopg's own would roll back, which fails where the connection is broken or a statement was interrupted.
    """

    def wait(self, gen: PQGen[RV], *limits: Any, **named_limits: Any) -> RV:
        """Wait for the server. When the work is cancelled, so is what the server does for it."""
        try:
            return super().wait(_cancellable(gen), *limits, **named_limits)
        except PlinthError:
            with cancel.masked(), contextlib.suppress(psycopg.Error):  # a server that is gone does nothing any more
                self.cancel_safe(timeout=_CANCEL_TIMEOUT_S)
            raise

    @classmethod
    def _connect_gen(cls, conninfo: str = "") -> PQGenConn[Self]:
        return (yield from _cancellable(super()._connect_gen(conninfo)))

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        self.close()


def _cancellable(waiting: Generator[_Wanted, int, RV]) -> Generator[_Wanted, int, RV]:
    """The same waiting, which psycopg does in steps of 0.1 s at most, with a look at each whether the work is to end."""
    try:
        wanted = next(waiting)
        while True:
            ready = yield wanted
            cancel.check()
            wanted = waiting.send(ready)
    except StopIteration as ended:
        value: RV = ended.value
        return value


def open_control(conninfo: str = "", **parameters: Any) -> ControlConnection:
    """Connect by libpq's rules. Text comes in UTF-8, from a database in SQL_ASCII too, whose text would else be bytes."""
    connection = ControlConnection.connect(conninfo, **{**parameters, "autocommit": True, "client_encoding": "UTF8"})
    for name in _TEXTS:
        connection.adapters.register_loader(name, _Text)
    return connection
