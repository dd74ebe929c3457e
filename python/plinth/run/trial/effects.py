"""What the actions of a trial do to its links, disks and servers, and how that ends."""

from dataclasses import dataclass, field
from threading import Event

from plinth.model.action import Action, DiskAction, NetworkAction
from plinth.model.action_base import LastingAction, TimedAction
from plinth.model.fault import FillAction, PauseAction, ServerAction
from plinth.model.flashback import SnapshotAction
from plinth.run.faults.server_faults import ServerFaults
from plinth.run.trial.emulation import TrialDisks, TrialLinks
from plinth.run.trial.snapshots import TrialSnapshots


@dataclass(eq=False)
class Effects:
    """Does actions that are not SQL, each by what it is about; what is None is not part of the trial.

    `links`, `disks`, `faults` and `snapshots` are context managers of the trial, which undo what is left of it.
    """

    _links: TrialLinks | None = None
    _disks: TrialDisks | None = None
    faults: ServerFaults | None = None
    _snapshots: TrialSnapshots | None = None
    _done: list[Action] = field(default_factory=list, init=False)

    def lacks(self, action: TimedAction) -> str | None:
        """Return why an action has nothing to act on in this trial; None when it has."""
        return "there are no standbys" if isinstance(action, NetworkAction) and self._links is None else None

    def do(self, action: Action, ended: Event) -> None:
        """Do an action. `ended`: the load has, so that what has not begun should not. Raises PlinthError."""
        if isinstance(action, NetworkAction):
            assert self._links is not None, "it was looked whether there are links"
            self._links.change(action)
        elif isinstance(action, DiskAction):
            assert self._disks is not None, "the experiment was checked for it"
            self._disks.change(action)
        elif isinstance(action, SnapshotAction):
            assert self._snapshots is not None, "the experiment was checked for it"
            self._snapshots.take(action)
        else:
            assert isinstance(action, ServerAction) and self.faults is not None, "the experiment was checked for it"
            self.faults.do(action, ended)
        if isinstance(action, LastingAction):
            self._done.append(action)

    def lasting(self) -> list[Action]:
        """Return the actions whose effects have not ended, the last first. A link without a time to end at stays as it is."""
        return [
            action
            for action in reversed(self._done)
            if isinstance(action, LastingAction)
            and self.is_in_force(action)
            and (action.for_s is not None or not isinstance(action, NetworkAction))
        ]

    def is_in_force(self, action: LastingAction) -> bool:
        """Return whether the effect of an action has not ended: after its time, or by another action."""
        if isinstance(action, PauseAction | FillAction):
            return self.faults is not None and self.faults.is_in_force(action)
        return any(one is action for one in self._done)

    def end(self, action: LastingAction) -> None:
        """End the effect of an action. Raises PlinthError."""
        if isinstance(action, NetworkAction):
            assert self._links is not None, "it was changed"
            self._links.restore(action)
        elif isinstance(action, DiskAction):
            assert self._disks is not None, "it was changed"
            self._disks.restore(action)
        elif isinstance(action, PauseAction | FillAction):
            assert self.faults is not None, "it was done"
            self.faults.end(action)
        self._done = [one for one in self._done if one is not action]
