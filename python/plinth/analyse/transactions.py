"""The types of transactions of a workload of several, each separately: throughput, latency and outcomes."""

from collections.abc import Iterable, Sequence

from plinth.analyse.bootstrap import of_trials
from plinth.analyse.latency import percentiles_of
from plinth.model.analysis import TransactionResult, TrialTransactions
from plinth.model.contents import TrialContents
from plinth.model.dataset import DatasetSpec, TpccDataset
from plinth.model.figures import Estimate
from plinth.model.histogram import Buckets
from plinth.model.load import Totals
from plinth.model.plan import Variant
from plinth.model.tpcc_notice import NEW_ORDER, efficiency, new_orders_per_minute
from plinth.model.trial import Trial
from plinth.model.workload import WorkloadSpec


def trial_transactions(contents: TrialContents, variant: Variant) -> tuple[TrialTransactions, ...]:
    """Return each type of transaction in the trial's measured phase; nothing of a workload of one type, and of a trial that measured nothing."""
    trial = contents.trial
    if len(variant.scripts) < 2 or not trial.measured_ns:
        return ()
    return tuple(_of_trial(contents, script.name) for script in variant.scripts)


def transaction_results(trials: Sequence[TrialContents], variant: Variant, seed: int) -> tuple[TransactionResult, ...]:
    """Return each type of transaction over these trials, which count; nothing of a workload of one type, and without trials."""
    by_trial = [one for trial in trials if (one := trial_transactions(trial, variant))]
    if not by_trial:
        return ()
    weights = sum(script.weight for script in variant.scripts)
    done_of_all = sum(one.done for types in by_trial for one in types)
    results: list[TransactionResult] = []
    for place, script in enumerate(variant.scripts):
        of_type = [types[place] for types in by_trial]
        latency = percentiles_of(_latency(trial, script.name) for trial in trials)
        totals = [_totals(trial, script.name) for trial in trials]
        done = sum(one.done for one in of_type)
        results.append(
            TransactionResult(
                name=script.name,
                share_asked=script.weight / weights,
                share=done / done_of_all if done_of_all else None,
                tps=of_trials([one.tps for one in of_type], seed),
                latency=latency,
                done=done,
                failed=_sum(totals, "failed"),
                retried=_sum(totals, "retried"),
                retries=_sum(totals, "retries"),
            )
        )
    return tuple(results)


def _of_trial(contents: TrialContents, name: str) -> TrialTransactions:
    latency, totals = _latency(contents, name), _totals(contents, name)
    done = latency.count if totals is None else totals.done
    return TrialTransactions(
        name=name,
        tps=done / (contents.trial.measured_ns / 1e9),
        done=done,
        failed=totals.failed if totals else None,
        retried=totals.retried if totals else None,
        latency_p50_ns=latency.percentile_ns(0.5) if latency else None,
        latency_p99_ns=latency.percentile_ns(0.99) if latency else None,
    )


def _latency(contents: TrialContents, name: str) -> Buckets:
    return Buckets.of(one for one in contents.histograms if one.scope == "transaction" and one.script == name)


def _totals(contents: TrialContents, name: str) -> Totals | None:
    """Return the outcomes of a type; None where the bundle lacks them: its histograms still tell what was done."""
    return next((one.measured for one in contents.trial.scripts if one.name == name), None)


def _sum(totals: Sequence[Totals | None], field: str) -> int | None:
    known = [one for one in totals if one is not None]
    return sum(getattr(one, field) for one in known) if len(known) == len(totals) else None


def trial_nopm(trial: Trial, workload: WorkloadSpec) -> float | None:
    """Return NOPM of a trial's measured phase; None of other workloads than tpcc, and of a trial that measured nothing."""
    if workload.builtin != "tpcc":
        return None
    orders = next((one.measured for one in trial.scripts if one.name == NEW_ORDER), None)
    return None if orders is None else new_orders_per_minute(orders.done, orders.rolled_back, trial.measured_ns)


def nopm_of(trials: Iterable[float | None], seed: int) -> Estimate | None:
    """Return the median over trials with its interval; None where none is known."""
    known = [nopm for nopm in trials if nopm is not None]
    return of_trials(known, seed) if known else None


def efficiency_of(nopm: Estimate | None, workload: WorkloadSpec, dataset: DatasetSpec) -> Estimate | None:
    """Return NOPM in parts of the most that the specification's pacing allows; None without that pacing."""
    if nopm is None or workload.pacing != "spec" or not isinstance(dataset, TpccDataset):
        return None
    warehouses = dataset.warehouses
    return nopm.through(lambda value: efficiency(value, warehouses))
