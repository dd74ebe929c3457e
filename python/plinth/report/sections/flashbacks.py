"""Snapshots and what going back to them restored, by variant, in words."""

from collections.abc import Sequence
from statistics import median

from plinth.model.contents import BundleContents
from plinth.model.figures import NOT_AVAILABLE
from plinth.model.flashback import Flashback, FlashbackText
from plinth.model.units import format_count, format_duration
from plinth.report.sections.outages import promise_of
from plinth.report.sections.section import Section, by_variant, other_damage, sentences_of, table_of


def flashback_texts(contents: BundleContents) -> tuple[FlashbackText, ...]:
    """Return the texts of every variant whose trials took snapshots, in the order of the plan."""
    flashbacks = by_variant(contents, lambda trial: trial.flashbacks)
    return tuple(flashback_text(label, of_variant) for label, of_variant in flashbacks)


def flashback_sentence(text: FlashbackText) -> str:
    """Return what the terminal says of a variant."""
    return (
        f"taken in {text.taken}, restored in {text.restored}, recovered in {text.recovered}; undone {text.undone}; "
        f"{text.commits}; {text.damage} ({format_count(text.snapshots, 'snapshot')}, {text.kind})"
    )


def flashback_text(label: str, flashbacks: Sequence[Flashback]) -> FlashbackText:
    """Summarise the snapshots of the trials of a variant with the label `label`."""
    return FlashbackText(
        variant=label,
        snapshots=len(flashbacks),
        kind=", ".join(dict.fromkeys(one.kind for one in flashbacks)),
        taken=_times([one.snapshot_s for one in flashbacks]),
        restored=_times([one.restore_s for one in flashbacks]),
        recovered=_times([one.recovery_s for one in flashbacks]),
        undone=f"{_times([one.undone_s for one in flashbacks])} with {sum(one.undone for one in flashbacks):,} commits",
        commits=_commits(flashbacks),
        damage=_damage(flashbacks),
    )


def _times(values: Sequence[float | None]) -> str:
    """Format the median, with the smallest and the largest where there are several."""
    known = [value for value in values if value is not None]
    never = len(values) - len(known)
    words = [format_duration(median(known))] if known else [NOT_AVAILABLE]
    if len(known) > 1:
        words = [f"{words[0]} ({format_duration(min(known))} to {format_duration(max(known))})"]
    return ", ".join([*words, *([f"not in {never} of {len(values)}"] if never and known else [])])


def _commits(flashbacks: Sequence[Flashback]) -> str:
    lost, acknowledged = (sum(getattr(one, name) for one in flashbacks) for name in ("lost", "acknowledged"))
    return f"lost {lost:,} of {acknowledged:,} commits of before ({promise_of(flashbacks)})"


def _damage(flashbacks: Sequence[Flashback]) -> str:
    if found := other_damage(damage for one in flashbacks for damage in one.damage):
        return found
    checks = (check for one in flashbacks for check in one.checks)
    not_run = list(dict.fromkeys(f"{check.name}: {check.not_run}" for check in checks if check.not_run))
    return "no other damage" + (f" (not checked: {'; '.join(not_run)})" if not_run else "")


FLASHBACKS = Section(
    id="flashbacks",
    title="Flashback",
    note="Snapshots of the data directory that its storage took while the load ran. When the load had ended the files went back to each, "
    "the last first, and the server recovered. Undone are the commits that came after the snapshot, as meant. Every commit that was "
    "acknowledged before it was begun has to be there, none that was sent after it was taken, and the database has to be whole.",
    blocks=table_of(
        lambda report: report.flashbacks,
        {
            "Variant": lambda one: one.variant,
            "Snapshots": lambda one: str(one.snapshots),
            "Kind": lambda one: one.kind,
            "Taken in": lambda one: one.taken,
            "Restored in": lambda one: one.restored,
            "Recovered in": lambda one: one.recovered,
            "Undone": lambda one: one.undone,
            "Commits of before": lambda one: one.commits,
            "Other damage": lambda one: one.damage,
        },
    ),
    entries=sentences_of(lambda report: report.flashbacks, lambda one: one.variant, flashback_sentence),
    in_summary=True,
    page="storage",
)
