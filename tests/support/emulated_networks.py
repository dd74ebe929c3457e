"""Emulated networks between network namespaces, made through a journal as runs make them."""

from pathlib import Path

from plinth import _native
from plinth.network.namespaces import NetworkLayout, network_daemons
from plinth.run.undo import UNDO_HANDLERS
from plinth.system.journal import Journal
from plinth.system.paths import ensure, work_dir
from plinth.system.runner import Runner

TIMEOUT_S = 5.0
NODES = ("primary", "a", "b")


class MadeNetwork:
    """A network that was made as a run makes it."""

    def __init__(self, run_id: str) -> None:
        self.runner = Runner()
        self.journal = Journal.create(run_id, UNDO_HANDLERS)
        ensure(work_dir())
        self.layout = NetworkLayout(self.journal.label, work_dir() / f"{self.journal.label}-network", NODES)
        self.layout.check(self.runner)
        for action in self.layout.actions():
            self.journal.record(action.step)
            action.do(self.runner)
        self.control = self.layout.control
        self.places = {place.name: place for place in self.layout.places}

    def round_trips(self, one: str, other: str, count: int = 5, timeout_s: float = TIMEOUT_S) -> list[int | None]:
        return _native.network_round_trips(
            self.places[one].namespace, self.places[other].address, count, 0.001, timeout_s
        )

    def left(self) -> list[object]:
        """What is still there of it."""
        namespaces = [place.namespace for place in self.layout.places if Path(place.namespace).exists()]
        daemons = network_daemons(self.control.path, self.layout.label)
        folder = [self.layout.folder] if self.layout.folder.exists() else []
        return [*namespaces, *daemons, *folder]
