"""A canvas of character cells: lines in braille dots (2 x 4 a cell) or in ASCII dots, and letters on top of them."""

from rich.text import Text

from plinth.report.plots.glyphs import Glyphs

# Unicode's braille patterns: the bit of the dot in each column and row of a cell.
_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_FIRST = 0x2800


class Canvas:
    """A grid of character cells. Positions are shares, 0 to 1, of its width (from the left) and height (from the bottom)."""

    def __init__(self, columns: int, rows: int, glyphs: Glyphs) -> None:
        self.columns, self._rows, self._glyphs = columns, rows, glyphs
        self._dots: dict[tuple[int, int], tuple[int, str]] = {}
        self._letters: dict[tuple[int, int], tuple[str, str]] = {}

    def line(self, start: tuple[float, float], end: tuple[float, float], style: str) -> None:
        """Draw a straight line, including both ends."""
        (x0, y0), (x1, y1) = self._dot(*start), self._dot(*end)
        steps = max(abs(x1 - x0), abs(y1 - y0), 1)
        for step in range(steps + 1):
            self._set(round(x0 + (x1 - x0) * step / steps), round(y0 + (y1 - y0) * step / steps), style)

    def letter(self, place: tuple[float, float], letter: str, style: str) -> None:
        """Write a letter over any line. A cell that already has another letter becomes "*"."""
        x, y = self._dot(*place)
        cell = self.cell_of(x, y)
        taken = self._letters.get(cell)
        self._letters[cell] = (letter, style) if taken is None or taken[0] == letter else ("*", "")

    def column_of(self, x: float) -> int:
        """Return the character column of a position."""
        return self._dot(x, 0)[0] // self._per_cell[0]

    def row_of(self, y: float) -> int:
        """Return the character row of a position, counted from the top."""
        return self._dot(0, y)[1] // self._per_cell[1]

    def lines(self) -> list[Text]:
        """Return the rows from the top, each as wide as the canvas."""
        return [
            Text.assemble(*(self._cell(column, row) for column in range(self.columns))) for row in range(self._rows)
        ]

    @property
    def _per_cell(self) -> tuple[int, int]:
        return (2, 4) if self._glyphs.has_braille else (1, 1)

    def cell_of(self, x: int, y: int) -> tuple[int, int]:
        """Return the cell of a dot."""
        across, down = self._per_cell
        return x // across, y // down

    def _dot(self, x: float, y: float) -> tuple[int, int]:
        across, down = self._per_cell
        last_x, last_y = self.columns * across - 1, self._rows * down - 1
        return round(min(max(x, 0.0), 1.0) * last_x), last_y - round(min(max(y, 0.0), 1.0) * last_y)

    def _set(self, x: int, y: int, style: str) -> None:
        across, down = self._per_cell
        cell = self.cell_of(x, y)
        bits = self._dots.get(cell, (0, style))[0]
        self._dots[cell] = (bits | _BITS[y % down][x % across], style)

    def _cell(self, column: int, row: int) -> tuple[str, str]:
        if (letter := self._letters.get((column, row))) is not None:
            return letter
        bits, style = self._dots.get((column, row), (0, ""))
        if not bits:
            return " ", ""
        return (chr(_FIRST + bits) if self._glyphs.has_braille else "."), style
