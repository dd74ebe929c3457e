"""Connections by libpq's C interface, for commands that avoid the slow import of psycopg; see common/libpq.py."""

import _thread
import ctypes
import threading
from collections.abc import Callable, Mapping
from ctypes import c_char_p, c_int, c_size_t, c_void_p
from typing import Any, NamedTuple, Self, TypeVar

from plinth.common.libpq import function, make_conninfo, taken_options

_CONNECTION_OK, _CONNECTION_BAD = 0, 1
_FAILED = (5, 7)
"""PGRES_BAD_RESPONSE and PGRES_FATAL_ERROR of ExecStatusType."""
_SQLSTATE = ord("C")
_POLL_S = 0.1
_CANCEL_TIMEOUT_S = 2.0
_NOTICE_PROCESSOR = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)
_SQL_ASCII = "SQL_ASCII"
_Result = TypeVar("_Result")
Row = tuple[str | None, ...]


class ConnectError(Exception):
    """The connection failed; the message is libpq's."""

    def __init__(self, message: str, needs_password: bool) -> None:
        super().__init__(message)
        self.needs_password = needs_password
        """Whether the server requested a password and none was given."""


class StatementError(Exception):
    """A statement that failed, as libpq's programs show it: severity, message, the line of the statement, detail, hint."""

    def __init__(self, message: str, sqlstate: str | None) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        """The SQLSTATE; None for an error of libpq, such as a lost connection."""


class Host(NamedTuple):
    """Return the parameters of a connection as completed by libpq."""

    host: str
    port: str
    password: str


class Unconnected(NamedTuple):
    """Return libpq's error for a connection string that it rejects."""

    parameters: Mapping[str, str]
    first: Host
    message: str


def stopped(conninfo: str) -> Unconnected:
    """Return what libpq makes of a connection string that has an error in it, as one that has none would begin to connect."""
    connection = function("PQconnectStart", c_void_p, c_char_p)(conninfo.encode())
    try:
        options = taken_options(function("PQconninfo", c_void_p, c_void_p)(connection))
        found = {option.keyword: option.value.decode() for option in options if option.value}
        first = Host(*(_text_of(connection, name) for name in ("PQhost", "PQport", "PQpass")))
        return Unconnected(found, first, _text_of(connection, "PQerrorMessage"))
    finally:
        function("PQfinish", None, c_void_p)(connection)


class LibpqConnection:
    """A connection, one statement at a time, each committed at once. The end of its block closes it.

    Text is in UTF-8, with \\x for bytes that are not valid in it: databases in SQL_ASCII send what they have, once the client's
    encoding is theirs. That is chosen at the start of a session, so that no statement is needed for it.
    """

    def __init__(self, conninfo: str, notice: Callable[[str], None]) -> None:
        """Connect. `notice` gets the server's notices, which may come in another thread.

        Raises ConnectError, and ConninfoError for a string that libpq does not take.
        """
        self._processor = _NOTICE_PROCESSOR(lambda _, message: notice((message or b"").decode(errors="replace")))
        self._pgconn: int | None = None
        self._connect(make_conninfo(conninfo, client_encoding="UTF8"))
        if self.parameter_status("server_encoding") == _SQL_ASCII:
            self.close()
            self._connect(make_conninfo(conninfo, client_encoding=_SQL_ASCII))

    def _connect(self, conninfo: str) -> None:
        self._pgconn = self._interruptible(lambda: self._connected(conninfo.encode()))
        if self._call("PQstatus", c_int) != _CONNECTION_OK:
            message, needs_password = self._text("PQerrorMessage"), self._call("PQconnectionNeedsPassword", c_int)
            self.close()
            raise ConnectError(message.strip(), bool(needs_password))

    def _connected(self, conninfo: bytes) -> int | None:
        """Return the connection, or one that failed. Notices of the login itself reach the processor, too.

        PQconnectdb would print them on standard error as the server sends them. PQreset connects as PQconnectdb does, with its
        timeouts, and keeps the processor; what it replaces is a socket over which nothing has been sent.
        """
        pgconn = function("PQconnectStart", c_void_p, c_char_p)(conninfo)
        if _call(pgconn, "PQstatus", c_int) != _CONNECTION_BAD:
            types = (c_void_p, c_void_p, _NOTICE_PROCESSOR, c_void_p)
            function("PQsetNoticeProcessor", *types)(pgconn, self._processor, None)
            _call(pgconn, "PQreset", None)
        return pgconn

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; if a call is still waiting, it is closed when the process ends."""
        if self._pgconn and self._returned.is_set():
            self._call("PQfinish", None)
        self._pgconn = None

    @property
    def host(self) -> str:
        """The connected host, or the directory of its socket."""
        return self._text("PQhost")

    @property
    def port(self) -> str:
        """Its port."""
        return self._text("PQport")

    @property
    def database(self) -> str:
        """The database's name."""
        return self._text("PQdb")

    @property
    def server_version(self) -> int:
        """The server's version as a number: 180001 for 18.1."""
        return self._call("PQserverVersion", c_int)

    def parameter_status(self, name: str) -> str | None:
        """Return a parameter that the server reports; None where it does not."""
        value = function("PQparameterStatus", c_char_p, c_void_p, c_char_p)(self._pgconn, name.encode())
        return None if value is None else value.decode(errors="replace")

    def quoted_identifier(self, name: str) -> str:
        """Quote an identifier."""
        raw = name.encode()
        quote = function("PQescapeIdentifier", c_void_p, c_void_p, c_char_p, c_size_t)
        quoted = quote(self._pgconn, raw, len(raw))
        if not quoted:
            raise StatementError(self._text("PQerrorMessage").strip(), None)
        try:
            return ctypes.string_at(quoted).decode()
        finally:
            function("PQfreemem", None, c_void_p)(quoted)

    def execute(self, statement: str) -> list[Row]:
        """Return the rows of a statement. Raises StatementError; when the wait is interrupted, the server's work is cancelled."""
        raw = statement.encode()
        execute = function("PQexec", c_void_p, c_void_p, c_char_p)
        result = self._interruptible(lambda: execute(self._pgconn, raw))
        try:
            if not result or _call(result, "PQresultStatus", c_int) in _FAILED:
                sqlstate = function("PQresultErrorField", c_char_p, c_void_p, c_int)(result, _SQLSTATE)
                raise StatementError(self._text("PQerrorMessage").strip(), sqlstate.decode() if sqlstate else None)
            columns = range(_call(result, "PQnfields", c_int))
            return [tuple(_value(result, row, column) for column in columns) for row in _rows(result)]
        finally:
            function("PQclear", None, c_void_p)(result)

    def _interruptible(self, call: Callable[[], _Result]) -> _Result:
        """Return the result of a call into libpq, which waits in a thread: a signal's handler may raise here meanwhile.

        What the server does for the call is cancelled then, and the call has a while to end.
        """
        results: list[_Result] = []
        self._returned = threading.Event()
        try:
            _start(lambda: results.append(call()), self._returned)
            # A wait without an end would not be interrupted next to a library whose handler has it restarted, as polars' has.
            while not self._returned.wait(_POLL_S):
                pass
        except BaseException:
            if self._pgconn:
                cancelled = threading.Event()
                _start(self._cancel, cancelled)
                for event in (cancelled, self._returned):
                    event.wait(_CANCEL_TIMEOUT_S)
            raise
        return results[0]

    def _cancel(self) -> None:
        """Cancel over a connection as safe as this one, where libpq is new enough to have that (17)."""
        try:
            request = function("PQcancelCreate", c_void_p, c_void_p)(self._pgconn)
            function("PQcancelBlocking", c_int, c_void_p)(request)
            function("PQcancelFinish", None, c_void_p)(request)
        except AttributeError:
            request = function("PQgetCancel", c_void_p, c_void_p)(self._pgconn)
            function("PQcancel", c_int, c_void_p, c_char_p, c_int)(request, ctypes.create_string_buffer(256), 256)
            function("PQfreeCancel", None, c_void_p)(request)

    def _call(self, name: str, result: Any) -> Any:
        return _call(self._pgconn, name, result)

    def _text(self, name: str) -> str:
        return _text_of(self._pgconn, name)


def _call(of: int | None, name: str, result: Any) -> Any:
    return function(name, result, c_void_p)(of)


def _text_of(connection: int | None, name: str) -> str:
    return (_call(connection, name, c_char_p) or b"").decode(errors="replace")


def _rows(result: int) -> range:
    return range(_call(result, "PQntuples", c_int))


def _value(result: int, row: int, column: int) -> str | None:
    at = (c_void_p, c_int, c_int)
    if function("PQgetisnull", c_int, *at)(result, row, column):
        return None
    return function("PQgetvalue", c_char_p, *at)(result, row, column).decode(errors="backslashreplace")


def _start(work: Callable[[], None], done: threading.Event) -> None:
    """Run a function in a daemon thread."""

    def run() -> None:
        try:
            work()
        finally:
            done.set()

    _thread.start_new_thread(run, ())
