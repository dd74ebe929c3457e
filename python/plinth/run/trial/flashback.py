"""Going back to the snapshots of a trial, the last first: restored, recovered, and compared with the commit ledger."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from plinth.model.base import SettingValue
from plinth.model.flashback import Flashback, SnapshotAction, may_lose_by_snapshot
from plinth.model.plan import PRIMARY, Variant
from plinth.model.trial import Check
from plinth.run.faults.outage import check_of_losses, check_of_others
from plinth.run.faults.recovery_check import CutState, Findings, check_recovered, start_server
from plinth.run.provision.live_cluster import LiveCluster
from plinth.run.trial.snapshots import TakenSnapshot, TrialSnapshots, live_snapshot
from plinth.workload.commit_ledger import CommitLedger, read_commit_ledger
from plinth.workload.dataset import Dataset, Snapshot


class Loaded(NamedTuple):
    """What the load of a trial left: the dataset's figures when it began, and the folder of its ledger."""

    variant: Variant
    dataset: Dataset
    before: Snapshot
    ledger: Path
    in_force: Mapping[str, SettingValue]
    """The settings that its commits had."""


def snapshots_of(cluster: LiveCluster, variant: Variant) -> AbstractContextManager[TrialSnapshots | None]:
    """Return what takes the snapshots that actions ask for; None without any. On exit it removes them."""
    if not any(isinstance(action, SnapshotAction) for action in cluster.plan.experiment.measure.actions):
        return nullcontext()
    return TrialSnapshots(
        cluster.primary,
        cluster.settings_of(variant, PRIMARY),
        lambda number: live_snapshot(cluster.context, cluster.planned, number),
        cluster.runner,
        cluster.journal,
        cluster.listener.progress,
    )


def go_back(snapshots: TrialSnapshots, loaded: Loaded) -> tuple[tuple[Flashback, ...], list[Check]]:
    """Go back to every snapshot, and check what is there; in the order of their times.

    Raises PlinthError where nothing can be said about one, as when the storage fails.
    """
    ledger = read_commit_ledger(loaded.ledger)
    found = [_go_back_to(taken, snapshots, loaded, ledger) for taken in snapshots.last_first()]
    found.reverse()
    return tuple(found), [check for one in found for check in flashback_checks(one)]


def ledger_of_snapshot(ledger: CommitLedger, began_ns: int, ended_ns: int) -> CommitLedger:
    """Return what has to be in a snapshot that was taken between two instants: commits acknowledged before it was begun. What
    was on its way then may be there; what was sent when it had been taken may not, and is left out: there it would count as
    never sent."""
    return ledger.as_of(ended_ns).answered_by(began_ns)


def flashback_checks(one: Flashback) -> list[Check]:
    """Return what must hold once the files have gone back."""
    after = f"going back to the {one.snapshot}"
    lost = [line for damage in one.damage if damage.kind == "lost commit" for line in damage.evidence]
    others = [
        f"{damage.kind}: {damage.count:,}: {'; '.join(damage.evidence[:2])}"
        for damage in one.damage
        if damage.kind != "lost commit"
    ]
    return [
        check_of_losses(after, one.may_lose, one.acknowledged, one.lost, lost[:3]),
        check_of_others(f"other damage after {after}", others),
    ]


def _go_back_to(taken: TakenSnapshot, snapshots: TrialSnapshots, loaded: Loaded, ledger: CommitLedger) -> Flashback:
    found, server, recovery_s = Findings(), snapshots.server, None
    restore_s = snapshots.go_back(taken)
    began = monotonic()
    if start_server(server, snapshots.settings, found, key=None):
        recovery_s = monotonic() - began
        known = ledger_of_snapshot(ledger, taken.began_ns, taken.ended_ns)
        state = CutState(loaded.before, None, known, taken.began_ns, None)
        check_recovered(server, server.files(), loaded.variant, loaded.dataset, state, found)
    answered_ns = ledger.of_class("acknowledged")["answered_ns"].astype("int64")
    later = answered_ns[answered_ns > taken.began_ns]
    return Flashback(
        snapshot=taken.action.title(),
        kind=taken.snapshot.kind,
        snapshot_s=(taken.ended_ns - taken.began_ns) / 1e9,
        restore_s=restore_s,
        recovery_s=recovery_s,
        acknowledged=len(answered_ns) - len(later),
        undone=len(later),
        undone_s=(int(later.max()) - taken.began_ns) / 1e9 if len(later) else 0.0,
        may_lose=may_lose_by_snapshot(loaded.in_force),
        damage=tuple(found.damage),
        checks=tuple(found.checks),
    )
