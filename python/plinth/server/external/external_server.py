"""External servers, reached by a connection string: Plinth works in its own schema and leaves everything else as it was."""

import re
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from plinth.common.libpq import make_conninfo
from plinth.model.base import SettingValue
from plinth.model.connection import Connection
from plinth.model.errors import MissingCapability, Reported, RunError
from plinth.model.facts import ServerFacts
from plinth.model.server_spec import OLDEST_VERSION
from plinth.model.step import Step, Undo
from plinth.server.external.schema import drop_schema, has_schema, make_schema, schema_of
from plinth.server.external.session_check import check_current_schema, check_sessions
from plinth.server.facts import external_facts
from plinth.server.layout import server_step_id
from plinth.server.settings.readback import check_options_taken
from plinth.server.settings.values import setting_text
from plinth.system import conninfo
from plinth.system.control_settings import applying, with_settings
from plinth.system.database import connect, connect_unpinned, database_errors
from plinth.system.directory import label_of
from plinth.system.journal import Entry, Journal

if TYPE_CHECKING:
    import psycopg

_WHERE = "server.connection"
_OPTIONS = "server.connection_options"
_FIRST = "1-external"


class ExternalServer:
    """A server that Plinth does not manage. Sessions of `connection` search our schema first, then their usual search path.

    Tables of a dataset are made in our schema, and found there before others of the same name; scripts without a dataset
    find the existing tables.
    """

    def __init__(self, connection: str, run_id: str, name: str = _FIRST) -> None:
        """Find out where a connection string leads, by libpq's rules: services, .pgpass and PG* variables count.

        Each cluster of a run has its own schema, since several may be on the same server.

        Raises RunError when it cannot connect, UsageError for a string that libpq rejects, MissingCapability
        for a way to connect that is not supported, and for a server that is too old.
        """
        self._run_id, self._name = run_id, name
        self._label = _label(run_id, name)
        self._found, self._major = _resolved(connection)
        self._where = conninfo.place(self._found)
        self._entry: Entry | None = None
        self._options: Mapping[str, SettingValue] = {}

    @property
    def schema(self) -> str:
        """Return the name of our schema."""
        return schema_of(self._label)

    @property
    def connection(self) -> Connection:
        """Return where the load connects."""
        found = with_options(self._found, self._options)
        return replace(found, options=f"{found.options or ''} -c search_path={self._search_path}".strip())

    @property
    def control(self) -> Connection:
        """Return where control sessions connect, with those settings of theirs that not every version has."""
        return replace(self._found, options=with_settings(self._found.options, applying(self._major)))

    def with_options(self, options: Mapping[str, SettingValue]) -> "ExternalServer":
        """Return the same server for a load with `options` as settings of its sessions."""
        if not options:
            return self
        other = copy(self)
        other._options = dict(options)
        return other

    @property
    def _search_path(self) -> str:
        return f'"{self.schema}","$user",public'

    @property
    def whole_string(self) -> str:
        """Return a connection string that leads there in any environment, with its secrets: not to be shown or kept."""
        return make_conninfo(**conninfo.keywords(self._found))

    def step(self) -> Step:
        """Return the step that makes our schema."""
        return _step(self._run_id, self._name, self._where)

    def open(self, journal: Journal) -> bool:
        """Make our schema; whether it is there already, as a run that was killed has made it, says its journal.

        Refused when there is one of that name that is not ours. MissingCapability where a session would not look into it, or
        would not be its own: as by a connection pooler.
        """
        with database_errors("connect", self._where):
            check_sessions(self.connection, self._where, self._search_path)
        with self._control("connect") as control:
            recorded = [entry for entry in journal.entries if entry.step.id == self.step().id]
            self._entry = recorded[-1] if recorded else journal.record(self.step())
            if recorded and has_schema(control, self._label):
                return True
            try:
                make_schema(control, self._label)
            except Reported:
                if not control.closed:  # the server itself said no, and has rolled back
                    journal.mark_undone(self._entry)
                    self._entry = None
                raise
        return False

    def check_makes_in_schema(self, control: "psycopg.Connection[Any]") -> None:
        """Raise MissingCapability for a session of `connection` in which tables would be made elsewhere than in our schema."""
        check_current_schema(control, self.schema, self._where)

    def close(self, journal: Journal) -> None:
        """Drop our schema with all that is in it; nothing when it is gone. Refused when it lacks our label."""
        if self._entry is not None:
            with self._control("connect") as control:
                drop_schema(control, self._label)
            journal.mark_undone(self._entry)
            self._entry = None

    def alive(self) -> bool:
        """Return whether it accepts a connection."""
        import psycopg

        try:
            connect(self.control).close()
        except psycopg.OperationalError:
            return False
        return True

    def check_alive(self) -> None:
        """Raise RunError, with its reason, when it takes no connection."""
        self._control("connect").close()

    def facts(self) -> ServerFacts:
        """Read the facts that it reports to a session of the load, as far as our role may see them.

        Raises RunError for options that did not take.
        """
        found = with_options(self._found, self._options)
        with (
            database_errors("read the server's facts", self._where),
            connect_unpinned(found, unconverted=True) as control,
        ):
            check_options_taken(control, self._options)
            return external_facts(control, self._options)

    def _control(self, doing: str) -> "psycopg.Connection[tuple[Any, ...]]":
        with database_errors(doing, self._where):
            return connect(self.control)


def external_step(run_id: str, name: str = _FIRST) -> Step:
    """Return the step that makes a cluster's schema, before it is known where the connection string leads."""
    return _step(run_id, name, "the external server")


def _label(run_id: str, name: str) -> str:
    number = name.partition("-")[0]
    return label_of(run_id) if number == "1" else f"{label_of(run_id)}-{number}"


def _step(run_id: str, name: str, where: str) -> Step:
    label = _label(run_id, name)
    return Step(
        id=server_step_id(name, "schema"),
        title=f"make the schema {schema_of(label)} on {where}",
        undo=Undo(kind="drop_schema", path=where, label=label),
    )


def resolve(connection: str) -> Connection:
    """Return the one server that a connection string leads to, by libpq's rules, in this process's environment.

    Of several hosts it is the one that accepts a connection now: the load and control connections must reach the same server.
    """
    return _resolved(connection)[0]


def _resolved(connection: str) -> tuple[Connection, int]:
    """Return the server, and its major version."""
    found = conninfo.resolve(connection, _WHERE)
    hint = "psql with the same connection string must connect, too"
    with database_errors("connect to the external server", _WHERE, hint), connect_unpinned(found) as control:
        _check_version(control.info.server_version)
        host, port, major = control.info.host, control.info.port, control.info.server_version // 10_000
    reached = (one for one in found.hosts if (one.host or one.hostaddr, one.port) == (host, port))
    return found.only(next(reached)), major


def with_options(to: Connection, options: Mapping[str, SettingValue]) -> Connection:
    """Return `to` with further settings of its sessions."""
    words = [f"-c {name}={_escaped(setting_text(value))}" for name, value in options.items()]
    joined = " ".join([*([to.options] if to.options else []), *words])
    return replace(to, options=joined or None)


def _escaped(value: str) -> str:
    """Escape a value within options, where blanks end it: see pg_split_opts of PostgreSQL."""
    return re.sub(r"([\\\s])", r"\\\1", value)


def check_options(connection: str, options: Mapping[str, SettingValue]) -> None:
    """Raise RunError unless the server takes sessions with `options`, and they have them."""
    found = with_options(conninfo.resolve(connection, _WHERE), options)
    with database_errors("connect with server.connection_options", _OPTIONS), connect_unpinned(found) as control:
        check_options_taken(control, options)


def check_external(connection: str) -> str:
    """Raise a PlinthError unless the server that `connection` leads to takes us now, and lets us make a schema; nothing is made.

    Returns a connection string that leads there in any environment, with its secrets: not to be shown or kept.
    """
    found = resolve(connection)
    with database_errors("ask for our rights", _WHERE), connect(found) as control:
        database, user = control.info.dbname, control.info.user
        row = control.execute(
            "select has_database_privilege(current_database(), 'create'), pg_is_in_recovery()"
        ).fetchone()
    assert row is not None, "it selects no table"
    may_create, is_standby = row
    if is_standby:
        raise MissingCapability(
            "it is a standby, which takes no writes",
            where=_WHERE,
            hint="name its primary: target_session_attrs=read-write",
        )
    if not may_create:
        raise RunError(
            f"user {user} may not make a schema in database {database}",
            where=_WHERE,
            hint=f"grant create on database {database} to {user}",
        )
    return make_conninfo(**conninfo.keywords(found))


def _check_version(version_num: int) -> None:
    if version_num // 10_000 < OLDEST_VERSION:
        raise MissingCapability(
            f"the external server is PostgreSQL {version_num // 10_000}; {OLDEST_VERSION} or newer is needed",
            where=_WHERE,
        )
