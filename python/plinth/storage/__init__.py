"""Storages: places where a data directory can be stored. One module a kind, behind one protocol.

What is named here is imported when it is asked for: the daemon of an emulated disk needs none of it, and is started
thousands of times by an atlas.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plinth.storage.inspect.describe import describe
    from plinth.storage.preflight import hanging_places, place_problems
    from plinth.storage.protocol import Storage
    from plinth.storage.registry import make

_HOMES = {
    "Storage": "protocol",
    "describe": "inspect.describe",
    "hanging_places": "preflight",
    "make": "registry",
    "place_problems": "preflight",
}

__all__ = ["Storage", "describe", "hanging_places", "make", "place_problems"]


def __getattr__(name: str) -> Any:
    """Return one of the names above. Raises AttributeError for any other, as a module does."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
