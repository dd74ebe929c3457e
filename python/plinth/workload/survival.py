"""Which of a load's commits survived a power cut, and for which workloads that can be checked.

With a ledger of commits each of them is looked for by client and number. Without one the rows that each commit of some
built-in workloads leaves are counted.
"""

from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from plinth.model.builtin import BUILTINS
from plinth.model.commit_ledger import CommitTimeline, LedgerCheck
from plinth.model.durability import Damage, DamageKind
from plinth.model.load import LoadResult
from plinth.model.workload import WorkloadSpec
from plinth.workload.commit_ledger import CommitLedger
from plinth.workload.dataset import Dataset, Snapshot
from plinth.workload.ledger_check import compare_ledger, prepare_ledger_tables

if TYPE_CHECKING:
    import psycopg

_COUNTED: tuple[DamageKind, ...] = ("lost commit", "resurrected abort")
"""Findings that counting makes as well, but a ledger more precisely, including commits acknowledged during the
cut."""


class Survival(NamedTuple):
    """How many commits were acknowledged, how many transactions had no answer, and what is not as it must be then."""

    acknowledged: int
    unanswered: int
    damage: tuple[Damage, ...]
    lost_since_ns: int | None = None
    """CLOCK_MONOTONIC when the oldest of the lost commits was acknowledged, where there is a ledger."""
    timeline: CommitTimeline | None = None
    """When the lost commits, and those around them, were acknowledged."""


@runtime_checkable
class CountsCommits(Protocol):
    """A dataset on which some built-in workloads leave a row for each commit."""

    def after_cut(self, control: "psycopg.Connection", before: Snapshot, result: LoadResult) -> Survival:
        """Compare the recovered database with the answers that clients got; `before` is of `Dataset.before_trial`."""
        ...


def counts_commits(workload: WorkloadSpec, dataset: Dataset) -> bool:
    """Whether the tables of the dataset show how many transactions of the workload have committed."""
    history = workload.builtin is not None and BUILTINS[workload.builtin].leaves_history
    return history and isinstance(dataset, CountsCommits)


def knows_commits(workload: WorkloadSpec, dataset: Dataset) -> bool:
    """Whether surviving commits can be determined after a power cut."""
    return workload.keeps_ledger or counts_commits(workload, dataset)


def prepare_commits(control: "psycopg.Connection", workload: WorkloadSpec, dataset: Dataset) -> Snapshot:
    """Reset the dataset, and the tables of the ledger, to the state in which a load begins."""
    before = dataset.before_trial(control)
    if workload.keeps_ledger:
        prepare_ledger_tables(control, workload.clients)
    return before


def surviving_commits(
    control: "psycopg.Connection",
    workload: WorkloadSpec,
    dataset: Dataset,
    before: "Snapshot | None",
    load: LoadResult | None,
    ledger: CommitLedger | None,
    cut_ns: int,
) -> Survival:
    """Compare a recovered database with the answers that the clients of `load` got; `before` is of `prepare_commits`.

    `ledger` has the answers they had got when the power was cut, at `cut_ns` of CLOCK_MONOTONIC; None for a workload
    that keeps none. `before` and `load` may be None beside a ledger: the dataset's own check is left out then. Raises
    psycopg.Error for tables that cannot be read.
    """
    counted = None
    if (
        before is not None
        and load is not None
        and isinstance(dataset, CountsCommits)
        and counts_commits(workload, dataset)
    ):
        counted = dataset.after_cut(control, before, load)
    if ledger is None:
        assert counted is not None, "the plan was checked for it"
        return counted
    check = compare_ledger(ledger, control, cut_ns=cut_ns)
    others = () if counted is None else tuple(one for one in counted.damage if one.kind not in _COUNTED)
    return Survival(
        acknowledged=check.acknowledged + check.local_only,
        unanswered=check.indeterminate,
        damage=(*_damage(check), *others),
        lost_since_ns=check.oldest_lost_ns,
        timeline=check.timeline,
    )


def _damage(check: LedgerCheck) -> tuple[Damage, ...]:
    return tuple(
        Damage(
            kind=kind,
            count=count,
            evidence=tuple(finding.sentence for finding in check.findings if finding.kind == kind),
        )
        for kind, count in check.counts.items()
    )
