"""Storages: places where a data directory can stand. One module a kind, behind one protocol."""

from plinth.storage.describe import describe
from plinth.storage.kinds import make
from plinth.storage.protocol import Storage
from plinth.storage.reach import check_answers

__all__ = ["Storage", "check_answers", "describe", "make"]
