"""Tables on the terminal: plain columns of equal digits, 80 characters wide where there is none."""

import math
from collections.abc import Collection, Iterable, Sequence

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
    """Lay rows out in columns: text, which folds, at the places ``words``, and else numbers.

    Columns in which no row has anything are left out; a head may have several lines; ``width`` is
    that of the screen, in characters.
    """
    filled = [place for place in range(len(headers)) if any(row[place] for row in rows)]
    cells = [[row[place] for place in filled] for row in (headers, *rows)]
    columns = list(zip(*cells, strict=True))
    natural = sum(max(len(part) for cell in own for part in cell.split("\n")) for own in columns)
    gap = GAP if natural + GAP * (len(filled) - 1) <= width else 1
    made = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    widest = []  # of each column its longest line, or its longest word where it can fold
    for at, (place, own) in enumerate(zip(filled, columns, strict=True)):
        end = "\n" if not at or place not in words else None
        widest.append(max(len(part) for cell in own for part in cell.split(end) or [""]))
    names = sum(widest) + gap * (len(filled) - 1) <= width  # the first column need not fold
    for at, place in enumerate(filled):
        number = place not in words
        made.add_column(
            escape(headers[place]),
            justify="right" if number else "left",
            no_wrap=number or (names and not at),
            overflow="fold",
            vertical="top",
        )
    for row in cells[1:]:
        made.add_row(*map(escape, row))
    return made


MOST = 9  # decimals, beyond which a number is rounding


def decimals(values: Iterable[float], digits: int) -> int:
    """Return the decimals that give the largest of some numbers so many significant digits.

    >>> decimals([0.0806, -4.553e-05], 3), decimals([1461.0, 2.5], 3)
    (4, 0)
    """
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if largest < 10.0**-MOST:
        return digits
    return min(max(digits - 1 - math.floor(math.log10(largest)), 0), MOST)
