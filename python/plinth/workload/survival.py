"""What is left of a load's commits after a power cut, and which workloads can tell."""

from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from plinth.model.durability import Damage
from plinth.model.load import LoadResult

if TYPE_CHECKING:
    import psycopg

    from plinth.workload.dataset import Snapshot


class Survival(NamedTuple):
    """How many commits were acknowledged, how many transactions had no answer, and what is not as it must be then."""

    acknowledged: int
    unanswered: int
    damage: tuple[Damage, ...]


@runtime_checkable
class KnowsCommits(Protocol):
    """A dataset whose tables tell which transactions have committed."""

    def after_cut(self, control: "psycopg.Connection", before: "Snapshot", result: LoadResult) -> Survival:
        """Compare the recovered database with what the clients were told; `before` is of `Dataset.before_trial`."""
        ...
