"""Units of PostgreSQL's settings, where kB means 1024 bytes.

From the server's own tables: memory_unit_conversion_table and time_unit_conversion_table of utils/misc/guc.c.
"""

import re
from collections.abc import Mapping
from fractions import Fraction

_UNIT = re.compile(r"([1-9][0-9]{0,8})?([A-Za-z]+)")
_AMOUNT = re.compile(r"\s*(\d{1,18}(?:\.\d{1,18})?)\s*([A-Za-z]+)\s*")

SIZES_BYTES = {"B": 1, "kB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}
"""Units of size that a setting's value may carry."""

TIMES_MS = {
    "us": Fraction(1, 1000),
    "ms": Fraction(1),
    "s": Fraction(1000),
    "min": Fraction(60_000),
    "h": Fraction(3_600_000),
    "d": Fraction(86_400_000),
}
"""Units of time that a setting's value may carry."""


def base_unit(unit: str) -> tuple[Fraction, dict[str, Fraction]]:
    """Return a unit of pg_settings such as "8kB", "MB" or "min": its amount, and the units that convert to it.

    Raises ValueError for what is no unit of PostgreSQL's.
    """
    match = _UNIT.fullmatch(unit)
    families = ({name: Fraction(size) for name, size in SIZES_BYTES.items()}, TIMES_MS)
    family = next((family for family in families if match and match[2] in family), None)
    if match is None or family is None:
        raise ValueError(f"{unit!r} is no unit of a setting")
    return int(match[1] or 1) * family[match[2]], family


def setting_amount(value: str, units: Mapping[str, float]) -> float:
    """Return the amount of a setting's value such as "1GB", by the amount of each unit. Raises ValueError for any other text."""
    match = _AMOUNT.fullmatch(value)
    if match is None or match[2] not in units:
        raise ValueError(f"expected a number with one of the units {', '.join(units)}, not {value!r}")
    return float(match[1]) * units[match[2]]


def format_block_size(block_bytes: int) -> str:
    """Return a block size as PostgreSQL writes it: 65536 -> "64 kB", 512 -> "512 B"."""
    return f"{block_bytes} B" if block_bytes % 1024 else f"{block_bytes // 1024} kB"


def setting_text(value: str, unit: str | None) -> str:
    """Return a value of pg_settings as SHOW would write it: ("16384", "8kB") -> "128MB", ("300", "s") -> "5min".

    In the largest unit that divides it. Values that mean something else, such as -1, stay bare; a unit that PostgreSQL
    is not known to have is written after its value.
    """
    if unit is None or not value.isdigit() or not int(value):
        return value
    try:
        size, family = base_unit(unit)
    except ValueError:
        return f"{value} {unit}"
    amount = int(value) * size
    return next(
        f"{amount // size}{name}" for name, size in reversed(family.items()) if (amount / size).denominator == 1
    )
