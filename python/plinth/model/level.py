"""Levels of factors: what a level is, when two are the same, and what factors and levels are called in labels, in tables, on axes."""

from collections.abc import Mapping

from plinth.model.figures import number

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


RATE = "workload.rate"
SETTING_TABLES = ("server.settings.", "server.connection_options.")
"""How factors that are settings begin: of the server, and of the load's sessions on an external one."""

_PREFIXES = {
    "server.version": "PostgreSQL",
    "server.wal_storage": "WAL on",
    "dataset.scale": "scale",
    "dataset.tablespace": "tables in",
    "dataset.index_tablespace": "keys in",
}
_UNITS = {
    "workload.clients": "client",
    "workload.threads": "thread",
    "workload.statements": "statement",
    "workload.active_rows": "active row",
    "dataset.rows": "row",
}


def levels_label(levels: Mapping[str, Level]) -> str:
    """Return levels of several factors: "memory, 16 clients". An empty one, such as no synchronous_standby_names, is left out."""
    return ", ".join(level_label(factor, level) for factor, level in levels.items() if level_text(level))


def level_label(factor: str, level: Level) -> str:
    """Name one level so that it is understood without its factor: "16 clients", "shared_buffers=1GB", "4,000/s", "memory"."""
    if not level_text(level):
        return f"no {factor_title(factor)}"
    if factor == RATE and isinstance(level, int | float):
        return f"{number(level)}/s"
    if factor in _UNITS:
        count = f"{level:,}" if isinstance(level, int) else level
        return f"{count} {_UNITS[factor]}" if level == 1 else f"{count} {_UNITS[factor]}s"
    if factor.startswith(SETTING_TABLES):
        return f"{factor_title(factor)}={level_text(level)}"
    if factor.startswith("server.tablespaces."):
        return f"{factor.removeprefix('server.tablespaces.')} on {level}"
    if factor == "server.connection":
        return str(level)
    if factor in _PREFIXES:
        return f"{_PREFIXES[factor]} {level}"
    if isinstance(level, int | float) or level_text(level)[:1].isdigit():  # "on" or "6ms" says nothing alone
        return f"{factor_title(factor)} {level_text(level)}"
    return level_text(level)


def counts_things(factor: str) -> bool:
    """Return whether the factor's title is what its levels count: clients, rows; a number such as commit_delay counts nothing by its
    name."""
    return factor in _UNITS


def factor_title(factor: str) -> str:
    """Return what is varied: "clients", "active rows", "shared_buffers", "flush latency"."""
    for table in SETTING_TABLES:
        if factor.startswith(table):
            return factor.removeprefix(table)
    return _UNITS[factor] + "s" if factor in _UNITS else factor.rpartition(".")[2].replace("_", " ")
