"""The fsync probe: each case in every directory in turn, by crates/probe, with the flushes that devices counted."""

import errno
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Self

from plinth import _native
from plinth.model.base import Gap
from plinth.model.errors import MissingCapability, PlinthError, RunError, UsageError
from plinth.model.facts import StorageFacts
from plinth.model.histogram import Buckets
from plinth.model.place import meanings
from plinth.model.probe import PERCENTILES, FsyncCase, FsyncFigure, FsyncOptions, FsyncProbe, FsyncResult
from plinth.probe.place import flush_device
from plinth.probe.plausible import judge
from plinth.system import cancel
from plinth.system.directory import sync_refusal
from plinth.system.diskstats import count_flushes, flushes_uncounted
from plinth.system.failures import from_os_error
from plinth.system.timeout import call_with_timeout

ROUNDS = 3


class Round(NamedTuple):
    """One measurement of a case: the result of `_native.FsyncProbe.measure`, or the reason why there is none."""

    figure: dict[str, Any] | None
    unavailable: str | None
    failed: bool = False


class FsyncTarget:
    """A context manager that creates the probe's file in a directory. If entering raises a PlinthError, no file remains."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.gone: str | None = None
        """Why nothing more is measured here: the storage does not respond."""
        self.left: str | None = None
        """Why the probe's file could not be removed; None if it was."""
        self._probe: _native.FsyncProbe | None = None

    def __enter__(self) -> Self:
        check_directory(self.directory)
        try:
            self._probe = _native.FsyncProbe(self.directory)
        except _native.ProbeError as error:
            raise _not_made(error, self.directory) from error
        return self

    def __exit__(self, *exception: object) -> None:
        probe, self._probe = self._probe, None
        if probe is None:
            return
        try:
            probe.remove()
        except _native.ProbeError as left:
            self.left = left.message

    def measure(self, case: FsyncCase, duration_s: float) -> Round:
        """Measure `case` once. On an I/O error the result has the error as the reason and no figure."""
        assert self._probe is not None, "it is entered"
        if self.gone is not None:
            return Round(None, self.gone, failed=True)
        try:
            outcome = json.loads(self._probe.measure(case.model_dump_json(), duration_s, cancel.check))
        except _native.ProbeError as error:
            if error.errno is None:  # not an error of the system: it does not respond
                self.gone = error.message
            return Round(None, error.message, failed=True)
        return Round(outcome.get("figure"), outcome.get("unavailable"))


def cases(options: FsyncOptions) -> tuple[FsyncCase, ...]:
    """Return the cases in their order of output."""
    return tuple(FsyncCase.model_validate(case) for case in json.loads(_native.fsync_plan(options.model_dump_json())))


def check_directory(path: Path) -> None:
    """Raise a PlinthError unless `path` is a directory in which files can be created, as far as this can be checked."""
    try:
        is_directory = path.is_dir()
        if not is_directory:
            path.lstat()
    except OSError as error:
        raise from_os_error(error, "probe", path) from error
    if not is_directory:
        hint = "a probe writes to a new file in a directory"
        if path.is_block_device():
            hint += ", and never to a block device: make a file system on it, and mount that"
        raise UsageError("cannot probe: it is not a directory", where=str(path), hint=hint)


def _not_made(error: _native.ProbeError, directory: Path) -> PlinthError:
    if error.errno in (errno.ENOENT, errno.EINVAL, errno.EOPNOTSUPP):  # although the directory exists
        return MissingCapability("cannot probe: its file system makes no files", where=str(directory))
    if error.errno == errno.EIO:
        return RunError(
            f"cannot probe: {error.message}",
            where=str(directory),
            hint="the device under it gives errors: see `dmesg`, and `plinth storage describe` for which device it is",
            details=_left(error),
        )
    reported = from_os_error(OSError(error.errno or 0, error.message), "probe", directory)
    reported.details = _left(error)
    return reported


def _left(error: _native.ProbeError) -> tuple[str, ...]:
    """Return a note if our file remains, as on a file system that became read-only, or if that is unknown."""
    if error.path is None:
        return ()
    try:
        Path(error.path).lstat()
    except (FileNotFoundError, PermissionError):  # in a directory that we may not enter we created nothing
        return ()
    except OSError as unseen:
        return (f"whether {error.path} is left cannot be seen: {unseen.strerror}",)
    return (f"{error.path} is left, since it cannot be removed now",)


def merged(case: FsyncCase, rounds: Sequence[Round], device_flushes: int | None) -> FsyncResult:
    """Return the result of all rounds, without figures if one round has none."""
    for one in rounds:
        if one.figure is None:
            return FsyncResult(case=case, unavailable=one.unavailable, failed=one.failed, device_flushes=device_flushes)
    figure = _figure([one.figure for one in rounds if one.figure is not None])
    return FsyncResult(case=case, figure=figure, device_flushes=device_flushes)


def _figure(rounds: Sequence[dict[str, Any]]) -> FsyncFigure:
    latencies = Buckets.of_counts(pair for one in rounds for pair in one["buckets"])
    latencies.min_ns, latencies.max_ns = (min(one["min_ns"] for one in rounds), max(one["max_ns"] for one in rounds))
    ops = latencies.count
    elapsed_ns = sum(one["elapsed_ns"] for one in rounds)
    return FsyncFigure(
        ops=ops,
        flushes=sum(one["flushes"] for one in rounds),
        elapsed_ns=elapsed_ns,
        ops_per_s=ops / (elapsed_ns / 1e9),
        round_ops_per_s=tuple(one["ops"] / (one["elapsed_ns"] / 1e9) for one in rounds),
        min_ns=latencies.min_ns,
        max_ns=latencies.max_ns,
        percentiles_ns={
            f"{percent:g}": latencies.percentile_ns(percent / 100) if ops * (1 - percent / 100) >= 1 else None
            for percent in PERCENTILES
        },
        buckets=latencies.sorted_counts(),
    )


def probe_cases(
    paths: Mapping[Path, StorageFacts],
    planned: Sequence[FsyncCase],
    duration_s: float,
    tell: Callable[[FsyncCase, Path], None],
    rounds: int = ROUNDS,
) -> tuple[FsyncProbe, ...]:
    """Measure each case at all directories, one after the other, in `rounds` rounds of `duration_s` altogether.

    `paths` are the directories, with the facts of what they are on. `tell` is called before every measurement. The
    probes' files are removed when it returns or raises: PlinthError when a place cannot be probed at all.
    """
    places = [_Place(path, facts) for path, facts in paths.items()]
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

    def __init__(self, path: Path, facts: StorageFacts) -> None:
        self.target = FsyncTarget(path)
        self._facts = facts
        self._device = flush_device(facts)
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
            reasons = [reason for name in self._facts.block_devices if (reason := flushes_uncounted(name))]
            why = reasons[0] if reasons else "no block device is known below it"
            gaps.append(Gap(what="flushes at the device", reason=why))
        directory = self.target.directory
        if refusal := call_with_timeout(lambda: sync_refusal(directory), directory):
            gaps.append(Gap(what="sync of a directory", reason=f"refused ({refusal}): PostgreSQL does not run there"))
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
        return None if self._device is None else count_flushes(self._device)
