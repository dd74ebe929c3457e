"""Power cuts of a run: the load runs, the power is cut, the server recovers, and every acknowledged commit is looked
for."""

import contextlib
import time
from collections.abc import Collection, Sequence

from plinth.model.durability import DurabilitySpec, PlannedCut, PowerCut, cuts_left
from plinth.model.plan import Variant
from plinth.model.progress import Progress
from plinth.model.units import format_count
from plinth.run.faults.power import Power
from plinth.run.faults.recovery_check import Findings
from plinth.run.power_cuts.after_trials import AfterTrials
from plinth.run.power_cuts.atlas import Atlas, images_at_once
from plinth.run.power_cuts.power_cut import LiveCut
from plinth.storage.kinds.emulated import Emulated
from plinth.system import cancel
from plinth.system.paths import work_dir


def make_power_cuts(after: AfterTrials, made: Collection[PowerCut]) -> None:
    """Make the planned cuts, each written to the bundle, but those `made` before of which something was learned."""
    durability = after.plan.experiment.durability
    if after.plan.cuts and durability is not None:
        _PowerCuts(after, durability, made).run()


class _PowerCuts:
    def __init__(self, after: AfterTrials, durability: DurabilitySpec, made: Collection[PowerCut]) -> None:
        self._after = after
        self._durability = durability
        self._plan, self._writer, self._listener = after.plan, after.writer, after.listener
        self._known = [cut for cut in made if cut.was_tested]
        self._untested = [cut for cut in made if not cut.was_tested]
        """Those of before of which nothing was learned: they are made again."""
        self._known_before, self._began_s = len(self._known), time.monotonic()

    def run(self) -> None:
        self._listener.phase(f"cut the power: {format_count(len(self._plan.cuts), 'time')}")
        while left := self._left():
            cancel.check()
            if left[0].recording is None:
                self._keep(self._live_cut(left[0]))
            else:
                self._images([cut for cut in left if _is_of_recording(cut, left[0])])
        self._progress("")
        failed = sum(not cut.was_tested for cut in self._known)
        self._after.tell_untested(failed, len(self._plan.cuts), "power cut")

    def _left(self) -> list[PlannedCut]:
        return cuts_left(self._plan.cuts, self._known, self._durability.stop_after)

    def _keep(self, cut: PowerCut) -> None:
        self._writer.write_cut(cut)
        self._known.append(cut)
        if cut.damage:
            self._listener.note(f"cut {cut.number}, {self._after.variants[cut.variant].label}: {_in_words(cut)}")
        elif cut.failure is not None:
            self._listener.note(f"cut {cut.number} failed: {cut.failure}")

    def _progress(self, what: str) -> None:
        elapsed_s = time.monotonic() - self._began_s
        made = len(self._known) - self._known_before
        rate = made / elapsed_s if made else None
        self._listener.progress(Progress("power cuts", len(self._known), len(self._plan.cuts), "cuts", what, rate))

    def _live_cut(self, planned: PlannedCut) -> PowerCut:
        variant = self._after.variants[planned.variant]
        self._progress(f"{planned.mode} in {planned.moment}: {variant.label}")
        started_unix_ns = time.time_ns()
        found = Findings(tell=lambda what: self._progress(f"{what}: {variant.label}"))
        _, failure = self._after.attempt(variant, found, lambda: self._make(planned, variant, found))
        return found.cut(planned, started_unix_ns=started_unix_ns, failure=failure)

    def _make(self, planned: PlannedCut, variant: Variant, found: Findings) -> None:
        cluster, subject = self._after.subject_of(variant, self._durability.recovery_limit_s)
        power = Power(cluster.storages, self._durability.disks, cluster.runner, cluster.journal)
        ledger = self._writer.make_cut_ledger(planned) if variant.workload.keeps_ledger else None
        load = self._after.endless_load(subject, planned.seed, ledger)
        try:
            LiveCut(planned, subject, power, found).make(self._durability.within_s, load, ledger)
        finally:
            if ledger is not None and not found.damage:
                self._writer.drop_cut_ledger(planned)

    def _images(self, planned: Sequence[PlannedCut]) -> None:
        """Make one recording and check its images."""
        planned = self._of_new_attempt(planned)
        variant = self._after.variants[planned[0].variant]
        _, failure = self._after.attempt(variant, Findings(), lambda: self._record_and_check(planned, variant))
        if failure is not None:
            known = {cut.number for cut in self._known}
            for cut in planned:
                if cut.number not in known:
                    self._keep(Findings().cut(cut, started_unix_ns=time.time_ns(), failure=failure))

    def _of_new_attempt(self, planned: Sequence[PlannedCut]) -> list[PlannedCut]:
        """Return images of one recording with the number of this attempt at it; earlier ones are dropped unless they show damage."""
        earlier = [cut for cut in (*self._known, *self._untested) if _is_of_recording(cut, planned[0])]
        attempts = {cut.attempt for cut in earlier} | self._writer.attempts_at(planned[0])
        attempt = 1 + max(attempts, default=0)
        damaged = {cut.attempt for cut in earlier if cut.damage}
        for gone in attempts - damaged:
            self._writer.drop_recording(planned[0].model_copy(update={"attempt": gone}))
        return [cut.model_copy(update={"attempt": attempt}) for cut in planned]

    def _record_and_check(self, planned: Sequence[PlannedCut], variant: Variant) -> None:
        first, label = planned[0], variant.label
        cluster, subject = self._after.subject_of(variant, self._durability.recovery_limit_s)
        ledger = self._writer.make_cut_ledger(first)
        at_once = images_at_once(subject.server)
        recorded_storages = [storage for storage in cluster.storages if isinstance(storage, Emulated)]
        atlas = Atlas(subject, recorded_storages, cluster.journal, work_dir() / f"{cluster.journal.label}-recording")
        self._progress(f"recording {first.recording}: {label}")
        damaged = False
        try:
            recorded = atlas.record(
                self._after.endless_load(subject, first.seed, ledger),
                ledger,
                self._durability.record_s,
                {cut.moment for cut in planned},
            )
            with contextlib.closing(atlas.check(planned, recorded, at_once)) as cuts:
                for cut in cuts:
                    if (
                        cut.damage and not damaged
                    ):  # before the bundle says so, whether or not the next images can be checked
                        atlas.keep(self._writer.make_recording(first))
                        damaged = True
                    self._keep(cut)
                    self._progress(f"image of recording {first.recording}: {label}")
                    if not any(left.variant == variant.id for left in self._left()):
                        break
        finally:
            if not damaged:
                self._writer.drop_recording(first)
        atlas.drop()


def _is_of_recording(cut: PlannedCut | PowerCut, other: PlannedCut) -> bool:
    return (cut.variant, cut.recording) == (other.variant, other.recording)


def _in_words(cut: PowerCut) -> str:
    """Return the findings in one line."""
    kinds = ", ".join(f"{damage.kind} ({damage.count}): {damage.evidence[0]}" for damage in cut.damage)
    return f"{cut.mode} in {cut.moment}, {format_count(cut.acknowledged, 'acknowledged commit')}: {kinds}"
