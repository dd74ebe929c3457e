"""What the checks after a power cut read of the files of a server on another host: its agent reads them."""

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from plinth.model.errors import RunError
from plinth.run.hosts.remote_object import RemoteObject, remote
from plinth.server.integrity.findings import Integrity
from plinth.server.integrity.fingerprint import Fingerprint
from plinth.server.integrity.server_files import ServerFiles

if TYPE_CHECKING:
    import psycopg


@remote("files")
class RemoteFiles(RemoteObject, ServerFiles):
    """The files of a server on another host, where fingerprints stay."""

    @override
    def take_fingerprint(self, control: "psycopg.Connection[Any]") -> None:
        self._ask_running(control, "take_fingerprint")

    @override
    def compare_fingerprint(self, control: "psycopg.Connection[Any]", before: Fingerprint | None) -> Integrity:
        return self._ask_running(control, "compare_fingerprint")

    @override
    def check_other_databases(self, control: "psycopg.Connection[Any]") -> Integrity:
        return self._ask_running(control, "check_other_databases")

    @override
    def read_pointers(self, control: "psycopg.Connection[Any]") -> None:
        self._ask_running(control, "read_pointers")

    def _ask_running(self, control: "psycopg.Connection[Any]", method: str) -> Any:
        """Call a method that asks the server. Raises psycopg.Error where the server has ended, as its own session shows; that is a finding."""
        try:
            return self._ask(method)
        except RunError:
            control.execute("SELECT")
            raise
