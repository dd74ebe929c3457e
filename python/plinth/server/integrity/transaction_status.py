"""Agreement of pg_xact with the hint bits of rows: whether rows of a transaction that pg_xact has lost are visible is chance.

A row whose hint bits say that its transaction committed is visible without pg_xact. pg_xact must say the same, or nothing, once it
has been cut off behind frozen rows.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plinth.model.durability import IntegrityCheck
from plinth.model.facts import Installation
from plinth.server.integrity.findings import Finding, Integrity, damage_of, finding_of
from plinth.server.layout import ServerLayout
from plinth.system.confinement import View, program_folders
from plinth.system.foreign_code import NOT_READ, calls_code_of_others
from plinth.system.runner import CommandError, Runner

if TYPE_CHECKING:
    import psycopg

_TABLES = f"SELECT oid::regclass::text, {calls_code_of_others('pg_class.oid')} FROM pg_class WHERE relkind IN ('r', 'm') AND relpersistence = 'p' AND relam = 2 ORDER BY pg_class.oid DESC"
# A 32-bit xid is the last one of that number: at most 2^31 before the next one. Those below 3 are no transactions.
_STATUS = """\
WITH now AS (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::numeric AS next),
writers AS (SELECT xmin::text::numeric AS xid, count(*) AS rows FROM ONLY {table} GROUP BY xmin),
full_xids AS (SELECT xid, rows, next - mod(next - xid + 4294967296, 4294967296) AS full_xid FROM writers, now WHERE xid >= 3)
SELECT xid::bigint, rows, status FROM full_xids, pg_xact_status(full_xid::text::xid8) AS status
WHERE full_xid >= 3 AND status <> 'committed' ORDER BY xid LIMIT 10"""
TRANSACTION_STATUS = "hint bits agree with pg_xact"
"""The name of the check."""
_COMMIT = re.compile(r"desc: COMMIT\b")
_WAL_SEGMENT_BYTES = 16 * 2**20


def check_transaction_status(control: "psycopg.Connection[Any]") -> Integrity:
    """Look up the transaction of every visible row. Raises psycopg.Error where the server could not answer."""
    import psycopg

    found: list[Finding] = []
    left_out: list[IntegrityCheck] = []
    for name, calls_code in control.execute(_TABLES.encode()).fetchall():
        if calls_code:
            left_out.append(IntegrityCheck(name=f"{TRANSACTION_STATUS}: {name}", not_run=NOT_READ))
            continue
        try:
            rows = control.execute(_STATUS.format(table=name).encode()).fetchall()
        except psycopg.Error as error:
            found.append(finding_of(control, error, name))
            continue
        found.extend(
            ("heap damaged", f"{name}: {count:,} rows of transaction {xid} are there; pg_xact says {status}")
            for xid, count, status in rows
        )
    return Integrity(damage_of(found), (IntegrityCheck(name=TRANSACTION_STATUS), *left_out))


def last_commit_before(end_lsn: str, layout: ServerLayout, installation: Installation, runner: Runner) -> str | None:
    """Read the last commit before `end_lsn` in its WAL segment, in pg_waldump's words; None where there is none, or no WAL."""
    high, low = (int(part, 16) for part in end_lsn.split("/"))
    argv = (
        f"{installation.bindir}/pg_waldump",
        f"--path={layout.wal_directory or layout.data_directory / 'pg_wal'}",
        "--rmgr=Transaction",
        f"--start={high:X}/{low - low % _WAL_SEGMENT_BYTES:X}",
        f"--end={end_lsn}",
    )
    view = View(
        programs=program_folders(Path(installation.bindir)), originals=(layout.wal_directory or layout.data_directory,)
    )
    try:
        shown = runner.run_confined("data directory", argv, view, layout.owner).stdout
    except CommandError as error:
        shown = error.completed.stdout  # it ends with an error where the WAL does
    commits = [line for line in shown.splitlines() if _COMMIT.search(line)]
    return commits[-1].strip() if commits else None
