"""One call of `plinth bench` after its options are parsed: connect, prepare, run, report."""

import getpass
import json
import os
import pwd
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

from plinth import __version__
from plinth.bench.failure import INTERRUPTED, BenchFailure
from plinth.bench.load import BenchLoad
from plinth.bench.options import BenchOptions
from plinth.bench.results import json_file, report
from plinth.bench.tables import TableInfo, read_tables
from plinth.bench.tpcc import TpccTables, closing_lines, figures, read_warehouses, vacuums
from plinth.common.libpq import ConninfoError, make_conninfo, parameters
from plinth.common.shown import shown
from plinth.model.connection import Connection
from plinth.model.errors import PlinthError
from plinth.system.conninfo import resolve
from plinth.system.libpq import ConnectError, LibpqConnection, StatementError
from plinth.system.libpq_files import check_files

if TYPE_CHECKING:
    from plinth.model.load import LoadResult

_SMALL_TABLES = ("vacuum pgbench_branches", "vacuum pgbench_tellers", "truncate pgbench_history")


def conduct(asked: BenchOptions, out: TextIO, err: TextIO) -> int:
    """Execute the call; returns the exit code. Raises BenchFailure and KeyboardInterrupt."""
    said = err if asked.json == "-" else out  # standard output is then one JSON document
    if asked.initialize:
        _initialise(asked, err)
        return 0
    with _connect(asked, "setup", err) as connection:
        if asked.debug:
            asked.print_message(_debug_line(asked, connection))
        print(_banner(connection), file=said, flush=True)
        warehouses = read_warehouses(connection) if asked.tpcc else None
        tables = _tables(asked, connection, warehouses)
        if not asked.no_vacuum:
            _vacuum(asked, connection, err)
    variables = {"scale": str(tables.scale)} if warehouses is None else warehouses.variables
    load = BenchLoad(asked, variables, _target(asked), err)
    with json_file(asked.json, out) as everything:
        outcome = load.run()
        gives_up = asked.exit_on_abort and load.aborted
        if not gives_up:
            print(report(asked, tables, outcome), end="", file=said, flush=True)
            if warehouses is not None:
                print("\n".join(closing_lines(asked, warehouses, load.result)), file=said, flush=True)
            _print_machines(asked, load.result, said)
        if everything is not None:
            of_tpcc = {} if warehouses is None else {"tpcc": figures(asked, warehouses, load.result)}
            print(_as_json(load.result, of_tpcc), file=everything)
    if load.interrupted:
        asked.print_message("error: Run was interrupted; the above results are incomplete.")
        return INTERRUPTED
    if gives_up:
        asked.print_message(f"error: Run was aborted due to an error in thread {load.aborted_thread}")
    elif load.aborted:
        asked.print_message("error: Run was aborted; the above results are incomplete.")
    return 2 if load.aborted else 0


def _print_machines(asked: BenchOptions, result: "LoadResult", said: TextIO) -> None:
    """Print what each machine of a fleet did; nothing for a load by this machine alone."""
    if result.fleet is None:
        return
    from plinth.bench.fleet import machine_lines

    print("\n".join(machine_lines(result.fleet, result.measured_ns)), file=said, flush=True)
    if result.fleet.excluded is not None:
        asked.print_message(f"warning: {result.fleet.excluded}")


def _as_json(result: "LoadResult", more: Mapping[str, object]) -> str:
    if not more:
        return result.model_dump_json(indent=1)
    return json.dumps({**result.model_dump(mode="json"), **more}, indent=1, ensure_ascii=False)


def _tables(asked: BenchOptions, connection: LibpqConnection, warehouses: TpccTables | None) -> TableInfo:
    """Return what the report says of the tables, with a warning where -s is not what they are."""
    if warehouses is not None:
        counted, tables = "warehouse", warehouses.info
    elif asked.uses_builtin:
        counted, tables = "pgbench_branches", read_tables(connection)
    else:
        return TableInfo(asked.scale)
    if asked.scale_given:
        asked.print_message(f"warning: scale option ignored, using count from {counted} table ({tables.scale})")
    return tables


def _initialise(asked: BenchOptions, err: TextIO) -> None:
    from plinth.bench.initialise import Initialisation  # which no load needs
    from plinth.bench.initialise_tpcc import TpccInitialisation

    make = TpccInitialisation if asked.tpcc else Initialisation
    with _connect(asked, "initialization", err) as connection:
        make(asked, connection, _target(asked), err).run()


def _banner(connection: LibpqConnection) -> str:
    server = connection.parameter_status("server_version")
    return shown(f"plinth bench ({__version__}, server {server})")


def _debug_line(asked: BenchOptions, connection: LibpqConnection) -> str:
    length = f"duration: {asked.time_s}" if asked.time_s else f"nxacts: {asked.transactions}"
    place = f"pghost: {connection.host} pgport: {connection.port}"
    return f"{place} nclients: {asked.clients} {length} dbName: {connection.database}"


def _vacuum(asked: BenchOptions, connection: LibpqConnection, err: TextIO) -> None:
    """Vacuum before the run. As in pgbench, errors, such as missing tables or privileges, are printed and ignored."""
    print("starting vacuum...", end="", file=err, flush=True)
    for statement in vacuums(everything=asked.vacuum_all) if asked.tpcc else _SMALL_TABLES:
        _try(connection, statement, err)
    print("end.", file=err)
    if asked.vacuum_all and not asked.tpcc:
        print("starting vacuum pgbench_accounts...", end="", file=err, flush=True)
        _try(connection, "vacuum analyze pgbench_accounts", err)
        print("end.", file=err)


def _try(connection: LibpqConnection, statement: str, err: TextIO) -> None:
    try:
        connection.execute(statement)
    except StatementError as error:
        print(f"plinth bench: error: {error}", file=err)
        print("plinth bench: detail: (ignoring this error and continuing anyway)", file=err)


def _connect(asked: BenchOptions, purpose: str, err: TextIO) -> LibpqConnection:
    try:
        check_files(wanted := conninfo(asked))
        return LibpqConnection(wanted, lambda notice: print(notice, end="", file=err, flush=True))
    except ConnectError as error:
        if error.needs_password and asked.password is None:
            asked.password = _ask_password()
            return _connect(asked, purpose, err)
        raise _no_connection(error, purpose) from error
    except ConninfoError as error:
        raise _no_connection(error, purpose) from error
    except OSError as error:
        raise _no_connection(f'could not read file "{error.filename}": {error.strerror}', purpose) from error


def _no_connection(error: Exception | str, purpose: str) -> BenchFailure:
    return BenchFailure(str(error), then=f"could not create connection for {purpose}")


def _ask_password() -> str:
    """Read the password from the terminal, or from standard input where there is none; at its end it is empty, as in pgbench."""
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
    """Return the connection string of -h, -p, -U and the database, which may be a connection string that overrides them."""
    given = {"host": asked.host, "port": asked.port, "user": asked.username, "password": asked.password}
    # What is empty is not given, as libpq has it.
    named = {name: value for name, value in given.items() if value}
    named["fallback_application_name"] = "plinth bench"
    dbname = _default_database() if asked.dbname is None else asked.dbname
    if not dbname:
        return make_conninfo(**named)
    if "=" in dbname or dbname.startswith(("postgresql://", "postgres://")):
        return make_conninfo(**(named | parameters(dbname)))
    return make_conninfo(**named, dbname=dbname)


def _default_database() -> str:
    """Return the default database as pgbench chooses it: -U does not matter."""
    if named := os.environ.get("PGDATABASE") or os.environ.get("PGUSER"):
        return named
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError as error:
        raise BenchFailure(f"could not look up effective user ID {os.geteuid()}: user does not exist") from error
