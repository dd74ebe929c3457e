"""Samples PostgreSQL's statistics views; all views of a session are queried together."""

from collections.abc import Sequence

from plinth.observe.session import Row, Session
from plinth.observe.source import Reading, Readout, Source, Unreadable
from plinth.observe.views import Query, View, build_query

_TICKS_OF_REST = 4
"""Ticks to skip after a rarely populated view was empty."""


class ViewSource:
    """A statistics view, with the columns that this server's version and settings provide."""

    def __init__(self, batch: "_Batch", view: View) -> None:
        self.name = view.source
        self.sparse = view.absent == "zero"
        self._batch = batch
        self._view = view
        self._query: Query | None = None
        self._built_for: object = None
        self._resting = 0

    def due(self) -> str | None:
        """Return the query of this tick, None if there is none. Raises Unreadable."""
        return None if self._resting else self._query_now().sql

    def read(self) -> Readout:
        """Return the view's rows of this tick. Raises Unreadable."""
        sql, metrics, missing = self._query_now()
        if sql is None or self._resting:
            self._resting = max(0, self._resting - 1)
            return Readout([], missing)
        rows = self._batch.take(sql)
        if not rows and self._view.absent == "gap":
            raise Unreadable("the view has no row of it")
        if not rows and self._view.seldom:
            self._resting = _TICKS_OF_REST
        # NULL marks a combination that cannot occur, such as fsyncs of temporary relations.
        readings = [
            Reading(of or "", metric, float(value))
            for of, *values in rows
            for metric, value in zip(metrics, values, strict=True)
            if value is not None
        ]
        return Readout(readings, missing)

    def _query_now(self) -> Query:
        server = self._batch.session.connect()
        if self._query is None or self._built_for is not server:
            self._query, self._built_for, self._resting = build_query(self._view, server), server, 0
        return self._query


class _Batch:
    """Results of all queries of a tick, which the first source that needs one executes together."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.sources: list[ViewSource] = []
        self._answers: dict[str, list[Row] | Unreadable] = {}

    def take(self, sql: str) -> list[Row]:
        """Return the rows of a query, once. Raises Unreadable."""
        if sql not in self._answers:
            self._answers = self.session.query_all(
                [due for source in self.sources if (due := source.due()) is not None]
            )
        answer = self._answers.pop(sql)
        if isinstance(answer, Unreadable):
            raise answer
        return answer


def view_sources(session: Session, views: Sequence[View]) -> list[Source]:
    """Return sources of these views; columns that the server's version lacks are reported as missing."""
    batch = _Batch(session)
    batch.sources = [ViewSource(batch, view) for view in views]
    return list(batch.sources)
