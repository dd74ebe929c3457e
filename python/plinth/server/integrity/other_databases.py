"""Checks of a server's databases other than the one under test, which a power cut damages as well."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from plinth.model.connection import Connection
from plinth.model.durability import IntegrityCheck
from plinth.server.integrity.amcheck import check_database
from plinth.server.integrity.findings import Finding, Integrity, damage_of, is_unanswered
from plinth.server.integrity.page_pointers import Pointers, read_pointers
from plinth.system.database import connect

if TYPE_CHECKING:
    import psycopg

OTHER_DATABASES = "other databases"
"""The name of the check."""
_OTHERS = "SELECT datname FROM pg_database WHERE datallowconn AND NOT datistemplate AND datname <> current_database() ORDER BY datname"


def check_other_databases(
    control: "psycopg.Connection[Any]", connection: Connection, major: int
) -> tuple[Integrity, list[Pointers]]:
    """Check each as `check_database` does, except templates; with what `check_pointers` needs of each.

    Nothing is known of their rows before the load. Raises psycopg.Error where the server could not answer.
    """
    found: list[Finding] = []
    checks = [IntegrityCheck(name=OTHER_DATABASES)]
    pointers: list[Pointers] = []
    for (name,) in control.execute(_OTHERS).fetchall():
        integrity = _check(control, replace(connection, database=name), major, found, pointers)
        found.extend((one.kind, f"database {name}: {line}") for one in integrity.damage for line in one.evidence)
        checks += [
            IntegrityCheck(name=f"{check.name} of database {name}", not_run=check.not_run)
            for check in integrity.checks
            if check.not_run is not None
        ]
    return Integrity(damage_of(found), tuple(checks)), pointers


def _check(
    control: "psycopg.Connection[Any]",
    other: Connection,
    major: int,
    found: list[Finding],
    pointers: list[Pointers],
) -> Integrity:
    import psycopg

    try:
        opened = connect(other)
    except psycopg.Error as error:  # its catalogue cannot be read
        if is_unanswered(control, error):
            raise
        found.append(("heap damaged", f"database {other.database}: it cannot be connected to: {str(error).strip()}"))
        return Integrity((), ())
    with opened as session:
        integrity = check_database(session, major)
        pointers.append(read_pointers(session))
    return integrity
