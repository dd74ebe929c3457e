"""Storages: places where a data directory can be stored. One module a kind, behind one protocol."""

from plinth.storage.inspect.describe import describe
from plinth.storage.preflight import check_answers, check_places
from plinth.storage.protocol import Storage
from plinth.storage.registry import make

__all__ = ["Storage", "check_answers", "check_places", "describe", "make"]
