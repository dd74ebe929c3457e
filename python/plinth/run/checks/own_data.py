"""What is refused of data of the user's own: dumps and backups go into servers that Plinth makes."""

from collections.abc import Iterator

from plinth.model.dataset import BackupDataset, DumpDataset
from plinth.model.errors import Problem
from plinth.plan import Expanded


def own_data_problems(expanded: Expanded) -> Iterator[Problem]:
    """Yield a problem for a dump or a backup on an external server."""
    for cluster in expanded.clusters:
        if cluster.server.connection is not None and isinstance(cluster.dataset, BackupDataset | DumpDataset):
            yield Problem(
                f"a {cluster.dataset.kind} goes into a server that Plinth makes, and not into an external one",
                path=["dataset", "kind"],
                hint='kind = "none" uses the tables that are there',
            )
            return
