"""-R: pgbench's number, or stages of a rate that steps and ramps."""

import re
from typing import TYPE_CHECKING

from plinth.bench.failure import BenchFailure
from plinth.bench.numbers import leading_float

if TYPE_CHECKING:
    from plinth.model.load_config import Rate, Stage

_NUMBER = r"(\d+(?:\.\d+)?|\.\d+)"
_STAGE = re.compile(rf"{_NUMBER}(?:\.\.{_NUMBER})?(?::{_NUMBER})?", re.ASCII)
_MARKS = (",", ":", "..")
"""The engine's: every transaction is due at once, as at pgbench's rates above it."""


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
        raise _invalid(text, "Every rate is 0: nothing would ever be due.")
    return Rate(stages=stages)


def _stage(text: str, part: str, is_last: bool) -> "Stage":
    from plinth.model.load_config import Stage

    match = _STAGE.fullmatch(part)
    if match is None:
        raise _invalid(text, f'Expecting RATE[..RATE][:SECONDS], got "{part}".')
    first, last, seconds = match.groups()
    if seconds is None and (last is not None or not is_last):
        only_one = "Only the last stage may go without seconds, and only if its rate does not change"
        raise _invalid(text, f'{only_one}: "{part}".')
    if seconds is not None and float(seconds) == 0:
        raise _invalid(text, f'A stage lasts more than 0 seconds: "{part}".')
    return Stage(
        from_tps=float(first), to_tps=float(last or first), duration_s=None if seconds is None else float(seconds)
    )


def _invalid(text: str, detail: str) -> BenchFailure:
    return BenchFailure(f'invalid rate limit: "{text}"', detail=detail, hint='For example "100:30,100..500:60,500".')
