"""An external server: reached by a connection string, left as it was found, worked on in a schema of our own."""

from typing import TYPE_CHECKING, Any

from plinth.model.errors import MissingCapability, PlinthError, UsageError
from plinth.model.facts import ServerFacts
from plinth.model.load import Connection
from plinth.model.step import Step, Undo
from plinth.server.facts import external_facts
from plinth.system.database import CONNECT_TIMEOUT_S, connect, database_errors
from plinth.system.directory import label_of
from plinth.system.journal import Entry, Journal
from plinth.system.schema import drop_schema, make_schema, schema_of

if TYPE_CHECKING:
    import psycopg

OLDEST_VERSION = 13
_TLS_WANTED = ("require", "verify-ca", "verify-full")
_NO_TLS = "Plinth's load engine speaks no TLS yet"


class ExternalServer:
    """A server that somebody else runs. `connection` looks into our schema first, and then where it always looks.

    What a dataset makes is made in our schema and found there, whatever else has its name; scripts without a dataset
    find the tables that are there.
    """

    def __init__(self, connection_string: str, run_id: str) -> None:
        """Find out where the connection string leads, by libpq's rules: services, .pgpass and PG* variables count.

        Raises RunError when there is no connecting, MissingCapability when it takes TLS, or is too old.
        """
        self._label = label_of(run_id)
        self._plain = resolve(connection_string)
        self._where = _place(self._plain)
        self._entry: Entry | None = None

    @property
    def schema(self) -> str:
        """Our schema."""
        return schema_of(self._label)

    @property
    def connection(self) -> Connection:
        """Where the load goes."""
        options = f'{self._plain.options or ""} -c search_path="{self.schema}","$user",public'.strip()
        return self._plain.model_copy(update={"options": options})

    def step(self) -> Step:
        """Making our schema."""
        return _step(self._label, self._where)

    def open(self, journal: Journal) -> None:
        """Make our schema. Refused when there is one of that name."""
        with self._control("connect") as control:
            self._entry = journal.record(self.step())
            try:
                make_schema(control, self._label)
            except PlinthError:
                if not control.closed:  # the server itself said no, and has rolled back
                    journal.strike(self._entry)
                    self._entry = None
                raise

    def close(self, journal: Journal) -> None:
        """Drop our schema with all that is in it; nothing when it is gone. Refused when it lacks our label."""
        if self._entry is not None:
            with self._control("connect") as control:
                drop_schema(control, self._label)
            journal.strike(self._entry)
            self._entry = None

    def alive(self) -> bool:
        """Whether it takes a connection."""
        import psycopg

        try:
            connect(self._plain).close()
        except psycopg.OperationalError:
            return False
        return True

    def check_alive(self) -> None:
        """Raise RunError, with its reason, when it takes no connection."""
        self._control("connect").close()

    def facts(self) -> ServerFacts:
        """What it says of itself, as far as we may see it."""
        with database_errors("read the server's facts", self._where), connect(self._plain) as control:
            return external_facts(control)

    def _control(self, doing: str) -> "psycopg.Connection[tuple[Any, ...]]":
        with database_errors(doing, self._where):
            return connect(self._plain)


def external_step(run_id: str) -> Step:
    """Making a run's schema, before it is known where the connection string leads."""
    return _step(label_of(run_id), "the external server")


def _step(label: str, where: str) -> Step:
    return Step(
        id="server.external.schema",
        title=f"make the schema {schema_of(label)} on {where}",
        undo=Undo(kind="drop_schema", path=where, label=label),
    )


def resolve(connection_string: str) -> Connection:
    """Where libpq ends up with a connection string, in this process's environment, without TLS."""
    found, encrypted, wanted = _by_libpq(connection_string)
    if encrypted and wanted in _TLS_WANTED:
        raise MissingCapability(
            f"sslmode={wanted} asks for an encrypted connection, and {_NO_TLS}",
            where=_place(found),
            hint="use sslmode=disable on a network that you trust, or a tunnel",
        )
    if encrypted:
        _check_plain(found)
    return found


def _by_libpq(connection_string: str) -> tuple[Connection, bool, str]:
    """Connect once as libpq does: where that led, whether it is encrypted, and the sslmode that was asked for."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    try:
        if "connect_timeout" not in conninfo_to_dict(connection_string):
            connection_string = make_conninfo(connection_string, connect_timeout=CONNECT_TIMEOUT_S)
    except psycopg.ProgrammingError as error:
        raise UsageError(
            f"the connection string cannot be read: {str(error).strip()}",
            where="server.connection",
            hint='write it as "host=db1 dbname=bench" or "postgresql://user@db1/bench"',
        ) from error
    hint = "psql with the same connection string must connect, too"
    with database_errors("connect to the external server", "server.connection", hint):
        with psycopg.connect(connection_string, autocommit=True) as control:
            info = control.info
            _check_version(info.server_version)
            return (
                Connection(
                    host=info.host,
                    port=info.port,
                    user=info.user,
                    database=info.dbname,
                    password=info.password or None,
                    options=info.options or None,
                ),
                bool(control.pgconn.ssl_in_use),
                info.get_parameters().get("sslmode", "prefer"),
            )


def _check_version(version_num: int) -> None:
    if version_num // 10_000 < OLDEST_VERSION:
        raise MissingCapability(
            f"the external server is PostgreSQL {version_num // 10_000}; {OLDEST_VERSION} or newer is needed",
            where="server.connection",
        )


def _check_plain(found: Connection) -> None:
    """libpq got an encrypted connection; the load needs one that is not."""
    import psycopg

    try:
        connect(found).close()
    except psycopg.OperationalError as error:
        raise MissingCapability(
            f"the server takes connections only with TLS, and {_NO_TLS}",
            where=_place(found),
            details=str(error).strip().splitlines(),
            hint="allow plain connections from this host (hostnossl in pg_hba.conf), or use a tunnel",
        ) from error


def _place(connection: Connection) -> str:
    """As a connection string, without the password."""
    from psycopg.conninfo import make_conninfo

    return make_conninfo(host=connection.host, port=connection.port, user=connection.user, dbname=connection.database)
