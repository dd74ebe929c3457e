"""What is refused of an experiment that replays a recording: writes that nothing undoes, and writes to a server of others."""

from collections.abc import Iterator

from plinth.model.dataset import NoDataset
from plinth.model.errors import Problem
from plinth.model.experiment import Experiment
from plinth.plan import Expanded


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
