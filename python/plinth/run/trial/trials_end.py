"""When the trials of an experiment with measure.target end: asked before each block."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from plinth.model.experiment import FIRST_LOOK
from plinth.model.manifest import TrialsEnd
from plinth.model.plan import Plan, PlannedTrial
from plinth.model.trial import Trial
from plinth.model.units import format_count, format_duration
from plinth.run.trial.trial import Clock

if TYPE_CHECKING:
    from plinth.analyse.adaptive import Adaptive


class TrialsEndRule:
    """Ends the trials once every comparison is decided, or measure.budget would not suffice for one more block.

    The decision rests on the trials that are in the bundle, and nothing of it is kept: a resumed run makes the same one. Of trials of
    before it was resumed, the budget counts the time of their load.
    """

    def __init__(
        self, plan: Plan, earlier: Iterable[Trial], clock: Clock, note: Callable[[str], None], last_block: int | None
    ) -> None:
        """`last_block`: end after it in place of by the budget, which was spent before."""
        self._adaptive = _adaptive(plan)
        self._budget_s = plan.experiment.measure.budget_s if last_block is None else None
        self._last_block = last_block
        self._trials = list(earlier)
        self._clock = clock
        self._note = note
        self._began_ns: int | None = None
        self._earlier_s = sum(one.connect_ns + one.warmup_ns + one.measured_ns for one in self._trials) / 1e9

    def add(self, trial: Trial) -> None:
        """Add a trial that has ended."""
        self._trials.append(trial)

    def before(self, planned: PlannedTrial) -> TrialsEnd | None:
        """Return the end of the trials, if `planned` is not to be run next. A block that was begun is finished."""
        if self._began_ns is None:
            self._began_ns = self._clock.monotonic_ns()
        if self._adaptive is None or any(trial.block == planned.block for trial in self._trials):
            return None
        return self._end(self._adaptive, planned.block - 1)

    def _end(self, adaptive: "Adaptive", blocks: int) -> TrialsEnd | None:
        from plinth.analyse.adaptive import log_tps_of

        if blocks < 1:
            return None
        log_tps = log_tps_of(one for one in self._trials if one.block <= blocks)
        undecided = adaptive.open_comparisons(log_tps, blocks) if blocks >= FIRST_LOOK else len(adaptive.pairs)
        if undecided == 0:
            self._note(f"every comparison is decided after {format_count(blocks, 'block')}: no more trials are run")
            return TrialsEnd(block=blocks, reason="decided")
        if self._last_block is not None and blocks >= self._last_block:
            return TrialsEnd(block=blocks, reason="budget", open_comparisons=undecided)
        if self._is_spent(blocks):
            assert self._budget_s is not None, "a budget was spent"
            self._note(
                f"measure.budget = {format_duration(self._budget_s)}: block {blocks + 1} would end later; "
                f"{adaptive.undecided_text(undecided)}"
            )
            return TrialsEnd(block=blocks, reason="budget", open_comparisons=undecided)
        if blocks >= FIRST_LOOK:
            self._note(f"after {blocks} blocks, {_progress(adaptive, undecided, log_tps)}")
        return None

    def _is_spent(self, blocks: int) -> bool:
        assert self._began_ns is not None, "the trials have begun"
        spent_s = self._earlier_s + (self._clock.monotonic_ns() - self._began_ns) / 1e9
        return self._budget_s is not None and spent_s + spent_s / blocks > self._budget_s


def _adaptive(plan: Plan) -> "Adaptive | None":
    if plan.experiment.measure.target is None:
        return None
    from plinth.analyse.adaptive import Adaptive  # statistics, whose libraries are slow to load

    return Adaptive.of(plan)


def _progress(adaptive: "Adaptive", undecided: int, log_tps: dict[str, dict[int, float]]) -> str:
    """Return text such as "2 of 3 comparisons are not decided; about 4 more trials of each would decide"."""
    wanted = [one.more_trials for one in adaptive.decisions(log_tps).values() if one.decision == "undecided"]
    known = [more for more in wanted if more is not None]
    said = adaptive.undecided_text(undecided)
    if not known:
        return said
    more = max(known)
    some = "" if len(known) == undecided else f" {len(known)} of them"
    return f"{said}; about {format_count(more, 'more trial')} of each would decide{some}"
