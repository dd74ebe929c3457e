"""Levels of factors: what a level is, how it is written, and when two are the same."""

Level = bool | int | float | str | tuple[str, ...]
"""One value of a factor; a list where the key takes one, such as a storage's mount_options."""


def level_text(level: Level) -> str:
    """Return a level as PostgreSQL and people write it: booleans are on and off; a list by its entries."""
    if isinstance(level, bool):
        return "on" if level else "off"
    return (",".join(level) or "none") if isinstance(level, tuple) else str(level)


def same_level(level: object, other: object) -> bool:
    """Check whether two levels are the same, as 1000 and 1000.0, or "on" and true, are."""
    if level == other:
        return True
    return not isinstance(level, list) and not isinstance(other, list) and _text(level) == _text(other)


def _text(level: object) -> str:
    return level_text(level) if isinstance(level, bool | int | float | str) else str(level)
