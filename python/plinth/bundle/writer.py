"""Writes a bundle during a run.

A trial is written into a folder with a name of its own kind (.partial-NNNN), fsynced, and renamed: after a kill
at any instant a trial is there whole or not at all. Everything else is written to a temporary file next to its place and moved there.
"""

import contextlib
import json
import time
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from plinth.bundle.authentic import Authentic, replace_plan, write_mac
from plinth.bundle.files import BundleFolder, folder_of, is_partial
from plinth.bundle.live import LIVE
from plinth.bundle.seal import seal_bundle, unseal_bundle
from plinth.bundle.tables import Tables
from plinth.model.doctor import DoctorRecord
from plinth.model.durability import PlannedCut, PowerCut, attempt_of, recording_name
from plinth.model.errors import PlinthError, Refused
from plinth.model.facts import HostFacts, ServerFacts, StorageFacts
from plinth.model.io_error import IoErrorResult, PlannedIoError
from plinth.model.load import LoadResult
from plinth.model.loaded import LoadedDataset
from plinth.model.manifest import Failure, Manifest, RunStatus, TrialsEnd
from plinth.model.plan import Plan, PlannedTrial, kept_path
from plinth.model.probe import FsyncProbe
from plinth.model.probe_io import StorageIo
from plinth.model.standby import BaseBackup
from plinth.model.trial import Event, Sample, Trial
from plinth.model.wear import RunWear
from plinth.system.lock import LOCK_FILE
from plinth.system.log_file import LogFile
from plinth.system.run_key import RunKey

_MADE_AGAIN = ("storage-", "dataset-", "backup-", "server-", "standby-")
"""Prefixes of names in env/ that describe storages and servers, which each extension of a run creates again."""


class BundleWriter:
    """A bundle that is being written. Raises PlinthError if its directory cannot be written."""

    def __init__(self, folder: BundleFolder, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._tables = Tables(folder)

    @classmethod
    def create(
        cls,
        bundle: Path | BundleFolder,
        plan: Plan,
        experiment_toml: str,
        plinth_version: str,
        key: RunKey | None = None,
    ) -> "BundleWriter":
        """Make the folder with manifest, experiment and plan. Raises Refused when it is there and not empty.

        `key` authenticates what `plinth resume` goes by; a bundle without can only be read.
        """
        folder = bundle if isinstance(bundle, BundleFolder) else BundleFolder.made(bundle)
        if any(entry.name != LOCK_FILE for entry in folder.entries()):
            raise Refused(
                "the folder for the bundle is not empty",
                where=str(folder.path),
                hint="give another --bundle, or `plinth resume` to finish a run that was interrupted",
            )
        manifest = Manifest(
            plinth_version=plinth_version,
            run_id=plan.run_id,
            experiment=plan.experiment.name,
            created_unix_ns=time.time_ns(),
            status="running",
            overrides=plan.overrides,
        )
        for name in ("trials", "env", "logs"):
            folder.make_folder(name)
        plan_text = plan.model_dump_json(indent=1)
        folder.write_durably("experiment.toml", experiment_toml)
        folder.write_durably("plan.json", plan_text)
        if key is not None:
            write_mac(folder, key, plinth_version, plan_text, experiment_toml)
        for name, text in plan.named_files.items():
            kept = str(kept_path(name))
            folder.make_folders(str(PurePosixPath(kept).parent))
            folder.write_durably(kept, text)
        writer = cls(folder, manifest)
        writer.write_host(plan.host)
        writer._write_manifest()  # last: a folder with a manifest is a bundle
        return writer

    @classmethod
    def reopen(cls, bundle: Path | BundleFolder, manifest: Manifest) -> "BundleWriter":
        """Resume writing a bundle: remove incomplete files and the seal."""
        folder = folder_of(bundle)
        unseal_bundle(folder)
        for entry in folder.entries("trials"):
            if entry.name.startswith("trials/.partial-"):
                folder.remove_tree(entry.name)
        for entry in (*folder.entries(), *folder.walk("env"), *folder.entries("logs")):
            if is_partial(entry.name):
                folder.remove(entry.name)
        writer = cls(
            folder,
            manifest.model_copy(
                update={"status": "running", "reason": None, "ended_unix_ns": None, "trials_end": None}
            ),
        )
        writer._write_manifest()
        return writer

    @classmethod
    def extend(
        cls, folder: BundleFolder, manifest: Manifest, key: RunKey, before: Authentic, plan: Plan
    ) -> "BundleWriter":
        """Reopen a complete bundle for `plan`, which has further trials.

        What env/ says of storages, datasets and servers that no longer exist goes to env/before-trial-NNNN/, since those that are
        made now will be described in its place.
        """
        writer = cls.reopen(folder, manifest)
        kept = f"env/before-trial-{plan.extensions[-1].first_trial:04d}"
        folder.make_folder(kept)
        for entry in folder.entries("env"):
            name = entry.name.removeprefix("env/")
            if entry.is_file and name.startswith(_MADE_AGAIN):
                folder.write_durably(f"{kept}/{name}", folder.read_bytes(entry.name))
        replace_plan(folder, writer.manifest, key, before, plan)
        return writer

    @property
    def path(self) -> Path:
        """Return the path of the bundle for messages; its files are accessed by `folder`."""
        return self.folder.path

    def log(self, name: str) -> LogFile:
        """Return a log of servers, drivers or commands."""
        return self.folder.log(f"logs/{name}")

    def write_host(self, host: HostFacts) -> None:
        """Write env/host.json."""
        self.folder.write_durably("env/host.json", host.model_dump_json(indent=1))

    def write_storage(self, facts: StorageFacts) -> None:
        """Write env/storage-NAME.json."""
        self.folder.write_durably(f"env/storage-{facts.name}.json", facts.model_dump_json(indent=1))

    def write_probe(self, storage: str, probe: FsyncProbe) -> None:
        """Write env/probe-NAME.json; not indented, since its histograms are long."""
        self.folder.write_durably(f"env/probe-{storage}.json", probe.model_dump_json())

    def write_io(self, found: StorageIo) -> None:
        """Write env/io-MOMENT-NAME.json."""
        self.folder.write_durably(f"env/io-{found.moment}-{found.storage}.json", found.model_dump_json(indent=1))

    def write_loaded(self, loaded: LoadedDataset) -> None:
        """Write env/dataset-CLUSTER.json."""
        self.folder.write_durably(f"env/dataset-{loaded.cluster}.json", loaded.model_dump_json(indent=1))

    def write_backup(self, backup: BaseBackup) -> None:
        """Write env/backup-CLUSTER.STANDBY.json."""
        self.folder.write_durably(
            f"env/backup-{backup.cluster}.{backup.standby}.json", backup.model_dump_json(indent=1)
        )

    def write_standby(self, variant: str, node: str, facts: ServerFacts) -> None:
        """Write env/standby-VARIANT.NODE.json."""
        self.folder.write_durably(f"env/standby-{variant}.{node}.json", facts.model_dump_json(indent=1))

    def write_doctor(self, record: DoctorRecord) -> None:
        """Write env/doctor.json."""
        self.folder.write_durably("env/doctor.json", record.model_dump_json(indent=1))

    def write_wear(self, wear: RunWear) -> None:
        """Write wear.json."""
        self.folder.write_durably("wear.json", wear.model_dump_json(indent=1))

    def write_server(self, variant: str, facts: ServerFacts) -> None:
        """Write env/server-VARIANT.json."""
        self.folder.write_durably(f"env/server-{variant}.json", facts.model_dump_json(indent=1))

    def make_ledger(self, trial: PlannedTrial) -> Path:
        """Create an empty directory for the commit ledger of a trial."""
        return self._make_ledger(f"ledgers/{trial.number:04d}")

    def make_cut_ledger(self, cut: PlannedCut) -> Path:
        """Create an empty directory for the commit ledger of a power cut."""
        return self._make_ledger(_ledger_of_cut(cut))

    def drop_cut_ledger(self, cut: PlannedCut) -> None:
        """Remove the ledger of a power cut without findings, since it only serves as evidence of damage."""
        self.folder.remove_tree(_ledger_of_cut(cut))

    def make_io_error_ledger(self, planned: PlannedIoError) -> Path:
        """Create an empty directory for the commit ledger of an error of a storage."""
        return self._make_ledger(f"ledgers/io-error-{planned.number:05d}")

    def drop_io_error_ledger(self, planned: PlannedIoError) -> None:
        """Remove the ledger of an error without damage."""
        self.folder.remove_tree(f"ledgers/io-error-{planned.number:05d}")

    def make_recording(self, cut: PlannedCut) -> Path:
        """Create an empty directory for the recording of a cut's disks."""
        self.folder.make_folder("recordings")
        folder = _recording_of_cut(cut)
        self.folder.remove_tree(folder)
        self.folder.make_folder(folder)
        return self.path / folder

    def attempts_at(self, cut: PlannedCut) -> set[int]:
        """Return the attempts at the recording of a cut of which there is a recording or a ledger."""
        names = {
            PurePosixPath(entry.name).name for kind in ("recordings", "ledgers") for entry in self.folder.entries(kind)
        }
        attempts = {attempt_of(name, cut) for name in names}
        return {attempt for attempt in attempts if attempt is not None}

    def drop_recording(self, cut: PlannedCut) -> None:
        """Remove the recording of a cut's disks and its ledger, as far as they are there."""
        for folder in (_recording_of_cut(cut), _ledger_of_cut(cut)):
            if self.folder.entry(folder):
                self.folder.remove_tree(folder)

    def _make_ledger(self, folder: str) -> Path:
        """Create a directory again, removing what an interrupted run left in it."""
        self.folder.make_folder("ledgers")
        self.folder.remove_tree(folder)
        self.folder.make_folder(folder)
        return self.path / folder

    def write_trial(
        self, trial: Trial, load: LoadResult | None, samples: Iterable[Sample], events: Iterable[Event]
    ) -> Path:
        """Write a trial atomically and return its directory."""
        partial, final = f"trials/.partial-{trial.number:04d}", f"trials/{trial.number:04d}-{trial.variant}"
        try:
            self._write_parts(partial, trial, load, samples, events)
            self.folder.rename(partial, final)
        except BaseException:
            with contextlib.suppress(PlinthError):  # nobody reads the remains, and `reopen` removes them
                self.folder.remove_tree(partial)
            raise
        return self.path / final

    def write_cut(self, cut: PowerCut) -> None:
        """Write cuts/NNNNN.json."""
        self.folder.make_folders("cuts")
        self.folder.write_durably(f"cuts/{cut.number:05d}.json", cut.model_dump_json(indent=1))

    def write_io_error(self, result: IoErrorResult) -> None:
        """Write io-errors/NNNNN.json."""
        self.folder.make_folders("io-errors")
        self.folder.write_durably(f"io-errors/{result.number:05d}.json", result.model_dump_json(indent=1))

    def end_trials(self, end: TrialsEnd) -> None:
        """Record that no more of the planned trials are run, and why."""
        self.manifest = self.manifest.model_copy(update={"trials_end": end})
        self._write_manifest()

    def finish(self, status: RunStatus, reason: str | None = None, failures: tuple[Failure, ...] = ()) -> None:
        """Record the end of the run and its failures, seal the bundle, and give it to the user who called sudo."""
        self.manifest = self.manifest.model_copy(
            update={
                "status": status,
                "reason": reason,
                "ended_unix_ns": time.time_ns(),
                "failures": tuple(dict.fromkeys((*self.manifest.failures, *failures))),
            }
        )
        self.folder.remove(LIVE)  # its content is in the trials
        self._write_manifest()
        seal_bundle(self.folder)
        self.folder.give()

    def _write_manifest(self) -> None:
        self.folder.write_durably("manifest.json", json.dumps(self.manifest.model_dump(mode="json"), indent=1))

    def _write_parts(
        self,
        folder: str,
        trial: Trial,
        load: LoadResult | None,
        samples: Iterable[Sample],
        events: Iterable[Event],
    ) -> None:
        """Write all files of a trial durably."""
        self.folder.make_folder(folder)
        self.folder.make_folder(f"{folder}/observe")
        self.folder.write(f"{folder}/trial.json", trial.model_dump_json(indent=1))
        if load is not None:
            self._tables.write_series(f"{folder}/series.parquet", load.series)
            self._tables.write_histograms(f"{folder}/hist.parquet", load.histograms)
        self._tables.write_samples(f"{folder}/observe", samples)
        self.folder.write(f"{folder}/events.jsonl", "".join(event.model_dump_json() + "\n" for event in events))
        self.folder.sync_folders(folder)


def write_derived(bundle: Path, name: str, content: str) -> Path:
    """Write a file in derived/, which is not sealed and can be rebuilt, and return its path."""
    folder = BundleFolder(bundle)
    folder.make_folder("derived")
    folder.write_durably(f"derived/{name}", content)
    folder.give("derived")
    return folder.path / "derived" / name


def _recording_of_cut(cut: PlannedCut) -> str:
    return f"recordings/{recording_name(cut)}"


def _ledger_of_cut(cut: PlannedCut) -> str:
    """Return the folder of its ledger, by the number of a live cut or the recording that an image belongs to."""
    return f"ledgers/cut-{cut.number:05d}" if cut.recording is None else f"ledgers/{recording_name(cut)}"
