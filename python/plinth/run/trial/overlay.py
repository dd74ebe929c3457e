"""Changes of settings that begin and end in any order, over what there was before."""

from collections.abc import Hashable, Mapping
from typing import Any, Generic, TypeVar

Target = TypeVar("Target", bound=Hashable)


class Overlay(Generic[Target]):
    """The changes that are in force, by who made them; of those that change the same setting, the last one counts.

    So a change that ends before one that began later takes nothing of that back, and the last to end leaves what there was.
    """

    def __init__(self) -> None:
        self._before: dict[tuple[Target, str], Any] = {}
        self._in_force: list[tuple[object, Target, Mapping[str, Any]]] = []

    def begin(self, owner: object, target: Target, changes: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        """Begin changes that `owner` makes to settings of `target`, which are `now` what they are."""
        for name in changes:
            self._before.setdefault((target, name), now[name])
        self._in_force.append((owner, target, changes))

    def owners(self) -> list[object]:
        """Return whose changes are in force, the last first, each once for each of its targets."""
        return [owner for owner, _, _ in reversed(self._in_force)]

    def end(self, owner: object) -> dict[Target, dict[str, Any]]:
        """End the changes of `owner`; return what the settings that it changed are to be from now on."""
        ended = [(target, changes) for one, target, changes in self._in_force if one is owner]
        self._in_force = [entry for entry in self._in_force if entry[0] is not owner]
        return {target: {name: self._now(target, name) for name in changes} for target, changes in ended}

    def _now(self, target: Target, name: str) -> Any:
        for _, other, changes in reversed(self._in_force):
            if other == target and name in changes:
                return changes[name]
        return self._before[target, name]
