"""Describes statistics views of PostgreSQL by version, and builds the query for one server. Pure functions."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple


class Column(NamedTuple):
    """A metric and its SQL expression in versions `since` to `until`; a metric may have several such columns.

    `needs` is the setting without which the column counts nothing.
    """

    metric: str
    sql: str
    since: int = 13
    until: int = 99
    needs: str | None = None


class View(NamedTuple):
    """One view as a source. `relations` is what goes after FROM, by the version that it came with.

    `object` is the SQL of what a row is of. `absent` is what a row says that is not there: nothing is known about it
    (gap), it counts nothing (zero), or there is no such thing (nothing). `extension`: the view is that extension's, and
    `{schema}` in a relation the schema where it is. $1 is the load's database. `seldom`: mostly there is no row of it, so
    that after a look that found none it is looked for less often.
    """

    source: str
    relations: Mapping[int, str]
    columns: tuple[Column, ...]
    object: str = "'all'"
    needs: str | None = None
    absent: Literal["gap", "zero", "nothing"] = "gap"
    extension: str | None = None
    seldom: bool = False


class Traits(NamedTuple):
    """Features of a server: major version, settings, and extensions, each with its schema or the reason for its absence."""

    major: int
    settings: Mapping[str, str]
    extensions: Mapping[str, "Extension"]


class Extension(NamedTuple):
    """An extension in the observer's database: its schema, quoted, or why it cannot be used."""

    schema: str | None
    reason: str = ""


class Query(NamedTuple):
    """A view's query for one server, which returns the object and the metrics. `missing`: part -> reason.

    `sql` is None when the server has nothing of the view.
    """

    sql: str | None
    metrics: tuple[str, ...]
    missing: dict[str, str]


def same(names: str, since: int = 13, until: int = 99) -> tuple[Column, ...]:
    """Return metrics with the names of their columns."""
    return tuple(Column(name, name, since, until) for name in names.split())


def seconds(names: str, since: int = 13, until: int = 99, needs: str | None = None) -> tuple[Column, ...]:
    """Return metrics in seconds for columns in milliseconds."""
    return tuple(Column(f"{name}_s", f"{name} / 1000", since, until, needs) for name in names.split())


def needed_settings(views: Sequence[View]) -> tuple[str, ...]:
    """Settings that determine what the views count."""
    needs = {need for view in views for need in (view.needs, *(column.needs for column in view.columns)) if need}
    return tuple(sorted(needs))


def build_query(view: View, server: Traits) -> Query:
    """Return the query of `view` for a server."""
    major, settings = server.major, server.settings
    came = [since for since in view.relations if since <= major]
    if not came:
        return Query(None, (), {view.source: _too_old(major, min(view.relations))})
    if view.needs is not None and settings.get(view.needs) != "on":
        return Query(None, (), {view.source: _is_off(view.needs)})
    relation = view.relations[max(came)]
    if view.extension is not None:
        extension = server.extensions[view.extension]
        if extension.schema is None:
            return Query(None, (), {view.source: extension.reason})
        relation = relation.format(schema=extension.schema)
    present = [column for column in view.columns if column.since <= major <= column.until]
    counted = [column for column in present if column.needs is None or settings.get(column.needs) == "on"]
    reasons = {column.metric: _is_off(column.needs) for column in present if column.needs and column not in counted}
    had = {column.metric for column in present}
    for column in view.columns:
        if column.since > major and column.metric not in had:
            reasons[column.metric] = _too_old(major, column.since)
    selected = ", ".join([f"{view.object} AS object", *(f"{column.sql} AS {column.metric}" for column in counted)])
    return Query(f"SELECT {selected} FROM {relation}", tuple(column.metric for column in counted), _by_reason(reasons))


def _too_old(major: int, since: int) -> str:
    return f"PostgreSQL {major} does not have it; {since} and later do"


def _is_off(setting: str) -> str:
    return f"{setting} is off"


def _by_reason(reasons: Mapping[str, str]) -> dict[str, str]:
    metrics: dict[str, list[str]] = {}
    for metric, reason in reasons.items():
        metrics.setdefault(reason, []).append(metric)
    return {", ".join(names): reason for reason, names in metrics.items()}
