"""The bundles below a directory, in any state."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from plinth.bundle import BundleFolder, read_host, read_manifest, read_question
from plinth.model.errors import PlinthError
from plinth.model.facts import HostFacts
from plinth.model.history import BundleAnswer, History, ListedBundle
from plinth.model.manifest import Manifest
from plinth.model.units import format_size
from plinth.system.lock import is_locked
from plinth.tasks.answers import answer_of

MAX_DEPTH = 6
"""How many folders deep bundles are looked for, so that a large tree does not take forever."""
INCONSISTENT = (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError, StopIteration)
"""What the analysis raises where each part of a bundle is valid alone, but they contradict one another."""

Answer = Callable[[BundleFolder], tuple[BundleAnswer | None, str | None]]
"""From a bundle to its answer, or None and why there is none."""


def history_of(directory: Path, *, with_answers: bool = True) -> History:
    """Return all bundles below `directory`, or that one if it is a bundle itself; symbolic links are not followed.

    Answers take an analysis of each bundle, which is most of the time, and are kept in the cache. A bundle that cannot be read
    is listed with the reason. Raises UsageError only when there is no such directory.
    """
    root = BundleFolder(directory)
    answer = answer_or_reason if with_answers else _not_asked
    listed = sorted(
        (listed_bundle(root, name, problem, answer) for name, problem in found_bundles(root)), key=newest_first
    )
    return History(directory=_printable(str(directory)), bundles=tuple(listed))


def found_bundles(root: BundleFolder) -> Iterator[tuple[str, str | None]]:
    """Yield the names of the bundles below `root`, "" for itself, and why one of them is not to be read."""
    return _found(root, "", 0)


def newest_first(listed: ListedBundle) -> tuple[bool, int, str]:
    """Return the key by which bundles are sorted; those of unknown date come last."""
    return (listed.created_unix_ns is None, -(listed.created_unix_ns or 0), listed.folder)


def _found(root: BundleFolder, folder: str, depth: int) -> Iterator[tuple[str, str | None]]:
    """Yield the names of bundles, and why one of them is not to be read."""
    try:
        entries = root.entries(folder)
    except PlinthError as error:
        yield folder, error.message
        return
    kinds = {entry.name.rpartition("/")[2]: entry for entry in entries}
    if "manifest.json" in kinds:
        yield folder, None
    elif "trials" in kinds and kinds["trials"].is_folder and ("experiment.toml" in kinds or "plan.json" in kinds):
        yield folder, "it is half-written: it has no manifest.json"
    elif depth < MAX_DEPTH:
        for entry in entries:
            if entry.is_folder:
                yield from _found(root, entry.name, depth + 1)


def _unreadable(path: Path, reason: str) -> ListedBundle:
    return ListedBundle(folder=_printable(str(path)), status="unreadable", reason=_printable(reason))


def listed_bundle(root: BundleFolder, name: str, problem: str | None, answer: Answer) -> ListedBundle:
    """Return what a catalogue says of the bundle `name`; `answer` is asked for its answer once it could be opened."""
    path = root.path / name
    if problem is not None:
        return _unreadable(path, problem)
    try:
        folder = root.folder(name) if name else root
        manifest = read_manifest(folder)
        question, host = read_question(folder), read_host(folder)
    except PlinthError as error:
        return _unreadable(path, _reason(error, path))
    answered, missing = answer(folder)
    return ListedBundle(
        folder=_printable(str(path)),
        status=manifest.status,
        reason=reason_of_end(folder, manifest),
        experiment=manifest.experiment,
        question=question,
        answer=answered and answered.text,
        answer_missing=missing,
        headline=answered and answered.headline,
        machine=_machine(host),
        created_unix_ns=manifest.created_unix_ns,
    )


def reason_of_end(folder: BundleFolder, manifest: Manifest) -> str | None:
    """Return why the run of a bundle ended before its end; None for one that is running or complete."""
    if manifest.status == "running" and not is_locked(folder.descriptor):
        return f"its run was killed: `plinth resume {folder.path}` finishes it where it began"
    return manifest.reason


def _not_asked(_: BundleFolder) -> tuple[BundleAnswer | None, str | None]:
    return None, "not asked for"


def answer_or_reason(folder: BundleFolder) -> tuple[BundleAnswer | None, str | None]:
    """Return the answer of a bundle, or why there is none."""
    try:
        return answer_of(folder), None
    except PlinthError as error:
        return None, _reason(error, folder.path)
    except INCONSISTENT as error:
        return None, _printable(f"the parts of the bundle contradict one another: {type(error).__name__}: {error}")


def _machine(host: HostFacts) -> str:
    return f"{host.cpu_model}, {host.cores} cores, {format_size(host.memory_total_bytes)}, {host.os}"


def _reason(error: PlinthError, bundle: Path) -> str:
    """Return what is wrong, with the file of the bundle that it is in."""
    part = os.path.relpath(error.where, bundle) if error.where and error.where != str(bundle) else None
    return _printable(f"{part}: {error.message}" if part else error.message)


def _printable(text: str) -> str:
    """Return text as it can be written in any encoding of Unicode: names of files may have any bytes."""
    return text.encode(errors="surrogateescape").decode(errors="backslashreplace")
