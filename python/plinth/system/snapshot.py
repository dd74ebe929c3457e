"""A snapshot of everything on a storage."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Snapshot:
    """The commands, run as the user who makes storages: take it, go back to it, and remove it.

    `gone` are words by which the last one reports that there is none.
    """

    take: tuple[str, ...]
    restore: tuple[str, ...]
    remove: tuple[str, ...]
    gone: tuple[str, ...]
