"""The one kind of console: no text printed on it, from any source, can steer the terminal."""

import io
from collections.abc import Iterable

from rich.console import Console
from rich.segment import Segment

from plinth.common.shown import shown


class ShowingConsole(Console):
    """Rich's console, which escapes controls in all text; its own, for colours and the live display, pass."""

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        return super()._render_buffer(
            segment if segment.control else Segment(shown(segment.text), segment.style) for segment in buffer
        )


def text_console(width: int, *, color: bool) -> ShowingConsole:
    """Return a console whose output is captured: `width` columns wide, with ANSI colours or plain, independent of the environment."""
    return ShowingConsole(
        file=io.StringIO(),
        width=width,
        force_terminal=color,
        no_color=not color,
        color_system="standard" if color else None,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
        _environ={},
    )


def trimmed(captured: str) -> str:
    """Return what a console captured, without the blanks that fill its lines."""
    return "\n".join(line.rstrip() for line in captured.splitlines()) + "\n"
