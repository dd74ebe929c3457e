"""Each of PostgreSQL's statistics views as a source."""

from collections.abc import Sequence

from plinth.observe.session import Session
from plinth.observe.source import Reading, Readout, Source, Unreadable
from plinth.observe.views import VIEWS, Query, View, build_query


class ViewSource:
    """One view, asked for what this server's version and settings have of it."""

    def __init__(self, session: Session, view: View) -> None:
        self.name = view.source
        self.sparse = view.sparse
        self._session = session
        self._view = view
        self._query: Query | None = None
        self._built_for: object = None

    def read(self) -> Readout:
        """One round trip. Raises Unreadable."""
        session = self._session
        session.connect()
        if self._query is None or self._built_for is not session.settings:
            self._query = build_query(self._view, session.major, session.settings)
            self._built_for = session.settings
        sql, metrics, missing = self._query
        if sql is None:
            return Readout([], missing)
        rows = session.query(sql)
        if not rows and not self.sparse:
            raise Unreadable("the view has no row of it")
        # A null is a cell that has no meaning, such as the fsyncs of temporary relations.
        readings = [
            Reading(of, metric, float(value))
            for of, *values in rows
            for metric, value in zip(metrics, values, strict=True)
            if value is not None
        ]
        return Readout(readings, missing)


def postgres_sources(session: Session, views: Sequence[View] = VIEWS) -> list[Source]:
    """Sources of all views; what the server's version lacks is missing with that reason."""
    return [ViewSource(session, view) for view in views]
