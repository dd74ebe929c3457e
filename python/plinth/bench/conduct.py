"""One call of `plinth bench` after its options are understood: connect, prepare, run, report."""

import getpass
import os
import pwd
import warnings
from typing import TYPE_CHECKING, Any, TextIO

from plinth import __version__
from plinth.bench.failure import INTERRUPTED, BenchFailure
from plinth.bench.initialise import Initialisation
from plinth.bench.load import BenchLoad
from plinth.bench.options import BenchOptions
from plinth.bench.results import json_file, report
from plinth.bench.tables import TableInfo, read_tables, server_message
from plinth.model.connection import Connection
from plinth.model.errors import PlinthError
from plinth.system.conninfo import resolve

if TYPE_CHECKING:
    import psycopg

_SEVERAL = "Multiple connection attempts failed"
_SMALL_TABLES = ("vacuum pgbench_branches", "vacuum pgbench_tellers", "truncate pgbench_history")


def conduct(asked: BenchOptions, out: TextIO, err: TextIO) -> int:
    """Do what was asked for; returns the exit code. Raises BenchFailure and KeyboardInterrupt."""
    said = err if asked.json == "-" else out  # standard output is then one JSON document
    if asked.initialize:
        with _connect(asked, "initialization", err) as connection:
            Initialisation(asked, connection, _target(asked), err).run()
        return 0
    with _connect(asked, "setup", err) as connection:
        if asked.debug:
            asked.tell(_circumstances(asked, connection))
        print(_banner(connection), file=said, flush=True)
        tables = read_tables(connection) if asked.uses_builtin else TableInfo(asked.scale)
        if asked.uses_builtin and asked.scale_given:
            asked.tell(f"warning: scale option ignored, using count from pgbench_branches table ({tables.scale})")
        if not asked.no_vacuum:
            _vacuum(asked, connection, err)
    load = BenchLoad(asked, tables, _target(asked), err)
    with json_file(asked.json, out) as everything:
        outcome = load.run()
        gives_up = asked.exit_on_abort and load.aborted
        if not gives_up:
            print(report(asked, tables, outcome), end="", file=said, flush=True)
        if everything is not None:
            print(load.result.model_dump_json(indent=1), file=everything)
    if load.interrupted:
        asked.tell("error: Run was interrupted; the above results are incomplete.")
        return INTERRUPTED
    if gives_up:
        asked.tell(f"error: Run was aborted due to an error in thread {load.aborted_thread}")
    elif load.aborted:
        asked.tell("error: Run was aborted; the above results are incomplete.")
    return 2 if load.aborted else 0


def _banner(connection: "psycopg.Connection[Any]") -> str:
    server = connection.info.parameter_status("server_version")
    return f"plinth bench ({__version__}, server {server})"


def _circumstances(asked: BenchOptions, connection: "psycopg.Connection[Any]") -> str:
    info = connection.info
    length = f"duration: {asked.time_s}" if asked.time_s else f"nxacts: {asked.transactions}"
    return f"pghost: {info.host} pgport: {info.port} nclients: {asked.clients} {length} dbName: {info.dbname}"


def _vacuum(asked: BenchOptions, connection: "psycopg.Connection[Any]", err: TextIO) -> None:
    """As pgbench: what fails here, for want of the tables or of the right, is told and passed over."""
    print("starting vacuum...", end="", file=err, flush=True)
    for statement in _SMALL_TABLES:
        _try(connection, statement, err)
    print("end.", file=err)
    if asked.vacuum_all:
        print("starting vacuum pgbench_accounts...", end="", file=err, flush=True)
        _try(connection, "vacuum analyze pgbench_accounts", err)
        print("end.", file=err)


def _try(connection: "psycopg.Connection[Any]", statement: str, err: TextIO) -> None:
    import psycopg

    try:
        connection.execute(statement.encode())
    except psycopg.Error as error:
        print(f"plinth bench: error: {server_message(error)}", file=err)
        print("plinth bench: detail: (ignoring this error and continuing anyway)", file=err)


def _connect(asked: BenchOptions, purpose: str, err: TextIO) -> "psycopg.Connection[Any]":
    import psycopg

    from plinth.system.control import open_control

    try:
        connection = open_control(conninfo(asked))
    except psycopg.Error as error:
        if error.pgconn is not None and error.pgconn.needs_password and asked.password is None:
            asked.password = _ask_password()
            return _connect(asked, purpose, err)
        said = str(error)
        if not isinstance(error, psycopg.ProgrammingError):  # which a wrong connection string is, in libpq's words
            # psycopg looks up hosts, and goes through several of them, itself; but libpq's words are the ones to tell.
            tried_once = error.pgconn is not None and _SEVERAL not in said
            pgconn = error.pgconn if tried_once else None
            pgconn = pgconn or psycopg.pq.PGconn.connect(conninfo(asked).encode())
            said = pgconn.error_message.decode(errors="replace") or said
        raise BenchFailure(said.strip(), then=f"could not create connection for {purpose}") from error
    connection.add_notice_handler(
        lambda notice: print(f"{notice.severity}:  {notice.message_primary}", file=err, flush=True)
    )
    return connection


def _ask_password() -> str:
    """From the terminal, or from standard input where there is none; empty at its end, as pgbench has it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", getpass.GetPassWarning)
        try:
            return getpass.getpass("Password: ")
        except EOFError:
            return ""


def _target(asked: BenchOptions) -> Connection:
    try:
        return resolve(conninfo(asked), usual_encoding="")
    except PlinthError as error:
        raise BenchFailure(error.message, hint=error.hint) from error


def conninfo(asked: BenchOptions) -> str:
    """The connection string of -h, -p, -U and the database, which may be a connection string that overrides them."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    given = {"host": asked.host, "port": asked.port, "user": asked.username, "password": asked.password}
    # What is empty is not given, as libpq has it.
    named = {name: value for name, value in given.items() if value}
    named["fallback_application_name"] = "plinth bench"
    dbname = _default_database() if asked.dbname is None else asked.dbname
    if not dbname:
        return make_conninfo("", **named)
    if "=" in dbname or dbname.startswith(("postgresql://", "postgres://")):
        return make_conninfo("", **(named | conninfo_to_dict(dbname)))
    return make_conninfo("", **named, dbname=dbname)


def _default_database() -> str:
    """As pgbench, which does not go by -U."""
    if named := os.environ.get("PGDATABASE") or os.environ.get("PGUSER"):
        return named
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError as error:
        raise BenchFailure(f"could not look up effective user ID {os.geteuid()}: user does not exist") from error
