"""What becomes of the bundle of a run that failed before anything was measured."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from plinth.bundle import BundleFolder
from plinth.model.errors import PlinthError
from plinth.system.run_key import forget_key

_COMMANDS = "logs/commands.jsonl"


def missing_folders(bundle: Path) -> tuple[Path, ...]:
    """Return the folders that a run has to make for its bundle, the innermost first."""
    return tuple(folder for folder in (bundle, *bundle.parents) if not folder.exists())


def discard_if_unused(folder: BundleFolder, run_id: str, error: PlinthError) -> None:
    """Empty the bundle of a run that failed with `error`, if it says nothing that the error does not say: no trial and no power cut was
    begun, and nothing that was started has written a log.

    Where it stays, the error says what is in it.
    """
    measured = any(folder.entry(name) and folder.entries(name) for name in ("trials", "cuts", "ledgers", "recordings"))
    logs = [entry for entry in folder.entries("logs") if entry.name != _COMMANDS] if folder.entry("logs") else []
    if measured or error_names(error, folder.path):
        return
    if logs:
        error.hint = error.hint or f"nothing was measured; what was logged is in {folder.path}/logs"
        return
    for entry in folder.entries():
        folder.remove_tree(entry.name)
    forget_key(run_id)


def error_names(error: PlinthError, path: Path) -> bool:
    """Return whether an error leads its user to a file below `path`."""
    return any(f"{path}/" in text for text in (error.message, error.where or "", error.hint or ""))


def remove_empty(folders: Sequence[Path]) -> None:
    """Remove those of the folders that are empty, from the first on."""
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()
