"""Values whose test knows more about them than their declared type says."""

from typing import TypeVar

_Value = TypeVar("_Value")


def present(value: _Value | None) -> _Value:
    """Return a value that is not None."""
    assert value is not None
    return value


def of(kind: type[_Value], value: object) -> _Value:
    """Return a value that is of this class."""
    assert isinstance(value, kind), f"it is a {type(value).__name__}"
    return value
