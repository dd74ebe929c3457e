"""Trials that are shorter than the credits of a volume last, which therefore measure the credits and not the volume."""

from plinth.model.disk import Physics
from plinth.model.experiment import MeasureSpec
from plinth.model.storage import VolumeStorage
from plinth.model.units import format_count, format_duration
from plinth.run.context import RunContext
from plinth.storage.kinds.emulated import Emulated


def lasts_s(rate: int | None, burst: int | None, credits_left: float) -> float | None:
    """Return how long credits last at the burst; None where there are none, or no burst limits how fast they are spent."""
    if not credits_left or not rate or not burst or burst <= rate:
        return None
    return credits_left / (burst - rate)


def credit_warnings(context: RunContext, measure: MeasureSpec) -> list[str]:
    """Return a sentence for each storage whose credits outlast a trial."""
    trial_s = measure.longest_trial_s
    found: list[str] = []
    for storage in context.storages.values():
        described = getattr(storage, "twin", storage)  # of another host
        spec = described.spec
        if isinstance(described, Emulated) and (physics := described.physics()) is not None:
            longest = max(_spans(physics), default=None)
            instead = "physics.credit_level = 0 begins without any"
        elif isinstance(spec, VolumeStorage):
            span_s = lasts_s(spec.baseline_iops, spec.burst_iops, spec.iops_credits or 0)
            longest = None if span_s is None else (span_s, f"{format_count(spec.burst_iops or 0, 'request')} a second")
            instead = "longer trials, or a warm-up that uses them up, measure the volume"
        else:
            continue
        if longest is not None and longest[0] > trial_s:
            span_s, what = longest
            found.append(
                f"storage {storage.name}: its credits last {format_duration(round(span_s))} at its burst of {what}, and a trial takes "
                f"{format_duration(trial_s)}: it measures the credits; {instead}"
            )
    return found


def _spans(physics: Physics) -> list[tuple[float, str]]:
    """Return how long each kind of credits lasts, and at which rate."""
    level = 1.0 if physics.credit_level is None else physics.credit_level
    requests_s = lasts_s(physics.iops, physics.burst_iops, level * (physics.iops_credits or 0))
    bytes_s = lasts_s(physics.bytes_per_s, physics.burst_bytes_per_s, level * (physics.bytes_credits or 0))
    spans: list[tuple[float, str]] = []
    if requests_s is not None:
        spans.append((requests_s, format_count(physics.burst_iops or 0, "request") + " a second"))
    if bytes_s is not None:
        spans.append((bytes_s, f"{(physics.burst_bytes_per_s or 0) / 1e6:.0f} MB/s"))
    return spans
