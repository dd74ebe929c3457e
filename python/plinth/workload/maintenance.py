"""Settings of the sessions that build keys and vacuum: the dataset's, else the server's, else what suits the machine."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plinth.model.dataset import LoadedTables
from plinth.system.cgroup import processors

if TYPE_CHECKING:
    import psycopg

_SESSIONS = 2
# Of a key of 8 bytes in a run of a sort: its tuple of 16 and the length before it.
_SORTED_KEY_BYTES = 20


def sessions_of(spec: LoadedTables) -> int:
    """Return the number of concurrent sessions."""
    return spec.streams or _SESSIONS


def sorts_bytes(spec: LoadedTables, rows: int) -> int:
    """Return the size of the temporary files of keys of `rows` rows, as for a sort that does not fit in
    maintenance_work_mem."""
    if spec.writes_keys:
        return 0
    share = min(1.0, sessions_of(spec) / spec.partitions) if spec.partitions else 1.0
    return round(rows * share * _SORTED_KEY_BYTES)


@dataclass(frozen=True)
class Maintenance:
    """Settings for building keys, of which `parallel` are built at the same time.

    Memory is left as it is: keys come nearly in order, and PostgreSQL's 64 MB sort 30 million of them as fast as 2 GB do.
    """

    spec: LoadedTables
    parallel: int

    def description(self) -> str:
        """Return a note for the plan."""
        if self.spec.maintenance_workers is not None:
            return ""
        return "where a server on this machine has the default: workers for the processors that are free"

    def settings(self, control: "psycopg.Connection") -> Iterator[str]:
        """Yield statements for each session. A server that is not reached by a Unix socket may be on another machine."""
        is_here = control.info.host.startswith(("/", "@"))
        query = "SELECT name FROM pg_settings WHERE source = 'default'"
        defaults = {name for (name,) in control.execute(query).fetchall()}
        if self.spec.maintenance_work_mem is not None:
            yield f"SET maintenance_work_mem = '{self.spec.maintenance_work_mem}'"
        if self.spec.maintenance_workers is not None:
            yield f"SET max_parallel_maintenance_workers = {self.spec.maintenance_workers}"
        elif is_here and "max_parallel_maintenance_workers" in defaults:
            yield f"SET max_parallel_maintenance_workers = {max(0, processors() // self.parallel - 1)}"
        if "vacuum_buffer_usage_limit" in defaults:  # since 16; a ring of buffers waits for the WAL at each turn
            yield "SET vacuum_buffer_usage_limit = 0"
