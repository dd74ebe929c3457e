"""A bundle's figures as tables for notebooks and programs: numpy arrays, or data frames of pandas or polars.

numpy, pandas and polars are imported when a table is asked for in their form; Plinth itself needs neither pandas nor polars.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plinth.bundle.reader import read_bundle
from plinth.model.contents import BundleContents, TrialContents
from plinth.model.errors import MissingCapability, RunError, UsageError
from plinth.model.load import Second

if TYPE_CHECKING:
    import numpy
    import pandas
    import polars

_INT64 = range(-(2**63), 2**63)
_TRIAL = (
    "block", "status", "failure", "excluded", "started_unix_ns", "connect_ns", "warmup_ns", "measured_ns", "tps",
)  # fmt: skip
_COUNTS = ("scheduled", "done", "failed", "skipped", "open", "retries", "retried", "late")
_HISTOGRAM = ("scope", "script", "statement", "line", "text")


@dataclass(frozen=True)
class Table:
    """Named columns of equal length. None is a missing value; names contain units."""

    columns: dict[str, Sequence[Any]]

    def __repr__(self) -> str:
        """Return the size and the columns, not the values, of which there may be millions."""
        return f"Table({len(self):,} rows: {', '.join(self.columns)})"

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def numpy(self) -> dict[str, "numpy.ndarray[Any, Any]"]:
        """Return an array for each column: int64, float64, or object for text.

        Numbers of which some are missing are masked arrays (numpy.ma), so that integers stay exact.
        """
        import numpy as np

        arrays: dict[str, Any] = {}
        for name, values in self.columns.items():
            kind = _kind(values)
            if kind is str:
                arrays[name] = np.array(values, dtype=object)
                continue
            dtype = np.int64 if kind is int else np.float64
            missing = [value is None for value in values]
            array = np.array([0 if value is None else value for value in values], dtype=dtype)
            arrays[name] = np.ma.masked_array(array, mask=missing) if any(missing) else array
        return arrays

    def pandas(self) -> "pandas.DataFrame":
        """Return a pandas data frame with nullable types. Raises MissingCapability if pandas is not installed."""
        pd = _imported("pandas")
        dtypes = {int: "Int64", float: "Float64", str: "string"}
        return pd.DataFrame(
            {name: pd.Series(list(values), dtype=dtypes[_kind(values)]) for name, values in self.columns.items()}
        )

    def polars(self) -> "polars.DataFrame":
        """Return a polars data frame. Raises MissingCapability if polars is not installed."""
        pl = _imported("polars")
        dtypes = {int: pl.Int64, float: pl.Float64, str: pl.String}
        return pl.DataFrame(
            [pl.Series(name, list(values), dtype=dtypes[_kind(values)]) for name, values in self.columns.items()]
        )


class OpenedBundle:
    """The contents of a bundle. The first columns of every table are `trial`, its number, and `variant`, its id."""

    def __init__(self, contents: BundleContents) -> None:
        self.contents = contents
        """All contents as values of `plinth.model`, the input of analysis and report."""

    @classmethod
    def read(cls, path: str | Path) -> "OpenedBundle":
        """Read the bundle at `path`. Raises PlinthError when it is no bundle, a newer one, or corrupted."""
        return cls(read_bundle(Path(path)))

    def __repr__(self) -> str:
        """Return what a notebook shows of the bundle: its folder, experiment, status and number of trials."""
        run = self.contents.manifest
        trials = f"{len(self.contents.trials)} of {len(self.contents.expected_trials)} trials"
        return f"OpenedBundle({str(self.path)!r}: {run.experiment}, {run.status}, {trials})"

    @property
    def path(self) -> Path:
        """Return the directory of the bundle."""
        return Path(self.contents.path)

    @property
    def question(self) -> str:
        """Return the question of the experiment."""
        return self.contents.plan.experiment.question

    def trials(self) -> Table:
        """Return a row for each trial, those that failed or are excluded too: levels of its factors, then what was counted.

        A factor's column has its name in the experiment with `level.` before it, as in `level.storage`. `tps` and the counts
        are of the measured phase; they are missing for a trial that failed.
        """
        levels = {variant.id: variant.levels for variant in self.contents.plan.variants}
        factors = list(dict.fromkeys(factor for of_variant in levels.values() for factor in of_variant))
        rows = (
            (
                *_key(each),
                *(levels.get(each.trial.variant, {}).get(factor) for factor in factors),
                *(getattr(each.trial, name) for name in _TRIAL),
                *(getattr(each.trial.measured, name, None) for name in _COUNTS),
            )
            for each in self.contents.trials
        )
        return _table(("trial", "variant", *(f"level.{factor}" for factor in factors), *_TRIAL, *_COUNTS), rows)

    def series(self) -> Table:
        """Return a row for each second of each trial, warm-up included: the fields of `plinth.model.load.Second`."""
        fields = tuple(Second.model_fields)
        rows = (
            (*_key(each), *(getattr(second, field) for field in fields))
            for each in self.contents.trials
            for second in each.series
        )
        return _table(("trial", "variant", *fields), rows)

    def histograms(self) -> Table:
        """Return a row for each bucket of each latency histogram, of the measured phase: its highest value in ns, and its count.

        Buckets of equal values may be summed over trials. What `scope` means is said by `plinth.model.load.Histogram`.
        """
        rows = (
            (*_key(each), *(getattr(histogram, name) for name in _HISTOGRAM), value_ns, count)
            for each in self.contents.trials
            for histogram in each.histograms
            for value_ns, count in histogram.buckets
        )
        return _table(("trial", "variant", *_HISTOGRAM, "value_ns", "bucket_count"), rows)

    def samples(self, source: str | None = None) -> Table:
        """Return a row for each value that was observed during the load, of one source ("host", "device") or of all; those of a metric
        in order of time.

        `t_ns` counts from the start of the load. Counters are as they were read: rates are their differences.
        UsageError for a source that the bundle does not have.
        """
        rows = [
            (*_key(each), t_ns, *key, value)
            for each in self.contents.trials
            for key, points in each.read_samples().items()
            if source is None or key[0] == source
            for t_ns, value in zip(points.t_ns.tolist(), points.values.tolist(), strict=True)
        ]
        if source is not None and not rows:
            known = sorted({key[0] for each in self.contents.trials for key in each.read_samples()})
            raise UsageError(
                f"there are no samples of the source {source!r}",
                where=self.contents.path,
                hint=f"there are samples of {', '.join(known)}" if known else "the bundle has no samples",
            )
        return _table(("trial", "variant", "t_ns", "source", "object", "metric", "value"), rows)


def _key(each: TrialContents) -> Iterator[Any]:
    yield each.trial.number
    yield each.trial.variant


def _table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return Table({name: _uniform(name, column) for name, column in zip(names, columns, strict=True)})


def _uniform(name: str, values: Sequence[Any]) -> Sequence[Any]:
    """Convert a column to one type: levels of a factor may be numbers, strings and booleans, also mixed."""
    there = [value for value in values if value is not None]
    if any(isinstance(value, int) and value not in _INT64 for value in there):
        raise RunError(f"a value of the column {name} does not fit into 64 bits")
    if all(isinstance(value, int) and not isinstance(value, bool) for value in there):
        return values
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in there):
        return [None if value is None else float(value) for value in values]
    return [None if value is None else str(value) for value in values]


def _kind(values: Sequence[Any]) -> type:
    """Return int, float or str; float for a column without values."""
    first = next((value for value in values if value is not None), None)
    return float if first is None else type(first)


def _imported(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingCapability(
            f"{package} is not installed, and frames of {package} need it",
            hint=f"install it with `pip install {package}`, or take numpy arrays: .numpy()",
        ) from error
