"""The one kind of console: what is printed on it cannot steer the terminal, whoever the text is from."""

from collections.abc import Iterable

from rich.console import Console
from rich.segment import Segment

from plinth.model.shown import shown


class ShowingConsole(Console):
    """Rich's console, which escapes controls in all text; its own, for colours and the live display, pass."""

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        return super()._render_buffer(
            segment if segment.control else Segment(shown(segment.text), segment.style) for segment in buffer
        )
