"""Near misses: the allowed word that somebody probably meant."""

import difflib
from collections.abc import Iterable


def nearest(word: str, allowed: Iterable[str]) -> str | None:
    """A hint that names the allowed word closest to `word`, when one is close; before all, one that begins with it."""
    words = list(allowed)
    begun = [one for one in words if len(word) > 2 and one.startswith(word)]
    found = difflib.get_close_matches(word, begun or words, n=1, cutoff=0.6)
    return f"did you mean {found[0]!r}?" if found else None
