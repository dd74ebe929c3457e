"""A dump of a database, made by pg_dump: restored by a role without rights of a superuser, in the database of the run.

A dump is SQL, and may hold any SQL: the role that runs it can neither read nor write files of the server, nor start programs. The
database stays the superuser's, so that nothing can be set for it. What would lead away from the copy is left out of archives:
publications, subscriptions, foreign servers and what belongs to them.
"""

import os
import re
import secrets
import tempfile
import threading
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from plinth.common.shown import shown
from plinth.model.base import Gap
from plinth.model.dataset import DumpDataset
from plinth.model.errors import RunError
from plinth.model.plan import DatasetSize
from plinth.model.progress import Progress, Report
from plinth.model.step import Step
from plinth.model.units import format_count
from plinth.system.background import in_background
from plinth.system.confinement import Connecting, View, connecting_to, program_folders
from plinth.system.database import connect
from plinth.system.owner import server_owner
from plinth.system.runner import Completed
from plinth.workload.brought import (
    RESTORING_ROLE,
    disable_event_triggers,
    grant_all,
    make_role,
    making_in_public,
    reset_settings,
)
from plinth.workload.brought_files import Form, check_globals, extensions_of, look_at_dump, read_globals
from plinth.workload.bulk import COPY_BYTES_PER_S
from plinth.workload.dataset import Dataset, DatasetServer

if TYPE_CHECKING:
    import psycopg

_TASK = "restore"
_PROGRESS_S = 0.5
_MOST_ERRORS = 5
_MOST_KINDS = 20
_LEFT_OUT = (
    "SUBSCRIPTION",
    "PUBLICATION",
    "PUBLICATION TABLE",
    "PUBLICATION TABLES IN SCHEMA",
    "EVENT TRIGGER",
    "FOREIGN DATA WRAPPER",
    "SERVER",
    "USER MAPPING",
    "FOREIGN TABLE",
)
"""Entries of an archive that lead to other servers, or need a superuser."""
# "215; 1259 16385 TABLE public goods postgres", as pg_restore --list writes entries; kinds are in capitals.
_ENTRY = re.compile(r"(?P<id>\d+); \d+ \d+ (?P<kind>[A-Z][A-Z ]*[A-Z]) (?P<rest>.*)")
# What a plain dump has for roles, tablespaces and servers that are not here: objects are then of the role that restores them. Its own
# \restrict is refused like any other command of psql, which runs nothing then.
_OF_OTHERS = re.compile(
    r'role "[^"]*" does not exist|must be able to SET ROLE|must be member of role'
    r'|tablespace "[^"]*" does not exist|invalid value for parameter "default_tablespace"'
    r"|must be superuser to create .*publication|permission denied to create subscription"
    r'|(?:publication|subscription|event trigger) "[^"]*" does not exist'
    r'|database "[^"]*" does not exist'
    r"|must be owner of database|permission denied to (?:create|drop) database|permission denied to create event trigger"
    r"|permission denied to set session authorization|permission denied for database"
    r"|must be owner of extension|backslash commands are restricted|\\unrestrict: wrong key"
)
_ERROR = re.compile(r"^(?:psql:[^\n]*?:(?P<line>\d+): )?(?:ERROR|FATAL|error):\s+(?P<message>.*)$", re.MULTILINE)


class Entry(NamedTuple):
    """An entry of an archive's table of contents."""

    line: str
    kind: str
    name: str


def entries_of(listing: str) -> list[Entry]:
    """Return the entries that `pg_restore --list` writes."""
    found = []
    for line in listing.splitlines():
        if match := _ENTRY.fullmatch(line):
            found.append(Entry(line, match["kind"], match["rest"]))
    return found


class Dump(Dataset):
    """What a dump has."""

    is_brought = True

    def __init__(self, spec: DumpDataset) -> None:
        self.spec = spec
        self._path = Path(spec.path)
        self._globals = None if spec.globals is None else Path(spec.globals)
        self._left_out: Counter[str] = Counter()
        self._reset: tuple[Gap, ...] = ()

    def size(self) -> DatasetSize:
        """Return the size as given by the user; else that of the dump itself, which is less."""
        return DatasetSize(self.spec.size_bytes or look_at_dump(self._path).size_bytes, 0)

    def populate_s(self) -> float:
        """Estimate by its size."""
        return 1 + self.size().total_bytes / COPY_BYTES_PER_S

    def steps(self) -> list[Step]:
        """Return the steps. Raises UsageError for a path that is no dump, and for globals that are no file,
        MissingCapability where the server's user cannot read them."""
        form = look_at_dump(self._path).form
        if self._globals is not None:
            check_globals(self._globals)
        roles = "" if self._globals is None else f", the roles of {self._globals}"
        program = "psql" if form == "plain" else "pg_restore"
        return [
            Step(
                id="dataset.role",
                title=f"make role {RESTORING_ROLE}, without rights of a superuser{roles}, and the extensions of the dump",
            ),
            Step(id="dataset.restore", title=f"restore {self._path} ({form}) by {program}, without owners and rights"),
            Step(id="dataset.vacuum", title="VACUUM ANALYZE the database"),
        ]

    def populate(self, server: DatasetServer, report: Report) -> None:
        """Restore the dump. Raises RunError with what failed."""
        from psycopg import sql

        form = look_at_dump(self._path).form
        if form == "plain":
            extensions = list(extensions_of(self._path, server.runner))
            entries = []
        else:
            listing = self._run_client(server, "look at a dump", "pg_restore", ["--list", str(self._path)])
            entries = entries_of(listing.stdout)
            extensions = [entry.name.split()[1] for entry in entries if entry.kind == "EXTENSION"]
        self._prepare(server, extensions)
        roles = self._make_roles(server)
        with _restoring(server, self.spec.size_bytes, report):
            if form == "plain":
                self._run_script(server)
            else:
                self._restore_archive(server, form, entries)
        if roles:
            grant_all(server.control, roles)
            names = sql.SQL(", ").join(map(sql.Identifier, roles))
            server.control.execute(sql.SQL("GRANT {} TO {}").format(names, sql.Identifier(RESTORING_ROLE)))
        self._reset = (*disable_event_triggers(server.control), *reset_settings(server.control))
        report(Progress("vacuum", 0, 1, "databases"))
        server.control.execute("VACUUM ANALYZE")
        report(Progress("vacuum", 1, 1, "databases"))

    def _make_roles(self, server: DatasetServer) -> list[str]:
        """Make the roles that the globals name and the server does not have, and their memberships in each other."""
        if self._globals is None:
            return []
        import psycopg
        from psycopg import sql

        found = read_globals(self._globals, server.runner)
        there = {row[0] for row in server.control.execute("SELECT rolname FROM pg_roles").fetchall()}
        roles = [name for name in found.roles if name not in there]
        try:
            for role in roles:
                server.control.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(role)))
            for names in found.memberships:
                if set(names) <= set(roles):  # no membership in a role that PostgreSQL has itself, or in the superuser
                    server.control.execute(sql.SQL("GRANT {} TO {}").format(*map(sql.Identifier, names)))
        except psycopg.Error as error:
            raise RunError(
                f"a role of the globals cannot be made: {shown(str(error))}", where="dataset.globals"
            ) from error
        return roles

    def _prepare(self, server: DatasetServer, extensions: list[str]) -> None:
        """Make the role, and the extensions, which may need a superuser. Raises RunError for those that are not installed."""
        from psycopg import sql

        control = server.control
        names = [name.strip('"').replace('""', '"') for name in dict.fromkeys(extensions)]
        available = {row[0] for row in control.execute("SELECT name FROM pg_available_extensions").fetchall()}
        if missing := [name for name in names if name not in available]:
            raise RunError(
                f"the dump needs {format_count(len(missing), 'extension')} that the server does not have: "
                f"{', '.join(map(shown, missing))}",
                where="dataset.path",
                hint="install them for this version of PostgreSQL, or leave them out of the dump, as pg_dump 17 can",
            )
        make_role(control, RESTORING_ROLE, server.target.password)
        database, role = sql.Identifier(control.info.dbname), sql.Identifier(RESTORING_ROLE)
        # Whoever owns a database sets search_path for all of its sessions, ours too.
        control.execute(sql.SQL("GRANT CREATE, TEMPORARY ON DATABASE {} TO {}").format(database, role))
        control.execute(sql.SQL("ALTER SCHEMA public OWNER TO {}").format(role))
        with making_in_public(control):  # nothing of the dump is there yet
            for name in names:
                control.execute(sql.SQL("CREATE EXTENSION IF NOT EXISTS {} CASCADE").format(sql.Identifier(name)))

    def _run_client(
        self,
        server: DatasetServer,
        way: str,
        program: str,
        arguments: Sequence[str],
        *,
        own: Sequence[Path] = (),
        role: str | None = None,
        env: Mapping[str, str] | None = None,
        allowed_exit_codes: Collection[int] = (0,),
    ) -> Completed:
        """Run a client program of the server's version on this machine, confined to the dump and files that Plinth made (`own`). It
        connects as `role`, with the password of the run where there is one. `way` is one of `confinement.WAYS`."""
        target, bindir = server.target, server.client_bindir()
        of_libpq = {"PGHOST": str(target.host), "PGPORT": str(target.port), "PGUSER": role or target.user}
        if target.password is not None:
            of_libpq["PGPASSWORD"] = target.password
        reached: Connecting = {} if way == "look at a dump" else connecting_to(str(target.host))
        view = View(programs=program_folders(bindir), originals=(self._path,), own=tuple(own), **reached)
        return server.runner.run_confined(
            way,
            [f"{bindir}/{program}", *arguments],
            view,
            server_owner(),
            env={**of_libpq, **(env or {})},
            allowed_exit_codes=allowed_exit_codes,
        )

    def _restore_archive(self, server: DatasetServer, form: Form, entries: list[Entry]) -> None:
        kept = [entry.line for entry in entries if _is_kept(entry)]
        self._left_out.update(entry.kind for entry in entries if entry.kind in _LEFT_OUT)
        jobs = [] if form == "tar" else [f"--jobs={self.spec.jobs or server.cores}"]
        with tempfile.NamedTemporaryFile("w", prefix="plinth-restore-", suffix=".list") as file:
            file.write("\n".join([*kept, ""]))
            file.flush()
            os.fchmod(file.fileno(), 0o644)  # for the user that the server runs as
            done = self._run_client(
                server,
                "restore a dump",
                "pg_restore",
                [
                    *jobs,
                    f"--use-list={file.name}",
                    "--no-owner",
                    "--no-privileges",
                    "--no-tablespaces",
                    "--no-publications",
                    "--no-subscriptions",
                    "--no-security-labels",
                    f"--dbname={server.control.info.dbname}",
                    str(self._path),
                ],
                own=[Path(file.name)],
                role=RESTORING_ROLE,
                allowed_exit_codes=(0, 1),
            )
        self._left_out += _tolerated(self._path, done.stderr, done.exit_code)

    def _run_script(self, server: DatasetServer) -> None:
        done = self._run_client(
            server,
            "restore a dump",
            "psql",
            [
                "--no-psqlrc",
                "--quiet",
                "--output=/dev/null",
                # From here on psql refuses its own commands, which could start programs and read files of this machine. Who knows the
                # key can end that.
                f"--command=\\restrict {secrets.token_hex(16)}",
                f"--file={self._path}",
                f"--dbname={server.control.info.dbname}",
            ],
            role=RESTORING_ROLE,
            env={"PGOPTIONS": "-c client_min_messages=error"},
            allowed_exit_codes=(0, 1, 2, 3),
        )
        if "invalid command \\restrict" in done.stderr:
            raise RunError(
                "psql of this version cannot refuse its own commands, by which a script could start programs",
                where="dataset.path",
                hint="a newer minor release of PostgreSQL, or an archive: pg_dump -Fc",
            )
        self._left_out += _tolerated(self._path, done.stderr, done.exit_code)

    def gaps(self, control: "psycopg.Connection") -> tuple[Gap, ...]:
        """Return what of the dump is not there."""
        return (*self._gaps_of_globals(), *self._gaps_of_dump(), *self._reset)

    def _gaps_of_globals(self) -> tuple[Gap, ...]:
        if self._globals is None:
            return ()
        left_out = "logins, attributes, passwords and settings of roles, and tablespaces, are left out"
        return (Gap(what="globals of the dump", reason=f"{left_out}; each role may use all that was restored"),)

    def _gaps_of_dump(self) -> tuple[Gap, ...]:
        if not self._left_out:
            return ()
        counted = ", ".join(f"{shown(what)} ({count})" for what, count in self._left_out.most_common(_MOST_KINDS))
        more = len(self._left_out) - _MOST_KINDS
        further = f" and {format_count(more, 'further kind')}" if more > 0 else ""
        return (
            Gap(
                what="parts of the dump",
                reason=f"left out, as they lead elsewhere or are of others: {counted}{further}",
            ),
        )

    def before_trial(self, control: "psycopg.Connection") -> dict[str, int]:
        """Remove dead rows of earlier trials; all else that statements did stays."""
        if self.spec.vacuum:
            control.execute("VACUUM")
        return {}


def _is_kept(entry: Entry) -> bool:
    if entry.kind in ("EXTENSION", *_LEFT_OUT):
        return False
    is_of_extension = entry.kind in ("COMMENT", "ACL") and entry.name.startswith("- EXTENSION ")
    return not is_of_extension


def _tolerated(path: Path, stderr: str, exit_code: int) -> Counter[str]:
    """Return the errors of a restore about roles, tablespaces and servers that are not here. Raises RunError for others."""
    errors = [(match["line"], match["message"]) for match in _ERROR.finditer(stderr)]
    tolerated = Counter(message for _, message in errors if _OF_OTHERS.search(message))
    errors = [(line, message) for line, message in errors if not _OF_OTHERS.search(message)]
    errors = [(line, message) for line, message in errors if not message.startswith("errors ignored on restore")]
    if not errors and (exit_code == 0 or tolerated):
        return tolerated
    counted = Counter(message for _, message in errors)
    first = {message: line for line, message in reversed(errors)}
    details = [
        f"{count} times: {shown(message)}" + (f" (first in line {first[message]})" if first[message] else "")
        for message, count in counted.most_common(_MOST_ERRORS)
    ]
    raise RunError(
        f"the dump {path} could not be restored whole: {format_count(len(errors), 'error')}",
        where="dataset.path",
        hint="it is restored by a role without rights of a superuser; what needs one has to be left out of the dump",
        details=details or [shown(stderr[-500:])],
    )


def _restoring(server: DatasetServer, total_bytes: float | None, report: Report) -> AbstractContextManager[None]:
    """Report how large the database is while the block runs, and what is under way."""

    def look(ended: threading.Event) -> None:
        import psycopg

        # What goes wrong here says nothing about the restore, whose own end tells.
        with suppress(psycopg.Error), connect(server.target) as control:
            while not ended.wait(_PROGRESS_S):
                row = control.execute(_UNDER_WAY).fetchone()
                if row is not None:
                    report(Progress(_TASK, float(row[0]), total_bytes, "bytes", row[1] or ""))

    return in_background(look, "restore")


_UNDER_WAY = """\
SELECT pg_database_size(current_database()),
(SELECT string_agg(what, ', ') FROM (
 SELECT 'copy ' || relid::regclass AS what FROM pg_stat_progress_copy WHERE datname = current_database()
 UNION ALL SELECT 'index of ' || relid::regclass FROM pg_stat_progress_create_index WHERE datname = current_database()) AS all_of_them)"""
