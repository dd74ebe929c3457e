"""Whether a database is whole: the results of PostgreSQL's own checkers for each table, index, visibility map and
page.

amcheck (verify_heapam, bt_index_parent_check), pg_visibility (pg_check_visible, pg_check_frozen) and pg_checksums, in that
order, as chapter F of PostgreSQL's manual describes them.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from plinth.model.durability import DamageKind, IntegrityCheck
from plinth.model.errors import MissingCapability, RunError
from plinth.model.facts import Installation
from plinth.server.integrity.check_limits import CheckTimedOut, raise_if_timed_out, timeout_reason
from plinth.server.integrity.findings import Finding, Integrity, damage_of, finding_of, is_unanswered
from plinth.server.layout import ServerLayout
from plinth.system.confinement import View, program_folders
from plinth.system.extension import function_of, make_extension
from plinth.system.foreign_code import NOT_READ, calls_code_of_others
from plinth.system.runner import CommandError, Runner

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow

CHECKSUMS = "pg_checksums"
"""The name of the check of all checksums."""
_FIRST_WITH_HEAP_CHECK = 14
_FIRST_WITH_UNIQUE_CHECK = 17
_FIRST_WITH_GIN_CHECK = 18
_BAD_CHECKSUM = re.compile(r"checksum verification failed in file.*")
_HEAPS = "SELECT oid, oid::regclass::text AS name FROM pg_class WHERE relkind IN ('r', 't', 'm') AND relpersistence = 'p' ORDER BY pg_class.oid"
_UNLOGGED = (
    f"SELECT oid, oid::regclass::text, {calls_code_of_others('pg_class.oid')} FROM pg_class "
    "WHERE relkind = 'r' AND relpersistence = 'u' ORDER BY pg_class.oid"
)
_BTREES = (
    "SELECT c.oid, c.oid::regclass::text, i.indisunique FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
    "JOIN pg_am a ON a.oid = c.relam WHERE a.amname = 'btree' AND c.relkind = 'i' AND c.relpersistence = 'p' "
    "AND i.indisvalid AND i.indisready ORDER BY c.oid"
)
_GINS = (
    "SELECT c.oid, c.oid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam "
    "WHERE a.amname = 'gin' AND c.relkind = 'i' AND c.relpersistence = 'p' AND i.indisvalid AND i.indisready ORDER BY c.oid"
)
_UNIQUE = (
    "SELECT i.indexrelid::regclass::text, i.indrelid::regclass::text, "
    "ARRAY(SELECT pg_get_indexdef(i.indexrelid, n, true) FROM generate_series(1, i.indnkeyatts) n), "
    f"pg_get_expr(i.indpred, i.indrelid), {calls_code_of_others('i.indrelid')} FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid "
    "WHERE i.indisunique AND i.indisvalid AND i.indisready AND c.relkind IN ('r', 'm') AND c.relpersistence = 'p' ORDER BY i.indexrelid"
)


def check_database(
    control: "psycopg.Connection[TupleRow]", major: int, tell: Callable[[str], None] = lambda _: None
) -> Integrity:
    """Check every table and B-tree index of the database, catalogues included, of a server of version `major`.

    `control` is in autocommit mode; `tell` gets the name of each check as it begins. Without a superuser, and without the
    extension that it needs, a check is not run; one that reaches a timeout of `check_limits.limited` says what it waited for.
    Raises psycopg.Error where the server could not answer: its connection is gone, or resources are short.
    """
    checks: list[IntegrityCheck] = []
    found: list[Finding] = []
    no_right = _lacks_superuser(control)
    amcheck = no_right or _extension(control, "amcheck", found)
    visibility = no_right or _extension(control, "pg_visibility", found)
    heap_lacks = amcheck or (None if major >= _FIRST_WITH_HEAP_CHECK else "PostgreSQL 14 is the first that has it")
    for name, lacks, run in (
        ("verify_heapam", heap_lacks, _heaps),
        ("bt_index_parent_check", amcheck, lambda control: _indexes(control, major)),
        ("pg_check_visible", visibility, lambda control: _maps(control, "pg_check_visible")),
        ("pg_check_frozen", visibility, lambda control: _maps(control, "pg_check_frozen")),
    ):
        if lacks is None:
            tell(name)
            try:
                found += run(control)
            except CheckTimedOut as error:  # what was found before stays
                lacks = str(error)
            except RunError as error:  # a function of the database could be taken for that of the extension
                lacks = error.message
        checks.append(IntegrityCheck(name=name, not_run=lacks))
    if gins := control.execute(_GINS).fetchall():
        gin_lacks = amcheck or (None if major >= _FIRST_WITH_GIN_CHECK else "PostgreSQL 18 is the first that has it")
        check = ""
        try:
            check = "" if gin_lacks else function_of(control, "amcheck", "gin_index_check")
        except RunError as error:
            gin_lacks = error.message
        for oid, name in () if gin_lacks else gins:
            tell("gin_index_check")
            try:
                _rows(control, f"SELECT {check}({int(oid)})", name, found, "index and heap disagree")
            except CheckTimedOut as error:
                gin_lacks = str(error)
        checks.append(IntegrityCheck(name="gin_index_check", not_run=gin_lacks))
    if major < _FIRST_WITH_UNIQUE_CHECK:
        tell("unique keys are unique")
        not_run = None
        try:
            repeated, checks_of_some = _repeated_keys(control)
            found += repeated
            checks += checks_of_some
        except CheckTimedOut as error:
            not_run = str(error)
        checks.append(IntegrityCheck(name="unique keys are unique", not_run=not_run))
    return Integrity(damage_of(found), tuple(checks))


def check_unlogged(control: "psycopg.Connection[TupleRow]") -> Integrity:
    """Check that unlogged tables are empty, as recovery from a crash makes them: call it only after a recovery."""
    found: list[Finding] = []
    not_run = None
    left_out: list[IntegrityCheck] = []
    try:
        for oid, name, calls_code in control.execute(_UNLOGGED.encode()).fetchall():
            if calls_code:
                left_out.append(IntegrityCheck(name=f"unlogged table {name} is empty", not_run=NOT_READ))
                continue
            for (rows,) in _rows(control, f"SELECT count(*) FROM {name}", name, found):
                if rows:
                    found.append(("unlogged table not reset", f"{name} (oid {oid}) has {rows} rows after a recovery"))
    except CheckTimedOut as error:
        not_run = str(error)
    whole = IntegrityCheck(name="unlogged tables are empty", not_run=not_run)
    return Integrity(damage_of(found), (whole, *left_out))


def check_checksums(layout: ServerLayout, installation: Installation, runner: Runner, enabled: bool) -> Integrity:
    """Verify the checksum of every page of a stopped server; without data checksums, a check that was not run."""
    name = CHECKSUMS
    if not enabled:
        return Integrity((), (IntegrityCheck(name=name, not_run="the server was made without data checksums"),))
    argv = (f"{installation.bindir}/pg_checksums", "--check", f"--pgdata={layout.data_directory}")
    view = View(programs=program_folders(Path(installation.bindir)), originals=tuple(layout.directories.values()))
    try:
        runner.run_confined("data directory", argv, view, layout.owner)
    except MissingCapability as error:  # some builds bring nothing but the server
        return Integrity((), (IntegrityCheck(name=name, not_run=error.message),))
    except CommandError as error:
        wrong = [line for line in error.completed.stderr.splitlines() if _BAD_CHECKSUM.search(line)]
        if not wrong:
            return Integrity((), (IntegrityCheck(name=name, not_run=error.message),))
        return Integrity(damage_of([("checksum failure", line) for line in wrong]), (IntegrityCheck(name=name),))
    return Integrity((), (IntegrityCheck(name=name),))


def _lacks_superuser(control: "psycopg.Connection[TupleRow]") -> str | None:
    row = control.execute("SELECT current_user::text, current_setting('is_superuser')").fetchone()
    assert row is not None, "a query without a table has one row"
    return None if row[1] == "on" else f"role {row[0]} is no superuser"


def _extension(control: "psycopg.Connection[TupleRow]", name: str, found: list[Finding]) -> str | None:
    """Make an extension; returns why it is not there. One that is installed can always be made in a catalogue that is whole."""
    import psycopg

    if control.execute("SELECT 1 FROM pg_available_extensions WHERE name = %s", (name,)).fetchone() is None:
        return f"extension {name} is not installed"
    try:
        make_extension(control, name)
    except psycopg.Error as error:
        if reason := timeout_reason(control, error, None):
            return reason
        if is_unanswered(control, error):
            raise
        message = f"extension {name} cannot be made: {str(error).strip().splitlines()[0]}"
        found.append(("heap damaged", f"catalogue: {message}"))
        return message
    return None


def _heaps(control: "psycopg.Connection[TupleRow]") -> Iterator[Finding]:
    verify_heapam = function_of(control, "amcheck", "verify_heapam")
    for oid, name in control.execute(_HEAPS).fetchall():
        query = (
            f"SELECT blkno, offnum, msg FROM {verify_heapam}({int(oid)}, on_error_stop => true, check_toast => true)"
        )
        for block, offset, message in _rows(control, query, name, found := []):
            yield "heap damaged", f"{name}, page {block}, item {offset}: {message}"
        yield from found


def _indexes(control: "psycopg.Connection[TupleRow]", major: int) -> Iterator[Finding]:
    check = function_of(control, "amcheck", "bt_index_parent_check")
    for oid, name, is_unique in control.execute(_BTREES).fetchall():
        unique = ", checkunique => true" if is_unique and major >= _FIRST_WITH_UNIQUE_CHECK else ""
        query = f"SELECT {check}({int(oid)}, heapallindexed => true, rootdescend => true{unique})"
        _rows(control, query, name, found := [], "index and heap disagree")
        yield from found


def _repeated_keys(control: "psycopg.Connection[TupleRow]") -> tuple[list[Finding], list[IntegrityCheck]]:
    """Find keys of unique indexes that more than one visible row has, as checkunique does from 17 on; and the indexes that are left out."""
    repeated: list[Finding] = []
    left_out: list[IntegrityCheck] = []
    control.execute("SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off")
    for index, table, keys, predicate, calls_code in control.execute(_UNIQUE.encode()).fetchall():
        if calls_code:
            left_out.append(IntegrityCheck(name=f"unique keys are unique: {index}", not_run=NOT_READ))
            continue
        known = " AND ".join(f"({key}) IS NOT NULL" for key in keys)
        where = known + (f" AND ({predicate})" if predicate else "")
        grouped = f"SELECT 1 FROM ONLY {table} WHERE {where} GROUP BY {', '.join(f'({key})' for key in keys)} HAVING count(*) > 1"
        answers = _rows(control, f"SELECT count(*) FROM ({grouped}) AS repeated", table, found := [])
        repeated += found
        for (count,) in answers:
            if count:
                said = f"{index}: {count:,} of its keys are in more than one row of {table}"
                repeated.append(("index and heap disagree", said))
    control.execute("RESET enable_indexscan; RESET enable_indexonlyscan; RESET enable_bitmapscan")
    return repeated, left_out


def _maps(control: "psycopg.Connection[TupleRow]", function: str) -> Iterator[Finding]:
    qualified = function_of(control, "pg_visibility", function)
    for oid, name in control.execute(_HEAPS).fetchall():
        for (tid,) in _rows(control, f"SELECT t_ctid::text FROM {qualified}({int(oid)})", name, found := []):
            yield "visibility map wrong", f"{name}, {function}: {tid}"
        yield from found


def _rows(
    control: "psycopg.Connection[TupleRow]",
    query: str,
    name: str,
    found: list[Finding],
    kind: DamageKind = "heap damaged",
) -> "list[TupleRow]":
    """Return the rows of a check of `name`; an error of the server is added to `found`, since damage shows that way, too."""
    import psycopg

    try:
        return control.execute(query.encode()).fetchall()
    except psycopg.Error as error:
        raise_if_timed_out(control, error, name)
        found.append(finding_of(control, error, name, kind))
        return []
