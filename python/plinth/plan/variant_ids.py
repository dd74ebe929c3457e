"""Ids of variants: what their files are called, and what people type; they say every level."""

import hashlib
import itertools
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from plinth.model.figures import number
from plinth.model.level import Level, level_label, level_text

_LETTERS_OF_NAMES = 40
"""Names of factors are shortened until they have no more together: that is the same for every level."""
_LETTERS_OF_WORDS = (sys.maxsize, 4, 1, 0)
"""How much of each word of a name stays, until the names fit."""
_MOST_LETTERS = 120
"""Levels that are longer together, such as SQL, are cut: a file name has at most 255 bytes, its ending among them."""
_HASH_LETTERS = 8


def variant_id(levels: Mapping[str, Level], fallback: str, taken: Collection[str]) -> str:
    """Return an id that no other variant has: the label of the levels in lower-case letters, digits and hyphens.

    Where the factors' names are long together, their words are shortened; levels stay whole, as two variants may differ in the last
    letter of one. The same levels give the same id in every experiment. `fallback` names a variant without levels.
    """
    parts = [_part(factor, level) for factor, level in levels.items() if level_text(level)]
    return unique_id(_fitted(parts) if parts else _slug(fallback) or "variant", taken)


def unique_id(wanted: str, taken: Collection[str]) -> str:
    """Return the id, with a number at its end where it is taken: labels may differ in signs only."""
    return next(
        name for name in itertools.chain([wanted], (f"{wanted}-{n}" for n in itertools.count(2))) if name not in taken
    )


class _Part(NamedTuple):
    """A level of an id, with the words of its factor's name before and after it."""

    before: tuple[str, ...]
    level: str
    after: tuple[str, ...]

    def text(self, letters: int) -> str:
        """Return the words of the name with at most so many letters; of one letter each in one word, such as fpw-off."""
        sides = [[word[:letters] for word in words] for words in (self.before, self.after)]
        if letters == 1:
            sides = [["".join(words)] for words in sides]
        return "-".join(filter(None, (*sides[0], self.level, *sides[1])))


def _part(factor: str, level: Level) -> _Part:
    label = _slug(level_label(factor, level))
    text = number(level) if isinstance(level, int | float) and not isinstance(level, bool) else level_text(level)
    own = _slug(text)
    if own and label.endswith(f"-{own}"):
        return _Part(tuple(label.removesuffix(f"-{own}").split("-")), own, ())
    if own and label.startswith(f"{own}-"):
        return _Part((), own, tuple(label.removeprefix(f"{own}-").split("-")))
    return _Part((), label or "other", ())


def _fitted(parts: Sequence[_Part]) -> str:
    """Return the levels with as much of the factors' names as there is room for."""
    bare = len("-".join(part.level for part in parts))
    texts = ("-".join(part.text(letters) for part in parts) for letters in _LETTERS_OF_WORDS)
    text = next(text for text in texts if len(text) - bare <= _LETTERS_OF_NAMES or len(text) == bare)
    if len(text) <= _MOST_LETTERS:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:_HASH_LETTERS]
    return f"{text[: _MOST_LETTERS - _HASH_LETTERS - 1].strip('-')}-{digest}"


def _slug(text: str) -> str:
    """Return the text in lower-case letters, digits and hyphens; the sign of a number is a word, so that -1 is not 1."""
    plain = re.sub(r"(?<=\d),(?=\d)", "", text.lower())
    signed = re.sub(r"(?<![a-z0-9])-(?=\d)", "-minus-", plain)
    return re.sub(r"[^a-z0-9]+", "-", signed).strip("-")
