"""Tables of a trial as Parquet, written and read with DuckDB.

series.parquet        a row a second: the fields of `Second`
hist.parquet          a row a bucket: the histogram's key, and (value_ns, bucket_count)
observe/SOURCE.parquet  a row a sample: t_ns, object, metric, value

DuckDB takes a path for a pattern, and follows links. So it is given descriptors, as /proc/self/fd/N, of files that were
opened beneath the bundle's folder. To make a connection takes longer than to read a table: there is one for all of a bundle.

DuckDB and numpy are slow to load, and most commands need no table: so they are imported where they are used.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from plinth.bundle.files import BundleFolder
from plinth.model.errors import RunError
from plinth.model.load import Histogram, Second
from plinth.model.trial import Points, Sample, SampleKey, Samples

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_SECOND_TYPES = {"phase": "VARCHAR"} | dict.fromkeys(
    ("latency_mean_ns", "latency_stddev_ns", "schedule_lag_mean_ns"), "DOUBLE"
)
_SECOND_COLUMNS = {name: _SECOND_TYPES.get(name, "BIGINT") for name in Second.model_fields}
_HISTOGRAM_COLUMNS = {
    "scope": "VARCHAR",
    "script": "VARCHAR",
    "statement": "BIGINT",
    "line": "BIGINT",
    "text": "VARCHAR",
    "count": "BIGINT",
    "sum_ns": "BIGINT",
    "min_ns": "BIGINT",
    "max_ns": "BIGINT",
    "value_ns": "BIGINT",
    "bucket_count": "BIGINT",
}
_SAMPLE_COLUMNS = {"t_ns": "BIGINT", "object": "VARCHAR", "metric": "VARCHAR", "value": "DOUBLE"}


_CONFIGURATION: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,  # tables are small, and a run measures at the same time
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "temp_directory": "",
}
_MAX_SAMPLES, _MAX_BUCKETS, _MAX_SECONDS = 20_000_000, 5_000_000, 700_000
"""Maximum number of rows of a table of each kind: a file of a few bytes can claim any number. Seconds of a week; each row of them
is an object of Python."""
_MAX_MEMORY_BYTES = 2 * 2**30
"""Of a query: a file of a few bytes can hold texts of gigabytes. Nothing is spilled to the disk, where it might be a folder of the
user's."""
_FILES_AT_ONCE = 128
"""Maximum number of open files, well below the limit of a process."""
_Table = TypeVar("_Table")


class Tables:
    """Reads and writes the tables of a bundle by their names within it. Raises RunError."""

    def __init__(self, folder: BundleFolder) -> None:
        self._folder = folder

    def write_series(self, name: str, series: Iterable[Second]) -> None:
        """Write series.parquet."""
        rows = [tuple(getattr(second, column) for column in _SECOND_COLUMNS) for second in series]
        self._write(name, _SECOND_COLUMNS, rows)

    def read_series(self, names: Sequence[str]) -> dict[str, tuple[Second, ...]]:
        """Read several series.parquet."""
        return _in_batches(names, self._series)

    def _series(self, names: Sequence[str]) -> dict[str, tuple[Second, ...]]:
        found: dict[str, list[Second]] = {name: [] for name in names}
        with self._sources(names) as sources:
            of_source = dict(zip(sources, names, strict=True))
            rows = self._read(names, sources)
        for *values, source in rows:
            name = of_source[source]
            with self._valid(name):
                found[name].append(Second(**dict(zip(_SECOND_COLUMNS, values, strict=True))))
        return {name: tuple(series) for name, series in found.items()}

    def write_histograms(self, name: str, histograms: Iterable[Histogram]) -> None:
        """Write hist.parquet; a histogram without counts has one row with no bucket."""
        rows = []
        for h in histograms:
            key = (h.scope, h.script, h.statement, h.line, h.text, h.count, h.sum_ns, h.min_ns, h.max_ns)
            rows += [(*key, value, count) for value, count in h.buckets] or [(*key, None, None)]
        self._write(name, _HISTOGRAM_COLUMNS, rows)

    def read_histograms(self, names: Sequence[str]) -> dict[str, tuple[Histogram, ...]]:
        """Read several hist.parquet, each in the order of writing."""
        return _in_batches(names, self._histograms)

    def _histograms(self, names: Sequence[str]) -> dict[str, tuple[Histogram, ...]]:
        keys = list(_HISTOGRAM_COLUMNS)[:-2]
        # A histogram has thousands of buckets: read as arrays, apart from the keys, they take a fifth of the time.
        with self._sources(names) as sources, self._connected("read", names) as connection:
            of_source = dict(zip(sources, names, strict=True))
            table = (
                f"(SELECT {_selected(_HISTOGRAM_COLUMNS)}, filename, file_row_number AS row "
                f"FROM read_parquet($1, filename = true, file_row_number = true) LIMIT {_MAX_BUCKETS + 1})"
            )
            groups = connection.execute(
                f"SELECT filename, {', '.join(keys)}, count(*), count(value_ns), count(*) FILTER (value_ns IS NOT NULL "
                f"AND bucket_count IS NULL), min(row), max(row) FROM {table} GROUP BY filename, {', '.join(keys)}",
                [sources],
            ).fetchall()
            self._check_rows(sum(rows for *_, rows, _, _, _, _ in groups), _MAX_BUCKETS, names)
            buckets = connection.execute(
                f"SELECT value_ns, coalesce(bucket_count, 0) AS n FROM {table} WHERE value_ns IS NOT NULL", [sources]
            ).fetchnumpy()
        pairs = zip(buckets["value_ns"].tolist(), buckets["n"].tolist(), strict=True)
        place = {source: number for number, source in enumerate(sources)}
        found: dict[str, list[Histogram]] = {name: [] for name in names}
        for source, *key, rows, filled, unknown, first, last in sorted(groups, key=lambda g: (place[g[0]], g[-2])):
            name = of_source[source]
            if unknown or last - first + 1 != rows:
                reason = "a bucket has no count" if unknown else "the rows of a histogram are not together"
                raise RunError(f"a part of the bundle is not what it should be: {reason}", where=self._where([name]))
            with self._valid(name):
                histogram = Histogram(**dict(zip(keys, key, strict=True)), buckets=())
            # Not validated again, which takes as long as reading them: DuckDB has cast them to integers.
            found[name].append(histogram.model_copy(update={"buckets": tuple(islice(pairs, filled))}))
        return {name: tuple(histograms) for name, histograms in found.items()}

    def write_samples(self, folder: str, samples: Iterable[Sample]) -> None:
        """Write SOURCE.parquet of every source into `folder`."""
        by_source: dict[str, list[tuple[int, str, str, float]]] = {}
        for sample in samples:
            by_source.setdefault(sample.source, []).append((sample.t_ns, sample.object, sample.metric, sample.value))
        for source, rows in by_source.items():
            self._write(f"{folder}/{source}.parquet", _SAMPLE_COLUMNS, rows)

    def read_samples(self, folders: Sequence[str]) -> dict[str, Samples]:
        """Read the samples of several trials, of every source: `folders` are those of their SOURCE.parquet."""
        names = [
            entry.name
            for folder in folders
            for entry in self._folder.entries(folder)
            if entry.name.endswith(".parquet")
        ]
        found: dict[str, dict[SampleKey, Points]] = {folder: {} for folder in folders}
        for name, of_file in _in_batches(names, self._samples).items():
            folder, _, file = name.rpartition("/")
            source = file.removesuffix(".parquet")
            found[folder] |= {(source, object_, metric): points for (object_, metric), points in of_file.items()}
        return dict(found)

    def _samples(self, names: Sequence[str]) -> dict[str, dict[tuple[str, str], Points]]:
        # As arrays, grouped by DuckDB, a bundle's samples are read in a tenth of the time that rows take.
        with self._sources(names) as sources, self._connected("read", names) as connection:
            of_source = dict(zip(sources, names, strict=True))
            columns = connection.execute(
                "SELECT filename, object, metric, list(t_ns) AS t_ns, list(value) AS value, "
                "bool_or(t_ns IS NULL OR value IS NULL) AS lacking "
                f"FROM (SELECT {_selected(_SAMPLE_COLUMNS)}, filename FROM read_parquet($1, filename = true) "
                f"LIMIT {_MAX_SAMPLES + 1}) GROUP BY filename, object, metric ORDER BY filename, object, metric",
                [sources],
            ).fetchnumpy()
        self._check_rows(sum(map(len, columns["t_ns"])), _MAX_SAMPLES, names)
        found: dict[str, dict[tuple[str, str], Points]] = {name: {} for name in names}
        for source, object_, metric, t_ns, values, lacking in zip(*columns.values(), strict=True):
            name = of_source[source]
            if lacking or not (isinstance(object_, str) and isinstance(metric, str)):
                reason = "a sample lacks its time, value, object or metric"
                raise RunError(f"a part of the bundle is not what it should be: {reason}", where=self._where([name]))
            found[name][object_, metric] = _in_order(t_ns, values)
        return found

    def _write(self, name: str, columns: dict[str, str], rows: Sequence[tuple[Any, ...]]) -> None:
        import numpy as np

        # DuckDB reads a dictionary of arrays as a table by the name that it is registered under. Integers with
        # gaps pass as text, since an array of numbers has no place for a missing one.
        arrays = {
            column: np.array(
                [None if row[i] is None else str(row[i]) if kind != "DOUBLE" else row[i] for row in rows], dtype
            )
            for i, (column, kind) in enumerate(columns.items())
            for dtype in [np.float64 if kind == "DOUBLE" else object]
        }
        with self._folder.new_file(name) as descriptor, self._connected("write", [name]) as connection:
            connection.register("arrays", arrays)
            connection.execute(
                f"COPY (SELECT {_selected(columns)} FROM arrays) TO '{_source(descriptor)}' "
                "(FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)"
            )
            connection.unregister("arrays")

    def _read(self, names: Sequence[str], sources: list[str]) -> list[tuple[Any, ...]]:
        """Return the seconds of all sources, with the source as the last column; errors refer to `names`."""
        with self._connected("read", names) as connection:
            columns = f"{_selected(_SECOND_COLUMNS)}, filename"
            query = f"SELECT {columns} FROM read_parquet($1, filename = true) LIMIT {_MAX_SECONDS + 1}"
            rows = connection.execute(query, [sources]).fetchall()
        self._check_rows(len(rows), _MAX_SECONDS, names)
        return rows

    @contextmanager
    def _sources(self, names: Sequence[str]) -> Iterator[list[str]]:
        """Yield the paths of descriptors that DuckDB opens instead of the files."""
        with ExitStack() as files:
            yield [_source(files.enter_context(self._folder.opened(name))) for name in names]

    @cached_property
    def _connection(self) -> "DuckDBPyConnection":
        """Open an in-memory database."""
        import duckdb

        own_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        most_bytes = min(_MAX_MEMORY_BYTES, own_bytes * 4 // 5)  # DuckDB's own default is the latter
        return duckdb.connect(config={**_CONFIGURATION, "memory_limit": f"{most_bytes // 2**20}MiB"})

    @contextmanager
    def _connected(self, doing: str, names: Sequence[str]) -> Iterator["DuckDBPyConnection"]:
        import duckdb

        try:
            yield self._connection
        except duckdb.Error as error:
            # What follows the first line is the query, and the descriptor's path names no file that a reader could look at.
            reason = re.sub(r" ?'?/proc/self/fd/\d+'?", "", str(error).partition("\n")[0])
            raise RunError(f"cannot {doing} a table of the bundle: {reason}", where=self._where(names)) from error

    @contextmanager
    def _valid(self, name: str) -> Iterator[None]:
        try:
            yield
        except ValidationError as error:
            where = str(self._folder.path / name)
            raise RunError(f"a part of the bundle is not what it should be: {error}", where=where) from error

    def _check_rows(self, rows: int, most: int, names: Sequence[str]) -> None:
        if rows > most:
            where = self._where(names)
            raise RunError(f"cannot read a table of the bundle: it has more than {most:,} rows", where=where)

    def _where(self, names: Sequence[str]) -> str:
        return ", ".join(str(self._folder.path / name) for name in names)


def _in_batches(names: Sequence[str], read: Callable[[Sequence[str]], dict[str, _Table]]) -> dict[str, _Table]:
    """Return the tables by name. A query for several files takes little longer than for one.

    What cannot be read with others is read alone, so that an error names its file, and a file's limits are its own.
    """
    found: dict[str, _Table] = {}
    for first in range(0, len(names), _FILES_AT_ONCE):
        batch = names[first : first + _FILES_AT_ONCE]
        try:
            found |= read(batch)
        except RunError:
            if len(batch) == 1:
                raise
            for name in batch:
                found |= read([name])
    return found


def _in_order(t_ns: Any, values: Any) -> Points:
    import numpy as np

    if not (np.diff(t_ns) > 0).all():
        order = np.lexsort((values, t_ns))
        t_ns, values = t_ns[order], values[order]
    return Points(t_ns, values)


def _selected(columns: dict[str, str]) -> str:
    return ", ".join(f'"{name}"::{kind} AS "{name}"' for name, kind in columns.items())


def _source(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"
