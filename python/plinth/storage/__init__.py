"""Storages: places where a data directory can stand. One module a kind, behind one protocol."""

from plinth.storage.describe import describe
from plinth.storage.kinds import make
from plinth.storage.protocol import Storage
from plinth.storage.reach import check_answers, check_places

__all__ = ["Storage", "check_answers", "check_places", "describe", "make"]
