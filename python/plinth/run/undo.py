"""The registry of undo handlers: those of every kind of storage, of servers and of the network, handed to the journal and to `clean`."""

from collections import ChainMap
from typing import cast

from plinth.model.step import Step
from plinth.network.namespaces import NETWORK_UNDO
from plinth.run.hosts.undo import HOST_UNDO
from plinth.server.undo import SERVER_UNDO
from plinth.storage.registry import STORAGE_UNDO
from plinth.system import undo
from plinth.system.undo import SYSTEM_UNDO, UndoHandler, UndoHandlers

UNDO_HANDLERS: UndoHandlers = ChainMap(
    {**SYSTEM_UNDO, **SERVER_UNDO, **NETWORK_UNDO, **HOST_UNDO}, cast(dict[str, UndoHandler], STORAGE_UNDO)
)
"""The handler of every kind of step that a run records. Kinds of storage are imported when one of theirs is looked up."""


def undo_step(step: Step) -> Step | None:
    """Return the step that undoes `step`, for people and for the plan; None when there is nothing to undo."""
    return undo.undo_step(step, UNDO_HANDLERS)
