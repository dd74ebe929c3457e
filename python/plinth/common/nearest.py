"""Near misses: the allowed word that was probably meant."""

import difflib
from collections.abc import Iterable


def nearest(word: str, allowed: Iterable[str]) -> str | None:
    """Return a hint that names the allowed word closest to `word`, when one is close, or ends with it; before all, one that begins
    with it."""
    words = list(allowed)
    begun = [one for one in words if len(word) > 2 and one.startswith(word)]
    ended = [one for one in words if len(word) > 2 and one.endswith(word)]  # p99 is latency_p99
    found = difflib.get_close_matches(word, begun or words, n=1, cutoff=0.6) or ended[:1]
    return f"did you mean {found[0]!r}?" if found else None
