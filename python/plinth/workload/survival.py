"""Which of a load's commits survived a power cut, and for which workloads that can be checked.

With a commit ledger each of them is looked for by client and number. Without one the rows that each commit of some
built-in workloads leaves are counted.
"""

from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from plinth.model.builtin import BUILTINS
from plinth.model.commit_ledger import CommitTimeline, LedgerCheck
from plinth.model.durability import Damage, IntegrityCheck
from plinth.model.load import LoadResult
from plinth.model.workload import WorkloadSpec
from plinth.workload.commit_ledger import CommitLedger
from plinth.workload.commit_ledger_check import compare_ledger, prepare_ledger_tables
from plinth.workload.dataset import Dataset, Snapshot

if TYPE_CHECKING:
    import psycopg


INVARIANTS = "invariants of the dataset"
"""The name of the check of what must hold of a dataset."""


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

    def count_commits(self, control: "psycopg.Connection", result: LoadResult) -> Survival:
        """Compare the rows of the recovered database with the answers that clients got."""
        ...


def counts_commits(workload: WorkloadSpec, dataset: Dataset) -> bool:
    """Return whether the tables of the dataset show how many transactions of the workload have committed."""
    history = workload.builtin is not None and BUILTINS[workload.builtin].leaves_history
    return history and isinstance(dataset, CountsCommits)


def knows_commits(workload: WorkloadSpec, dataset: Dataset) -> bool:
    """Return whether surviving commits can be determined after a power cut."""
    return workload.keeps_ledger or counts_commits(workload, dataset)


def prepare_commits(
    control: "psycopg.Connection", session: "psycopg.Connection", workload: WorkloadSpec, dataset: Dataset
) -> Snapshot:
    """Reset the dataset, and the tables of the ledger, to the state in which a load begins; `session` is one as the load's."""
    before = dataset.before_trial(control if dataset.is_brought else session)
    if workload.keeps_ledger:
        prepare_ledger_tables(session, workload.clients)
    return before


def surviving_commits(
    control: "psycopg.Connection",
    workload: WorkloadSpec,
    dataset: Dataset,
    load: LoadResult | None,
    ledger: CommitLedger | None,
    cut_ns: int,
) -> Survival:
    """Compare a recovered database with the answers that the clients of `load` got.

    `ledger` has the answers they had got when the power was cut, at `cut_ns` of CLOCK_MONOTONIC; None for a workload
    that keeps none, and only then `load` is needed. Raises psycopg.Error for tables that cannot be read.
    """
    if ledger is None:
        assert load is not None and isinstance(dataset, CountsCommits), "the plan was checked for it"
        return dataset.count_commits(control, load)
    check = compare_ledger(ledger, control, cut_ns=cut_ns)
    return Survival(
        acknowledged=check.acknowledged + check.local_only,
        unanswered=check.indeterminate,
        damage=_damage(check),
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


def broken_invariants(
    control: "psycopg.Connection", dataset: Dataset, before: Snapshot, workload: WorkloadSpec
) -> tuple[tuple[Damage, ...], IntegrityCheck]:
    """Check the invariants of a dataset; `before` is of `prepare_commits`.

    Raises psycopg.Error for tables that cannot be read.
    """
    checks = dataset.after_cut(control, before, workload)
    wrong = tuple(f"{check.name}: expected {check.expected}, got {check.got}" for check in checks if not check.ok)
    unknown = None if checks else "none is known of this dataset and workload"
    made = IntegrityCheck(name=INVARIANTS, not_run=unknown)
    return (Damage(kind="invariant broken", count=len(wrong), evidence=wrong),) if wrong else (), made
