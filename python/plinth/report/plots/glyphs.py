"""Characters that plots are drawn with: blocks and braille, or ASCII where a terminal's encoding has neither."""

import codecs
import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from plinth.common.shown import shown


@dataclass(frozen=True)
class Glyphs:
    """One set of characters."""

    levels: str
    """Characters of a sparkline from the lowest to the highest value; a blank is a missing value."""
    eighths: str
    """Characters of the end of a bar, by eighths of a cell; the last is a full cell."""
    ellipsis: str
    has_braille: bool


BLOCKS = Glyphs(levels="▁▂▃▄▅▆▇█", eighths="▏▎▍▌▋▊▉█", ellipsis="…", has_braille=True)
ASCII = Glyphs(levels="_.-=+*%#", eighths="#", ellipsis="...", has_braille=False)


def glyphs_for(encoding: str | None) -> Glyphs:
    """Return blocks and braille if `encoding` has them, else ASCII."""
    try:
        codecs.encode(f"{BLOCKS.levels}{BLOCKS.eighths}{BLOCKS.ellipsis}⠁⣿", encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BLOCKS


def one_line(text: str, glyphs: Glyphs) -> str:
    """Return untrusted text on one line, in characters that the encoding of `glyphs` has."""
    text = " ".join(shown(text).split())
    return text if glyphs.has_braille else text.encode("ascii", "backslashreplace").decode("ascii")


def label_text(label: str, width: int, glyphs: Glyphs) -> str:
    """Return a label in exactly `width` columns, truncated with an ellipsis if it is longer."""
    text = one_line(label, glyphs)
    if cell_len(text) > width:
        text = set_cell_size(text, max(0, width - len(glyphs.ellipsis))) + glyphs.ellipsis
    return set_cell_size(text, width)


def sparkline(values: Sequence[float | None], highest: float, glyphs: Glyphs) -> str:
    """Return a character for each value on a scale from 0 to `highest`; a missing value is a blank."""
    top = len(glyphs.levels)
    return "".join(
        " "
        if value is None
        else glyphs.levels[min(top - 1, math.floor(top * max(0.0, value) / highest)) if highest > 0 else 0]
        for value in values
    )


def bar(share: float, width: int, glyphs: Glyphs) -> str:
    """Return a bar over `share` (0 to 1) of `width` columns, in eighths of a column; never empty, padded with blanks."""
    steps = len(glyphs.eighths)
    filled = max(1, min(round(share * width * steps), width * steps))
    whole, rest = divmod(filled, steps)
    return (glyphs.eighths[-1] * whole + (glyphs.eighths[rest - 1] if rest else "")).ljust(width)


def resampled(values: Sequence[float | None], columns: int) -> list[float | None]:
    """Reduce values to at most `columns` by means of consecutive values."""
    count = len(values)
    if count <= columns:
        return list(values)
    groups = [values[count * i // columns : count * (i + 1) // columns] for i in range(columns)]
    return [_mean(group) for group in groups]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
