"""A snapshot of a running server on another host, which its agent takes and goes back to."""

from collections.abc import Callable
from dataclasses import dataclass

from plinth.model.progress import Progress
from plinth.run.hosts.link import HostLink
from plinth.server.copies.live_snapshot import LiveSnapshot
from plinth.system.journal import Journal
from plinth.system.runner import Runner


@dataclass(frozen=True)
class RemoteSnapshot(LiveSnapshot):
    """The snapshot that the agent of `link` knows as `on`; what its steps say is what is done there."""

    link: HostLink
    on: tuple[str, ...]

    def record(self, journal: Journal) -> None:
        """Note in the journal of the host that it is taken next."""
        self.link.call(self.on, "record")

    def take(self, runner: Runner) -> None:
        """Have the host take it now."""
        self.link.call(self.on, "take")

    def go_back(self, runner: Runner, report: Callable[[Progress], None]) -> float:
        """Have the host put the files back to it."""
        return self.link.call(self.on, "go_back", report=report)

    def remove(self, runner: Runner, journal: Journal) -> None:
        """Have the host remove it, if it was recorded there."""
        self.link.call(self.on, "remove")
