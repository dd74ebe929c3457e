"""Facts read from files, each with its source; what cannot be read becomes a gap."""

from collections.abc import Callable
from pathlib import Path

from plinth.model.base import Gap
from plinth.model.facts import Fact

Value = str | int | float | bool | list[str] | None


class Readings:
    """Collects the facts about one thing, whose name begins each gap: "vda: model"."""

    def __init__(self, of: str) -> None:
        self._of = of
        self.facts: list[Fact] = []
        self.gaps: list[Gap] = []

    def add(self, name: str, value: Value, source: str) -> None:
        """Add a fact that was found in another way than by reading a file."""
        self.facts.append(Fact(name=name, value=value, source=source))

    def gap(self, name: str, reason: str) -> None:
        """Record that a fact could not be had."""
        self.gaps.append(Gap(what=f"{self._of}: {name}", reason=reason))

    def read(self, name: str, *candidates: Path, convert: Callable[[str], Value] = str) -> Value:
        """Return the first of `candidates` that can be read, stripped and converted; None, and a gap, when none can."""
        reasons = []
        for path in candidates:
            try:
                value = convert(path.read_bytes().decode(errors="replace").strip("\0 \n"))
            except (OSError, ValueError) as error:
                reasons.append(f"{path}: {error.strerror if isinstance(error, OSError) else error}")
                continue
            self.add(name, value, str(path))
            return value
        self.gap(name, "; ".join(reasons))
        return None
