"""Snapshots and what going back to them restored, by variant, in words."""

from collections import Counter
from collections.abc import Sequence
from statistics import median

from plinth.model.contents import BundleContents
from plinth.model.figures import NOT_AVAILABLE
from plinth.model.flashback import Flashback, FlashbackText
from plinth.model.units import format_count, format_duration

FLASHBACK_HEADS = (
    "Variant",
    "Snapshots",
    "Kind",
    "Taken in",
    "Restored in",
    "Recovered in",
    "Undone",
    "Commits of before",
    "Other damage",
)


def flashback_texts(contents: BundleContents) -> tuple[FlashbackText, ...]:
    """Of every variant whose trials took snapshots, in the order of the plan."""
    by_variant: dict[str, list[Flashback]] = {}
    for one in contents.trials:
        if one.trial.flashbacks:
            by_variant.setdefault(one.trial.variant, []).extend(one.trial.flashbacks)
    return tuple(
        flashback_text(variant.label, by_variant[variant.id])
        for variant in contents.plan.variants
        if variant.id in by_variant
    )


def flashback_sentence(text: FlashbackText) -> str:
    """What the terminal says of one."""
    return (
        f"taken in {text.taken}, restored in {text.restored}, recovered in {text.recovered}; undone {text.undone}; "
        f"{text.commits}; {text.damage} ({format_count(text.snapshots, 'snapshot')}, {text.kind})"
    )


def flashback_row(text: FlashbackText) -> tuple[str, ...]:
    """A row for FLASHBACK_HEADS."""
    return (
        text.variant,
        str(text.snapshots),
        text.kind,
        text.taken,
        text.restored,
        text.recovered,
        text.undone,
        text.commits,
        text.damage,
    )


def flashback_text(label: str, flashbacks: Sequence[Flashback]) -> FlashbackText:
    """The snapshots of the trials of one variant, by its label."""
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
    """The median, with the smallest and the largest where there are several."""
    known = [value for value in values if value is not None]
    never = len(values) - len(known)
    words = [format_duration(median(known))] if known else [NOT_AVAILABLE]
    if len(known) > 1:
        words = [f"{words[0]} ({format_duration(min(known))} to {format_duration(max(known))})"]
    return ", ".join([*words, *([f"not in {never} of {len(values)}"] if never and known else [])])


def _commits(flashbacks: Sequence[Flashback]) -> str:
    lost, acknowledged = (sum(getattr(one, name) for one in flashbacks) for name in ("lost", "acknowledged"))
    reasons = list(dict.fromkeys(one.may_lose for one in flashbacks if one.may_lose is not None))
    promise = f"a loss is allowed: {'; '.join(reasons)}" if reasons else "none may be lost"
    return f"lost {lost:,} of {acknowledged:,} commits of before ({promise})"


def _damage(flashbacks: Sequence[Flashback]) -> str:
    counts: Counter[str] = Counter()
    for one in flashbacks:
        for damage in one.damage:
            if damage.kind != "lost commit":
                counts[damage.kind] += damage.count
    if counts:
        return "; ".join(f"{kind}: {count:,}" for kind, count in counts.items())
    checks = (check for one in flashbacks for check in one.checks)
    not_run = list(dict.fromkeys(f"{check.name}: {check.not_run}" for check in checks if check.not_run))
    return "no other damage" + (f" (not checked: {'; '.join(not_run)})" if not_run else "")
