"""The bundle of a run: made with its key and its log of commands; what becomes of it where the run fails before it measures."""

import contextlib
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from plinth import __version__
from plinth.bundle import BundleFolder, BundleWriter
from plinth.common.untrusted import Room
from plinth.model.errors import PlinthError
from plinth.model.plan import Plan
from plinth.system.directory import for_owner_only
from plinth.system.log_file import LogFile
from plinth.system.run_key import create_key, forget_key
from plinth.system.runner import CommandRecord

_COMMANDS = "logs/commands.jsonl"

MAX_COMMANDS_BYTES = 32 * 2**20
"""Of the commands of one host in the bundle."""


def new_bundle(folder: BundleFolder, plan: Plan, experiment_toml: str) -> BundleWriter:
    """Create the bundle, and the key of its run, which stays outside of it."""
    key = create_key(plan.run_id)
    try:
        return BundleWriter.create(folder, plan, experiment_toml, __version__, key)
    except BaseException:
        forget_key(plan.run_id)
        raise


def owner_only_if_external(folder: BundleFolder, plan: Plan) -> AbstractContextManager[None]:
    """Let only the owner of the bundle read facts about an external server and its host."""
    return for_owner_only(folder.descriptor if plan.is_external else None)


class CommandLog:
    """The external commands of a run, in the bundle (logs/commands.jsonl): one line of JSON each.

    A command does not fail when it cannot be logged, such as when the disk with the bundle is full: `note` is then
    called once. Of another host, which is not trusted, there is room for so many bytes; `note` is called once when it is full.
    """

    def __init__(self, log: LogFile, note: Callable[[str], None]) -> None:
        self._log = log
        self._note = note
        self._has_failed = False
        self._rooms: dict[str, Room] = {}

    def record(self, command: CommandRecord, host: str | None = None) -> None:
        """Append one command."""
        of_host = {} if host is None else {"host": host}
        line = json.dumps({**of_host, **command._asdict()}).encode() + b"\n"
        if host is not None and not self._has_room(host, len(line)):
            return
        try:
            with self._log.to_append() as file:
                file.write(line)
        except (OSError, PlinthError) as error:
            if not self._has_failed:
                reason = error.message if isinstance(error, PlinthError) else error.strerror
                self._note(f"{self._log.path} cannot be written ({reason}): some commands are missing there")
            self._has_failed = True

    def _has_room(self, host: str, size_bytes: int) -> bool:
        room = self._rooms.setdefault(host, Room(MAX_COMMANDS_BYTES))
        if size_bytes <= room.left_bytes:
            room.take(size_bytes)
            return True
        if room.left_bytes:
            room.take(room.left_bytes)
            kept = f"the {room.size_bytes // 2**20} MiB that are kept of it"
            self._note(
                f"{self._log.path.name} was cut: host {host} has run more commands than fit into {kept}; later ones are missing"
            )
        return False


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
    leads_there = any(f"{folder.path}/" in text for text in (error.message, error.where or "", error.hint or ""))
    if measured or leads_there:
        return
    if logs:
        error.hint = error.hint or f"nothing was measured; what was logged is in {folder.path}/logs"
        return
    for entry in folder.entries():
        folder.remove_tree(entry.name)
    forget_key(run_id)


def remove_empty(folders: Sequence[Path]) -> None:
    """Remove those of the folders that are empty, from the first on."""
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()
