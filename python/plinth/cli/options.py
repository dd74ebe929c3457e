"""Parsers of option values that several commands share."""

import re

from plinth.model.errors import UsageError
from plinth.model.pg_units import SIZES_BYTES, format_block_size


def seconds_of(option: str, seconds: float) -> float:
    """Check a duration in seconds. Raises UsageError unless it is positive and finite."""
    from plinth.model.units import parse_duration

    if not seconds > 0:  # false for nan, too
        raise UsageError(f"{option}: got {seconds:g}; it must be above 0", hint="give a number of seconds, as in 2.5")
    try:
        return parse_duration(seconds)
    except ValueError as error:
        raise UsageError(f"{option}: got {seconds:g}; {error}", hint="give a number of seconds, as in 2.5") from error


_BLOCK_UNITS = {**SIZES_BYTES, "": 1, "k": 1024, "K": 1024, "KiB": 1024, "M": 1024**2, "MiB": 1024**2}
"""PostgreSQL's units, where kB is 1024 bytes, and the short ones of dd and fio."""


def block_size_of(option: str, text: str, smallest_bytes: int, largest_bytes: int) -> int:
    """Parse a block size and return bytes, a multiple of `smallest_bytes`. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+)\s*([A-Za-z]*)\s*", text)
    if match is None or match[2] not in _BLOCK_UNITS:
        raise UsageError(
            f"{option}: got {text!r}; a number and one of {', '.join(filter(None, _BLOCK_UNITS))} are needed",
            hint="for example 64k; kB is 1024 bytes, as in PostgreSQL",
        )
    block_bytes = int(match[1]) * _BLOCK_UNITS[match[2]]
    if not smallest_bytes <= block_bytes <= largest_bytes or block_bytes % smallest_bytes:
        raise UsageError(
            f"{option}: got {text!r}; multiples of {format_block_size(smallest_bytes)} up to "
            f"{format_block_size(largest_bytes)} are possible"
        )
    return block_bytes
