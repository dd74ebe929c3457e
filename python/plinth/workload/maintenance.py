"""Settings of the sessions that build keys and vacuum: the dataset's, else the server's, else what suits the rows and the machine."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plinth.model.dataset import LoadedTables
from plinth.system.capacity import available_memory_bytes, processors

if TYPE_CHECKING:
    import psycopg

# A key of 8 bytes while it is sorted, with the array's room to grow. With a GB for 20 million keys the sort still spilled.
_SORTED_KEY_BYTES = 80
_SHARE_OF_MEMORY = 0.25
_MIB = 2**20
_DEFAULT_MIB = 64


@dataclass(frozen=True)
class Maintenance:
    """What building keys takes: `rows` of the largest key, of which `at_once` are built at the same time."""

    spec: LoadedTables
    rows: int
    at_once: int

    @property
    def memory_mib(self) -> int:
        """For each key, to sort it in memory; at least PostgreSQL's default."""
        return max(_DEFAULT_MIB, -(-self.rows * _SORTED_KEY_BYTES // _MIB))

    def words(self) -> str:
        """For the plan."""
        said = []
        if self.spec.maintenance_work_mem is None and self.memory_mib > _DEFAULT_MIB:
            said.append(f"maintenance_work_mem {self.memory_mib}MB if a quarter of free memory holds it")
        if self.spec.maintenance_workers is None:
            said.append("workers for the processors that are free")
        return f"where a server on this machine has the defaults: {', '.join(said)}" if said else ""

    def settings(self, control: "psycopg.Connection") -> Iterator[str]:
        """Statements for each session. A server that is not reached by a Unix socket may be on another machine."""
        is_here = control.info.host.startswith(("/", "@"))
        query = "SELECT name FROM pg_settings WHERE source = 'default'"
        defaults = {name for (name,) in control.execute(query).fetchall()}
        if self.spec.maintenance_work_mem is not None:
            yield f"SET maintenance_work_mem = '{self.spec.maintenance_work_mem}'"
        elif is_here and "maintenance_work_mem" in defaults and self._fits():
            yield f"SET maintenance_work_mem = '{self.memory_mib}MB'"
        if self.spec.maintenance_workers is not None:
            yield f"SET max_parallel_maintenance_workers = {self.spec.maintenance_workers}"
        elif is_here and "max_parallel_maintenance_workers" in defaults:
            yield f"SET max_parallel_maintenance_workers = {max(0, processors() // self.at_once - 1)}"
        if "vacuum_buffer_usage_limit" in defaults:  # since 16; a ring of buffers waits for the WAL at each turn
            yield "SET vacuum_buffer_usage_limit = 0"

    def _fits(self) -> bool:
        """Not by halves: a sort that spills gained nothing by more memory."""
        wanted = self.memory_mib * _MIB
        return wanted * self.at_once <= available_memory_bytes() * _SHARE_OF_MEMORY
