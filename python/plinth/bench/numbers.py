"""The values of options: numbers as strtol, atoi and atof of the C library read them, as pgbench does; rates and seeds."""

import math
import re
from typing import TYPE_CHECKING

from plinth.bench.failure import BenchFailure

if TYPE_CHECKING:
    from plinth.model.load_config import Rate, Stage

INT_MAX = 2**31 - 1
_SPACE = " \t\n\v\f\r"
_INTEGER = re.compile(rf"[{_SPACE}]*([+-]?\d+)", re.ASCII)
_HEX = re.compile(rf"[{_SPACE}]*([+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?\d+)?)", re.ASCII | re.IGNORECASE)
_FLOAT = re.compile(rf"[{_SPACE}]*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)", re.ASCII | re.IGNORECASE)
_NUMBER = r"(\d+(?:\.\d+)?|\.\d+)"
_STAGE = re.compile(rf"{_NUMBER}(?:\.\.{_NUMBER})?(?::{_NUMBER})?", re.ASCII)
_MARKS = (",", ":", "..")


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
    """Return the number that the text begins with, as atof(3) does; 0 without one, or if it is not finite."""
    try:
        if match := _HEX.match(text):
            return float.fromhex(match[1])
    except OverflowError:
        return 0.0
    match = _FLOAT.match(text)
    number = float(match[1]) if match else 0.0
    return number if math.isfinite(number) else 0.0


def read_rate(text: str) -> "Rate":
    """Return a rate of transactions a second: "100", or stages as "100:30,100..500:60,500", RATE[..RATE][:SECONDS] each."""
    from plinth.model.load_config import MAX_TPS, Rate

    if not any(mark in text for mark in _MARKS):
        number = leading_float(text)
        if number <= 0:
            raise BenchFailure(f'invalid rate limit: "{text}"')
        return Rate.constant(min(number, MAX_TPS))
    parts = text.split(",")
    stages = tuple(_stage(text, part, is_last=number == len(parts)) for number, part in enumerate(parts, start=1))
    if not any(stage.from_tps or stage.to_tps for stage in stages):
        raise _invalid_rate(text, "Every rate is 0: nothing would ever be due.")
    return Rate(stages=stages)


def _stage(text: str, part: str, is_last: bool) -> "Stage":
    from plinth.model.load_config import Stage

    match = _STAGE.fullmatch(part)
    if match is None:
        raise _invalid_rate(text, f'Expecting RATE[..RATE][:SECONDS], got "{part}".')
    first, last, seconds = match.groups()
    if seconds is None and (last is not None or not is_last):
        only_one = "Only the last stage may go without seconds, and only if its rate does not change"
        raise _invalid_rate(text, f'{only_one}: "{part}".')
    if seconds is not None and float(seconds) == 0:
        raise _invalid_rate(text, f'A stage lasts more than 0 seconds: "{part}".')
    return Stage(
        from_tps=float(first), to_tps=float(last or first), duration_s=None if seconds is None else float(seconds)
    )


def _invalid_rate(text: str, detail: str) -> BenchFailure:
    return BenchFailure(f'invalid rate limit: "{text}"', detail=detail, hint='For example "100:30,100..500:60,500".')


def read_seed(text: str, source: str) -> int:
    """Return the seed of 64 bits that `text` asks for: "time", "rand", or an unsigned number. BenchFailure names `source`."""
    from plinth._native import random_seed

    try:
        return random_seed(text)
    except ValueError as error:
        message, _, detail = str(error).partition("\n")
        raise BenchFailure(
            message,
            detail=detail or 'Expecting an unsigned integer, "time" or "rand".',
            then=f"error while setting random seed from {source}",
        ) from error
