"""The psycopg class of control connections: closed at the end of their block; text is always returned as str."""

import contextlib
import logging
from collections.abc import Generator
from typing import Any, Self, TypeVar

import psycopg
from psycopg.abc import RV, AdaptContext, Buffer, PQGen, PQGenConn
from psycopg.adapt import Loader
from psycopg.pq.abc import PGconn

from plinth.model.errors import Reported
from plinth.system import cancel

# psycopg logs errors that it ignores while another is raised, and Python prints unhandled log records on stderr.
# The error itself is raised; programs that set up logging still see both.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

_CANCEL_TIMEOUT_S = 2.0
_Wanted = TypeVar("_Wanted")
_TEXTS = ("text", "varchar", "bpchar", "name", '"char"')


_SQL_ASCII = "SQL_ASCII"
# https://www.postgresql.org/docs/current/multibyte.html#CHARSET-TABLE, those of servers that Python knows by another name or as such.
_CODECS = {
    **{f"LATIN{n}": f"iso8859-{part}" for n, part in enumerate((1, 2, 3, 4, 9, 10, 13, 14, 15, 16), start=1)},
    **{f"ISO_8859_{part}": f"iso8859-{part}" for part in (5, 6, 7, 8)},
    **{f"WIN{page}": f"cp{page}" for page in (866, 874, *range(1250, 1259))},
    "EUC_CN": "gb2312",
    "EUC_JIS_2004": "euc_jis_2004",
    "EUC_JP": "euc_jp",
    "EUC_KR": "euc_kr",
    "KOI8R": "koi8-r",
    "KOI8U": "koi8-u",
}


class _Text(Loader):
    """Names in shared catalogs are in the encoding of whichever database they were made in: those are shown with \\x."""

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        self._codec = text_codec(self.connection.pgconn) if self.connection else "utf-8"

    def load(self, data: Buffer) -> str:
        return bytes(data).decode(self._codec, errors="backslashreplace")


class _Info(psycopg.ConnectionInfo):
    """Decodes parameters such as the database's name as UTF-8; psycopg uses ASCII if the client's encoding is SQL_ASCII."""

    @property
    def encoding(self) -> str:
        return "utf-8"


class ControlConnection(psycopg.Connection[tuple[Any, ...]]):
    """Each statement is committed at once, so that leaving the block closes the connection and has nothing to undo.

    psycopg's own would roll back, which fails where the connection is broken or a statement was interrupted.
    """

    @property
    def info(self) -> psycopg.ConnectionInfo:
        """As psycopg's."""
        return _Info(self.pgconn)

    def wait(self, gen: PQGen[RV], *limits: Any, **named_limits: Any) -> RV:
        """Wait for the server. When the work is cancelled, so is what the server does for it."""
        try:
            return super().wait(_cancellable(gen), *limits, **named_limits)
        except Reported:
            with cancel.masked(), contextlib.suppress(psycopg.Error):  # a server that has ended does no work
                self.cancel_safe(timeout=_CANCEL_TIMEOUT_S)
            raise

    @classmethod
    def _connect_gen(cls, conninfo: str = "") -> PQGenConn[Self]:
        return (yield from _cancellable(super()._connect_gen(conninfo)))

    def __exit__(self, *exception: object) -> None:
        self.close()


def _cancellable(waiting: Generator[_Wanted, int, RV]) -> Generator[_Wanted, int, RV]:
    """Wait as psycopg does, in steps of at most 0.1 s, and check for cancellation at each step."""
    try:
        wanted = next(waiting)
        while True:
            ready = yield wanted
            cancel.check()
            wanted = waiting.send(ready)
    except StopIteration as ended:
        value: RV = ended.value
        return value


def open_control(conninfo: str = "", *, unconverted: bool = False, **parameters: Any) -> ControlConnection:
    """Connect by libpq's rules. Text that is read is str, with \\x for bytes that are not valid in its encoding.

    The server converts to UTF-8, and refuses to where a name in a shared catalog, or a setting, is not valid in the database's
    encoding. With `unconverted` it sends its bytes as they are (and takes ours for its own, so queries must be ASCII); from a
    database in SQL_ASCII it always does. That is chosen at the start of the session, so that RESET ALL keeps it.
    """
    encoding = _SQL_ASCII if unconverted else "UTF8"
    connection = ControlConnection.connect(conninfo, **{**parameters, "autocommit": True, "client_encoding": encoding})
    if not unconverted and connection.info.parameter_status("server_encoding") == _SQL_ASCII:
        connection.close()
        return open_control(conninfo, unconverted=True, **parameters)
    for name in _TEXTS:
        connection.adapters.register_loader(name, _Text)
    return connection


def text_codec(wire: PGconn) -> str:
    """Return Python's codec for the text of a connection; UTF-8 if its encoding is unknown."""
    if wire.parameter_status(b"client_encoding") != _SQL_ASCII.encode():
        return "utf-8"
    server = (wire.parameter_status(b"server_encoding") or b"").decode()
    return _CODECS.get(server, "utf-8")
