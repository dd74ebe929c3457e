"""The meaning of a setting's value in any spelling: 1GB is 1048576 kB, yes is on, 90500ms is not 90 s."""

import re
from fractions import Fraction
from typing import NamedTuple

from plinth.model.base import SettingValue
from plinth.model.pg_units import base_unit

_NUMBER = re.compile(
    r"\s*(?P<sign>[+-]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|(?P<octal>0[0-7]+)(?![.0-9eE])"
    r"|(?P<decimal>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))\s*(?P<unit>[A-Za-z]*)\s*"
)
_WORDS = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False}
_REAL_TOLERANCE = Fraction(1, 100_000)  # pg_settings shows six significant digits (%g)


class SettingRow(NamedTuple):
    """One row of pg_settings, as text; `sourcefile` only where the server lets us see it."""

    name: str
    setting: str
    unit: str | None
    vartype: str
    context: str
    source: str
    sourcefile: str | None
    boot_val: str | None
    pending_restart: bool


def setting_text(value: SettingValue) -> str:
    """Write a value of an experiment file as PostgreSQL's configuration does."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return repr(value) if isinstance(value, float) else str(value)


def was_taken(asked: str, row: SettingRow, canonical: str | None = None) -> bool:
    """Return whether the server has the requested value exactly, or a computed one where that was requested.

    `canonical` is the server's own spelling of `asked`, where it is known: enums have aliases.
    """
    if row.vartype == "bool":
        return bool_of(asked) == (row.setting == "on")
    if row.vartype in ("integer", "real"):
        return _same_number(asked, row) or _worked_out(asked, row)
    # The server changes the case of some words (utc, iso), and of nothing else.
    return row.setting.casefold() in {asked.casefold(), (canonical or asked).casefold()}


def number_of(text: str, unit: str | None) -> Fraction | None:
    """Read a numeric value in `unit`, as in pg_settings ("8kB", "min"); None when it is not a number with such a unit.

    As strtol reads them, 0x10 is hexadecimal and 010 octal: modes of files are set like that.
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    if match["decimal"] is not None:
        number = Fraction(match["decimal"])
    else:
        number = Fraction(int(match["hex"], 16) if match["hex"] else int(match["octal"], 8))
    if match["sign"] == "-":
        number = -number
    if not match["unit"]:
        return number
    if unit is None:
        return None
    amount, family = base_unit(unit)
    return number * family[match["unit"]] / amount if match["unit"] in family else None


def bool_of(text: str) -> bool | None:
    """Read a boolean as parse_bool of PostgreSQL does: on, off, 1, 0, and unique beginnings of true, false, yes, no."""
    word = text.strip().casefold()
    if word in ("1", "0"):
        return word == "1"
    if word == "o":
        return None
    return next((value for full, value in _WORDS.items() if word and full.startswith(word)), None)


def _same_number(asked: str, row: SettingRow) -> bool:
    wanted, got = number_of(asked, row.unit), number_of(row.setting, row.unit)
    if wanted is None or got is None:
        return False
    return wanted == got or (row.vartype == "real" and abs(wanted - got) <= abs(wanted) * _REAL_TOLERANCE)


def _worked_out(asked: str, row: SettingRow) -> bool:
    """Return whether -1 or 0 was asked for and the server computed the value: it then overrides its own default."""
    wanted = number_of(asked, row.unit)
    default = number_of(row.boot_val, row.unit) if row.boot_val is not None else None
    return row.source == "override" and wanted is not None and wanted in (-1, 0) and wanted == default
