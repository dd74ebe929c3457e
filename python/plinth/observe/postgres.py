"""Each of PostgreSQL's statistics views as a source."""

from collections.abc import Sequence

from plinth.observe.session import Session
from plinth.observe.source import Reading, Readout, Source, Unreadable
from plinth.observe.view import Query, View, build_query


class ViewSource:
    """One view, asked for what this server's version and settings have of it."""

    def __init__(self, session: Session, view: View) -> None:
        self.name = view.source
        self.sparse = view.absent == "zero"
        self._session = session
        self._view = view
        self._query: Query | None = None
        self._built_for: object = None

    def read(self) -> Readout:
        """One round trip. Raises Unreadable."""
        server = self._session.connect()
        if self._query is None or self._built_for is not server:
            self._query = build_query(self._view, server)
            self._built_for = server
        sql, metrics, missing = self._query
        if sql is None:
            return Readout([], missing)
        rows = self._session.query(sql)
        if not rows and self._view.absent == "gap":
            raise Unreadable("the view has no row of it")
        # A null is a cell that has no meaning, such as the fsyncs of temporary relations.
        readings = [
            Reading(of or "", metric, float(value))
            for of, *values in rows
            for metric, value in zip(metrics, values, strict=True)
            if value is not None
        ]
        return Readout(readings, missing)


def view_sources(session: Session, views: Sequence[View]) -> list[Source]:
    """Sources of these views; what the server's version lacks is missing with that reason."""
    return [ViewSource(session, view) for view in views]
