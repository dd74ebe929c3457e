"""What the checks after a power cut read of the files of a server, for a coordinator on another machine."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from plinth.server.integrity.check_limits import limited
from plinth.server.integrity.findings import Integrity
from plinth.server.integrity.fingerprint import Fingerprint
from plinth.server.integrity.torn_pages import TornPage, TornPlace
from plinth.server.node import Server
from plinth.system.database import connect, database_errors

if TYPE_CHECKING:
    import psycopg


class FilesThere:
    """The files of a server of this host, for a coordinator. What is large stays here: fingerprints, and the entries of indexes."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._files = server.files()
        self._fingerprint: Fingerprint | None = None

    def take_fingerprint(self) -> None:
        """Keep what the database has now."""
        with self._control("take a fingerprint") as control:
            self._fingerprint = self._files.take_fingerprint(control)

    def compare_fingerprint(self) -> Integrity:
        """Compare the database, which has just recovered, with the fingerprint, once."""
        before, self._fingerprint = self._fingerprint, None
        with self._control("compare it with its fingerprint") as control:
            return self._files.compare_fingerprint(control, before)

    def check_other_databases(self) -> Integrity:
        """Check the other databases."""
        with self._control("check the other databases") as control:
            return self._files.check_other_databases(control)

    def read_pointers(self) -> None:
        """Read the indexes of the database."""
        with self._control("read its indexes") as control:
            self._files.read_pointers(control)

    def check_pointers(self) -> tuple[Integrity, ...]:
        """Compare the entries of all indexes that were read with the tables."""
        return self._files.check_pointers()

    def check_checksums(self, enabled: bool) -> Integrity:
        """Verify the checksum of every page."""
        return self._files.check_checksums(enabled)

    def torn_pages(self, places: Sequence[TornPlace]) -> list[TornPage]:
        """Return the pages in which one of these writes broke off."""
        return self._files.torn_pages(places)

    def last_commit_before(self, lsn: str) -> str | None:
        """Return the last commit in WAL before this LSN."""
        return self._files.last_commit_before(lsn)

    @contextmanager
    def _control(self, what: str) -> "Iterator[psycopg.Connection[Any]]":
        with (
            database_errors(what, str(self._server.layout.data_directory)),
            connect(self._server.control) as control,
            limited(control),
        ):
            yield control
