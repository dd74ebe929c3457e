"""Tablespaces and the WAL directory of a server, where they are outside of its data directory."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from plinth.model.errors import RunError
from plinth.server.layout import ServerLayout

if TYPE_CHECKING:
    import psycopg


def check_wal_directory(layout: ServerLayout) -> None:
    """Raise RunError unless pg_wal is where the layout has it: a directory, or a symbolic link to `wal_directory`."""
    target = read_wal_directory(layout.data_directory)
    asked = None if layout.wal_directory is None else str(layout.wal_directory)
    if target != asked:
        raise RunError(
            f"the WAL is not where it was asked for: asked {asked or 'within the data directory'}, "
            f"got {target or 'within the data directory'}",
            where=str(layout.data_directory / "pg_wal"),
        )


def create_tablespaces(control: "psycopg.Connection[tuple[Any, ...]]", layout: ServerLayout) -> None:
    """Make the tablespaces, and raise RunError unless the server says that they are where they were asked for."""
    from psycopg import sql

    for name, directory in layout.tablespaces.items():
        control.execute(
            sql.SQL("create tablespace {} location {}").format(sql.Identifier(name), sql.Literal(str(directory)))
        )
    found = read_tablespaces(control)
    asked = {name: str(directory) for name, directory in layout.tablespaces.items()}
    if found != asked:
        raise RunError(f"the tablespaces are not where they were asked for: asked {asked}, got {found}")


def read_tablespaces(control: "psycopg.Connection[tuple[Any, ...]]") -> dict[str, str]:
    """Read the directory of each tablespace outside of the data directory."""
    rows = control.execute(
        "select spcname, pg_catalog.pg_tablespace_location(oid) from pg_catalog.pg_tablespace"
    ).fetchall()
    return {name: location for name, location in sorted(rows) if location}


def read_wal_directory(data_directory: Path) -> str | None:
    """Return where the symbolic link pg_wal leads; None when the WAL is within the data directory."""
    pg_wal = data_directory / "pg_wal"
    return str(pg_wal.readlink()) if pg_wal.is_symlink() else None
