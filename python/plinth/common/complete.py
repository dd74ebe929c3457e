"""Classes that have all of their protocols."""

from typing import TypeVar

Class = TypeVar("Class", bound=type)


def complete(made: Class) -> Class:
    """Return a class as it is, where it has every method of its protocols.

    Raises TypeError otherwise, so that a method that is missing is found when the module is imported, not when an object is made.
    """
    if missing := getattr(made, "__abstractmethods__", None):
        raise TypeError(f"{made.__name__} has no {', '.join(sorted(missing))}")
    return made
