"""Bundles whose every throughput is given by the test; variants and order come from the planner."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from plinth.model.contents import BundleContents, TrialContents
from plinth.model.experiment import Experiment
from plinth.model.facts import HostFacts, ServerFacts, Setting, StorageFacts
from plinth.model.level import Level
from plinth.model.load import EngineCost, Histogram, Second, Totals
from plinth.model.manifest import Manifest
from plinth.model.plan import PRIMARY, Plan, PlannedCluster, PlannedNode, ScriptText, Variant
from plinth.model.trial import Samples, Trial
from plinth.plan.order import order_trials
from plinth.plan.variants import expand

SECOND_NS = 1_000_000_000
GIB = 2**30
HOST = HostFacts(
    cores=2,
    memory_total_bytes=8 * GIB,
    memory_available_bytes=6 * GIB,
    is_root=False,
    can_mount=False,
    kernel="6.1.0",
    os="Test Linux",
    cpu_model="Test CPU",
)


def bundle(tps: Mapping[str, Sequence[float | None]], **measure: Any) -> BundleContents:
    """One variant for each storage named in `tps`, the first being the baseline, with tps by block.

    "A/A" names the baseline's twin; a None is a failed trial. Storages are directories, but "memory" is a tmpfs.
    """
    repeats = max(len(values) for values in tps.values())
    return sweep(
        {"storage": [name for name in tps if name != "A/A"]},
        lambda variant, block: tps["A/A" if variant.is_aa_twin else str(variant.levels["storage"])][block - 1],
        **{"repeats": repeats, "aa": "A/A" in tps, **measure},
    )


def sweep(
    matrix: Mapping[str, Sequence[Level]], tps: Callable[[Variant, int], float | None], **measure: Any
) -> BundleContents:
    """Every combination of levels, with the tps that `tps` gives a variant in a block; None is a failed trial.

    Without a factor "storage" there is one, "disk"; "memory" is a tmpfs.
    """
    storages = [str(name) for name in matrix.get("storage", ["disk"])]
    experiment = Experiment.model_validate(
        {
            "spec": 1,
            "name": "given",
            "question": "Which is faster?",
            "storage": {name: _spec(name) for name in storages},
            "dataset": {"kind": "none"},
            "workload": {"builtin": "tpcb-like"},
            "matrix": matrix,
            "measure": {"repeats": 5, "aa": False, **measure},
        }
    )
    variants, keys, specs = expand(
        experiment, lambda workload, dataset: (ScriptText(name="tpcb-like", source="SELECT 1"),)
    )
    clusters = tuple(
        PlannedCluster(
            id=key.id,
            nodes=(PlannedNode(name=PRIMARY, server=key.server),),
            dataset=key.dataset,
            installation=None,
            data_bytes=0,
        )
        for key in keys
    )
    order = order_trials(variants, experiment.measure)
    by_id = {variant.id: variant for variant in variants}
    return BundleContents(
        path="given",
        manifest=Manifest(
            plinth_version="0", run_id="run", experiment="given", created_unix_ns=0, ended_unix_ns=1, status="complete"
        ),
        experiment_toml="",
        plan=Plan(
            run_id="run",
            experiment=experiment,
            host=HOST,
            storages=specs,
            clusters=clusters,
            variants=tuple(variants),
            trials=tuple(order),
            steps=(),
            needs=(),
            estimated_s=1.0,
        ),
        host=HOST,
        storages={name: storage_facts(name, volatile=name == "memory") for name in storages},
        servers={variant.id: server_facts() for variant in variants},
        trials=tuple(trial(one.number, one.block, one.variant, tps(by_id[one.variant], one.block)) for one in order),
    )


def _spec(name: str) -> dict[str, str]:
    return {"kind": "tmpfs", "size": "1GiB"} if name == "memory" else {"kind": "directory"}


def storage_facts(name: str, **fields: Any) -> StorageFacts:
    """Facts of a storage on ext4, or a tmpfs if volatile."""
    volatile = fields.get("volatile", False)
    found = {
        "kind": "directory",
        "path": f"/srv/{name}",
        "filesystem": "tmpfs" if volatile else "ext4",
        "mount_options": ("rw",),
        "total_bytes": GIB,
        "free_bytes": GIB,
        "volatile": False,
    }
    return StorageFacts(name=name, **{**found, **fields})


def server_facts(**settings: str) -> ServerFacts:
    """A server with settings as read back."""
    return ServerFacts(
        version="18.1",
        version_num=180001,
        installation=None,
        run_as="postgres",
        run_as_reason="not root",
        data_directory="/srv/data",
        data_checksums=True,
        settings=tuple(
            Setting(name=name, asked=value, value=value, unit=None, source="configuration file")
            for name, value in settings.items()
        ),
    )


def no_samples() -> Samples:
    """The samples of a trial that was not observed."""
    return {}


def trial(number: int, block: int, variant: str, tps: float | None) -> TrialContents:
    """A complete trial of 30 even seconds, or a failed one if `tps` is None."""
    if tps is None:
        failed = Trial(
            number=number,
            block=block,
            variant=variant,
            status="failed",
            failure="the server ended in mid-trial",
            started_unix_ns=0,
        )
        return TrialContents(failed, (), (), (), no_samples)
    done = round(30 * tps)
    totals = Totals(scheduled=done, done=done, failed=0, skipped=0, open=0, retries=0, retried=0)
    complete = Trial(
        number=number,
        block=block,
        variant=variant,
        status="complete",
        started_unix_ns=0,
        measured_ns=30 * SECOND_NS,
        totals=totals,
        measured=totals,
        tps=tps,
        engine=EngineCost(
            user_cpu_ns=2 * SECOND_NS,
            system_cpu_ns=3 * SECOND_NS,
            loop_lag_p99_ns=1000,
            bytes_sent=1,
            bytes_received=1,
            threads=1,
            server_version="18.1",
        ),
    )
    return TrialContents(complete, seconds([tps] * 30), (histogram({2_000_000: max(done, 1)}),), (), no_samples)


def seconds(rates: "Sequence[float] | np.ndarray[Any, Any]") -> tuple[Second, ...]:
    """A measured series with these transactions in each second."""
    return tuple(
        Second(
            second=place,
            phase="measure",
            t_ns=place * SECOND_NS,
            length_ns=SECOND_NS,
            done=round(rate),
            failed=0,
            retried=0,
            latency_mean_ns=None,
            latency_p50_ns=None,
            latency_p95_ns=None,
            latency_p99_ns=None,
            latency_max_ns=None,
        )
        for place, rate in enumerate(rates)
    )


def histogram(buckets: Mapping[int, int], **fields: Any) -> Histogram:
    """A histogram of whole transactions from counts by latency in ns."""
    found = {"scope": "transaction", "script": "tpcb-like", "statement": None, "line": None, "text": None}
    return Histogram(
        **{**found, **fields},
        count=sum(buckets.values()),
        sum_ns=sum(value * count for value, count in buckets.items()),
        min_ns=min(buckets),
        max_ns=max(buckets),
        buckets=tuple(sorted(buckets.items())),
    )


def edit_trial(contents: BundleContents, number: int, **fields: Any) -> BundleContents:
    """The bundle with one trial's record changed; `series` and `histograms` change its tables."""
    tables = {name: fields.pop(name) for name in ("series", "histograms") if name in fields}
    trials = [
        replace(one, trial=one.trial.model_copy(update=fields), **tables) if one.trial.number == number else one
        for one in contents.trials
    ]
    return replace(contents, trials=tuple(trials))
