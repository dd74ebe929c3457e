"""Storages: places where a data directory can stand. One module a kind, behind one protocol."""

from plinth.storage.describe import describe
from plinth.storage.kinds import make
from plinth.storage.protocol import Storage

__all__ = ["Storage", "describe", "make"]
