"""People's units in, SI base units out: sizes in bytes, durations in seconds, latencies in nanoseconds.

Sizes follow IEC 80000-13 (KiB = 1024 bytes) and SI (kB = 1000 bytes). PostgreSQL's own settings are
not parsed here: there kB means 1024 bytes.
"""

import math
import re
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

SIZE_UNITS = {
    "B": 1,
    **{f"{prefix}B": 1000 ** (power + 1) for power, prefix in enumerate("kMGTP")},
    **{f"{prefix}iB": 1024 ** (power + 1) for power, prefix in enumerate("KMGTP")},
}
BIT_UNITS = {f"{prefix}bit": 1000**power for power, prefix in enumerate(("", "k", "M", "G"))}
LATENCY_UNITS = {"ns": 1, "us": 1000, "ms": 1_000_000, "s": 1_000_000_000}
DURATION_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
MAX_DURATION_S = 366 * DURATION_UNITS["d"]
"""As the load engine has it (crates/load/src/config.rs)."""
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+|%)\s*")


def _quantity(text: str, units: dict[str, int] | dict[str, float], example: str) -> float:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"expected a number with a unit, such as {example}")
    number, unit = match.groups()
    if unit not in units:
        raise ValueError(f"unknown unit {unit!r}; allowed: {', '.join(units)}, as in {example}")
    quantity = float(number) * units[unit]
    if quantity == math.inf:
        raise ValueError("that is more than any number has room for")
    return quantity


def _whole(value: object, units: dict[str, int], example: str, wanted: str) -> int:
    """Return a quantity with a unit, or a whole number of the base unit; `wanted` says in the error what was expected."""
    if isinstance(value, str):
        return round(_quantity(value, units, example))
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ValueError(f"expected {wanted}")


def _per_second(value: object, wanted: str) -> object:
    """Return the amount of a text such as "180MB/s"; all else as it is."""
    if not isinstance(value, str):
        return value
    amount, slash, second = value.rpartition("/")
    if not slash or second.strip() != "s":
        raise ValueError(f"expected {wanted}")
    return amount


def parse_size(value: object) -> int:
    """Return bytes of a size such as "2GiB" or of a whole number of bytes. Raises ValueError."""
    return _whole(value, SIZE_UNITS, '"2GiB"', 'a size such as "2GiB" or a whole number of bytes')


def parse_duration(value: object) -> float:
    """Return seconds of a duration such as "30s" or of a number of seconds. Raises ValueError."""
    seconds = _quantity(value, DURATION_UNITS, '"30s"') if isinstance(value, str) else value
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds >= 0:  # which nan is not
        raise ValueError('expected a duration such as "30s" or a number of seconds')
    if seconds > MAX_DURATION_S:
        raise ValueError(f"allowed are at most {MAX_DURATION_S / DURATION_UNITS['d']:g} d")
    return float(seconds)


def parse_latency(value: object) -> int:
    """Return nanoseconds of a latency such as "4.2ms" or of a whole number of nanoseconds. Raises ValueError."""
    return _whole(value, LATENCY_UNITS, '"4.2ms"', 'a latency such as "4.2ms" or a whole number of nanoseconds')


def parse_share(value: object) -> float:
    """Return a share of 1 of a percentage such as "3%", or of a number up to 1. Raises ValueError."""
    if isinstance(value, str):
        share = _quantity(value, {"%": 0.01}, '"3%"')
    elif isinstance(value, int | float) and not isinstance(value, bool):
        share = float(value)
    else:
        raise ValueError('expected a percentage such as "3%"')
    if not 0 < share <= 1:
        raise ValueError(f'got {100 * share:.0f} %; allowed is more than 0 % and at most 100 %, written as "3%"')
    return share


def parse_rate(value: object) -> int:
    """Return bytes a second of a rate such as "180MB/s" or of a whole number of bytes a second. Raises ValueError."""
    amount = _per_second(value, 'a size a second, such as "180MB/s"')
    return _whole(amount, SIZE_UNITS, '"180MB/s"', 'a rate such as "180MB/s" or a whole number of bytes a second')


def parse_bit_rate(value: object) -> int:
    """Return bits a second of a rate such as "100Mbit/s" or of a whole number of bits a second. Raises ValueError."""
    amount = _per_second(value, 'bits a second, such as "100Mbit/s"')
    return _whole(amount, BIT_UNITS, '"100Mbit/s"', 'a rate such as "100Mbit/s" or a whole number of bits a second')


def format_size(size_bytes: float) -> str:
    """Return a size in the largest binary unit that keeps it at one or more: 2147483648 -> "2.0 GiB"."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(size_bytes) < 1024:
            return f"{size_bytes:.0f} B" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} PiB"


def format_decimal_size(size_bytes: float) -> str:
    """Return a size in decimal units, as drives are rated in them, with three significant digits: 16000 -> "16 kB"."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(size_bytes) < 999.5:  # what rounds to 1000 is said in the next unit
            return f"{size_bytes:.3g} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:,.3g} PB" if size_bytes < 999.5 else f"{size_bytes:,.0f} PB"


def format_bit_rate(bits_per_s: float) -> str:
    """Return a rate in bits a second with three significant digits: 100000000 -> "100 Mbit/s"."""
    for unit in ("bit/s", "kbit/s", "Mbit/s"):
        if bits_per_s < 999.5:
            return f"{bits_per_s:.3g} {unit}"
        bits_per_s /= 1000
    return f"{bits_per_s:.3g} Gbit/s"


def format_count(count: float, singular: str) -> str:
    """Return a number of things: (1, "client") -> "1 client", (16, "client") -> "16 clients"."""
    return f"{count} {singular}" if count == 1 else f"{count} {singular}s"


def format_duration(duration_s: float) -> str:
    """Return a duration in people's units: 0.0023 -> "2.30 ms", 135 -> "2 min 15 s"."""
    if duration_s < 1e-3:
        return f"{duration_s * 1e6:.0f} us"
    if duration_s < 1:
        return f"{duration_s * 1e3:.3g} ms"
    if duration_s < 60:
        return f"{duration_s:.3g} s"
    minutes, seconds = divmod(round(duration_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"


def _written(number: str, *examples: str) -> WithJsonSchema:
    return WithJsonSchema({"type": ["string", number], "examples": list(examples)})


SizeBytes = Annotated[int, BeforeValidator(parse_size), _written("integer", "2GiB", "512MiB")]
"""A size in bytes; an experiment file may write "2GiB"."""
DurationS = Annotated[float, BeforeValidator(parse_duration), _written("number", "30s", "5min")]
"""A duration in seconds; an experiment file may write "5min"."""
Share = Annotated[float, BeforeValidator(parse_share), _written("number", "3%")]
"""A share of 1; an experiment file may write "3%"."""
LatencyNs = Annotated[int, BeforeValidator(parse_latency), _written("integer", "4.2ms", "130us")]
"""A latency in nanoseconds; an experiment file may write "4.2ms"."""
BytesPerSecond = Annotated[int, BeforeValidator(parse_rate), _written("integer", "180MB/s", "1GiB/s")]
"""A rate in bytes a second; an experiment file may write "180MB/s"."""
BitsPerSecond = Annotated[int, BeforeValidator(parse_bit_rate), _written("integer", "100Mbit/s", "1Gbit/s")]
"""A rate in bits a second; an experiment file may write "100Mbit/s"."""
