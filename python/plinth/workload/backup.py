"""The databases of a base backup: the server is made of it, so that there is nothing to load."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from plinth.common.shown import shown
from plinth.model.base import Gap
from plinth.model.dataset import BackupDataset
from plinth.model.plan import DatasetSize
from plinth.model.progress import Progress, Report
from plinth.model.step import Step
from plinth.system.database import connect
from plinth.workload.brought import (
    LOAD_ROLE,
    disable_event_triggers,
    functions_of_superusers,
    grant_use,
    make_role,
    reset_settings,
)
from plinth.workload.brought_files import tree_size
from plinth.workload.bulk import COPY_BYTES_PER_S
from plinth.workload.dataset import Dataset, DatasetServer

if TYPE_CHECKING:
    import psycopg

_COMPRESSION = 3
"""Times by which a compressed backup is usually smaller."""
_OTHER_DATABASES = (
    "SELECT datname FROM pg_database WHERE datallowconn AND datname <> current_database() ORDER BY datname"
)
_COLLATIONS = """\
SELECT 'database ' || datname, datcollversion, pg_database_collation_actual_version(oid) FROM pg_database
WHERE datcollversion IS DISTINCT FROM pg_database_collation_actual_version(oid) AND datallowconn
UNION ALL
SELECT 'collation ' || collname, collversion, pg_collation_actual_version(oid) FROM pg_collation
WHERE collversion IS DISTINCT FROM pg_collation_actual_version(oid) AND collprovider <> 'd'"""


class Backup(Dataset):
    """What a backup has."""

    is_brought = True

    def __init__(self, spec: BackupDataset) -> None:
        self.spec = spec
        self._changed: tuple[Gap, ...] = ()

    def size(self) -> DatasetSize:
        """Return the size as given by the user; else that of the backup, of a compressed one a multiple."""
        if self.spec.size_bytes is not None:
            return DatasetSize(self.spec.size_bytes, 0)
        found = tree_size(Path(self.spec.path))
        return DatasetSize(found.plain_bytes + _COMPRESSION * found.compressed_bytes, 0)

    def populate_s(self) -> float:
        """Estimate by its size."""
        return 1 + self.size().total_bytes / COPY_BYTES_PER_S

    def steps(self) -> list[Step]:
        """Return the steps: the server recovers when it starts."""
        return [
            Step(
                id="dataset.recover", title="recover up to where the backup is consistent, and look at its collations"
            ),
            Step(
                id="dataset.role",
                title=f"make role {LOAD_ROLE} for the load, without rights of a superuser; disable event triggers, reset settings of "
                "roles and databases",
            ),
        ]

    def populate(self, server: DatasetServer, report: Report) -> None:
        """Make the role of the load, once the server runs, and end what would act on sessions of Plinth."""
        report(Progress("recover", 1, 1, "servers"))
        control = server.control
        gaps = [*disable_event_triggers(control)]
        for (name,) in control.execute(_OTHER_DATABASES).fetchall():
            with connect(replace(server.control_target or server.target, database=name)) as other:
                gaps += disable_event_triggers(other, f"event triggers of database {shown(name)}")
        gaps += reset_settings(control)
        make_role(control, LOAD_ROLE, server.target.password)
        grant_use(control, LOAD_ROLE)
        self._changed = (*gaps, *functions_of_superusers(control))

    def gaps(self, control: "psycopg.Connection") -> tuple[Gap, ...]:
        """Return what differs from the original: what was disabled or reset, and collations by whose rules indexes may be out of order."""
        return (*self._changed, *self._gaps_of_collations(control))

    def _gaps_of_collations(self, control: "psycopg.Connection") -> tuple[Gap, ...]:
        if control.info.server_version < 150_000:
            return (Gap(what="versions of collations", reason="PostgreSQL before 15 does not keep them for databases"),)
        differing = control.execute(_COLLATIONS).fetchall()
        return tuple(
            Gap(
                what=f"order of indexes, {name}",
                reason=f"its rules are of version {theirs}, and here of {ours}: REINDEX, or results may be wrong",
            )
            for name, theirs, ours in differing
        )
