"""The tables of a round in the database under test: the server's identity, the round that the tables are of, and how
its load ended."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

from plinth.model.errors import RunError, UsageError
from plinth.model.witness import RISKY_SETTINGS, LoadEnd, TestedServer, WitnessRound
from plinth.system.database import database_errors
from plinth.workload.commit_ledger_check import prepare_ledger_tables

if TYPE_CHECKING:
    import psycopg

_SETTINGS = (*RISKY_SETTINGS, "wal_sync_method", "data_checksums")
_IDENTITY = """
    SELECT (SELECT system_identifier::text FROM pg_control_system()), d.datname, d.oid::bigint, current_schema()::text,
        current_setting('server_version'), (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint,
        (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, pg_is_in_recovery()
    FROM pg_database d WHERE d.datname = current_database()
"""
_BOOT_ID = "SELECT trim(E'\\n' FROM pg_read_file('/proc/sys/kernel/random/boot_id', 0, 64))"
_CREATE_ROUND = (
    'CREATE TABLE IF NOT EXISTS plinth_ledger_round (round_id text NOT NULL, began_unix_us bigint NOT NULL, "end" text)'
)
_LACKING_RIGHT, _NO_SUCH_FILE = "42501", "58P01"
_NO_SUCH_TABLE = ("42P01", "3F000")


class RoundInTables(NamedTuple):
    """The row of the table plinth_ledger_round."""

    round_id: str
    began_unix_us: int
    """When its load began, by the server's clock."""
    end: str | None
    """How the load ended; None when it could not say so any more."""


def tested_server(control: "psycopg.Connection[Any]", where: str) -> TestedServer:
    """Return the server of a connection. Raises RunError, and UsageError for a standby or a database without a schema."""
    with database_errors("find out which server this is", where):
        row = control.execute(_IDENTITY).fetchone()
        settings = control.execute(
            "SELECT name, setting FROM pg_settings WHERE name = ANY (%s)", (list(_SETTINGS),)
        ).fetchall()
    assert row is not None, "a session is in a database"
    identifier, database, oid, schema, version, started_us, now_us, is_standby = row
    if is_standby:
        raise UsageError("the server is a standby: it takes no commits", where=where, hint="connect to the primary")
    if schema is None:
        raise UsageError("there is no schema to make tables in", where=where, hint="set search_path")
    return TestedServer(
        system_identifier=identifier,
        database=database,
        database_oid=oid,
        schema_name=schema,
        version=version,
        started_unix_us=started_us,
        began_unix_us=now_us,
        boot_id=_boot_id(control),
        settings=dict(settings),
    )


def prepare_round(
    control: "psycopg.Connection[Any]", clients: int, round_id: str, began_unix_us: int, where: str
) -> None:
    """Make and empty the tables of the ledger, and record the round that they are of."""
    with database_errors("make the tables of the ledger", where):
        prepare_ledger_tables(control, clients)
        control.execute(_CREATE_ROUND)
        control.execute("TRUNCATE plinth_ledger_round")
        control.execute("INSERT INTO plinth_ledger_round VALUES (%s, %s)", (round_id, began_unix_us))


def write_end(control: "psycopg.Connection[Any]", end: "LoadEnd | str", where: str) -> None:
    """Record that the load has ended, so that a later restart of the server does not count as a power cut in the
    round."""
    with database_errors("write down that the load has ended", where):
        control.execute('UPDATE plinth_ledger_round SET "end" = %s', (end,))


def round_in_tables(control: "psycopg.Connection[Any]", schema: str, where: str) -> RoundInTables | None:
    """Return the round that the tables are of; None where there are none. Raises RunError where that cannot be found out."""
    import psycopg
    from psycopg import sql

    query = sql.SQL('SELECT round_id, began_unix_us, "end" FROM {}.plinth_ledger_round').format(sql.Identifier(schema))
    with database_errors("read the table plinth_ledger_round", where):
        try:
            row = control.execute(query).fetchone()
        except psycopg.Error as error:
            if error.sqlstate in _NO_SUCH_TABLE:
                return None
            raise
    return None if row is None else RoundInTables(*row)


def is_of(tables: RoundInTables | None, then: WitnessRound, earlier: Collection[str], where: str) -> bool:
    """Return whether the tables are those of a round, and not of an earlier one, or missing, which is what a power cut has left then.

    `earlier` are the ids of the witness's earlier rounds: of these it is certain, also when the server's clock went back, as it
    may when its machine has had no power. Raises RunError for tables of a later round, which another witness recorded.
    """
    if tables is None or tables.round_id == then.round_id:
        return tables is not None
    if tables.round_id not in earlier and tables.began_unix_us > then.server.began_unix_us:
        raise RunError(
            f"another load has emptied the tables since round {then.number}, for another witness",
            where=where,
            hint="nothing more can be found out about this round: `--verdict` shows what was found before; to forget it, delete its folder on the witness",
        )
    return False


def check_tables(control: "psycopg.Connection[Any]", schema: str) -> None:
    """Find unqualified tables in the schema of a round, for any role."""
    from psycopg import sql

    control.execute(sql.SQL("SET search_path = {}").format(sql.Identifier(schema)))


def check_is_same(now: TestedServer, then: WitnessRound, where: str) -> None:
    """Raises UsageError for a server or database that is not the one of the round."""
    if now.system_identifier != then.server.system_identifier:
        raise UsageError(
            f"this is another cluster: its system identifier is {now.system_identifier}, and round {then.number} was of "
            f"{then.server.system_identifier}",
            where=where,
            hint="connect to the server that the load ran on",
        )
    if now.database != then.server.database:
        raise UsageError(
            f"this is database {now.database}; round {then.number} was of {then.server.database}",
            where=where,
            hint=f"connect with dbname={then.server.database}",
        )
    if now.database_oid != then.server.database_oid:
        raise RunError(
            f"database {now.database} was dropped and made again since the load began",
            where=where,
            hint="nothing can be found out about this round; delete its folder on the witness to forget it",
        )


def _boot_id(control: "psycopg.Connection[Any]") -> str | None:
    """Return which boot of its machine the server runs in; None where the role may not read it, and on other systems than Linux."""
    import psycopg

    try:
        row = control.execute(_BOOT_ID).fetchone()
    except psycopg.Error as error:
        if control.closed or error.sqlstate not in (_LACKING_RIGHT, _NO_SUCH_FILE):
            raise RunError(f"cannot read the boot id: {error}") from error
        return None
    return None if row is None else row[0]
