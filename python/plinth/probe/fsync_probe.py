"""The fsync probe of several directories: each case in every directory in turn, with the flushes that devices counted."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from plinth.model.base import Gap
from plinth.model.facts import StorageFacts
from plinth.model.place import meanings
from plinth.model.probe import FsyncCase, FsyncProbe
from plinth.probe.figures import merged
from plinth.probe.fsync import FsyncTarget, Round
from plinth.probe.place import FlushCounter, flush_device
from plinth.probe.plausible import judge

ROUNDS = 3


def probe_cases(
    paths: Mapping[Path, StorageFacts],
    planned: Sequence[FsyncCase],
    duration_s: float,
    flushes: FlushCounter,
    tell: Callable[[FsyncCase, Path], None],
    rounds: int = ROUNDS,
) -> tuple[FsyncProbe, ...]:
    """Measure each case at all directories, one after the other, in `rounds` rounds of `duration_s` altogether.

    `paths` are the directories, with the facts of what they are on. `tell` is called before every measurement. The
    probes' files are removed when it returns or raises: PlinthError when a place cannot be probed at all.
    """
    places = [_Place(path, facts, flushes) for path, facts in paths.items()]
    with ExitStack() as files:
        for place in places:
            files.enter_context(place.target)
        for number in range(rounds):
            for case in planned:
                # Rotate the order, since dirty data of one directory slows down the next.
                turn = number % len(places)
                for place in (*places[turn:], *places[:turn]):
                    tell(case, place.target.directory)
                    place.measure(case, duration_s / rounds)
    return tuple(place.result(planned, duration_s, rounds) for place in places)


class _Place:
    """The state of one directory during the probe."""

    def __init__(self, path: Path, facts: StorageFacts, flushes: FlushCounter) -> None:
        self.target = FsyncTarget(path)
        self._facts = facts
        self._counter = flushes
        self._device = flush_device(facts, flushes)
        self._rounds: dict[FsyncCase, list[Round]] = {}
        self._flushes: dict[FsyncCase, int] = {}

    def measure(self, case: FsyncCase, duration_s: float) -> None:
        before = self._counted()
        self._rounds.setdefault(case, []).append(self.target.measure(case, duration_s))
        after = self._counted()
        if before is not None and after is not None:
            self._flushes[case] = self._flushes.get(case, 0) + after - before

    def result(self, planned: Sequence[FsyncCase], duration_s: float, rounds: int) -> FsyncProbe:
        results = tuple(merged(case, self._rounds[case], self._flushes.get(case)) for case in planned)
        gaps: list[Gap] = []
        if self._device is None:
            reasons = [reason for name in self._facts.block_devices if (reason := self._counter.uncounted(name))]
            why = reasons[0] if reasons else "no block device is known below it"
            gaps.append(Gap(what="flushes at the device", reason=why))
        if self.target.left is not None:
            gaps.append(Gap(what="removal of the probe's file", reason=self.target.left))
        return FsyncProbe(
            path=str(self.target.directory.resolve()),
            facts=self._facts,
            flush_device=self._device,
            duration_s=duration_s,
            rounds=rounds,
            results=results,
            plausibility=judge(self._facts, results, self._device),
            notes=tuple(meaning.words for meaning in meanings(self._facts)),
            gaps=tuple(gaps),
        )

    def _counted(self) -> int | None:
        return None if self._device is None else self._counter.count(self._device)
