"""Text and tables in GitHub-flavoured Markdown. Untrusted text is escaped: it cannot become HTML or end a cell."""

import re
from collections.abc import Iterable, Sequence

from plinth.report.sections.section import Block, Bullets, Code, Table

_ESCAPING = re.compile(r"\\(?=[!-/:-@\[-`{-~]|$)")
"""A backslash that Markdown would take for the escape of what follows it, such as of the bar that ends a cell."""


def section(title: str, body: str) -> str:
    """Return a section with its title; empty without a body."""
    return f"## {title}\n\n{body}" if body else ""


def blocks(of: Iterable[Block]) -> str:
    """Return the blocks of a section; those with nothing in them are left out."""
    return "\n\n".join(filter(None, map(_block, of)))


def _block(of: Block) -> str:
    match of:
        case Table(heads, rows):
            return table(heads, rows) if rows else ""
        case Bullets(items):
            return bullets(items)
        case Code(language, text):
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            return f"{fence}{language}\n{text}\n{fence}"
        case str():
            return plain(of)


def bullets(items: Iterable[str]) -> str:
    """Return a bulleted list."""
    return "\n".join(f"- {plain(item)}" for item in items)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with a header row."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return plain(text).replace("|", "\\|")


def plain(text: str) -> str:
    """Escape text to one line in which nothing is interpreted as HTML, a link, an image, or the address of one."""
    line = _ESCAPING.sub(r"\\\\", " ".join(text.split()))
    return line.replace("<", "&lt;").replace("](", "]\\(").replace("]:", "]\\:")
