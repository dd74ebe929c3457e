"""What the checks after a power cut read of the files of a server on another host: there, and asked from here."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from plinth.model.errors import RunError
from plinth.server.integrity.check_limits import limited
from plinth.server.integrity.findings import Integrity
from plinth.server.integrity.fingerprint import Fingerprint
from plinth.server.integrity.server_files import ServerFiles
from plinth.server.integrity.torn_pages import TornPage, TornPlace
from plinth.server.server import Server
from plinth.system.database import connect, database_errors
from plinth.system.runner import Runner

if TYPE_CHECKING:
    import psycopg

    from plinth.run.hosts.link import HostLink


class FilesThere:
    """The files of a server of this host, for a coordinator. What is large stays here: fingerprints, and the entries of indexes."""

    def __init__(self, server: Server, runner: Runner) -> None:
        self._server = server
        self._files = ServerFiles(server, runner)
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

    def torn_pages(self, places: tuple[TornPlace, ...]) -> list[TornPage]:
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


class RemoteFiles(ServerFiles):
    """The files of a server on another host."""

    def __init__(self, server: Server, link: "HostLink", on: tuple[str, ...]) -> None:
        super().__init__(server, Runner())
        self._link = link
        self._on = on

    def take_fingerprint(self, control: "psycopg.Connection[Any]") -> None:
        """Have the host keep what the database has now."""
        self._ask_running(control, "take_fingerprint")

    def compare_fingerprint(self, control: "psycopg.Connection[Any]", before: Fingerprint | None) -> Integrity:
        """Have the host compare the database with what it has kept."""
        return self._ask_running(control, "compare_fingerprint")

    def check_other_databases(self, control: "psycopg.Connection[Any]") -> Integrity:
        """Have the host check the other databases."""
        return self._ask_running(control, "check_other_databases")

    def read_pointers(self, control: "psycopg.Connection[Any]") -> None:
        """Have the host read the indexes of the database."""
        self._ask_running(control, "read_pointers")

    def check_pointers(self) -> tuple[Integrity, ...]:
        """Have the host compare the entries of all indexes that it has read with the tables."""
        return self._link.call(self._on, "check_pointers")

    def check_checksums(self, enabled: bool) -> Integrity:
        """Have the host verify the checksum of every page."""
        return self._link.call(self._on, "check_checksums", {"enabled": enabled})

    def torn_pages(self, places: Sequence[TornPlace]) -> list[TornPage]:
        """Return the pages there in which one of these writes broke off."""
        return self._link.call(self._on, "torn_pages", {"places": tuple(places)})

    def last_commit_before(self, lsn: str) -> str | None:
        """Return the last commit in WAL there before this LSN."""
        return self._link.call(self._on, "last_commit_before", {"lsn": lsn})

    def _ask_running(self, control: "psycopg.Connection[Any]", method: str) -> Any:
        """Call a method that asks the server. Raises psycopg.Error where the server has ended, as its own session shows; that is a finding."""
        try:
            return self._link.call(self._on, method)
        except RunError:
            control.execute("SELECT")
            raise
