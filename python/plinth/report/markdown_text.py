"""Text and tables in GitHub-flavoured Markdown, of whatever texts: none becomes HTML or ends a cell."""

from collections.abc import Iterable, Sequence


def section(title: str, body: str) -> str:
    """A section with its title; nothing without a body."""
    return f"## {title}\n\n{body}" if body else ""


def bullets(items: Iterable[str]) -> str:
    """A list, an item a line."""
    return "\n".join(f"- {plain(item)}" for item in items)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with its heads."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return plain(text).replace("|", "\\|")


def plain(text: str) -> str:
    """Plain text of ours or of a user's, in one line, without taking it for HTML, or for a link or an image."""
    return " ".join(text.split()).replace("<", "&lt;").replace("](", "]\\(")
