"""Databases that a dump or a backup brings: the role of their loads, and what of them would act on sessions of Plinth itself.

Their triggers, views, functions and casts are the work of others. Loads therefore run as a role without rights of a superuser, and
nothing that was set for roles and databases, and no event trigger, stays in force.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from plinth.common.shown import shown
from plinth.model.base import Gap
from plinth.model.units import format_count

if TYPE_CHECKING:
    import psycopg

RESTORING_ROLE = "plinth_restore"
"""Restores a dump, owns what was restored, and is the role of loads on it."""
LOAD_ROLE = "plinth_load"
"""The role of loads on a backup, whose objects keep their owners."""
OUT_OF_LOG = {"log_min_messages": "fatal", "log_min_error_statement": "panic"}
"""Settings of sessions whose statements and errors are not logged: the server's log becomes part of the bundle, and what is replayed may
be personal."""
_MOST_SHOWN = 20
_SETTINGS = """\
SELECT d.datname, r.rolname, s.setconfig FROM pg_db_role_setting s
LEFT JOIN pg_database d ON d.oid = s.setdatabase LEFT JOIN pg_roles r ON r.oid = s.setrole ORDER BY 1, 2"""
_EVENT_TRIGGERS = "SELECT evtname, evtevent FROM pg_event_trigger WHERE evtenabled <> 'D' ORDER BY evtname"
# A role reaches what the roles have that it is a member of, directly or not. Before 16 CREATEROLE gives away any other role.
_ORDINARY_ROLES = """\
WITH RECURSIVE strong AS (
  SELECT oid FROM pg_roles WHERE rolsuper OR rolreplication OR rolcreaterole OR rolname = ANY(%(strong)s)
  UNION SELECT m.member FROM pg_auth_members m JOIN strong s ON m.roleid = s.oid
)
SELECT rolname FROM pg_roles WHERE oid NOT IN (SELECT oid FROM strong) AND rolname !~ '^pg_' AND rolname <> %(load_role)s ORDER BY 1"""
_STRONG = (
    "pg_execute_server_program",
    "pg_read_server_files",
    "pg_write_server_files",
    "pg_signal_backend",
    "pg_create_subscription",
)
"""Predefined roles that lead out of the database."""
_SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"
_DEFINED_BY_SUPERUSERS = """\
SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner
WHERE p.prosecdef AND r.rolsuper AND p.oid >= 16384
AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e') ORDER BY 1"""
_LARGE_OBJECTS = "SELECT oid FROM pg_largeobject_metadata"
_AT_ONCE = 1000


def make_role(control: "psycopg.Connection[Any]", role: str, password: str | None) -> None:
    """Make a role for loads, without rights of a superuser; one of this name that is there loses its own.

    It sees all rows, as a superuser does: which policies the original's clients had is not known.
    """
    from psycopg import sql

    name = sql.Identifier(role)
    if control.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
        control.execute(sql.SQL("CREATE ROLE {}").format(name))
    rights = "LOGIN BYPASSRLS INHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION CONNECTION LIMIT -1 VALID UNTIL 'infinity'"
    control.execute(sql.SQL("ALTER ROLE {} {}").format(name, sql.SQL(rights)))
    query = "SELECT roleid::regrole::text FROM pg_auth_members WHERE member = %s::regrole"
    for (group,) in control.execute(query, (role,)).fetchall():
        control.execute(sql.SQL("REVOKE {} FROM {} CASCADE").format(sql.SQL(group), name))
    if password is not None:  # over TCP; hashed, since the statement may get into the server's log
        verifier = control.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
        control.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(name, sql.Literal(verifier)))


def leave_statements_out_of_log(control: "psycopg.Connection[Any]", role: str) -> None:
    """Have sessions of a role begin with OUT_OF_LOG. Only a superuser may set that, so that they cannot do so themselves."""
    from psycopg import sql

    for name, level in OUT_OF_LOG.items():
        control.execute(sql.SQL("ALTER ROLE {} SET {} = {}").format(*map(sql.Identifier, (role, name, level))))


@contextmanager
def making_in_public(control: "psycopg.Connection[Any]") -> Iterator[None]:
    """While it is entered, what a control session makes without a schema is in public: only where public has nothing of others yet."""
    control.execute("SET search_path = public, pg_temp")
    try:
        yield
    finally:
        if not control.closed:
            control.execute("RESET search_path")


def reset_settings(control: "psycopg.Connection[Any]") -> tuple[Gap, ...]:
    """Reset what ALTER ROLE and ALTER DATABASE have set, for all roles and databases; return what that was."""
    from psycopg import sql

    found: list[str] = []
    for database, role, settings in control.execute(_SETTINGS).fetchall():
        whose = sql.SQL("ALL") if role is None else sql.Identifier(role)
        if role is None and database is not None:
            reset = sql.SQL("ALTER DATABASE {} RESET ALL").format(sql.Identifier(database))
        else:
            within = sql.SQL("") if database is None else sql.SQL(" IN DATABASE {}").format(sql.Identifier(database))
            reset = sql.SQL("ALTER ROLE {}{} RESET ALL").format(whose, within)
        control.execute(reset)
        of = [f"role {role}"] if role is not None else []
        of += [f"database {database}"] if database is not None else []
        found += [f"{shown(one)} ({shown(' in '.join(of) or 'all roles')})" for one in settings]
    if not found:
        return ()
    reason = "reset, since they would act on sessions of Plinth itself; [server.settings] can set what the load needs"
    return (Gap(what="settings of roles and databases", reason=f"{reason}: {_listed(found)}"),)


def disable_event_triggers(control: "psycopg.Connection[Any]", what: str = "event triggers") -> tuple[Gap, ...]:
    """Disable the event triggers of the database, those of logins among them: they would run with our rights; return which."""
    from psycopg import sql

    found = control.execute(_EVENT_TRIGGERS).fetchall()
    for name, _ in found:
        control.execute(sql.SQL("ALTER EVENT TRIGGER {} DISABLE").format(sql.Identifier(name)))
    if not found:
        return ()
    names = _listed([f"{shown(name)} (on {event})" for name, event in found])
    return (Gap(what=what, reason=f"disabled, since they would run with the rights of Plinth: {names}"),)


def grant_use(control: "psycopg.Connection[Any]", role: str) -> tuple[str, ...]:
    """Let a role use the database as its owners do: by membership in every role that is no superuser and leads to none, and by rights on
    what superusers own. Returns the roles."""
    from psycopg import sql

    name = sql.Identifier(role)
    strong = {"strong": list(_STRONG), "load_role": role}
    members = [row[0] for row in control.execute(_ORDINARY_ROLES, strong).fetchall()]
    for names in _pieces(members):
        control.execute(sql.SQL("GRANT {} TO {}").format(sql.SQL(", ").join(map(sql.Identifier, names)), name))
    database = sql.Identifier(control.info.dbname)
    control.execute(sql.SQL("GRANT ALL ON DATABASE {} TO {}").format(database, name))
    grant_all(control, [role])
    for objects in _pieces([row[0] for row in control.execute(_LARGE_OBJECTS).fetchall()]):
        listed = sql.SQL(", ").join(map(sql.Literal, objects))
        control.execute(sql.SQL("GRANT ALL ON LARGE OBJECT {} TO {}").format(listed, name))
    return tuple(members)


def functions_of_superusers(control: "psycopg.Connection[Any]") -> tuple[Gap, ...]:
    """Return the functions that run with the rights of a superuser whoever calls them, other than those of extensions."""
    found = [shown(str(row[0])) for row in control.execute(_DEFINED_BY_SUPERUSERS).fetchall()]
    if not found:
        return ()
    reason = f"SECURITY DEFINER, owned by a superuser: the load runs them with these rights: {_listed(found)}"
    return (Gap(what="functions with the rights of a superuser", reason=reason),)


def grant_all(control: "psycopg.Connection[Any]", roles: Sequence[str]) -> None:
    """Give roles all rights on what the schemas of users have."""
    from psycopg import sql

    names = sql.SQL(", ").join(map(sql.Identifier, roles))
    for (schema,) in control.execute(_SCHEMAS).fetchall():
        for what in ("SCHEMA", "ALL TABLES IN SCHEMA", "ALL SEQUENCES IN SCHEMA", "ALL ROUTINES IN SCHEMA"):
            grant = sql.SQL("GRANT ALL ON {} {} TO {}").format(sql.SQL(what), sql.Identifier(schema), names)
            control.execute(grant)


def _pieces(of: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (of[first : first + _AT_ONCE] for first in range(0, len(of), _AT_ONCE))


def _listed(found: Sequence[str]) -> str:
    more = len(found) - _MOST_SHOWN
    return ", ".join(found[:_MOST_SHOWN]) + (f" and {format_count(more, 'more')}" if more > 0 else "")
