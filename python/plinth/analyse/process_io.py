"""What each group of processes read from storage and wrote to it in the measured phase, as /proc/PID/io counts it."""

from collections.abc import Iterator, Sequence

from plinth.analyse.bootstrap import of_trials
from plinth.analyse.window import Window, why_unread
from plinth.model.analysis import GroupIo, ProcessIo
from plinth.model.base import Gap
from plinth.model.trial import Trial

SOURCE = "process_io"


def process_io(trials: Sequence[tuple[Trial, Window]], seed: int) -> ProcessIo:
    """Return medians over a variant's counted trials; a group that any of them could not read is a gap with its reason."""
    if not trials:
        return ProcessIo(groups=(), gaps=(Gap(what="I/O by process", reason="no trial counts"),))
    groups: list[GroupIo] = []
    gaps: list[Gap] = []
    names = tuple(dict.fromkeys(name for trial, seen in trials for name in _groups(trial, seen)))
    if not names:
        gaps.append(Gap(what="I/O by process", reason=why_unread(trials[0][0], SOURCE)))
    for name in names:
        rates = [(seen.rate(SOURCE, name, "read_bytes"), seen.rate(SOURCE, name, "wchar")) for _, seen in trials]
        known = [(read, written) for read, written in rates if read is not None and written is not None]
        if len(known) < len(rates):
            lacking = next(trial for (trial, _), pair in zip(trials, rates, strict=True) if None in pair)
            gaps.append(Gap(what=f"I/O of {name}", reason=why_unread(lacking, f"{SOURCE}: {name}")))
        elif any(read or written for read, written in known):
            groups.append(
                GroupIo(
                    group=name,
                    read_bytes_per_s=of_trials([read for read, _ in known], seed),
                    written_bytes_per_s=of_trials([written for _, written in known], seed),
                )
            )
    groups.sort(key=lambda one: -(one.read_bytes_per_s.value + one.written_bytes_per_s.value))
    return ProcessIo(groups=tuple(groups), gaps=tuple(gaps))


def _groups(trial: Trial, seen: Window) -> Iterator[str]:
    """Return those that were read, then those that could not be."""
    yield from seen.objects(SOURCE)
    prefix = f"{SOURCE}: "
    yield from (gap.what.removeprefix(prefix) for gap in trial.gaps if gap.what.startswith(prefix))
