"""The seal: SHA-256 checksums of all files except derived ones, in the format of sha256sum(1)."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from plinth.bundle.files import BundleFolder, Entry, folder_of
from plinth.bundle.reader import read_manifest, read_plan
from plinth.model.errors import PlinthError, RunError
from plinth.model.units import format_count

SEAL = "SHA256SUMS"
_UNSEALED = {"derived"}  # rebuilt at will
_NOT_SEALED = {SEAL, ".plinth.lock"}
_MAX_HOLE_BYTES = 2**30
"""Maximum size of holes in a file. A run leaves none, and the checksum of a huge sparse file would take forever."""


def seal_bundle(folder: BundleFolder) -> None:
    """Write SHA256SUMS of every file but the derived ones; `sha256sum -c SHA256SUMS` checks it too."""
    sums = (f"{_sum(folder, entry.name)}  {entry.name}\n" for entry in _sealed(folder) if entry.is_file)
    folder.write_durably(SEAL, "".join(sums))


def unseal_bundle(folder: BundleFolder) -> None:
    """Remove the seal before the run is resumed."""
    folder.remove(SEAL)


def is_sealed(folder: BundleFolder) -> bool:
    """Return whether the bundle has a seal, which `verify_bundle` checks."""
    return folder.entry(SEAL) is not None


def verify_bundle(bundle: Path | BundleFolder) -> int:
    """Recompute the sums, and look for every trial that a complete run has planned; returns how many files were checked.

    Raises RunError that names what differs and which trials are missing.
    A bundle has files and folders only: links, FIFOs, sockets and devices are findings, in derived/ too.
    """
    folder = folder_of(bundle)
    if not is_sealed(folder):
        raise RunError(
            "the bundle is not sealed: its run did not end",
            where=str(folder.path),
            hint="finish it with `plinth resume`",
        )
    found = _compare(folder)
    if found.files or found.trials:
        counted = [format_count(len(found.files), "file")] if found.files else []
        counted += [f"{format_count(len(found.trials), 'trial')} missing"] if found.trials else []
        raise RunError(
            f"the bundle was changed after its run: {', '.join(counted)}",
            where=str(folder.path),
            details=[*found.files, *found.trials],
        )
    return found.checked


def changes_after_run(bundle: Path | BundleFolder) -> tuple[str, ...]:
    """Return what `verify_bundle` finds, for those who show a bundle all the same; nothing of a run that did not end."""
    folder = folder_of(bundle)
    if not is_sealed(folder):
        return () if read_manifest(folder).status == "running" else (f"missing: {SEAL}",)
    try:
        found = _compare(folder)
    except PlinthError as error:
        return (f"not to be checked: {error.message}",)
    return (*found.files, *found.trials)


class _Changes(NamedTuple):
    """What differs from the seal."""

    checked: int
    files: list[str]
    trials: list[str]


def _compare(folder: BundleFolder) -> _Changes:
    sums = {}
    for line in folder.read_text(SEAL).split("\n"):
        digest, _, name = line.partition("  ")
        if name:
            sums[name] = digest
    present = {entry.name for entry in _sealed(folder) if entry.is_file}
    strange = [entry for entry in folder.walk() if not entry.is_file and not entry.is_folder]
    findings = [f"{entry.kind}: {entry.name}" for entry in strange]
    findings += [f"missing: {name}" for name in sorted(sums.keys() - present - {entry.name for entry in strange})]
    findings += [f"not in the seal: {name}" for name in sorted(present - sums.keys())]
    changed = [name for name in sorted(present & sums.keys()) if _sum(folder, name) != sums[name]]
    findings += [f"changed: {name}" for name in changed]
    lost = _missing_trials(folder) if {"manifest.json", "plan.json"} <= present.difference(changed) else []
    return _Changes(len(sums), findings, lost)


def _missing_trials(folder: BundleFolder) -> list[str]:
    """Return the planned trials of a complete run whose directory is missing; the seal may have been rewritten without them."""
    trials = folder.entry("trials")
    if trials is not None and not trials.is_folder:
        return []  # already a finding
    manifest = read_manifest(folder)
    if manifest.status != "complete":
        return []
    there = {entry.name for entry in folder.entries("trials")} if trials is not None else set[str]()
    return [
        f"planned, but not in the bundle: trial {trial.number} of {trial.variant}"
        for trial in manifest.expected_trials(read_plan(folder).trials)
        if f"trials/{trial.number:04d}-{trial.variant}" not in there
    ]


def _sealed(folder: BundleFolder) -> Iterator[Entry]:
    for entry in folder.walk():
        parts = entry.name.split("/")
        if parts[0] not in _UNSEALED and parts[-1] not in _NOT_SEALED:
            yield entry


def _sum(folder: BundleFolder, name: str) -> str | None:
    """Return the checksum of a file; None if most of it is a hole."""
    with folder.opened(name) as descriptor, open(descriptor, "rb", closefd=False) as file:
        if _holes_bytes(descriptor) > _MAX_HOLE_BYTES:
            return None
        return hashlib.file_digest(file, "sha256").hexdigest()


def _holes_bytes(descriptor: int) -> int:
    """Return the bytes of holes in a file."""
    size, end_of_data, holes = os.fstat(descriptor).st_size, 0, 0
    while end_of_data < size and holes <= _MAX_HOLE_BYTES:
        hole = os.lseek(descriptor, end_of_data, os.SEEK_HOLE)
        try:
            following = os.lseek(descriptor, hole, os.SEEK_DATA) if hole < size else size
        except OSError:  # ENXIO: the rest of the file is a hole
            following = size
        holes += following - hole
        end_of_data = following
    os.lseek(descriptor, 0, os.SEEK_SET)
    return holes
