"""Extensions of PostgreSQL that Plinth's own queries need: in a schema of their own, where nobody else can make anything."""

from typing import TYPE_CHECKING, Any

from plinth.model.errors import RunError

if TYPE_CHECKING:
    import psycopg

# An extension that is there may be where others may make functions, which could be taken in place of its own.
_FUNCTION = """\
SELECT quote_ident(n.nspname) || '.' || quote_ident(%(function)s), (
  SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = n.oid AND p.proname = %(function)s AND NOT EXISTS (
    SELECT FROM pg_depend d
    WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.refobjid = e.oid AND d.deptype = 'e')
  LIMIT 1)
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = %(extension)s"""


def make_extension(control: "psycopg.Connection[Any]", name: str) -> None:
    """Make an extension that is not there yet, in a schema of its own. Raises psycopg.Error where the server does not have it."""
    from psycopg import sql

    if control.execute("SELECT FROM pg_extension WHERE extname = %s", (name,)).fetchone() is not None:
        return
    schema = _free_schema(control, f"plinth_{name}")
    with control.transaction():
        control.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        control.execute(sql.SQL("CREATE EXTENSION {} SCHEMA {}").format(sql.Identifier(name), sql.Identifier(schema)))


def function_of(control: "psycopg.Connection[Any]", extension: str, function: str) -> str:
    """Return the qualified name of a function of an extension, which is made where it is not there. Raises psycopg.Error, and RunError
    where its schema has other functions of that name."""
    make_extension(control, extension)
    row = control.execute(_FUNCTION, {"extension": extension, "function": function}).fetchone()
    assert row is not None, "the extension is there"
    name, other = row
    if other is not None:
        raise RunError(f"{other} of the database could be taken for {name} of the extension {extension}")
    return str(name)


def _free_schema(control: "psycopg.Connection[Any]", name: str) -> str:
    """Return a name that no schema has."""
    taken = {row[0] for row in control.execute("SELECT nspname FROM pg_namespace").fetchall()}
    return next(one for number in range(len(taken) + 1) if (one := f"{name}_{number}" if number else name) not in taken)
