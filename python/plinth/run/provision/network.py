"""The emulated network of a run: made once for all clusters, its links set for each trial, measured, and cleared again."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from plinth.model.action import Action, NetworkAction
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
from plinth.model.plan import PlannedCluster, Variant
from plinth.network.daemon import measure_round_trips
from plinth.network.namespaces import NetworkLayout
from plinth.run.listener import Listener
from plinth.run.trial.overlay import Overlay
from plinth.system.journal import Journal
from plinth.system.runner import Runner

NETWORK_STEPS = "network."
"""What the ids of all steps of the network begin with."""
_PINGS = 20
_PAUSE_S = 0.002
_LEAST_TIMEOUT_S = 0.5


class RunNetwork:
    """The network of one run, which `layout` describes. While no trial runs its links neither delay nor lose."""

    def __init__(self, layout: NetworkLayout, runner: Runner, journal: Journal) -> None:
        self._layout = layout
        self._runner = runner
        self._journal = journal

    def make(self, listener: Listener) -> None:
        """Make it. What a run that was killed has left of it is undone before."""
        listener.phase(f"emulate the network between {', '.join(self._layout.nodes)}")
        for kept in self._journal.undo_steps(NETWORK_STEPS, self._runner):
            raise kept.error
        for action in self._layout.actions():
            self._journal.record(action.step)
            action.do(self._runner)

    @contextmanager
    def links(self, variant: Variant, cluster: PlannedCluster) -> "Iterator[TrialLinks]":
        """While it is entered, links are as the variant asks."""
        assert variant.network is not None, "the run has a network"
        asked = variant.network.settings(self._layout.nodes)
        try:
            self._layout.control.change(asked)
            yield TrialLinks(self._layout, cluster, asked)
        finally:
            self._layout.control.change(dict.fromkeys(asked, LinkSettings()))


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
