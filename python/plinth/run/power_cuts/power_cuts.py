"""Power cuts of a run: the load runs, the power is cut, the server recovers, and every acknowledged commit is looked
for."""

import contextlib
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from plinth.bundle import BundleWriter
from plinth.load import LoadDriver
from plinth.model.durability import PlannedCut, PowerCut, cuts_left
from plinth.model.errors import PlinthError, StorageBroken, UsageError
from plinth.model.plan import Plan, Variant
from plinth.model.progress import Progress
from plinth.model.units import format_count
from plinth.run.faults.failures import reason_of
from plinth.run.listener import Listener
from plinth.run.power_cuts.atlas import images_at_once
from plinth.run.power_cuts.cut_check import Findings
from plinth.run.power_cuts.power_cut import CutSubject, make_cut
from plinth.run.power_cuts.subject import endless_load, subject_of
from plinth.run.provision.live_cluster import LiveCluster
from plinth.run.provision.provisioner import Provisioner
from plinth.run.trial.trial import MakeLoad
from plinth.system import cancel


class PowerCuts:
    """Makes the cuts of a plan, one after the other."""

    def __init__(
        self, plan: Plan, provisioner: Provisioner, writer: BundleWriter, listener: Listener, make_load: MakeLoad
    ) -> None:
        self._plan = plan
        self._provisioner = provisioner
        self._writer = writer
        self._listener = listener
        self._make_load = make_load
        self._variants = {variant.id: variant for variant in plan.variants}
        self._known: list[PowerCut] = []
        self._untested: list[PowerCut] = []
        """Those of before of which nothing was learned: they are made again."""
        self._known_before, self._began_s = 0, time.monotonic()

    def run(self, made: Collection[PowerCut]) -> None:
        """Make all cuts but those that were `made` before, and of which something was learned. Each is written to the
        bundle when it is complete."""
        if not self._plan.cuts:
            return
        self._known += (cut for cut in made if cut.was_tested)
        self._untested += (cut for cut in made if not cut.was_tested)
        self._known_before, self._began_s = len(self._known), time.monotonic()
        self._listener.phase(f"cut the power: {format_count(len(self._plan.cuts), 'time')}")
        while left := self._left():
            cancel.check()
            if left[0].recording is None:
                self._keep(self._live_cut(left[0]))
            else:
                self._images([cut for cut in left if _is_of_recording(cut, left[0])])
        self._progress("")
        if failed := sum(not cut.was_tested for cut in self._known):
            self._listener.note(
                f"{failed} of {format_count(len(self._plan.cuts), 'power cut')} could not be tested; "
                f"`plinth resume {self._writer.path}` tries again"
            )

    def _left(self) -> list[PlannedCut]:
        durability = self._plan.experiment.durability
        assert durability is not None, "cuts are planned"
        return cuts_left(self._plan.cuts, self._known, durability.stop_after)

    def _keep(self, cut: PowerCut) -> None:
        self._writer.write_cut(cut)
        self._known.append(cut)
        label = self._variants[cut.variant].label
        if cut.damage:
            self._listener.note(f"cut {cut.number}, {label}: {_in_words(cut)}")
        elif cut.failure is not None:
            self._listener.note(f"cut {cut.number} failed: {cut.failure}")

    def _progress(self, what: str) -> None:
        elapsed_s = time.monotonic() - self._began_s
        made = len(self._known) - self._known_before
        rate = made / elapsed_s if made else None
        self._listener.progress(Progress("power cuts", len(self._known), len(self._plan.cuts), "cuts", what, rate))

    def _live_cut(self, planned: PlannedCut) -> PowerCut:
        variant = self._variants[planned.variant]
        self._progress(f"{planned.mode} in {planned.moment}: {variant.label}")
        started_unix_ns = time.time_ns()
        found, failure = Findings(tell=lambda what: self._progress(f"{what}: {variant.label}")), None
        if error := self._provisioner.failure(variant):
            failure = f"not made: {reason_of(error)}"
        else:
            try:
                self._make(planned, variant, found)
            except (UsageError, StorageBroken):
                raise
            except PlinthError as error:
                failure = reason_of(error)
            if failure is not None or not found.is_intact:
                self._provisioner.make_again(variant)
        return found.cut(planned, started_unix_ns=started_unix_ns, failure=failure)

    def _make(self, planned: PlannedCut, variant: Variant, found: Findings) -> None:
        durability = self._plan.experiment.durability
        assert durability is not None, "cuts are planned"
        cluster = self._provisioner.switch_to(variant)
        subject, power = self._subject(variant, cluster), cluster.power()
        ledger = self._writer.make_cut_ledger(planned) if variant.workload.keeps_ledger else None
        load = self._load(planned, subject, ledger)
        try:
            make_cut(planned, subject, power, durability.within_s, load, ledger, found)
        finally:
            if ledger is not None and not found.damage:
                self._writer.drop_cut_ledger(planned)

    def _images(self, planned: Sequence[PlannedCut]) -> None:
        """Make one recording and check its images."""
        planned = self._of_new_attempt(planned)
        variant = self._variants[planned[0].variant]
        failure = None
        if error := self._provisioner.failure(variant):
            failure = f"not made: {reason_of(error)}"
        else:
            try:
                self._record_and_check(planned, variant)
            except (UsageError, StorageBroken):
                raise
            except PlinthError as error:
                failure = reason_of(error)
                self._provisioner.make_again(variant)
        if failure is not None:
            known = {cut.number for cut in self._known}
            for cut in planned:
                if cut.number not in known:
                    self._keep(Findings().cut(cut, started_unix_ns=time.time_ns(), failure=failure))

    def _of_new_attempt(self, planned: Sequence[PlannedCut]) -> list[PlannedCut]:
        """Return these images of one recording, as those of a new one if there was an attempt at it before: that one is gone, or
        kept for the damage in its images."""
        earlier = [cut for cut in (*self._known, *self._untested) if _is_of_recording(cut, planned[0])]
        attempts = {cut.attempt for cut in earlier} | self._writer.attempts_at(planned[0])
        attempt = 1 + max(attempts, default=0)
        damaged = {cut.attempt for cut in earlier if cut.damage}
        for gone in attempts - damaged:
            self._writer.drop_recording(planned[0].model_copy(update={"attempt": gone}))
        return [cut.model_copy(update={"attempt": attempt}) for cut in planned]

    def _record_and_check(self, planned: Sequence[PlannedCut], variant: Variant) -> None:
        durability = self._plan.experiment.durability
        assert durability is not None, "images are planned"
        first, label = planned[0], variant.label
        cluster = self._provisioner.switch_to(variant)
        subject, ledger = self._subject(variant, cluster), self._writer.make_cut_ledger(first)
        at_once = images_at_once(subject.server)
        atlas = cluster.atlas_of(subject)
        self._progress(f"recording {first.recording}: {label}")
        damaged = False
        try:
            recorded = atlas.record(
                self._load(first, subject, ledger), ledger, durability.record_s, {cut.moment for cut in planned}
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

    def _subject(self, variant: Variant, cluster: LiveCluster) -> CutSubject:
        durability = self._plan.experiment.durability
        assert durability is not None, "cuts are planned"
        return subject_of(self._plan, variant, cluster, durability.recovery_limit_s)

    def _load(self, planned: PlannedCut, subject: CutSubject, ledger: Path | None) -> LoadDriver:
        return endless_load(self._plan, planned.seed, subject, ledger, self._make_load)


def _is_of_recording(cut: PlannedCut | PowerCut, other: PlannedCut) -> bool:
    return (cut.variant, cut.recording) == (other.variant, other.recording)


def _in_words(cut: PowerCut) -> str:
    """Return the findings in one line."""
    kinds = ", ".join(f"{damage.kind} ({damage.count}): {damage.evidence[0]}" for damage in cut.damage)
    return f"{cut.mode} in {cut.moment}, {format_count(cut.acknowledged, 'acknowledged commit')}: {kinds}"
