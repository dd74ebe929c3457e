"""What is refused of data and workloads of the user's own: external servers, and recorded writes that nothing undoes."""

from collections.abc import Iterator

from plinth.model.dataset import BackupDataset, DumpDataset, NoDataset
from plinth.model.errors import Problem
from plinth.model.experiment import Experiment
from plinth.plan import Expanded


def data_problems(expanded: Expanded) -> Iterator[Problem]:
    """Yield a problem for a dump or a backup on an external server."""
    for cluster in expanded.clusters:
        if cluster.server.connection is not None and isinstance(cluster.dataset, BackupDataset | DumpDataset):
            yield Problem(
                f"a {cluster.dataset.kind} goes into a server that Plinth makes, and not into an external one",
                path=["dataset", "kind"],
                hint='kind = "none" uses the tables that are there',
            )
            return


def replay_problems(experiment: Experiment, expanded: Expanded, *, allow_writes: bool) -> Iterator[Problem]:
    """Yield a problem for recorded statements that may write to an external server without `allow_writes`, and for trials of which
    each but the first would find the rows of those before it, unless measure.restore says so itself."""
    measure = experiment.measure
    clusters = {cluster.id: cluster for cluster in expanded.clusters}
    writing = [variant for variant in expanded.variants if variant.recording is not None and variant.workload.writes]
    if any(clusters[variant.cluster].server.connection is not None for variant in writing) and not allow_writes:
        yield Problem(
            "recorded statements may write to a server that is not ours",
            path=["workload", "replay"],
            hint="workload.writes = false, or --allow-writes on the command line if that database may be changed",
        )
    restorable = [variant for variant in writing if not isinstance(clusters[variant.cluster].dataset, NoDataset)]
    is_asked = "restore" in measure.model_fields_set
    if measure.restore == "none" and not is_asked and restorable and measure.repeats * len(restorable) > 1:
        yield Problem(
            "recorded statements write, and each trial but the first would find what those before it have written",
            path=["workload", "replay"],
            hint='measure.restore = "auto"; or "none" if that is meant, or workload.writes = false',
        )
