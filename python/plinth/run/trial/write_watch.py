"""What a load wrote to and under which settings it committed, read from the server before and after it."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from plinth.model.action import Action, StatementAction
from plinth.model.base import Gap
from plinth.model.errors import PlinthError
from plinth.model.facts import StorageFacts
from plinth.model.plan import Variant
from plinth.model.write_facts import SettingSeen, WriteFacts, WrittenRelation
from plinth.run.host import Host
from plinth.server.written_relations import (
    Counters,
    StoredRelation,
    counts_writes,
    read_counters,
    session_settings,
    stored_relations,
    written_since,
)
from plinth.workload.commit_ledger_check import commit_levels_seen
from plinth.workload.commit_settings import settings_of_actions, settings_of_functions, settings_of_scripts

if TYPE_CHECKING:
    import psycopg

_TABLES = "tables that took writes, and where they are"
_SETTINGS = "durability settings of the load's sessions"


class WriteWatch:
    """Compares the counters and settings of a server before a load with those after it.

    What cannot be read is a gap of the result, and never the failure of what is measured.
    """

    def __init__(
        self,
        variant: Variant,
        variables: Collection[str],
        storages: Sequence[StorageFacts],
        actions: Sequence[Action],
        *,
        host: Host | None,
    ) -> None:
        """`variables` are those that the dataset sets for scripts, `storages` those of the cluster, `actions` those of each trial;
        `host` is the machine of the server's directories; None: of an external server, it is not known."""
        self._variant = variant
        self._variables = (*variables, *variant.workload.variables)
        self._storages = storages
        self._actions = [one.statement() for one in actions if isinstance(one, StatementAction)]
        self._host = host
        self._before: Counters = {}
        self._settings: list[SettingSeen] = []
        self._gaps: list[Gap] = []
        self._levels_seen = False

    def begin(self, control: "psycopg.Connection[Any]") -> None:
        """Read the server before the load; `control` is a control session of the role of the load."""
        import psycopg

        try:
            self._before = read_counters(control)
            self._read_settings(control, "on a session, before the load")
        except psycopg.Error as error:
            self._gaps.append(_gap(_TABLES, error))

    def end(
        self, control: "psycopg.Connection[Any]", session: "psycopg.Connection[Any]", *, has_written: bool
    ) -> WriteFacts:
        """Read the server after the load; `control` is as for `begin`, `session` as those of the load; `has_written`: some table took writes."""
        import psycopg

        relations: tuple[WrittenRelation, ...] = ()
        written = None
        try:
            self._read_settings(control, "on a session, after the load")
            self._settings += settings_of_functions(control, self._variant.scripts)
            if self._variant.workload.keeps_ledger:
                levels = commit_levels_seen(session)
                self._settings += levels
                self._levels_seen = bool(levels)
            written = written_since(self._before, read_counters(control))
            if not written and has_written:
                reason = (
                    "the server's statistics show none"
                    if counts_writes(control)
                    else "track_counts is off, so that the server counts no writes"
                )
                self._gaps.append(Gap(what=_TABLES, reason=reason))
            relations = self._notable(stored_relations(control, written))
        except psycopg.Error as error:
            self._gaps.append(_gap(_TABLES, error))
        return self._facts(relations, None if written is None else len(written))

    def without_end(self) -> WriteFacts:
        """Return what is known of a load whose server cannot be asked afterwards."""
        return self._facts((), None)

    def _facts(self, relations: tuple[WrittenRelation, ...], written: int | None) -> WriteFacts:
        scripts = settings_of_scripts(self._variant.scripts, self._variables)
        altered = settings_of_actions(self._actions, reconnects=self._variant.workload.reconnect)
        seen = dict.fromkeys([*scripts, *altered, *self._settings])
        if self._levels_seen:  # of every transaction: what scripts and functions may have set is settled then
            seen = [one for one in seen if one.name != "synchronous_commit" or (one.certain and one.value is not None)]
        return WriteFacts(relations=relations, written=written, settings=tuple(seen), gaps=tuple(self._gaps))

    def _read_settings(self, control: "psycopg.Connection[Any]", when: str) -> None:
        """Keep each value once, as it was first seen."""
        known = {(seen.name, seen.value) for seen in self._settings}
        self._settings += [
            SettingSeen(name=name, value=value, where=when)
            for name, value in session_settings(control).items()
            if (name, value) not in known
        ]

    def _notable(self, stored: Sequence[StoredRelation]) -> tuple[WrittenRelation, ...]:
        places: dict[str, tuple[str | None, StorageFacts | None]] = {}
        found: list[WrittenRelation] = []
        for one in stored:
            if one.directory is None and one.persistence == "permanent":
                continue
            storage, place = None, None
            if one.directory is not None and self._host is not None:
                if one.directory not in places:
                    places[one.directory] = self._place(self._host, one.directory)
                storage, place = places[one.directory]
            found.append(
                WrittenRelation(
                    name=one.name,
                    kind="index" if one.is_index else "table",
                    persistence=one.persistence,
                    tablespace=one.tablespace if one.directory is not None else None,
                    directory=one.directory,
                    storage=storage,
                    place=place,
                )
            )
        return tuple(found)

    def _place(self, host: Host, directory: str) -> tuple[str | None, StorageFacts | None]:
        """Return the storage that a directory is on; or what is there, of one that is on none."""
        try:
            found = host.storage_of(directory, self._storages)
            return (found, None) if isinstance(found, str) else (None, found)
        except (OSError, PlinthError) as error:
            self._gaps.append(Gap(what=f"where {directory} is", reason=str(error)))
            return None, None


def _gap(what: str, error: Exception) -> Gap:
    return Gap(what=what, reason=str(error).strip().splitlines()[0])
