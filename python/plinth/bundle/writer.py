"""Writing a bundle as the experiment runs.

A trial is written into a folder with a name of its own kind (.partial-NNNN), fsynced, and renamed: after a kill
at any instant a trial is there whole or not at all. Everything else is written beside its place and moved there.
"""

import json
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from plinth.bundle.authentic import write_mac
from plinth.bundle.files import sync_directory, sync_tree, write_durably, writing
from plinth.bundle.seal import seal_bundle, unseal_bundle
from plinth.bundle.tables import write_histograms, write_samples, write_series
from plinth.model.doctor import DoctorRecord
from plinth.model.errors import Refused
from plinth.model.facts import HostFacts, ServerFacts, StorageFacts
from plinth.model.load import LoadResult
from plinth.model.loaded import LoadedDataset
from plinth.model.manifest import Loss, Manifest, RunStatus
from plinth.model.plan import Plan, kept_path
from plinth.model.probe import FsyncProbe
from plinth.model.trial import Event, Sample, Trial
from plinth.model.wear import RunWear
from plinth.system.run_key import RunKey


class BundleWriter:
    """A bundle that is being written. Raises PlinthError when its folder cannot be written."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest

    @classmethod
    def create(
        cls, path: Path, plan: Plan, experiment_toml: str, plinth_version: str, key: RunKey | None = None
    ) -> "BundleWriter":
        """Make the folder with manifest, experiment and plan. Raises Refused when it is there and not empty.

        `key` authenticates what `plinth resume` goes by; a bundle without can only be read.
        """
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
            is_empty = all(entry.name == ".plinth.lock" for entry in path.iterdir())
        if not is_empty:
            raise Refused(
                "the folder for the bundle is not empty",
                where=str(path),
                hint="give another --bundle, or `plinth resume` to go on with a bundle that was cut short",
            )
        manifest = Manifest(
            plinth_version=plinth_version,
            run_id=plan.run_id,
            experiment=plan.experiment.name,
            created_unix_ns=time.time_ns(),
            status="running",
            overrides=plan.overrides,
        )
        with writing(path):
            for folder in ("trials", "env", "logs"):
                (path / folder).mkdir()
            for name in plan.named_files:
                (path / kept_path(name)).parent.mkdir(parents=True, exist_ok=True)
        plan_text = plan.model_dump_json(indent=1)
        write_durably(path / "experiment.toml", experiment_toml)
        write_durably(path / "plan.json", plan_text)
        if key is not None:
            write_mac(path, key, plinth_version, plan_text, experiment_toml)
        for name, text in plan.named_files.items():
            write_durably(path / kept_path(name), text)
        writer = cls(path, manifest)
        writer.write_host(plan.host)
        writer._write_manifest()  # last: a folder with a manifest is a bundle
        return writer

    @classmethod
    def reopen(cls, path: Path, manifest: Manifest) -> "BundleWriter":
        """Go on with a bundle that was cut short: half-written trials are dropped, the seal is broken."""
        with writing(path):
            for partial in (path / "trials").glob(".partial-*"):
                shutil.rmtree(partial)
            unseal_bundle(path)
        writer = cls(path, manifest.model_copy(update={"status": "running", "reason": None, "ended_unix_ns": None}))
        writer._write_manifest()
        return writer

    @property
    def logs(self) -> Path:
        """Folder of the server's and the commands' logs."""
        return self.path / "logs"

    def write_host(self, host: HostFacts) -> None:
        """Write env/host.json."""
        write_durably(self.path / "env" / "host.json", host.model_dump_json(indent=1))

    def write_storage(self, facts: StorageFacts) -> None:
        """Write env/storage-NAME.json."""
        write_durably(self.path / "env" / f"storage-{facts.name}.json", facts.model_dump_json(indent=1))

    def write_probe(self, storage: str, probe: FsyncProbe) -> None:
        """Write env/probe-NAME.json; not indented, since its histograms are long."""
        write_durably(self.path / "env" / f"probe-{storage}.json", probe.model_dump_json())

    def write_loaded(self, loaded: LoadedDataset) -> None:
        """Write env/dataset-CLUSTER.json."""
        write_durably(self.path / "env" / f"dataset-{loaded.cluster}.json", loaded.model_dump_json(indent=1))

    def write_doctor(self, record: DoctorRecord) -> None:
        """Write env/doctor.json."""
        write_durably(self.path / "env" / "doctor.json", record.model_dump_json(indent=1))

    def write_wear(self, wear: RunWear) -> None:
        """Write wear.json."""
        write_durably(self.path / "wear.json", wear.model_dump_json(indent=1))

    def write_server(self, variant: str, facts: ServerFacts) -> None:
        """Write env/server-VARIANT.json."""
        write_durably(self.path / "env" / f"server-{variant}.json", facts.model_dump_json(indent=1))

    def write_trial(
        self, trial: Trial, load: LoadResult | None, samples: Iterable[Sample], events: Iterable[Event]
    ) -> Path:
        """Write a trial whole, or nothing of it; returns its folder."""
        partial = self.path / "trials" / f".partial-{trial.number:04d}"
        final = self.path / "trials" / f"{trial.number:04d}-{trial.variant}"
        with writing(final):
            try:
                _write_parts(partial, trial, load, samples, events)
                partial.rename(final)
            except BaseException:
                shutil.rmtree(partial, ignore_errors=True)  # what stays nobody reads, and `reopen` drops
                raise
            sync_directory(final.parent)
        return final

    def write_derived(self, name: str, content: str) -> Path:
        """Write a file of derived/, which can be rebuilt at will."""
        folder = self.path / "derived"
        with writing(folder):
            folder.mkdir(exist_ok=True)
        write_durably(folder / name, content)
        return folder / name

    def finish(self, status: RunStatus, reason: str | None = None, losses: tuple[Loss, ...] = ()) -> None:
        """Say how the run ended and what it lost on the way, and seal what is there."""
        self.manifest = self.manifest.model_copy(
            update={
                "status": status,
                "reason": reason,
                "ended_unix_ns": time.time_ns(),
                "losses": tuple(dict.fromkeys((*self.manifest.losses, *losses))),
            }
        )
        self._write_manifest()
        seal_bundle(self.path)

    def _write_manifest(self) -> None:
        write_durably(self.path / "manifest.json", json.dumps(self.manifest.model_dump(mode="json"), indent=1))


def _write_parts(
    folder: Path, trial: Trial, load: LoadResult | None, samples: Iterable[Sample], events: Iterable[Event]
) -> None:
    """Everything of a trial, safe on disk when this returns."""
    (folder / "observe").mkdir(parents=True)
    (folder / "trial.json").write_text(trial.model_dump_json(indent=1))
    if load is not None:
        write_series(folder / "series.parquet", load.series)
        write_histograms(folder / "hist.parquet", load.histograms)
    write_samples(folder / "observe", samples)
    (folder / "events.jsonl").write_text("".join(event.model_dump_json() + "\n" for event in events))
    sync_tree(folder)
