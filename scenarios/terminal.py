"""Tables on the terminal: plain columns of equal digits, 80 characters wide where there is none."""

import math
import textwrap
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table

WIDTH = 80  # characters of a line in a pipe or a file
GAP = 2  # between columns; 1 where lines are short


def console() -> Console:
    """Return where commands print: colours on a terminal alone, no markup in what is printed."""
    screen = Console(markup=False, highlight=False)
    return screen if screen.is_terminal else Console(markup=False, highlight=False, width=WIDTH)


def plain_lines(screen: Console, parts: Iterable[RenderableType]) -> list[str]:
    """Return the lines that parts take on a screen, without the blanks that fill them."""
    with screen.capture() as capture:
        for part in parts:
            screen.print(part)
    return [line.rstrip() for line in capture.get().splitlines()]


def print_plainly(screen: Console, part: RenderableType) -> None:
    """Print a part without the blanks that fill its lines."""
    for line in plain_lines(screen, [part]):
        print(line, file=screen.file)


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    width: int,
    words: Collection[int] = (0,),
) -> Table:
    """Lay rows out in columns, and leave out columns in which no row has anything.

    Parameters
    ----------
    headers : sequence of str
        The heads of the columns; one may have several lines.
    width : int
        The width of the screen, in characters.
    words : collection of int
        Which columns hold text, which folds; the others hold numbers, which do not.
    """
    filled = [index for index in range(len(headers)) if any(row[index] for row in rows)]
    columns = [Column(headers[index], index in words) for index in filled]
    for column, index in zip(columns, filled, strict=True):
        column.cells += [row[index] for row in rows]
    n_gaps = len(columns) - 1
    total_width = sum(column.natural_width() for column in columns) + GAP * n_gaps
    gap = GAP if total_width <= width else 1
    others = columns[1:]
    width_of_others = sum(column.narrowest_width() + gap for column in others)
    width_of_first = width - width_of_others
    for first in columns[:1]:
        first.fold(width_of_first)
    first_fits = all(first.natural_width() <= width_of_first for first in columns[:1])
    layout = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for index, column in enumerate(columns):
        is_folded_name = index == 0 and first_fits  # rich would fold it again
        layout.add_column(
            escape(column.header),
            justify="left" if column.is_text else "right",
            no_wrap=not column.is_text or is_folded_name,
            overflow="fold",
            vertical="top",
        )
    for cells_of_row in zip(*(column.cells for column in columns), strict=True):
        layout.add_row(*(escape(cell) for cell in cells_of_row))
    return layout


@dataclass
class Column:
    """A column of a table: its head, its cells, and whether they are text, which folds."""

    header: str
    is_text: bool
    cells: list[str] = field(default_factory=list)

    def natural_width(self) -> int:
        """Return the width in which no cell folds, in characters."""
        return _longest(line for cell in self._all_cells() for line in cell.split("\n"))

    def narrowest_width(self) -> int:
        """Return the width below which the column cannot be drawn, in characters.

        Text folds between words.
        """
        if not self.is_text:
            return self.natural_width()
        return _longest(word for cell in self._all_cells() for word in cell.split())

    def fold(self, width: int) -> None:
        """Fold text to a width, between words and after hyphens, and not within words.

        It stays wider than that where one of its words is.
        """
        self.header, *self.cells = [_folded(text, width) for text in self._all_cells()]

    def _all_cells(self) -> list[str]:
        return [self.header, *self.cells]


def _folded(text: str, width: int) -> str:
    """Fold a text to a width, or to that of its longest word or part before a hyphen.

    >>> print(_folded("follow-the-leader of all", 12))
    follow-the-
    leader of
    all
    """
    longest_part = _longest(text.replace("-", "- ").split())
    lines = [textwrap.fill(line, max(width, longest_part, 1)) for line in text.split("\n")]
    return "\n".join(lines)


def _longest(texts: Iterable[str]) -> int:
    return max((len(text) for text in texts), default=0)


MAX_DECIMALS = 9  # beyond which a number is rounding


def decimals(values: Iterable[float], digits: int) -> int:
    """Return the decimals that give the largest of some numbers so many significant digits.

    >>> decimals([0.0806, -4.553e-05], 3), decimals([1461.0, 2.5], 3)
    (4, 0)
    """
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if largest < 10.0**-MAX_DECIMALS:
        return digits
    digits_before_point = 1 + math.floor(math.log10(largest))
    return min(max(digits - digits_before_point, 0), MAX_DECIMALS)
