"""Commits that wait for standbys, in words: what the model predicts, what was measured, and its error."""

from plinth.model.analysis import CommitModel
from plinth.model.figures import NOT_AVAILABLE
from plinth.report.text import latency

_LITTLE = 0.01
"""Of a prediction; its simulation is not more exact."""


def commit_row(model: CommitModel) -> tuple[str, str, str, str, str]:
    """Variant, what was measured, what is predicted, the error, and the parts of the prediction or why there is none."""
    measured = NOT_AVAILABLE if model.measured_ns is None else latency(model.measured_ns)
    if model.predicted_ns is None or model.error is None:
        return model.variant, measured, NOT_AVAILABLE, NOT_AVAILABLE, model.unavailable or "a part was not measured"
    parts = (
        f"local {latency(model.local_ns or 0)} ({model.local}) + round trip {latency(model.round_trip_ns or 0)}"
        f" + flush {latency(model.flush_ns or 0)} ({model.standby}){_shared(model)}"
    )
    return model.variant, measured, latency(model.predicted_ns), f"{100 * model.error:+.0f} %", parts


def _shared(model: CommitModel) -> str:
    """What sharing flushes adds or takes away; nothing where that is little."""
    if abs(model.sharing_ns) < _LITTLE * (model.predicted_ns or 0):
        return ""
    return f" {'+' if model.sharing_ns > 0 else '-'} {latency(abs(model.sharing_ns))} (shared flushes)"


def commit_sentence(model: CommitModel) -> str:
    """What the terminal says of one."""
    _, measured, predicted, error, parts = commit_row(model)
    if model.error is None:
        return f"measured {measured}; predicted {NOT_AVAILABLE}: {parts}"
    return f"measured {measured}, predicted {predicted} ({error}): {parts}"
