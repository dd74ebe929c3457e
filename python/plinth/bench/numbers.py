"""Numbers as C reads them, since pgbench's options take what strtol, atoi and atof of the C library take."""

import math
import re

from plinth.bench.failure import BenchFailure

INT_MAX = 2**31 - 1
_SPACE = " \t\n\v\f\r"
_INTEGER = re.compile(rf"[{_SPACE}]*([+-]?\d+)", re.ASCII)
_HEX = re.compile(rf"[{_SPACE}]*([+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?\d+)?)", re.ASCII | re.IGNORECASE)
_FLOAT = re.compile(rf"[{_SPACE}]*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)", re.ASCII | re.IGNORECASE)


def option_int(text: str, option: str, least: int, most: int) -> int:
    """Return a whole number within limits; nothing but white space may follow it."""
    match = _INTEGER.match(text)
    if text[match.end() if match else 0 :].strip(_SPACE):
        raise BenchFailure(f'invalid value "{text}" for option {option}')
    value = int(match[1]) if match else 0
    if not least <= value <= most:
        raise BenchFailure(f"{option} must be in range {least}..{most}")
    return value


def leading_int(text: str) -> int:
    """Return the number that the text begins with, else 0, as atoi(3) does."""
    match = _INTEGER.match(text)
    return int(match[1]) if match else 0


def leading_float(text: str) -> float:
    """Return the decimal or hexadecimal number that the text begins with, as atof(3) does; 0 without one, or if it is not finite."""
    try:
        if match := _HEX.match(text):
            return float.fromhex(match[1])
    except OverflowError:
        return 0.0
    match = _FLOAT.match(text)
    number = float(match[1]) if match else 0.0
    return number if math.isfinite(number) else 0.0
