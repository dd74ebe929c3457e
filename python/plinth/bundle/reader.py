"""Reads a bundle on any machine, complete or not."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from plinth.bundle.files import BundleFolder, folder_of
from plinth.bundle.tables import Tables
from plinth.common.untrusted import parse_untrusted, validate_untrusted
from plinth.model.base import Frozen
from plinth.model.contents import BundleContents, TrialContents
from plinth.model.doctor import DOCTOR_VERSION, DoctorRecord
from plinth.model.durability import POWER_CUT_VERSION, PowerCut
from plinth.model.errors import RunError, UsageError
from plinth.model.experiment import MAX_VARIANTS
from plinth.model.facts import HostFacts, ServerFacts, StorageFacts
from plinth.model.io_error import IO_ERROR_VERSION, IoErrorResult
from plinth.model.loaded import LOADED_VERSION, LoadedDataset
from plinth.model.manifest import BUNDLE_VERSION, Manifest
from plinth.model.plan import PLAN_VERSION, Plan
from plinth.model.probe import PROBE_VERSION, FsyncProbe
from plinth.model.probe_io import IO_MOMENTS, IO_PROBE_VERSION, StorageIo
from plinth.model.standby import BACKUP_VERSION, BaseBackup
from plinth.model.trial import TRIAL_VERSION, Event, Trial
from plinth.model.wear import WEAR_VERSION, RunWear

_MAX_EVENTS_BYTES = 2**30
Artefact = TypeVar("Artefact", bound=Frozen)


class _Asked(BaseModel):
    question: str


class _PlanHead(BaseModel):
    """The parts of a plan that a catalogue shows."""

    schema_version: int
    experiment: _Asked


def read_manifest(bundle: Path | BundleFolder) -> Manifest:
    """Read the manifest of a bundle. Raises UsageError if it is not a bundle, or one of a newer version."""
    folder = folder_of(bundle)
    if folder.entry("manifest.json") is None:
        raise UsageError(
            "this is not a bundle: it has no manifest.json", where=str(folder.path), hint="`plinth run` makes bundles"
        )
    return _read(folder, "manifest.json", Manifest, BUNDLE_VERSION)


def read_plan(bundle: Path | BundleFolder) -> Plan:
    """Read the plan of a bundle."""
    return _read(folder_of(bundle), "plan.json", Plan, PLAN_VERSION)


def read_question(bundle: Path | BundleFolder) -> str:
    """Read the question of a bundle's experiment without validating the rest of its plan, which takes ten times as long."""
    folder = folder_of(bundle)
    text = folder.read_text("plan.json")
    try:
        head = _PlanHead.model_validate_json(text)
    except ValidationError:
        head = None
    if head is None or head.schema_version > PLAN_VERSION:  # `parse_plan` says what is wrong
        return parse_plan(folder, text).experiment.question
    return head.experiment.question


def parse_plan(folder: BundleFolder, text: str) -> Plan:
    """Parse the text of plan.json."""
    return _parsed(folder, "plan.json", text, Plan, PLAN_VERSION)


def read_host(bundle: Path | BundleFolder) -> HostFacts:
    """Read the facts of the machine that a bundle is from."""
    return _read(folder_of(bundle), "env/host.json", HostFacts)


def read_wear(bundle: Path | BundleFolder) -> RunWear | None:
    """Read how much the run wrote to its disks; None if the bundle does not have it."""
    return _read_if_there(folder_of(bundle), "wear.json", RunWear, WEAR_VERSION)


def read_doctor(bundle: Path | BundleFolder) -> DoctorRecord | None:
    """Read the doctor's examination before the run; None if there was none."""
    return _read_if_there(folder_of(bundle), "env/doctor.json", DoctorRecord, DOCTOR_VERSION)


def read_probes(bundle: Path | BundleFolder) -> dict[str, FsyncProbe]:
    """Read the results of the fsync probe by storage."""
    return _read_each(folder_of(bundle), "probe", FsyncProbe, PROBE_VERSION)


def read_io(bundle: Path | BundleFolder) -> tuple[StorageIo, ...]:
    """Read the results of the I/O probe by storage, in order of time."""
    found = _read_each(folder_of(bundle), "io", StorageIo, IO_PROBE_VERSION).values()
    return tuple(sorted(found, key=lambda one: (one.storage, IO_MOMENTS.index(one.moment))))


def read_loaded(bundle: Path | BundleFolder) -> dict[str, LoadedDataset]:
    """Read the facts of the dataset of each cluster, if they were collected."""
    return _read_each(folder_of(bundle), "dataset", LoadedDataset, LOADED_VERSION)


def read_cuts(bundle: Path | BundleFolder) -> tuple[PowerCut, ...]:
    """Read the power cuts of a bundle, in order."""
    folder = folder_of(bundle)
    names = [entry.name for entry in folder.entries("cuts")]
    return tuple(
        _read(folder, name, PowerCut, POWER_CUT_VERSION) for name in names if fnmatchcase(name, "cuts/[0-9]*.json")
    )


def read_io_errors(bundle: Path | BundleFolder) -> tuple[IoErrorResult, ...]:
    """Read what came of each error of a storage, in order."""
    folder = folder_of(bundle)
    names = [entry.name for entry in folder.entries("io-errors")]
    return tuple(
        _read(folder, name, IoErrorResult, IO_ERROR_VERSION)
        for name in names
        if fnmatchcase(name, "io-errors/[0-9]*.json")
    )


def read_bundle(bundle: Path | BundleFolder) -> BundleContents:
    """Read the whole bundle; unfinished trials are not in it. Raises UsageError for more variants than can be analysed."""
    folder = folder_of(bundle)
    manifest, plan = read_manifest(folder), read_plan(folder)
    variants = sum(not variant.is_aa_twin for variant in plan.variants)
    if variants > MAX_VARIANTS:
        raise UsageError(
            f"the run has {variants:,} variants; at most {MAX_VARIANTS:,} can be analysed",
            where=str(folder.path),
            hint="the figures of single trials are in trials/NUMBER-VARIANT/trial.json",
        )
    return BundleContents(
        path=str(folder.path),
        manifest=manifest,
        experiment_toml=folder.read_text("experiment.toml"),
        plan=plan,
        host=read_host(folder),
        storages={facts.name: facts for facts in _read_each(folder, "storage", StorageFacts).values()},
        wear=read_wear(folder),
        doctor=read_doctor(folder),
        probes=read_probes(folder),
        io=read_io(folder),
        datasets=read_loaded(folder),
        cuts=read_cuts(folder),
        io_errors=read_io_errors(folder),
        servers=_read_each(folder, "server", ServerFacts),
        standbys=_read_each(folder, "standby", ServerFacts),
        backups=tuple(_read_each(folder, "backup", BaseBackup, BACKUP_VERSION).values()),
        trials=tuple(_read_trials(folder)),
    )


def _read_trials(folder: BundleFolder) -> Iterator[TrialContents]:
    tables = Tables(folder)
    names = [entry.name for entry in folder.entries("trials") if fnmatchcase(entry.name, "trials/[0-9]*")]

    def there(file: str) -> list[str]:
        return [f"{name}/{file}" for name in names if folder.entry(f"{name}/{file}")]

    series, histograms = tables.read_series(there("series.parquet")), tables.read_histograms(there("hist.parquet"))
    samples = cache(lambda: tables.read_samples([f"{name}/observe" for name in names]))
    for name in names:
        yield TrialContents(
            trial=_read(folder, f"{name}/trial.json", Trial, TRIAL_VERSION),
            series=series.get(f"{name}/series.parquet", ()),
            histograms=histograms.get(f"{name}/hist.parquet", ()),
            events=_read_events(folder, f"{name}/events.jsonl"),
            read_samples=lambda folder=f"{name}/observe": samples()[folder],
        )


def _read_events(folder: BundleFolder, name: str) -> tuple[Event, ...]:
    # Not splitlines: the text of an event may contain other line separators of Unicode.
    lines = folder.read_text(name, _MAX_EVENTS_BYTES).split("\n")
    try:
        return tuple(Event.model_validate_json(line) for line in lines if line)
    except ValidationError as error:
        raise _not_valid(folder, name, error) from error


def _read_each(
    folder: BundleFolder, kind: str, model: type[Artefact], newest: int | None = None
) -> dict[str, Artefact]:
    """Read the documents env/KIND-NAME.json by name."""
    begin, end = f"env/{kind}-", ".json"
    names = [entry.name for entry in folder.entries("env")]
    return {
        name.removeprefix(begin).removesuffix(end): _read(folder, name, model, newest)
        for name in names
        if name.startswith(begin) and name.endswith(end)
    }


def _read_if_there(folder: BundleFolder, name: str, model: type[Artefact], newest: int) -> Artefact | None:
    return _read(folder, name, model, newest) if folder.entry(name) else None


def _read(folder: BundleFolder, name: str, model: type[Artefact], newest: int | None = None) -> Artefact:
    return _parsed(folder, name, folder.read_text(name), model, newest)


def _parsed(folder: BundleFolder, name: str, text: str, model: type[Artefact], newest: int | None) -> Artefact:
    where = str(folder.path / name)
    try:
        document: Any = parse_untrusted(text)
    except (ValueError, RecursionError) as error:  # a number with too many digits, or nested too deeply
        raise RunError(f"cannot read a part of the bundle: {error}", where=where) from error
    version = document.get("schema_version") if isinstance(document, dict) else None
    is_numbered = isinstance(version, int)
    if newest is not None and not is_numbered:
        raise UsageError(
            "this is not of a bundle: it has no schema_version", where=where, hint="`plinth run` makes bundles"
        )
    if newest is not None and is_numbered and version > newest:
        raise UsageError(
            f"written in version {version} of the format; this Plinth reads up to {newest}",
            where=where,
            hint="use the Plinth that wrote it, or a newer one",
        )
    try:
        return validate_untrusted(model, document)
    except ValidationError as error:
        raise _not_valid(folder, name, error) from error


def _not_valid(folder: BundleFolder, name: str, error: ValidationError) -> RunError:
    first, *others = error.errors(include_url=False)
    key = ".".join(map(str, first["loc"]))
    more = f", and {len(others)} more" if others else ""
    return RunError(
        f"a part of the bundle is not what it should be: {key and f'{key}: '}{first['msg']}{more}",
        where=str(folder.path / name),
        hint="it is damaged, or another version of Plinth wrote it: manifest.json has plinth_version",
    )
