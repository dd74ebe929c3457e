"""What faults of servers cost, by variant, in words: time without writes in its parts, and lost commits."""

from collections.abc import Callable, Iterable, Sequence
from statistics import median

from plinth.model.contents import BundleContents
from plinth.model.figures import NOT_AVAILABLE
from plinth.model.flashback import Flashback
from plinth.model.outage import Outage, OutageText
from plinth.model.units import format_count, format_decimal_size, format_duration
from plinth.report.sections.section import Section, by_variant, sentences_of, table_of


def outage_texts(contents: BundleContents) -> tuple[OutageText, ...]:
    """Return the texts of every variant whose trials had faults of servers, in the order of the plan."""
    outages = by_variant(contents, lambda trial: () if trial.outage is None else (trial.outage,))
    return tuple(outage_text(label, of_variant) for label, of_variant in outages)


def outage_sentence(text: OutageText) -> str:
    """Return what the terminal says of a variant."""
    return (
        f"{text.faults}; without writes {text.gap}: {text.parts}; {text.lost}; {text.rejoin} "
        f"({format_count(text.trials, 'trial')})"
    )


def outage_text(label: str, outages: Sequence[Outage]) -> OutageText:
    """Summarise the outages of the trials of a variant with the label `label`."""
    return OutageText(
        variant=label,
        trials=len(outages),
        faults=", ".join(dict.fromkeys(fault for one in outages for fault in one.faults)),
        gap=_gap(outages),
        parts=_parts(outages),
        lost=_lost(outages),
        rejoin=_rejoin(outages) + _strayed(outages),
    )


def _median(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return format_duration(median(known)) if known else NOT_AVAILABLE


def _gap(outages: Sequence[Outage]) -> str:
    gaps = [one.gap_s for one in outages if one.gap_s is not None]
    never = len(outages) - len(gaps)
    words = [_median(gaps)] if gaps else []
    if len(gaps) > 1:
        words = [f"{words[0]} ({format_duration(min(gaps))} to {format_duration(max(gaps))})"]
    if never:
        words.append(f"until the end of the load in {format_count(never, 'trial')}")
    return ", ".join(words)


def _parts(outages: Sequence[Outage]) -> str:
    steps = [one.failover for one in outages if one.failover is not None]
    later = _recovered(outages)
    if not steps:
        restarted = [f", {one.restarted_by} started the primary again" for one in outages if one.restarted_by]
        return f"no failover{''.join(dict.fromkeys(restarted))}{_replayed(outages)}; {later}"
    parts = {
        "detect": [one.detect_s for one in steps],
        "promote": [one.promote_s for one in steps],
        "first write": [one.first_write_s for one in steps],
    }
    managers = dict.fromkeys(one.by for one in steps if one.by != "plinth")
    by = "".join(f"by {manager}: " for manager in managers)
    return by + ", ".join(f"{name} {_median(values)}" for name, values in parts.items()) + f"; {later}"


def _replayed(outages: Sequence[Outage]) -> str:
    """Return what a primary that was started again did before it took connections."""
    recoveries = [one.recovery for one in outages if one.recovery is not None]
    if not recoveries:
        return ""
    size, redo = (median(getattr(one, name) for one in recoveries) for name in ("redo_bytes", "redo_s"))
    taken = format_duration(median(one.total_s for one in recoveries))
    return f", recovery {taken}, of which {format_duration(redo)} replayed {format_decimal_size(size)} of WAL"


def _recovered(outages: Sequence[Outage]) -> str:
    known = [one.recovered_s for one in outages if one.recovered_s is not None]
    never = [f"not by the end of the load in {format_count(len(outages) - len(known), 'trial')}"] * (
        len(known) < len(outages)
    )
    later = [f"{format_duration(median(known))} later" if median(known) else "at once"] if known else []
    return f"90 % of throughput {', '.join(later + never)}"


def _lost(outages: Sequence[Outage]) -> str:
    lost, acknowledged = (sum(getattr(one, name) for one in outages) for name in ("lost", "acknowledged"))
    worst = [
        words
        for words in (
            _worst("of the last", [one.lost_s or None for one in outages if one.lost], format_duration),
            _worst("WAL of", [one.lost_wal_bytes for one in outages if one.lost], format_decimal_size),
        )
        if words
    ]
    found = ", ".join([f"lost {lost:,} of {acknowledged:,} commits", *worst])
    return f"{found} ({promise_of(outages)})"


def promise_of(losses: Iterable[Outage | Flashback]) -> str:
    """Return whether commits may be lost, and why."""
    reasons = list(dict.fromkeys(one.may_lose for one in losses if one.may_lose is not None))
    return f"a loss is allowed: {'; '.join(reasons)}" if reasons else "none may be lost"


def _worst(words: str, values: Sequence[float | None], shown: Callable[[float], str]) -> str | None:
    known = [value for value in values if value is not None]
    return f"{words} {shown(max(known))}" if known else None


def _rejoin(outages: Sequence[Outage]) -> str:
    rejoined = [one.failover.rejoin for one in outages if one.failover is not None and one.failover.rejoin is not None]
    if not rejoined:
        return "no server came back as a standby"
    ways = {"rewind": "pg_rewind", "backup": "a base backup", "restart": "a restart"}
    words = [
        f"{ways[how]} in {_median([one.duration_s for one in own])}"
        for how in ways
        if (own := [one for one in rejoined if one.how == how])
    ]
    failures = list(dict.fromkeys(one.rewind_failure for one in rejoined if one.rewind_failure))
    failed = f" (pg_rewind failed: {failures[0]})" if failures else ""
    return f"the old primary came back by {', '.join(words)}{failed}"


def _strayed(outages: Sequence[Outage]) -> str:
    cases = {(name, one.primary) for one in outages for name in one.strayed}
    return "".join(
        f"; {name} had more WAL than {primary} and could not follow it"
        f" (in {sum(name in one.strayed and one.primary == primary for one in outages)} of {len(outages)})"
        for name, primary in sorted(cases)
    )


OUTAGES = Section(
    id="outages",
    title="Faults and failover",
    note="Without writes is the clients' own time, from the last commit that was acknowledged before the fault to the first that was "
    "sent and acknowledged after it. Its parts are timed by the steps of the failover: detect from the fault on, promote until the "
    "standby is out of recovery, first write until a client's commit is acknowledged there. Lost commits are those of the ledger "
    "that the node which takes writes in the end does not have.",
    blocks=table_of(
        lambda report: report.outages,
        {
            "Variant": lambda one: one.variant,
            "Trials": lambda one: str(one.trials),
            "Faults": lambda one: one.faults,
            "Without writes": lambda one: one.gap,
            "Parts": lambda one: one.parts,
            "Commits": lambda one: one.lost,
            "Old primary": lambda one: one.rejoin,
        },
    ),
    entries=sentences_of(lambda report: report.outages, lambda one: one.variant, outage_sentence),
    in_summary=True,
    page="storage",
)
