"""The I/O probe as a stage of a run: of each storage that a server uses, empty, loaded, and once all is measured."""

from pathlib import Path

from plinth.bundle import BundleWriter, read_io
from plinth.model.errors import PlinthError, StorageBroken
from plinth.model.plan import Plan
from plinth.model.probe_io import IoMoment, StorageIo
from plinth.model.storage import EmulatedStorage
from plinth.probe.io_jobs import shapes
from plinth.probe.io_probe import probe_jobs
from plinth.run.listener import Listener
from plinth.storage import Storage, describe


class StorageIoProbe:
    """What measure.probe_io asks for, kept in the bundle. Done once at each moment: a resumed run has it already."""

    def __init__(self, plan: Plan, writer: BundleWriter, listener: Listener) -> None:
        self._measure = plan.experiment.measure
        self._writer = writer
        self._listener = listener
        self._done = {(found.storage, found.moment) for found in read_io(writer.folder)}
        self._used = {storage for cluster in plan.clusters for storage in cluster.storages}

    def is_wanted(self, moment: IoMoment) -> bool:
        """Return whether anything is to be measured then."""
        return bool(self._measure.probe_io) and moment in self._measure.probe_io_at

    def probe(self, moment: IoMoment, storage: Storage) -> None:
        """Probe one storage; that it cannot be is kept with the reason. Raises StorageBroken and Interrupted."""
        if storage.name not in self._used or (storage.name, moment) in self._done:
            return
        self._listener.phase(f"probe the I/O of storage {storage.name}, {moment}")
        try:
            found = self._measured(moment, storage)
        except StorageBroken:
            raise
        except PlinthError as error:
            found = StorageIo(storage=storage.name, moment=moment, probe=None, unavailable=error.message)
        if found.unavailable is not None:
            self._listener.note(f"storage {storage.name}: the I/O probe: n/a: {found.unavailable}")
        self._writer.write_io(found)

    def _measured(self, moment: IoMoment, storage: Storage) -> StorageIo:
        measure = self._measure
        if isinstance(storage.spec, EmulatedStorage) and storage.spec.faults:
            reason = "its faults are for the server, and the probe would set them off"
            return StorageIo(storage=storage.name, moment=moment, probe=None, unavailable=reason)
        jobs = shapes(measure.probe_io_s, measure.probe_io, measure.probe_io_size_bytes)
        place = Path(storage.mount_point)
        found = probe_jobs(
            place, describe(place), "shapes", jobs, measure.probe_io_size_bytes, measure.probe_io_s, lambda job: None
        )
        return StorageIo(storage=storage.name, moment=moment, probe=found)
