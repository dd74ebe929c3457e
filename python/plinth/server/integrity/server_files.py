"""What the checks after a power cut read of a server's files, where the files are."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plinth.server.integrity.amcheck import check_checksums
from plinth.server.integrity.findings import Integrity
from plinth.server.integrity.fingerprint import Fingerprint, compare_fingerprint, take_fingerprint
from plinth.server.integrity.other_databases import check_other_databases
from plinth.server.integrity.page_pointers import Pointers, check_pointers, read_pointers
from plinth.server.integrity.torn_pages import TornPage, TornPlace, torn_pages
from plinth.server.integrity.transaction_status import last_commit_before
from plinth.system.runner import Runner

if TYPE_CHECKING:
    import psycopg

    from plinth.server.server import Server


class ServerFiles:
    """The files of a managed server on this machine. `control` is a session of a superuser to it, in autocommit mode.

    Methods with `control` raise psycopg.Error where the server could not answer; those without it are for a server that is stopped.
    """

    def __init__(self, server: "Server", runner: Runner) -> None:
        self._server = server
        self._runner = runner
        self._pointers: list[Pointers] = []

    def take_fingerprint(self, control: "psycopg.Connection[Any]") -> Fingerprint | None:
        """Return what the database has now; None where that stays on another host, for the next comparison there."""
        return take_fingerprint(control, self._server.layout.data_directory)

    def compare_fingerprint(self, control: "psycopg.Connection[Any]", before: Fingerprint | None) -> Integrity:
        """Compare the database, which has just recovered, with what it was; None where that is not known."""
        return compare_fingerprint(control, self._server.layout.data_directory, before)

    def check_other_databases(self, control: "psycopg.Connection[Any]") -> Integrity:
        """Check the other databases, and read the indexes of each for `check_pointers`."""
        major = self._server.layout.installation.major
        found, pointers = check_other_databases(control, self._server.control, major)
        self._pointers += pointers
        return found

    def read_pointers(self, control: "psycopg.Connection[Any]") -> None:
        """Read the indexes of the database, for `check_pointers`."""
        self._pointers.append(read_pointers(control))

    def check_pointers(self) -> tuple[Integrity, ...]:
        """Compare the entries of all indexes that were read with the tables."""
        pointers, self._pointers = self._pointers, []
        return tuple(check_pointers(self._server.layout.data_directory, one) for one in pointers)

    def check_checksums(self, enabled: bool) -> Integrity:
        """Verify the checksum of every page."""
        layout = self._server.layout
        return check_checksums(layout, layout.installation, self._runner, enabled)

    def torn_pages(self, places: Sequence[TornPlace]) -> list[TornPage]:
        """Return the pages of relations in which one of these writes broke off."""
        return torn_pages(self._server.layout.data_directory, places)

    def last_commit_before(self, lsn: str) -> str | None:
        """Return the last commit in WAL before this LSN, in pg_waldump's words; None where there is none."""
        layout = self._server.layout
        return last_commit_before(lsn, layout, layout.installation, self._runner)
