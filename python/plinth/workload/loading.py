"""How any dataset is populated: tables, pieces of rows, keys, vacuum, count; each once, however often it is begun."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from plinth.model.dataset import LOAD_PROGRESS_TABLE, LoadedTables
from plinth.model.figures import percent
from plinth.model.generator import Generator, as_json
from plinth.model.plan import DatasetSize
from plinth.model.progress import Progress, Report
from plinth.model.step import Step
from plinth.workload.bulk import COPY_BYTES_PER_S, copy
from plinth.workload.dataset import Dataset, DatasetServer
from plinth.workload.load_progress import PREPARE, ProgressTable
from plinth.workload.maintenance import Maintenance, sessions_of
from plinth.workload.pages import PAGES_BYTES_PER_S, RESTART_S, write_pages
from plinth.workload.parallel import Job, run_parallel
from plinth.workload.partitions import Part

if TYPE_CHECKING:
    import psycopg

COPY_STEP = "dataset.copy"
"""The id of the step that sends the rows."""

# Before it, a page that COPY FREEZE filled was not marked as all visible.
_FREEZING_VERSION = 140_000

# From it on tables grow by many pages at once; before, streams into one table waited for each other's pages.
_GROWING_VERSION = 160_000
# Of a table that one stream fills in one transaction, so that it is not long until it is there again after a kill.
_MOST_IN_ONE_BYTES = 8 * 2**30

# So large that a commit is negligible; so small that little is sent again after a kill, and streams end together.
_PIECE_BYTES = 32 * 2**20
_MOST_PIECES = 20_000


@dataclass(frozen=True)
class Recipe:
    """The recipe of a load, in SQL and in the bulk loader's configuration (crates/bulk)."""

    spec: LoadedTables
    generator: Generator
    parts: tuple[Part, ...]
    row_bytes: float
    """The approximate size of a row in its table, which decides how many rows are sent in a piece."""
    create: tuple[str, ...]
    counts: dict[str, int]
    """The rows that each table must have at the end; partitions are counted with their table."""
    stores: tuple[str, ...]
    """The tables, and partitions instead of tables that have them, that hold rows: what is vacuumed."""
    keys: tuple[tuple[str, ...], ...]
    """Statements that make them: those of one stage may run at the same time, stages go one after the other."""
    after: tuple[str, ...] = ()
    """Further statements, once rows and keys are there."""
    after_title: str | None = None
    """What they do, for the plan. Default: the statements themselves."""
    foreign_keys: tuple[str, ...] = ()
    """Statements that make them and check all rows, once the tables are vacuumed and their statistics there."""

    @property
    def rows(self) -> int:
        """Return the rows of all tables."""
        return sum(self.counts.values())

    @property
    def tables(self) -> tuple[str, ...]:
        """Return all tables, partitions not counted."""
        return tuple(self.counts)

    @property
    def sessions(self) -> int:
        """Return the number of concurrent sessions."""
        return sessions_of(self.spec)

    def streams(self, server_version: int) -> int:
        """Return the number of COPY streams: the dataset's, else one per session, or one, frozen, where more gain nothing."""
        if self.spec.streams is not None or self.spec.partitions:
            return self.sessions
        is_small = self._largest * self.row_bytes <= _MOST_IN_ONE_BYTES
        return 1 if is_small and _FREEZING_VERSION <= server_version < _GROWING_VERSION else self.sessions

    def freezes(self, server_version: int) -> bool:
        """Return whether COPY freezes rows, which is possible only in the transaction that emptied the table or partition."""
        is_allowed = self.streams(server_version) == 1 or self.spec.partitions > 0
        return is_allowed and server_version >= _FREEZING_VERSION

    def steps(self) -> list[Step]:
        """Return the steps for the plan: tables, rows, keys, vacuum, count."""
        titles = [
            ("tables", "; ".join(self.create)),
            *(self._page_titles() if self.spec.writes_pages else self._copy_titles()),
            ("after", self.after_title or "; ".join(self.after)),
            ("vacuum", "; ".join(sql for statements in self._vacuum_sql() for sql in statements)),
            ("analyze", self._analyze_sql() if self.spec.partitions else ""),
            ("count", "count the rows"),
            ("foreign_keys", "; ".join(self.foreign_keys)),
        ]
        return [Step(id=f"dataset.{name}", title=title) for name, title in titles if title]

    def _page_titles(self) -> list[tuple[str, str]]:
        by = "as many threads as there are processors" if self.spec.streams is None else f"{self.spec.streams} threads"
        what = f"{self.rows:,} rows and their keys" if self.spec.writes_keys else f"{self.rows:,} rows"
        write = f"stop the server, write {what} into its files by {by}, and start it again" if self.rows else ""
        if self.spec.writes_keys:
            return [("keys", f"{self._keys_sql()} (of tables that are empty)"), ("pages", write)]
        return [("pages", write), ("keys", self._described_keys())]

    def _copy_titles(self) -> list[tuple[str, str]]:
        return [
            ("copy", f"COPY {self.rows:,} rows {self._copy_description()}"),
            ("logged", f"make {', '.join(self.tables)} logged" if self.spec.unlogged else ""),
            ("keys", self._described_keys()),
        ]

    def _described_keys(self) -> str:
        description = self._maintenance().description()
        return self._keys_sql() + (f" ({description})" if description else "")

    def _keys_sql(self) -> str:
        return "; ".join(statement for stage in self.keys for statement in stage)

    def _copy_description(self) -> str:
        if self.spec.partitions:
            return f"by {self.sessions} streams into {self.spec.partitions} partitions, frozen"
        newer, older = self.streams(_GROWING_VERSION), self.streams(_FREEZING_VERSION)
        by = "by 1 stream, frozen" if newer == 1 else f"by {newer} streams"
        return by if newer == older else f"{by}; by 1 stream, frozen, into PostgreSQL 14 and 15"

    def populate(self, server: DatasetServer, report: Report) -> ProgressTable:
        """Load what is not there yet, and verify the counts. Raises RunError, and Refused for tables that are not ours."""
        progress = self._progress(server)
        progress.wait_for_other_loads(report)
        if not progress.is_begun():
            progress.begin(self.create, self.tables, unlogged=self.spec.unlogged)
        if self.spec.writes_keys:  # into the files of keys that the server has made
            self._make_keys(server, progress, report)
        if self.spec.writes_pages:
            progress = self._write_pages(server, progress, report)
        else:
            self._copy(server, progress, report)
        if self.spec.unlogged and not progress.has("logged"):
            self._make_logged(server, progress, report)
        if not self.spec.writes_keys:
            self._make_keys(server, progress, report)
        self._run(server, progress, report, "functions", {"after": self.after} if self.after else {})
        # Counting is a second session's work, while the first vacuums the large table.
        last: dict[str, Sequence[str]] = {f"vacuum {number}": sql for number, sql in enumerate(self._vacuum_sql())}
        last |= {f"count {table}": (progress.counting(table),) for table in self.tables}
        self._run(server, progress, report, "vacuum and count", last, in_transaction=False)
        if self.spec.partitions:
            self._run(server, progress, report, "analyze", {"analyze": (self._analyze_sql(),)})
        for table, rows in self.counts.items():
            progress.check_count(table, rows)
        foreign = {f"foreign key {number}": (sql,) for number, sql in enumerate(self.foreign_keys)}
        self._run(server, progress, report, "check foreign keys", foreign)
        return progress

    def _progress(self, server: DatasetServer) -> ProgressTable:
        return ProgressTable(server.control, self.spec.model_dump_json())

    def _make_keys(self, server: DatasetServer, progress: ProgressTable, report: Report) -> None:
        for number, stage in enumerate(self.keys):
            jobs = {f"key {number} {index}": (sql,) for index, sql in enumerate(stage)}
            self._run(server, progress, report, "build keys", jobs)

    def _write_pages(self, server: DatasetServer, progress: ProgressTable, report: Report) -> ProgressTable:
        """Write the pages, and return the progress in the session to the server that was started again."""
        if self.parts and not progress.has("pages"):
            write_pages(server, self.spec, self.generator, self.parts, self.row_bytes, report)
            progress = self._progress(server)
            progress.mark("pages")
        return progress

    def _copy(self, server: DatasetServer, progress: ProgressTable, report: Report) -> None:
        version = server.control.info.server_version
        freeze = self.freezes(version)
        pieces = list(self._pieces(progress, whole=freeze))
        left = sum(piece["rows"] for piece in pieces)
        if pieces:
            copy(
                {
                    "generator": as_json(self.generator),
                    "freeze": freeze,
                    "pieces": pieces,
                    "progress_table": LOAD_PROGRESS_TABLE,
                    # A crash of the server that takes back rows takes back the progress with them.
                    "prepare": [*PREPARE, "SET synchronous_commit = off"],
                },
                server.target,
                report,
                make=partial(server.loader, size_bytes=left * self.row_bytes),
                streams=min(self.streams(version), len(pieces)),
                size_key=f"dataset.{self.spec.size_key}",
                there=self.rows - left,
                row_bytes=self.row_bytes,
            )

    def _pieces(self, progress: ProgressTable, *, whole: bool) -> Iterator[dict[str, Any]]:
        """Yield the rows that are not there yet; `whole`: a part is one piece."""
        there = {table: progress.pieces(table) for table in {part.table for part in self.parts}}
        for part in self.parts:
            row_bytes = part.row_bytes or self.row_bytes
            most = max(1, round(_PIECE_BYTES / row_bytes), self._largest // _MOST_PIECES)
            for first, end in gaps(part.first_row, part.first_row + part.rows, there[part.table]):
                step = end - first if whole else most
                for start in range(first, end, step):
                    count = min(step, end - start)
                    yield {"table": part.table, "into": part.name, "first_row": start, "rows": count}

    def _make_logged(self, server: DatasetServer, progress: ProgressTable, report: Report) -> None:
        """Make all tables logged in one transaction, progress included: either all survive a crash, or it shows that none did."""
        sql = [f"ALTER TABLE {table} SET LOGGED" for table in (*self.stores, LOAD_PROGRESS_TABLE)]
        self._run(server, progress, report, "make logged", {"logged": ("; ".join(sql),)})

    def _run(
        self,
        server: DatasetServer,
        progress: ProgressTable,
        report: Report,
        task: str,
        steps: Mapping[str, Sequence[str]],
        *,
        in_transaction: bool = True,
    ) -> None:
        """Run those of `steps`, statements by the name under which progress is recorded, that are not done."""
        missing = {step: sql for step, sql in steps.items() if not progress.has(step)}
        settings = [*PREPARE, *self._maintenance().settings(server.control)]

        def job(step: str, sql: Sequence[str]) -> Job:
            mark = progress.marking(step)
            return [*settings, *((("; ".join([*sql, mark])),) if in_transaction else (*sql, mark))]

        def on_poll(ended: int, pids: list[int]) -> None:
            report(Progress(task, ended, len(missing), "statements", _under_way(server.control, pids)))

        if not missing:
            return
        jobs = [job(step, sql) for step, sql in missing.items()]
        run_parallel(server.target, jobs, sessions=self.sessions, on_poll=on_poll)
        report(Progress(task, len(missing), len(missing), "statements"))

    @property
    def _largest(self) -> int:
        """Return the number of rows of the largest table or partition."""
        return max((part.rows for part in self.parts), default=0)

    def _maintenance(self) -> Maintenance:
        alike = self.rows // max(1, self._largest)
        return Maintenance(self.spec, max(1, min(self.sessions, alike)))

    def _vacuum_sql(self) -> list[tuple[str, ...]]:
        """Return the statements for each table. Partitions are analyzed with their table."""
        return [self._vacuum_of(table) for table in self.stores]

    def _vacuum_of(self, table: str) -> tuple[str, ...]:
        if table not in self.tables:
            return (f"VACUUM {table}",)
        if self.spec.writes_keys:  # only an ANALYZE of its own looks at the size of a key that the server has not built
            return f"VACUUM {table}", f"ANALYZE {table}"
        return (f"VACUUM ANALYZE {table}",)

    def _analyze_sql(self) -> str:
        """Return the ANALYZE of tables with partitions, which includes these."""
        return "ANALYZE " + ", ".join(table for table in self.tables if table not in self.stores)


class RecipeDataset(Dataset, ABC):
    """A dataset that is populated by a recipe."""

    @abstractmethod
    def recipe(self) -> Recipe:
        """Return the recipe by which it is populated."""

    def populate_s(self) -> float:
        """Estimate by its size."""
        return typical_populate_s(self.recipe().spec, self.size())

    def steps(self) -> list[Step]:
        """Return the steps of the recipe."""
        return self.recipe().steps()

    def populate(self, server: DatasetServer, report: Report) -> None:
        """Make tables, rows, keys and statistics, and verify the row counts."""
        self.recipe().populate(server, report)


def typical_populate_s(spec: LoadedTables, size: DatasetSize) -> float:
    """Return the estimated time of a load on a common SSD."""
    if spec.writes_pages:
        built = 0 if spec.writes_keys else size.indexes_bytes
        return RESTART_S + (size.total_bytes - built) / PAGES_BYTES_PER_S + built / COPY_BYTES_PER_S
    return 0.5 + size.total_bytes / COPY_BYTES_PER_S


def gaps(first: int, end: int, there: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of first <= row < end, as (first, end), that `there`, ordered pairs of first row and count, leaves out."""
    at = first
    for start, count in there:
        if start + count <= at:
            continue
        if start >= end:
            break
        if start > at:
            yield at, start
        at = start + count
    if at < end:
        yield at, end


_PHASES = (
    "SELECT phase, greatest(blocks_done::float / nullif(blocks_total, 0), tuples_done::float / nullif(tuples_total, 0))"
    " FROM pg_stat_progress_create_index WHERE pid = ANY(%(pids)s)"
    " UNION ALL SELECT phase, heap_blks_scanned::float / nullif(heap_blks_total, 0)"
    " FROM pg_stat_progress_vacuum WHERE pid = ANY(%(pids)s)"
    " UNION ALL SELECT phase, sample_blks_scanned::float / nullif(sample_blks_total, 0)"
    " FROM pg_stat_progress_analyze WHERE pid = ANY(%(pids)s)"
)


def _under_way(control: "psycopg.Connection", pids: list[int]) -> str:
    """Return the work of backends, by the server's progress views: "building index: scanning table 43 %"."""
    if not pids:
        return ""
    found = control.execute(_PHASES, {"pids": pids}).fetchall()
    return ", ".join(phase if share is None else f"{phase} {percent(share, 0)}" for phase, share in found)
