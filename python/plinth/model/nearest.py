"""Near misses: the allowed word that somebody probably meant."""

import difflib
from collections.abc import Iterable


def nearest(word: str, allowed: Iterable[str]) -> str | None:
    """A hint that names the allowed word closest to `word`, when one is close."""
    found = difflib.get_close_matches(word, list(allowed), n=1, cutoff=0.6)
    return f"did you mean {found[0]!r}?" if found else None
