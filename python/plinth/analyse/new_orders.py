"""New orders committed a minute (NOPM) of the TPC-C-derived workload, and how much of the most that its pacing allows."""

from collections.abc import Iterable

from plinth.analyse.bootstrap import of_trials
from plinth.model.dataset import DatasetSpec, TpccDataset
from plinth.model.estimate import Estimate, Interval
from plinth.model.tpcc_notice import NEW_ORDER, efficiency, new_orders_per_minute
from plinth.model.trial import Trial
from plinth.model.workload import WorkloadSpec


def trial_nopm(trial: Trial, workload: WorkloadSpec) -> float | None:
    """NOPM of a trial's measured phase; None of other workloads than tpcc, and of a trial that measured nothing."""
    if workload.builtin != "tpcc":
        return None
    orders = next((one.measured for one in trial.scripts if one.name == NEW_ORDER), None)
    return None if orders is None else new_orders_per_minute(orders.done, orders.rolled_back, trial.measured_ns)


def nopm_of(trials: Iterable[float | None], seed: int) -> Estimate | None:
    """The median over trials with its interval; None where none is known."""
    known = [nopm for nopm in trials if nopm is not None]
    return of_trials(known, seed) if known else None


def efficiency_of(nopm: Estimate | None, workload: WorkloadSpec, dataset: DatasetSpec) -> Estimate | None:
    """NOPM in parts of the most that the specification's pacing allows: the same interval in another unit.

    None without that pacing.
    """
    if nopm is None or workload.pacing != "spec" or not isinstance(dataset, TpccDataset):
        return None
    warehouses = dataset.warehouses

    def part(value: float) -> float:
        return efficiency(value, warehouses)

    interval = nopm.interval and Interval(
        low=part(nopm.interval.low), high=part(nopm.interval.high), level=nopm.interval.level
    )
    return nopm.model_copy(update={"value": part(nopm.value), "interval": interval})
