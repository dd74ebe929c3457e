"""A server that finds no room: which of space, inodes, quota and shared memory is used up."""

from collections.abc import Iterable
from pathlib import Path

from plinth.model.errors import PlinthError
from plinth.system.full import full_hint, full_hint_by_inodes, what_is_full


def hint_at_full_storage(error: PlinthError, log: Iterable[str], mount_points: Iterable[Path]) -> None:
    """Give `error` the hint that fits, where it or the server's `log` says that something is full."""
    logged = [line for line in log if what_is_full(line) is not None]
    found = full_hint_by_inodes([*logged, error.message, *error.details], mount_points)
    by_words = next((full_hint(None, line) for line in (error.message, *error.details) if what_is_full(line)), None)
    # A client is asked to connect again in a moment, or gets no hint; one that names what to load less of is kept.
    if found is not None and (logged or error.hint is None or found != by_words):
        error.hint = found


def with_hint_at_full(failure: str, mount_points: Iterable[Path]) -> str:
    """Return why a trial failed, with a hint if something was full."""
    hint = full_hint_by_inodes([failure], mount_points)
    return failure if hint is None else f"{failure} (hint: {hint})"
