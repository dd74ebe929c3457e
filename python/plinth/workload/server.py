"""The interface to the server that a dataset is loaded into."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from plinth.model.connection import Connection
from plinth.workload.bulk import Loader

if TYPE_CHECKING:
    import psycopg


class DatasetServer(Protocol):
    """A server while a dataset is loaded into it."""

    @property
    def control(self) -> "psycopg.Connection":
        """Return the session that tables are made in; another one once the server has been stopped and started."""
        ...

    @property
    def target(self) -> Connection:
        """Return where further sessions connect."""
        ...

    def loader(self, config: dict[str, Any], size_bytes: float) -> Loader:
        """Return what sends rows of about `size_bytes` in their tables by COPY: of this process, or of several machines."""
        ...

    def stopped(self) -> AbstractContextManager[None]:
        """Shut the server down while the block runs, so that its files are at rest. Raises Refused for one that we may not stop.

        It is started again at the end, but not where something was raised within.
        """
        ...
