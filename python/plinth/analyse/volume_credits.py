"""Whether a trial measured the burst credits of a volume and not the volume: by the baseline that its owner states, and by a step down.

Providers give a volume credits for requests above its baseline. As long as they last it is as fast as its burst; a run that is shorter
measures the burst, and one that is longer a mixture (docs/guides/cloud-volumes.md).
"""

from collections.abc import Iterator
from statistics import median

from plinth.analyse.endurance import topmost_devices
from plinth.analyse.steady import step_down
from plinth.analyse.trials import Measured, name_trials
from plinth.model.contents import BundleContents
from plinth.model.figures import number, percent
from plinth.model.storage import StorageSpec, VolumeStorage
from plinth.model.storage_graph import closure
from plinth.model.units import format_duration

_ABOVE = 1.05
"""How far above its baseline a volume must be for a sentence: the kernel's counters and the provider's differ a little."""


def credit_caveats(contents: BundleContents, measured: dict[str, Measured]) -> Iterator[str]:
    """Yield a sentence for each variant that spent credits of a volume, and for each whose throughput fell at once and stayed there."""
    for one in measured.values():
        yield from _above_baseline(contents, one)
        paced = one.variant.workload.is_open_loop or one.variant.workload.replay
        if not paced and not contents.plan.experiment.measure.actions:  # else a step may be what was asked for
            yield from _steps(one)


def _above_baseline(contents: BundleContents, one: Measured) -> Iterator[str]:
    cluster = next((found for found in contents.plan.clusters if found.id == one.variant.cluster), None)
    for name in closure(contents.plan.storages, cluster.storages) if cluster is not None else ():
        spec, facts = contents.plan.storages[name], contents.storages.get(name)
        if not isinstance(spec, VolumeStorage) or spec.baseline_iops is None:
            continue
        devices = topmost_devices(facts) if facts is not None else ()
        known = (judged.seen.rates("device", devices, "reads", "writes") for judged in one.counted if judged.seen)
        rates = [rate for rate in known if rate is not None]
        if not rates:
            yield f"{one.variant.label}: whether storage {name} spent credits is not known: the counters of its devices were not read"
        elif (rate := median(rates)) > _ABOVE * spec.baseline_iops:
            yield (
                f"{one.variant.label}: storage {name} did {number(rate)} requests a second, and its baseline is {spec.baseline_iops:,}: "
                f"its credits were measured{_how_long(spec, rate)}"
            )


def _how_long(spec: StorageSpec, rate: float) -> str:
    if not isinstance(spec, VolumeStorage) or spec.baseline_iops is None or spec.iops_credits is None:
        return ""
    lasts_s = spec.iops_credits / (rate - spec.baseline_iops)
    return f"; a full bucket of {spec.iops_credits:,} lasts {format_duration(round(lasts_s))} at this rate"


def _steps(one: Measured) -> Iterator[str]:
    found = [(judged, step) for judged in one.counted if (step := step_down(judged.contents.series)) is not None]
    if not found:
        return
    left = median(step.left for _, step in found)
    after = format_duration(round(median(step.after_s for _, step in found)))
    yield (
        f"{one.variant.label}, {name_trials([judged for judged, _ in found])}: throughput fell at once to {percent(left, 0)} after {after} "
        "and stayed there, as where the burst credits of a volume, or of the processors, are used up: its figures mix both"
    )
