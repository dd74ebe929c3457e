"""Tables of a trial as Parquet, written and read with DuckDB.

series.parquet        a row a second: the fields of `Second`
hist.parquet          a row a bucket: the histogram's key, and (value_ns, bucket_count)
observe/SOURCE.parquet  a row a sample: t_ns, object, metric, value

DuckDB and numpy are slow to load, and most commands need no table: so they are imported where they are used.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plinth.model.errors import RunError
from plinth.model.load import Histogram, Second
from plinth.model.trial import Sample

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


def write_series(path: Path, series: Iterable[Second]) -> None:
    """Write series.parquet."""
    _write(path, _SECOND_COLUMNS, [tuple(getattr(second, name) for name in _SECOND_COLUMNS) for second in series])


def read_series(path: Path) -> tuple[Second, ...]:
    """Read series.parquet; of an older one, what it has."""
    known = {name: kind for name, kind in _SECOND_COLUMNS.items() if name in _columns(path)}
    return tuple(Second(**dict(zip(known, row, strict=True))) for row in _read(path, known))


def write_histograms(path: Path, histograms: Iterable[Histogram]) -> None:
    """Write hist.parquet; a histogram without counts keeps one row with no bucket."""
    rows = []
    for h in histograms:
        key = (h.scope, h.script, h.statement, h.line, h.text, h.count, h.sum_ns, h.min_ns, h.max_ns)
        rows += [(*key, value, count) for value, count in h.buckets] or [(*key, None, None)]
    _write(path, _HISTOGRAM_COLUMNS, rows)


def read_histograms(path: Path) -> tuple[Histogram, ...]:
    """Read hist.parquet, in the order in which it was written."""
    buckets: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
    for *key, value, count in _read(path, _HISTOGRAM_COLUMNS):
        found = buckets.setdefault(tuple(key), [])
        if value is not None:
            found.append((value, count))
    names = list(_HISTOGRAM_COLUMNS)[:-2]
    return tuple(
        Histogram(**dict(zip(names, key, strict=True)), buckets=tuple(found)) for key, found in buckets.items()
    )


def write_samples(folder: Path, samples: Iterable[Sample]) -> None:
    """Write observe/SOURCE.parquet of every source."""
    by_source: dict[str, list[tuple[int, str, str, float]]] = {}
    for sample in samples:
        by_source.setdefault(sample.source, []).append((sample.t_ns, sample.object, sample.metric, sample.value))
    for source, rows in by_source.items():
        _write(folder / f"{source}.parquet", _SAMPLE_COLUMNS, rows)


def read_samples(folder: Path) -> list[Sample]:
    """Read the samples of every source of a trial, by one connection: to make one takes longer than to read a file."""
    selected = ", ".join(f'"{name}"' for name in _SAMPLE_COLUMNS)
    with _connected("read", folder) as connection:
        return [
            Sample(t_ns, path.stem, object_, metric, value)
            for path in sorted(folder.glob("*.parquet"))
            for t_ns, object_, metric, value in connection.execute(
                f"SELECT {selected} FROM read_parquet($1)", [str(path)]
            ).fetchall()
        ]


def _write(path: Path, columns: dict[str, str], rows: Sequence[tuple[Any, ...]]) -> None:
    import numpy as np

    # DuckDB reads a dictionary of arrays as a table by the name of the variable that holds it. Integers with
    # gaps pass as text, since an array of numbers has no place for a missing one.
    arrays = {
        name: np.array([None if row[i] is None else str(row[i]) if kind != "DOUBLE" else row[i] for row in rows], dtype)
        for i, (name, kind) in enumerate(columns.items())
        for dtype in [np.float64 if kind == "DOUBLE" else object]
    }
    selected = ", ".join(f'"{name}"::{kind} AS "{name}"' for name, kind in columns.items())
    with _connected("write", path) as connection:
        connection.register("arrays", arrays)
        target = str(path).replace("'", "''")
        connection.execute(f"COPY (SELECT {selected} FROM arrays) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")


@contextmanager
def _connected(doing: str, path: Path) -> Iterator["DuckDBPyConnection"]:
    """A database that lives in memory and reads or writes `path`. RunError when that cannot be read or written."""
    import duckdb

    try:
        with duckdb.connect() as connection:
            yield connection
    except duckdb.Error as error:
        raise RunError(f"cannot {doing} a table of the bundle: {error}", where=str(path)) from error


def _columns(path: Path) -> set[str]:
    with _connected("read", path) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM parquet_schema($1)", [str(path)]).fetchall()}


def _read(path: Path, columns: dict[str, str]) -> list[tuple[Any, ...]]:
    selected = ", ".join(f'"{name}"' for name in columns)
    with _connected("read", path) as connection:
        return connection.execute(f"SELECT {selected} FROM read_parquet($1)", [str(path)]).fetchall()
