"""Commits that wait for standbys, in words: what the model predicts, what was measured, and its error."""

from plinth.model.commit_model import CommitModel
from plinth.model.figures import NOT_AVAILABLE
from plinth.report.sections.section import Section, Table, sentences_of
from plinth.report.text import latency

_LITTLE = 0.01
"""Of a prediction; its simulation is not more exact."""


def commit_row(model: CommitModel) -> tuple[str, str, str, str, str]:
    """Return variant, what was measured, what is predicted, the error, and the parts of the prediction or why there is none."""
    measured = NOT_AVAILABLE if model.measured_ns is None else latency(model.measured_ns)
    if model.predicted_ns is None or model.error is None:
        return model.variant, measured, NOT_AVAILABLE, NOT_AVAILABLE, model.unavailable or "a part was not measured"
    parts = (
        f"local {latency(model.local_ns or 0)} ({model.local}) + round trip {latency(model.round_trip_ns or 0)}"
        f" + flush {latency(model.flush_ns or 0)} ({model.standby}){_shared(model)}"
    )
    return model.variant, measured, latency(model.predicted_ns), f"{100 * model.error:+.0f} %", parts


def _shared(model: CommitModel) -> str:
    """Say what sharing flushes adds or takes away; nothing where that is little."""
    if abs(model.sharing_ns) < _LITTLE * (model.predicted_ns or 0):
        return ""
    return f" {'+' if model.sharing_ns > 0 else '-'} {latency(abs(model.sharing_ns))} (shared flushes)"


def commit_sentence(model: CommitModel) -> str:
    """Return what the terminal says of a variant."""
    _, measured, predicted, error, parts = commit_row(model)
    if model.error is None:
        return f"measured {measured}; predicted {NOT_AVAILABLE}: {parts}"
    return f"measured {measured}, predicted {predicted} ({error}): {parts}"


_HEADS = ("Variant", "Commit, median", "Predicted", "Error", "Of which")
COMMITS = Section(
    id="commits",
    title="Commits that wait for standbys",
    note="Predicted: a commit of the variant that waits for no standby, the round trip to the standby that decides, and a durable write "
    "there, each measured alone; medians. Of several clients also what it makes, by simulation, that flushes are shared on both "
    "sides. Next to it the median of the commits. The replay, for which remote_apply waits, is taken to need no time.",
    blocks=lambda report: [Table(_HEADS, [commit_row(one) for one in report.analysis.commit_models])],
    entries=sentences_of(lambda report: report.analysis.commit_models, lambda one: one.variant, commit_sentence),
    page="storage",
)
