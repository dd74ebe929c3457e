"""The atlas of a variant: a load is recorded once, and images of it, as power cuts would have left them, are checked.

Each image is served as a copy on write of the recording, recovered by a separate server, and compared with the
answers that clients had received by then: the records of the disks and of the ledger have one clock, CLOCK_MONOTONIC.
"""

import random
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from plinth.load import LoadDriver
from plinth.model.durability import CutMoment, CutPoint, PlannedCut, PowerCut
from plinth.model.errors import Interrupted, PlinthError, Refused, RunError
from plinth.model.load import LoadResult
from plinth.model.plan import Variant
from plinth.run.failures import reason_of
from plinth.run.faults.recovery_check import CutState, Findings, check_recovered, name_torn_pages, start_server
from plinth.run.local_host import HOST
from plinth.run.power_cuts.cut_moments import Window, moments_during_load, prepare_moment, windows_of
from plinth.run.power_cuts.power_cut import CutSubject, await_first_commit, run_for
from plinth.run.power_cuts.recorded_disks import (
    ImageCut,
    RecordedDisks,
    ServerImage,
    drop_recorded,
    image_name,
    keep_recorded,
    read_recorded,
    recording,
)
from plinth.run.trial.load_config import STOP_TIMEOUT_S
from plinth.server.integrity.fingerprint import Fingerprint
from plinth.server.node import Server
from plinth.storage.kinds.emulated import Emulated
from plinth.system import cancel
from plinth.system.database import connect, connect_unpinned, database_errors
from plinth.system.journal import Journal
from plinth.workload.commit_ledger import CommitLedger, read_commit_ledger
from plinth.workload.dataset import Dataset, Snapshot
from plinth.workload.survival import prepare_commits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_POLL_S = 0.1
_BESIDE_SHARED_BUFFERS_BYTES = 256 * 2**20


@dataclass(frozen=True)
class RecordedLoad:
    """A load whose disks were recorded, and the answers that its clients received. Times are CLOCK_MONOTONIC in ns."""

    disks: RecordedDisks
    before: Snapshot
    fingerprint: Fingerprint | None
    load: LoadResult
    ledger: CommitLedger
    first_ns: int
    windows: Mapping[CutMoment, Window]
    """When the server did what it was made to do during the load."""
    changes_ns: "NDArray[np.int64]"
    """When something was written, discarded or flushed, of any disk, while the load ran."""
    flushes_ns: "NDArray[np.int64]"
    """When a flush was answered, of any disk, while the load ran."""

    def cut_times_ns(self, images: Sequence[PlannedCut]) -> dict[int, int]:
        """Return when the power is cut for each image, by its number: just after a flush, or any change, of some disk.

        Those of one moment and point are at different times, in an order by the seed of the first, until there is no other.
        """
        groups: dict[tuple[CutMoment, CutPoint | None], list[PlannedCut]] = {}
        for image in images:
            groups.setdefault((image.moment, image.point), []).append(image)
        times: dict[int, int] = {}
        for (moment, point), group in groups.items():
            candidates = self._candidates_ns(moment, point)
            order = random.Random(group[0].seed).sample(range(len(candidates)), len(candidates))
            for place, image in enumerate(group):
                times[image.number] = int(candidates[order[place % len(order)]])
        return times

    def _candidates_ns(self, moment: CutMoment, point: CutPoint | None) -> "NDArray[np.int64]":
        for times in (self.flushes_ns, self.changes_ns) if point == "flush" else (self.changes_ns,):
            chosen = times[self._is_in(times, moment)]
            if len(chosen):
                return chosen
        return self.changes_ns

    def _is_in(self, times: "NDArray[np.int64]", moment: CutMoment) -> "NDArray[np.bool_]":
        import numpy as np

        if moment in self.windows:
            begun, ended = self.windows[moment]
            return (times >= begun) & (times <= ended)
        outside = np.ones(len(times), np.bool_)
        for begun, ended in self.windows.values():
            outside &= (times < begun) | (times > ended)
        return outside


@dataclass(frozen=True)
class Atlas:
    """Records loads of a variant, and checks images of what was recorded."""

    subject: CutSubject
    storages: Sequence[Emulated]
    journal: Journal
    place: Path
    """The folder in which recordings are made; not on the disks."""

    def record(self, load: LoadDriver, ledger: Path, record_s: float, moments: Collection[CutMoment]) -> RecordedLoad:
        """Run a load for `record_s`, with what the server does in `moments`, and stop the server once all is recorded."""
        one = self.subject
        during = moments_during_load(moments)
        windows: dict[CutMoment, Window] = {}
        with (
            database_errors("prepare a recording", one.variant.label),
            connect(one.server.control) as control,
            connect_unpinned(one.server.connection) as session,
        ):
            before = prepare_commits(control, session, one.variant.workload, one.dataset)
            for moment in during:
                prepare_moment(session, moment)
            fingerprint = one.server.files().take_fingerprint(control)
            self.drop()  # what a recording that failed has left
            with recording(self.storages, self.place, one.runner, self.journal):
                try:
                    load.start()
                    await_first_commit(load)
                    first_ns = time.monotonic_ns()
                    for moment in during:
                        run_for(load, record_s / (len(during) + 1))
                        windows |= windows_of(moment, one.server)
                    run_for(load, max(0.0, record_s - (time.monotonic_ns() - first_ns) / 1e9))
                    last_ns = time.monotonic_ns()
                finally:
                    load.stop()
                    load.wait(STOP_TIMEOUT_S)
        one.server.shutdown()
        disks = read_recorded(self.storages, self.place)
        changes_ns, flushes_ns = (
            times[(times >= first_ns) & (times <= last_ns)]
            for times in (disks.change_times_ns(), disks.flush_times_ns())
        )
        if not len(changes_ns):
            raise RunError("nothing was written to the disks while they were recorded")
        return RecordedLoad(
            disks=disks,
            before=before,
            fingerprint=fingerprint,
            load=load.result(),
            ledger=read_commit_ledger(ledger),
            first_ns=first_ns,
            windows=windows,
            changes_ns=changes_ns,
            flushes_ns=flushes_ns,
        )

    def keep(self, folder: Path) -> None:
        """Copy what was recorded into `folder`, as evidence: a folder for each storage, in it one for each disk."""
        keep_recorded(self.storages, self.place, folder, self.subject.runner)

    def drop(self) -> None:
        """Remove what was recorded."""
        drop_recorded(self.storages, self.place, self.subject.runner, self.journal)

    def check(
        self, images: Sequence[PlannedCut], recorded: RecordedLoad, at_once: int
    ) -> Generator[PowerCut, None, None]:
        """Yield the outcome of each image, in the order in which they are ready; `at_once` are checked at a time.

        btrfs mounts one file system of an identity at a time: its storages are detached meanwhile, and its images are
        checked one after the other.
        """
        affected = [storage for storage in self.storages if storage.spec.filesystem == "btrfs"]
        with self._detached(affected):
            at_once = 1 if affected else at_once
            times_ns = recorded.cut_times_ns(images)
            yield from _each_at_once(
                lambda planned: self._image(planned, times_ns[planned.number], recorded), images, at_once
            )

    @contextmanager
    def _detached(self, affected: Sequence[Emulated]) -> Iterator[None]:
        for storage in affected:
            storage.detach(self.subject.runner, self.journal)
        try:
            yield
        finally:
            for storage in affected:
                storage.attach(self.subject.runner, self.journal)

    def _image(self, planned: PlannedCut, at_ns: int, recorded: RecordedLoad) -> PowerCut:
        one, found, failure = self.subject, Findings(), None
        started_unix_ns = time.time_ns()
        points = recorded.disks.points_at(at_ns)
        image = ServerImage(
            image_name(planned),
            recorded.disks,
            ImageCut(points, planned.mode, planned.seed, planned.tear_bytes),
            one.server.layout,
            one.runner,
            self.journal,
        )
        known = recorded.ledger.as_of(at_ns)
        at_cut = CutState(recorded.before, recorded.load, known, at_ns, None, recorded.fingerprint)
        found.after_s = (at_ns - recorded.first_ns) / 1e9
        try:
            check_image(image, one.variant, one.dataset, at_cut, found, recovery_limit_s=one.recovery_limit_s)
        except PlinthError as error:
            failure = reason_of(error)
        finally:
            with cancel.masked():
                image.remove()
        return found.cut(planned, started_unix_ns=started_unix_ns, failure=failure, points=points)


def check_image(
    image: ServerImage,
    variant: Variant,
    dataset: Dataset,
    at_cut: CutState,
    found: Findings,
    *,
    recovery_limit_s: float,
) -> None:
    """Serve an image, let its server recover and check it, and add what is found to `found`. The caller removes the image."""
    started_s = time.monotonic()
    image.attach()
    found.lost = image.effects()
    try:
        image.mount()
        image.relocate()
    except Refused:  # Plinth did not try
        raise
    except PlinthError as error:
        found.refuse((error.message, *error.details))
        return
    except OSError as error:
        found.refuse((f"the data directory cannot be read: {error}",))
        return
    files = image.server.files()
    if start_server(image.server, variant.settings, found, recovery_limit_s):
        found.recovery_s = time.monotonic() - started_s
        check_recovered(image.server, files, variant, dataset, at_cut, found)
    name_torn_pages(found, files, variant)


def images_at_once(server: Server) -> int:
    """Return how many servers such as this running one may recover at a time: one a core, in half of the memory."""
    with database_errors("read shared_buffers", str(server.layout.data_directory)), connect(server.control) as control:
        row = control.execute("SELECT pg_size_bytes(current_setting('shared_buffers'))").fetchone()
    assert row is not None, "a function gives a row"
    each_bytes = int(row[0]) + _BESIDE_SHARED_BUFFERS_BYTES
    return HOST.servers_at_once(each_bytes)


def _each_at_once(
    work: Callable[[PlannedCut], PowerCut], images: Sequence[PlannedCut], at_once: int
) -> Generator[PowerCut, None, None]:
    """Yield the results of `work`, by threads that can be cancelled as this one is. The first error ends all."""
    tokens: set[cancel.CancelToken] = set()

    def cancellable(planned: PlannedCut) -> PowerCut:
        with cancel.scope() as token:
            tokens.add(token)
            try:
                return work(planned)
            finally:
                tokens.discard(token)

    with ThreadPoolExecutor(at_once, thread_name_prefix="image") as pool:
        pending: set[Future[PowerCut]] = {pool.submit(cancellable, planned) for planned in images}
        try:
            while pending:
                cancel.check()
                done, pending = wait(pending, _POLL_S, FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        except BaseException as error:
            for future in pending:
                future.cancel()
            reason = error if isinstance(error, Interrupted) else Interrupted("no more images are asked for")
            for token in tuple(tokens):
                token.cancel(reason)
            raise
