"""The links of the emulated network and the emulated disks of a trial, which its actions change; they are what they were when it ends."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from plinth.model.action import Action, DiskAction, NetworkAction
from plinth.model.disk import Physics
from plinth.model.errors import RunError
from plinth.model.network import (
    Direction,
    LinkChanges,
    LinkCounters,
    LinkSettings,
    MeasuredLink,
    NetworkSpec,
    NetworkStatus,
    TrialNetwork,
)
from plinth.model.plan import PlannedCluster, Variant, storage_that_holds
from plinth.network.daemon import measure_round_trips
from plinth.network.namespaces import NetworkLayout
from plinth.run.provision.live_cluster import LiveCluster
from plinth.storage.devices.disk_control import DiskControl

_PINGS = 20
_PAUSE_S = 0.002
_LEAST_TIMEOUT_S = 0.5


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


class TrialDisks:
    """Changes disks, and changes them back."""

    def __init__(self, cluster: LiveCluster) -> None:
        self._cluster = cluster
        self._overlay: Overlay[Path] = Overlay()
        self._disks: dict[Path, DiskControl] = {}
        """By their control sockets."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for action in self._overlay.owners():
            self.restore(action)

    def change(self, action: DiskAction) -> None:
        """Change what an action names, from now on. Raises PlinthError when a disk refuses it or does not answer."""
        changes = {name: getattr(action.physics, name) for name in action.changes}
        for disk in self._disks_of(action):
            self._disks[disk.path] = disk
            self._overlay.begin(action, disk.path, changes, dict(disk.status().physics))
            disk.set_physics(action.physics)

    def restore(self, action: object) -> None:
        """End what an action changed: it is what it was before, or what another action in force has made of it."""
        for path, settings in self._overlay.end(action).items():
            self._disks[path].set_physics(Physics(**settings))

    def _disks_of(self, action: DiskAction) -> list[DiskControl]:
        """Return those below what a node, or one of its places, is stored on."""
        of_node = self._cluster.roles[action.node]
        names = of_node.values() if action.holds is None else [storage_that_holds(action.holds, of_node)]
        storages = self._cluster.context.closure(tuple(dict.fromkeys(names)))
        return [disk for storage in storages for disk in storage.disks()]


def with_healing(actions: Sequence[Action], network: NetworkSpec | None, duration_s: float) -> tuple[Action, ...]:
    """Return the actions of a trial, and what lets packets pass again when its time is over: transactions that wait for a
    standby then end, also of a partition that the experiment does not heal."""
    of_links = [action for action in actions if isinstance(action, NetworkAction) and action.for_s is None]
    asked = [*of_links, *((network, *network.link.values()) if network is not None else ())]
    if not any(one.partitioned or one.loss for one in asked):
        return tuple(actions)
    healing = NetworkAction(do="network", at=duration_s, partitioned=False, loss=0.0)
    return (*actions, healing)


class TrialLinks:
    """The links of one trial, set as asked, with the round trips that were measured before its load."""

    def __init__(self, layout: NetworkLayout, cluster: PlannedCluster, asked: Mapping[Direction, LinkSettings]) -> None:
        self._layout = layout
        self._overlay: Overlay[Direction] = Overlay()
        self._before = layout.control.status()
        _check(self._before, asked)
        self._used = [(node.upstream, node.name) for node in cluster.standbys if node.upstream is not None]
        self._round_trips = {used: self._measure(*used, asked) for used in self._used}

    def _measure(self, upstream: str, standby: str, asked: Mapping[Direction, LinkSettings]) -> tuple[int | None, ...]:
        there, back = (asked[way] for way in (Direction(upstream, standby), Direction(standby, upstream)))
        if there.partitioned or back.partitioned:
            return ()
        expected_s = sum(one.delay_ns + 4 * one.jitter_ns for one in (there, back)) / 1e9
        places = {place.name: place for place in self._layout.places}
        return measure_round_trips(
            places[upstream], places[standby], _PINGS, _PAUSE_S, max(_LEAST_TIMEOUT_S, 3 * expected_s)
        )

    def change(self, action: NetworkAction) -> None:
        """Change links during the trial."""
        changes = action.changes(self._layout.nodes)
        status = self._layout.control.status()
        for direction, change in changes.items():
            named = {name: value for name, value in change if value is not None}
            self._overlay.begin(action, direction, named, dict(status.link(direction).settings))
        self._layout.control.change(changes)

    def restore(self, action: NetworkAction) -> None:
        """End what an action changed: it is what it was before, or what another action in force has made of it."""
        ended = self._overlay.end(action)
        self._layout.control.change({direction: LinkChanges(**settings) for direction, settings in ended.items()})

    def ended(self) -> TrialNetwork:
        """Return what was found by the end of the load."""
        after = self._layout.control.status()

        def sent(direction: Direction) -> LinkCounters:
            then, now = self._before.link(direction).counters, after.link(direction).counters
            return LinkCounters(
                **{name: getattr(now, name) - getattr(then, name) for name in LinkCounters.model_fields}
            )

        links = []
        for upstream, standby in self._used:
            there, back = Direction(upstream, standby), Direction(standby, upstream)
            links.append(
                MeasuredLink(
                    upstream=upstream,
                    standby=standby,
                    to_standby=self._before.link(there).settings,
                    to_upstream=self._before.link(back).settings,
                    round_trips_ns=self._round_trips[upstream, standby],
                    sent_to_standby=sent(there),
                    sent_to_upstream=sent(back),
                )
            )
        return TrialNetwork(links=tuple(links), lateness=after.lateness)


def _check(status: NetworkStatus, asked: Mapping[Direction, LinkSettings]) -> None:
    """Read back what was asked for."""
    for direction, settings in asked.items():
        found = status.link(direction).settings
        if found != settings:
            raise RunError(
                f"the link from {direction.sender} to {direction.receiver} was not set: asked for {settings.words}, "
                f"got {found.words}",
                where=status.control,
            )


@contextmanager
def links_of(cluster: LiveCluster, variant: Variant) -> Iterator[TrialLinks | None]:
    """While it is entered, the links of the emulated network are as the variant asks; None where there is no network, or no standby."""
    layout = cluster.context.network
    if layout is None or not cluster.planned.standbys:
        yield None
        return
    assert variant.network is not None, "the run has a network"
    asked = variant.network.settings(layout.nodes)
    try:
        layout.control.change(asked)
        yield TrialLinks(layout, cluster.planned, asked)
    finally:
        layout.control.change(dict.fromkeys(asked, LinkSettings()))


def disks_of(cluster: LiveCluster) -> AbstractContextManager[TrialDisks | None]:
    """Return what changes emulated disks as actions ask for; None without any. On exit it changes them back."""
    is_asked = any(isinstance(action, DiskAction) for action in cluster.plan.experiment.measure.actions)
    return TrialDisks(cluster) if is_asked else nullcontext()
