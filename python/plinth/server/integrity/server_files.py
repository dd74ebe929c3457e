"""What the checks after a power cut read of a server's files, where the files are."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from typing_extensions import override

from plinth.common.complete import complete
from plinth.model.connection import Connection
from plinth.server.integrity.amcheck import check_checksums
from plinth.server.integrity.findings import Integrity
from plinth.server.integrity.fingerprint import Fingerprint, compare_fingerprint, take_fingerprint
from plinth.server.integrity.other_databases import check_other_databases
from plinth.server.integrity.page_pointers import Pointers, check_pointers, read_pointers
from plinth.server.integrity.torn_pages import TornPage, TornPlace, torn_pages
from plinth.server.integrity.transaction_status import last_commit_before
from plinth.server.layout import ServerLayout
from plinth.system.runner import Runner

if TYPE_CHECKING:
    import psycopg


class ServerFiles(Protocol):
    """The files of a managed server. `control` is a session of a superuser to it, in autocommit mode.

    Methods with `control` raise psycopg.Error where the server could not answer; those without it are for a server that is stopped.
    """

    @abstractmethod
    def take_fingerprint(self, control: "psycopg.Connection[Any]") -> Fingerprint | None:
        """Return what the database has now; None where that stays on another host, for the next comparison there."""

    @abstractmethod
    def compare_fingerprint(self, control: "psycopg.Connection[Any]", before: Fingerprint | None) -> Integrity:
        """Compare the database, which has just recovered, with what it was; None where that is not known."""

    @abstractmethod
    def check_other_databases(self, control: "psycopg.Connection[Any]") -> Integrity:
        """Check the other databases, and read the indexes of each for `check_pointers`."""

    @abstractmethod
    def read_pointers(self, control: "psycopg.Connection[Any]") -> None:
        """Read the indexes of the database, for `check_pointers`."""

    @abstractmethod
    def check_pointers(self) -> tuple[Integrity, ...]:
        """Compare the entries of all indexes that were read with the tables."""

    @abstractmethod
    def check_checksums(self, enabled: bool) -> Integrity:
        """Verify the checksum of every page."""

    @abstractmethod
    def torn_pages(self, places: Sequence[TornPlace]) -> list[TornPage]:
        """Return the pages of relations in which one of these writes broke off."""

    @abstractmethod
    def last_commit_before(self, lsn: str) -> str | None:
        """Return the last commit in WAL before this LSN, in pg_waldump's words; None where there is none."""


@complete
class LocalServerFiles(ServerFiles):
    """The files of a server on this machine, which control sessions reach by `control`."""

    def __init__(self, layout: ServerLayout, control: Callable[[], Connection], runner: Runner) -> None:
        self._layout = layout
        self._control = control
        self._runner = runner
        self._pointers: list[Pointers] = []

    @override
    def take_fingerprint(self, control: "psycopg.Connection[Any]") -> Fingerprint | None:
        return take_fingerprint(control, self._layout.data_directory)

    @override
    def compare_fingerprint(self, control: "psycopg.Connection[Any]", before: Fingerprint | None) -> Integrity:
        return compare_fingerprint(control, self._layout.data_directory, before)

    @override
    def check_other_databases(self, control: "psycopg.Connection[Any]") -> Integrity:
        major = self._layout.installation.major
        found, pointers = check_other_databases(control, self._control(), major)
        self._pointers += pointers
        return found

    @override
    def read_pointers(self, control: "psycopg.Connection[Any]") -> None:
        self._pointers.append(read_pointers(control))

    @override
    def check_pointers(self) -> tuple[Integrity, ...]:
        pointers, self._pointers = self._pointers, []
        return tuple(check_pointers(self._layout.data_directory, one) for one in pointers)

    @override
    def check_checksums(self, enabled: bool) -> Integrity:
        return check_checksums(self._layout, self._layout.installation, self._runner, enabled)

    @override
    def torn_pages(self, places: Sequence[TornPlace]) -> list[TornPage]:
        return torn_pages(self._layout.data_directory, places)

    @override
    def last_commit_before(self, lsn: str) -> str | None:
        return last_commit_before(lsn, self._layout, self._layout.installation, self._runner)
