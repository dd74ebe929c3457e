"""Reading a bundle, on any machine, whatever state its run left it in."""

import json
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from plinth.bundle.tables import read_histograms, read_samples, read_series
from plinth.model.base import Frozen
from plinth.model.contents import BundleContents, TrialContents
from plinth.model.doctor import DOCTOR_VERSION, DoctorRecord
from plinth.model.errors import RunError, UsageError
from plinth.model.facts import HostFacts, ServerFacts, StorageFacts
from plinth.model.loaded import LOADED_VERSION, LoadedDataset
from plinth.model.manifest import BUNDLE_VERSION, Manifest
from plinth.model.plan import PLAN_VERSION, Plan
from plinth.model.probe import PROBE_VERSION, FsyncProbe
from plinth.model.trial import TRIAL_VERSION, Event, Trial
from plinth.model.wear import WEAR_VERSION, RunWear

Artefact = TypeVar("Artefact", bound=Frozen)


def read_manifest(path: Path) -> Manifest:
    """The manifest of the bundle at `path`. Raises UsageError when it is no bundle, or a newer one."""
    if not (path / "manifest.json").is_file():
        raise UsageError(
            "this is not a bundle: it has no manifest.json", where=str(path), hint="`plinth run` makes bundles"
        )
    return _read(path / "manifest.json", Manifest, BUNDLE_VERSION)


def read_plan(path: Path) -> Plan:
    """The plan of the bundle at `path`."""
    return _read(path / "plan.json", Plan, PLAN_VERSION)


def parse_plan(text: str, file: Path) -> Plan:
    """The plan whose text was read from `file`."""
    return _parsed(text, file, Plan, PLAN_VERSION)


def read_wear(path: Path) -> RunWear | None:
    """What the run of the bundle at `path` wrote to its disks; None where that was never written down."""
    file = path / "wear.json"
    return _read(file, RunWear, WEAR_VERSION) if file.exists() else None


def read_doctor(path: Path) -> DoctorRecord | None:
    """What the doctor found before the run of the bundle at `path`; None where it was not asked."""
    file = path / "env" / "doctor.json"
    return _read(file, DoctorRecord, DOCTOR_VERSION) if file.exists() else None


def read_probes(path: Path) -> dict[str, FsyncProbe]:
    """What the fsync probe found on each storage of the bundle at `path` that it was asked of."""
    files = sorted((path / "env").glob("probe-*.json"))
    return {file.stem.removeprefix("probe-"): _read(file, FsyncProbe, PROBE_VERSION) for file in files}


def read_loaded(path: Path) -> dict[str, LoadedDataset]:
    """What was loaded into each cluster of the bundle at `path`, where it was looked at."""
    files = sorted((path / "env").glob("dataset-*.json"))
    return {file.stem.removeprefix("dataset-"): _read(file, LoadedDataset, LOADED_VERSION) for file in files}


def read_bundle(path: Path) -> BundleContents:
    """Everything in the bundle at `path`; trials that were not finished are not there."""
    manifest = read_manifest(path)
    storages = [_read(file, StorageFacts) for file in sorted((path / "env").glob("storage-*.json"))]
    return BundleContents(
        path=str(path),
        manifest=manifest,
        experiment_toml=_text(path / "experiment.toml"),
        plan=read_plan(path),
        host=_read(path / "env" / "host.json", HostFacts),
        storages={facts.name: facts for facts in storages},
        wear=read_wear(path),
        doctor=read_doctor(path),
        probes=read_probes(path),
        datasets=read_loaded(path),
        servers={
            file.stem.removeprefix("server-"): _read(file, ServerFacts)
            for file in sorted((path / "env").glob("server-*.json"))
        },
        trials=tuple(_read_trial(folder) for folder in sorted((path / "trials").glob("[0-9]*"))),
    )


def _read_trial(folder: Path) -> TrialContents:
    series, histograms = folder / "series.parquet", folder / "hist.parquet"
    return TrialContents(
        trial=_read(folder / "trial.json", Trial, TRIAL_VERSION),
        series=read_series(series) if series.exists() else (),
        histograms=read_histograms(histograms) if histograms.exists() else (),
        events=_read_events(folder / "events.jsonl"),
        read_samples=partial(read_samples, folder / "observe"),
    )


def _read_events(file: Path) -> tuple[Event, ...]:
    lines = _text(file).split(
        "\n"
    )  # not splitlines: the text of an event may hold what Python takes for the end of a line
    try:
        return tuple(Event.model_validate_json(line) for line in lines if line)
    except ValidationError as error:
        raise RunError(f"a part of the bundle is not what it should be: {error}", where=str(file)) from error


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"cannot read a part of the bundle: {error}", where=str(file)) from error


def _read(file: Path, model: type[Artefact], newest: int | None = None) -> Artefact:
    return _parsed(_text(file), file, model, newest)


def _parsed(text: str, file: Path, model: type[Artefact], newest: int | None) -> Artefact:
    try:
        document: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise RunError(f"cannot read a part of the bundle: {error}", where=str(file)) from error
    version = document.get("schema_version") if isinstance(document, dict) else None
    if newest is not None and (not isinstance(version, int) or version > newest):
        raise UsageError(
            f"written in version {version} of the format; this Plinth reads up to {newest}",
            where=str(file),
            hint="use the Plinth that wrote it, or a newer one",
        )
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise RunError(f"a part of the bundle is not what it should be: {error}", where=str(file)) from error
