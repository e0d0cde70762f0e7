"""Tables on the terminal: plain columns of equal digits, 80 characters wide where there is none."""

from collections.abc import Collection, Iterable, Sequence

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table

WIDTH = 80  # characters of a line in a pipe or a file
GAP = 2  # between columns; 1 where room is short


def console() -> Console:
    """Return where commands print: colours on a terminal alone, no markup in what is printed."""
    screen = Console(markup=False, highlight=False)
    return screen if screen.is_terminal else Console(markup=False, highlight=False, width=WIDTH)


def plain_lines(screen: Console, parts: Iterable[RenderableType]) -> list[str]:
    """Return the lines that parts take on a screen, without the blanks that fill them."""
    with screen.capture() as kept:
        for part in parts:
            screen.print(part)
    return [line.rstrip() for line in kept.get().splitlines()]


def print_plainly(screen: Console, part: RenderableType) -> None:
    """Print a part without the blanks that fill its lines."""
    for line in plain_lines(screen, [part]):
        print(line, file=screen.file)


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    room: int,
    words: Collection[int] = (0,),
) -> Table:
    """Lay rows out in columns: text, which folds, at the places ``words``, and else numbers.

    Columns in which no row has anything are left out.

    Parameters
    ----------
    heads : sequence of str
        A head may have several lines.
    room : int
        Characters of a line.
    """
    kept = [place for place in range(len(heads)) if any(row[place] for row in rows)]
    cells = [[row[place] for place in kept] for row in (heads, *rows)]
    columns = zip(*cells, strict=True)
    natural = sum(max(len(part) for cell in own for part in cell.split("\n")) for own in columns)
    gap = GAP if natural + GAP * (len(kept) - 1) <= room else 1
    made = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for place in kept:
        number = place not in words
        made.add_column(
            escape(heads[place]),
            justify="right" if number else "left",
            no_wrap=number,
            overflow="fold",
            vertical="top",
        )
    for row in cells[1:]:
        made.add_row(*map(escape, row))
    return made
