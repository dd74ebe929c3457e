"""Undo handlers of the steps that make and start servers, and of schemas on external servers."""

from pathlib import Path

from plinth.model.step import Undo
from plinth.server.external.schema import schema_of, undo_schema
from plinth.server.processes import stop_labelled_server
from plinth.server.replication.cluster_manager import stop_cluster_manager
from plinth.server.shared_memory import Guarded, remove_memory_of
from plinth.system.undo import UndoHandler, UndoHandlers


def _remove_memory(what: Undo) -> None:
    remove_memory_of(Guarded.from_text(what.path))


SERVER_UNDO: UndoHandlers = {
    "stop_server": UndoHandler(
        lambda what, runner: stop_labelled_server(Path(what.path), what.label),
        lambda what: f"stop the server of {what.path}",
    ),
    "remove_shared_memory": UndoHandler(
        lambda what, runner: _remove_memory(what),
        lambda what: f"remove the shared memory that a server which was killed has left ({what.path})",
    ),
    "stop_cluster_manager": UndoHandler(
        lambda what, runner: stop_cluster_manager(Path(what.path), what.label),
        lambda what: f"end the processes of {what.path}",
    ),
    "drop_schema": UndoHandler(
        lambda what, runner: undo_schema(what.path, what.label),
        lambda what: f"drop the schema {schema_of(what.label)} of {what.path}",
    ),
}
