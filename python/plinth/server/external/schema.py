"""Plinth's schemas in databases of others: made with our label as their comment, dropped only while they have it."""

import hashlib
from typing import TYPE_CHECKING, Any

from plinth.common.secrets import without_secrets
from plinth.model.errors import Refused
from plinth.system import conninfo
from plinth.system.database import connect, database_errors

if TYPE_CHECKING:
    import psycopg

_IDENTIFIER_MAX_BYTES = 63


def schema_of(label: str) -> str:
    """Return the schema of a run with this label: "plinth-ramdisk-1" -> "plinth_ramdisk-1". A long name is cut and ends in a digest."""
    name = label.replace("-", "_", 1)
    if len(name.encode()) <= _IDENTIFIER_MAX_BYTES:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return f"{name[: _IDENTIFIER_MAX_BYTES - len(digest) - 1]}_{digest}"


def make_schema(control: "psycopg.Connection[tuple[Any, ...]]", label: str) -> None:
    """Make the schema of `label`. Refused when there is one of that name."""
    from psycopg import errors, sql

    schema = schema_of(label)
    name, info = sql.Identifier(schema), control.info
    where = without_secrets(info.dsn)
    hint = f"grant create on database {info.dbname} to {info.user}"
    with database_errors(f"make the schema {schema}", where, hint):
        try:
            with control.transaction():
                control.execute(sql.SQL("create schema {}").format(name))
                control.execute(sql.SQL("comment on schema {} is {}").format(name, sql.Literal(label)))
        except errors.DuplicateSchema as error:
            raise Refused(f"the schema {schema} is there already", where=where, hint=_how_to_drop(schema)) from error


def has_schema(control: "psycopg.Connection[tuple[Any, ...]]", label: str) -> bool:
    """Return whether the schema of `label` is there, with the label."""
    query = "select obj_description(oid, 'pg_namespace') from pg_namespace where nspname = %s"
    return control.execute(query, [schema_of(label)]).fetchone() == (label,)


def drop_schema(control: "psycopg.Connection[tuple[Any, ...]]", label: str) -> None:
    """Drop the schema of `label` with all that is in it; nothing when it is gone. Refused when it lacks the label."""
    from psycopg import sql

    schema, where = schema_of(label), without_secrets(control.info.dsn)
    with database_errors(f"drop the schema {schema}", where):
        found = control.execute(
            "select obj_description(oid, 'pg_namespace') from pg_namespace where nspname = %s", [schema]
        ).fetchone()
        if found is None:
            return
        if found[0] != label:
            raise Refused(
                f"not dropped: the schema {schema} does not have our label {label!r} as its comment"
                + (f" but {found[0]!r}" if found[0] else ""),
                where=where,
                hint=_how_to_drop(schema),
            )
        control.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(schema)))


def undo_schema(connection_string: str, label: str) -> None:
    """Undo of making a schema, by a later process: the password comes by libpq's rules, since journals keep none."""
    hint = "give the password in PGPASSWORD or ~/.pgpass, then run plinth clean again"
    with database_errors(f"connect to drop the schema {schema_of(label)}", connection_string, hint):
        control = connect(conninfo.resolve(connection_string))
    with control:
        drop_schema(control, label)


def _how_to_drop(schema: str) -> str:
    return f'if it is left from a run that is over, drop it yourself: drop schema "{schema}" cascade'
