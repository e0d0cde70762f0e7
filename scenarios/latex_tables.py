r"""Tables as LaTeX for a paper: at most seven columns, labels in words, a caption and notes.

``report DIR --tables FOLDER`` writes one for each table, ``read_run(DIR).latex(NAME)`` and
``load_study(DIR).latex(NAME, where=...)`` return one. A paper needs the packages ``booktabs`` and
``array``, and ``longtable`` for a table of more than ``MAX_ROWS_ON_A_PAGE`` rows; the first line of
a table names them. Letters that pdfLaTeX does not know, as of other scripts, need LuaLaTeX or
XeLaTeX.

A table that is too wide for a line of text gets columns of fixed widths, in which headers and texts
are broken, and smaller letters. Widths are counted in digits, each half an em, by the widths of the
letters of LaTeX's own font. A table without rows says "none" below its header.

Ends of intervals stand in one column. Columns that are empty are left out, as are numbers of what
has names; a column that says the same in every row stands in the notes instead. Of what is left the
seven that say most are kept (``IMPORTANT`` first), in their order, and the notes name the others.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html.entities import name2codepoint
from typing import Any

import numpy as np
import pandas as pd

MAX_COLUMNS = 7
MAX_ROWS_ON_A_PAGE = 40
POINTS_ON_A_LINE = 344.0  # one less than on an article's page, since widths are rounded
POINTS_PER_DIGIT = 5.0  # in its normal letters
GAP_IN_POINTS = 12.0  # between columns, LaTeX's own
# Points per digit in smaller letters, the largest first; columns have narrow gaps then.
SMALLER_LETTERS = {"footnotesize": 4.25, "scriptsize": 3.985}
NARROW_GAP_IN_POINTS = 6.0
GAP_OF_WIDE_TABLES = "3pt"  # on each side of a column
MAX_UNBROKEN = 12  # digits; a longer word in a column of fixed width is hyphenated
# What lets TeX hyphenate the first word of a cell, and does not let it break the line before it.
FIRST_WORD = r"\leavevmode\nobreak\hspace{0pt}"
# Characters of Computer Modern Roman by their width in thousandths of an em (cmr10.tfm).
CHARACTERS_OF_WIDTH = {
    278: ".,:;!'|[]il",
    306: "fj",
    333: "- ",
    361: "_I",
    389: "t()",
    392: "r",
    394: "s",
    444: "cez",
    500: '0123456789aogJ*/"{}$\\~^',
    528: "kqvxy",
    556: "bdhnpuS",
    611: "Z",
    625: "L",
    653: "F",
    681: "EP",
    708: "B",
    722: "wCT",
    736: "R",
    750: "AHNUVXY",
    764: "D",
    778: "OQKG+=<>&\N{MINUS SIGN}",
    833: "m%#",
    917: "M",
    1028: "W",
}
WIDTH_OF_OTHERS = 778  # as of a Greek letter or a relation
WIDTHS = {
    character: width
    for width, characters in CHARACTERS_OF_WIDTH.items()
    for character in characters
}
MINUS = "\N{MINUS SIGN}"
# Of a power of ten: the sign of multiplication, 10, a raised minus, and space behind it.
WIDTH_OF_TIMES_TEN = 778 + 1000 + 700 + 60
WIDTH_OF_RAISED_DIGIT = 430
NO_ROWS = "none"
N_DIGITS = 4  # significant ones, of a number that is not whole
FIRST_WITHOUT_DECIMALS = 10.0 ** (N_DIGITS - 1)
INTERVAL = "95 % interval"
IMPORTANT = (
    *("key", "value", "against", "other_key", "other_value", "cohort", "parameter", "range"),
    *("branch", "name", "agent", "term", "measure", "coefficient", "mean", "mean_loss"),
    *("difference", INTERVAL, "p_adjusted", "p", "better_off", "swap_regret"),
    *("decision_swap_regret", "bound", "external_regret", "exploitability", "seeds", "agents"),
)
# Columns with numbers of what other columns name.
NAMED = {"action": "action_name", "best_replacement": "best_replacement_name"}
LABELS = {
    "against": "compared with",
    "better_off": "agents better off",
    "best_replacement_name": "best replacement",
    "action_name": "action",
    "bound_from_bias": "bound given the biases",
    "bound_from_variation": "bound given the variation",
    "effective": "effective rounds",
    "mean_loss": "average loss",
    "name": "alternative",
    "other_against": "other compared with",
    "p_adjusted": "adjusted p",
    "same_scale": "on one scale",
    "y_0": "outcome",
}
CAPTIONS = {
    "agents": "Agents, their average losses and regrets per round.",
    "biases": "Biases of the forecast in events, per round.",
    "bounds": "Decision swap regret of the worst agent, and its bounds.",
    "calibration": "Settings that come nearest to what was observed.",
    "cohorts": "Average losses and regrets of each cohort in each run.",
    "contrasts": "Differences between each value of a setting and its control.",
    "contrasts_by_parameter": "Differences by a parameter of the agents.",
    "effects": "Mean of each measure by the value of a setting.",
    "effects_by_parameter": "Mean of each measure by a parameter of the agents.",
    "gains": "What agents gain in each branch.",
    "interactions": "How the difference of one setting depends on another.",
    "models": "Average losses of agents who follow each model, and regrets to them.",
    "pair_effects": "Mean of each measure by the values of two settings.",
    "regression": "Measures of agents, regressed on parameters and settings.",
    "sensitivity": "Share of the variance of each measure that each setting explains.",
    "solutions": "Losses in the solutions of the game.",
    "swaps": "Actions of agents, and their best replacements in hindsight.",
    "value": "Difference of average losses between forecasters.",
    "verdict": "Alternatives in hindsight.",
}
# Characters that pdfLaTeX has no letter for.
SYMBOLS = {"\N{MINUS SIGN}": "$-$", "≥": r"$\geq$", "≤": r"$\leq$", "≠": r"$\neq$"}
SYMBOLS |= {"≈": r"$\approx$", "∞": r"$\infty$", "→": r"$\to$"}
GREEK = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi"
GREEK += " pi rho sigma tau phi chi psi omega"
for _name in GREEK.split():
    SYMBOLS[chr(name2codepoint[_name])] = rf"$\{_name}$"
UNITS_NOTE = "Losses are in [0, 1] and regrets are averages per round, where no unit is named."


def latex_table(name: str, table: pd.DataFrame, *, caption: str | None = None) -> str:
    """Return a table as LaTeX, with the label ``tab:NAME``.

    ``caption`` is text, not LaTeX, as all cells are.
    """
    columns = _joined_intervals(_with_numbered_outcomes(table))
    columns = columns.dropna(axis="columns", how="all") if len(columns) else columns
    for number, its_name in NAMED.items():
        if {number, its_name} <= set(columns):
            columns = _with_names_alone(columns, number, its_name)
    notes = [UNITS_NOTE]
    if len(columns) > 1:
        columns, constants = _without_constants(columns)
        if constants:
            notes.append(f"In all rows: {'; '.join(constants)}.")
    kept = _most_important(columns)
    left_out = [_label(str(column)) for column in columns if column not in kept]
    if left_out:
        notes.append(f"Not shown: {', '.join(left_out)}.")
    shown = columns[kept]
    title = caption or CAPTIONS.get(name, f"Table {_label(name)}.")
    return _written(name, shown, _escaped(title), [_escaped(note) for note in notes])


def _with_names_alone(table: pd.DataFrame, number: str, its_name: str) -> pd.DataFrame:
    """Return a table without the numbers of what has names; a number stands where a name lacks."""
    names = []
    for number_in_row, name in zip(table[number], table[its_name], strict=True):
        names.append(_cell(number, number_in_row) if pd.isna(name) else name)
    return table.assign(**{its_name: names}).drop(columns=number)


def _with_numbered_outcomes(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which outcomes have their numbers in words, where there are several."""
    measures = table["measure"].astype(str) if "measure" in table else pd.Series(dtype=str)
    if "y_1" not in table and not measures.str.startswith("y_1_").any():
        return table
    numbered = table.rename(columns=_numbered_outcome)
    if "measure" in table:
        numbered["measure"] = [_numbered_outcome(measure) for measure in measures]
    return numbered


def _numbered_outcome(name: Any) -> str:
    """Return the name of a column or measure, with words where it begins with an outcome's."""
    return re.sub(r"^y_(\d+)(?=_|$)", r"outcome \1", str(name))


def _joined_intervals(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with text for both ends of an interval in the place of its lower end."""
    if not {"low", "high"} <= set(table):
        return table
    joined = []
    for low, high in zip(table["low"], table["high"], strict=True):
        has_ends = not (pd.isna(low) or pd.isna(high))
        joined.append(f"[{_number(low)}, {_number(high)}]" if has_ends else None)
    place = list(table).index("low")
    others = table.drop(columns=["low", "high"])
    others.insert(min(place, others.shape[1]), INTERVAL, pd.Series(joined, index=table.index))
    return others


def _without_constants(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return a table without columns of one text or whole number, and what these are."""
    constants = []
    varying = []
    for column in table:
        values = table[column]
        is_number = pd.api.types.is_float_dtype(values) and column in IMPORTANT
        if is_number or column == INTERVAL or len(values.drop_duplicates()) > 1:
            varying.append(column)
        elif _cell(str(column), values.iloc[0]):
            constants.append(f"{_label(str(column))} {_cell(str(column), values.iloc[0])}")
    return table[varying], constants


def _most_important(table: pd.DataFrame) -> list[str]:
    """Return the names of at most ``MAX_COLUMNS`` columns, in the order of the table."""
    names = [str(column) for column in table]
    ranks = {name: rank for rank, name in enumerate(IMPORTANT)}
    by_rank = sorted(names, key=lambda name: ranks.get(name, len(ranks)))  # stable
    kept = set(by_rank[:MAX_COLUMNS])
    return [name for name in names if name in kept]


def _written(name: str, table: pd.DataFrame, caption: str, notes: list[str]) -> str:
    """Return the LaTeX of columns that are all to be shown."""
    labels = [_label(str(column)) for column in table]
    rows = [_cells(table, row) for row in table.itertuples(index=False, name=None)]
    is_number = [_has_numbers(table[column]) for column in table]
    layout = _layout(labels, rows, is_number)
    header = _line(labels, layout)
    lines = [_line(row, layout) for row in rows]
    if not rows:
        lines = [rf"\multicolumn{{{max(len(labels), 1)}}}{{l}}{{{NO_ROWS}}} \\"]
    alignments = layout.alignments or "l"
    packages = "booktabs,array" if layout.is_wide else "booktabs"
    note = r"\emph{Notes.} " + " ".join(notes)
    title = rf"\caption{{{caption}}}\label{{tab:{name}}}"
    if len(table) > MAX_ROWS_ON_A_PAGE:
        return "\n".join(
            [
                rf"% \usepackage{{{packages},longtable}}",
                *layout.opening,
                rf"\begin{{longtable}}{{{alignments}}}",
                title + r" \\",
                r"\toprule",
                header,
                r"\midrule",
                r"\endhead",
                r"\bottomrule",
                r"\endfoot",
                *lines,
                r"\end{longtable}",
                *layout.closing,
                rf"\noindent{{\footnotesize {note}\par}}",
                "",
            ]
        )
    return "\n".join(
        [
            rf"% \usepackage{{{packages}}}",
            r"\begin{table}[htbp]",
            r"\centering",
            title,
            *layout.opening,
            rf"\begin{{tabular}}{{{alignments}}}",
            r"\toprule",
            header,
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            *layout.closing,
            rf"\par\smallskip\parbox{{\linewidth}}{{\footnotesize {note}}}",
            r"\end{table}",
            "",
        ]
    )


def _cells(table: pd.DataFrame, row: Sequence[Any]) -> list[str]:
    """Return the values of a row of a table as they are to be read."""
    return [_cell(str(column), value) for column, value in zip(table, row, strict=True)]


@dataclass(frozen=True)
class _Layout:
    """How the columns of a table stand."""

    alignments: str  # of the columns, as ``tabular`` takes them
    letters: str = ""  # the command for smaller letters, in a wide table

    @property
    def is_wide(self) -> bool:
        """Whether columns have fixed widths."""
        return bool(self.letters)

    @property
    def opening(self) -> list[str]:
        """What stands before the table itself: smaller letters and narrower gaps."""
        if not self.is_wide:
            return []
        return [rf"{{\{self.letters}\setlength{{\tabcolsep}}{{{GAP_OF_WIDE_TABLES}}}"]

    @property
    def closing(self) -> list[str]:
        """What stands after the table itself."""
        return ["}"] if self.is_wide else []


def _has_numbers(values: "pd.Series[Any]") -> bool:
    """Whether a column has numbers, which stand at the right."""
    return pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)


def _layout(
    labels: Sequence[str], rows: Sequence[Sequence[str]], is_number: Sequence[bool]
) -> _Layout:
    """Return how columns with these labels and cells stand, so that they fit into a line."""
    columns = list(zip(labels, *rows, strict=True))
    full_widths = np.array([max(map(_width, column)) for column in columns])
    gaps = GAP_IN_POINTS * len(columns)
    if POINTS_PER_DIGIT * full_widths.sum() + gaps <= POINTS_ON_A_LINE:
        return _Layout("".join("r" if number else "l" for number in is_number))
    least_widths = []
    for column, number in zip(columns, is_number, strict=True):
        label, *cells = column
        # A number is not broken.
        least_of_cells = max(map(_width, cells), default=0) if number else _least_width(cells)
        least_widths.append(max(_least_width([label]), least_of_cells))
    room_for_digits = POINTS_ON_A_LINE - NARROW_GAP_IN_POINTS * len(columns)
    digits_on_a_line = {
        letters: room_for_digits / points for letters, points in SMALLER_LETTERS.items()
    }
    fitting = [
        letters for letters, digits in digits_on_a_line.items() if sum(least_widths) <= digits
    ]
    letters = (*fitting, *reversed(SMALLER_LETTERS))[0]
    room = max(digits_on_a_line[letters] - sum(least_widths), 0.0)
    wishes = np.maximum(full_widths - np.array(least_widths), 0.0)
    share = min(room / max(wishes.sum(), 1.0), 1.0)
    alignments = ""
    for least, wish, number in zip(least_widths, wishes, is_number, strict=True):
        side = "left" if number else "right"  # which side is ragged
        width = (least + share * wish) / 2  # in em
        alignments += rf">{{\ragged{side}\arraybackslash{FIRST_WORD}}}p{{{width:.2f}em}}"
    return _Layout(alignments, letters)


def _least_width(texts: Sequence[str]) -> float:
    """Return the width of the longest piece of texts that is not broken, in digits."""
    longest = 1.0
    for text in texts:
        for piece in re.split(r"[ ]|(?<=[a-z][-._])", text):
            has_digit = any(character.isdigit() for character in piece)
            width = _width(piece) if has_digit else min(_width(piece), MAX_UNBROKEN)
            longest = max(longest, width)
    return longest


def _width(text: str) -> float:
    """Return the width of a text in digits, in which numbers have powers of ten and a minus.

    Examples
    --------
    >>> _width("loss"), _width("12")
    (3.132, 2.0)
    """
    power_of_ten = re.compile(r"(?<=\d)e-0*(\d+)")
    width = 0
    for exponent in power_of_ten.findall(text):
        width += WIDTH_OF_TIMES_TEN + WIDTH_OF_RAISED_DIGIT * len(exponent)
    mantissas = power_of_ten.sub("", text)
    for character in re.sub(r"(?<!\w)-(?=\d)", MINUS, mantissas):
        width += WIDTHS.get(character, WIDTH_OF_OTHERS)
    return width / 500


def _line(cells: Sequence[str], layout: _Layout) -> str:
    """Return a row as LaTeX. What opens it is never taken for an argument of the row before."""
    escaped_cells = [_escaped(cell) for cell in cells]
    if layout.is_wide:
        escaped_cells = [_breakable(cell) for cell in escaped_cells]
    line = " & ".join(escaped_cells)
    if line.startswith(("[", "*")):
        line = "{}" + line
    return line + r" \\"


def _breakable(cell: str) -> str:
    """Return LaTeX that may be broken within a key, behind its dots and underscores."""
    return re.sub(r"(\\_|(?<=[a-z])\.)(?=[a-z])", r"\1\\allowbreak{}", cell)


def _label(column: str) -> str:
    """Return what a column, or a measure, is called in words."""
    column = column.removeprefix("param_")
    if column in LABELS:
        return LABELS[column]
    name, _, ending = column.rpartition("_")
    if name and ending == "worst":
        return f"{_label(name)}, worst agent"
    if name and ending in {"mean", "deviation"}:
        return f"{_label(name)}, {ending}"
    return column.replace("_", " ")


def _cell(column: str, value: Any) -> str:
    """Return a value as it is to be read; empty where it is missing."""
    if value is None or (not isinstance(value, str) and np.ndim(value) == 0 and pd.isna(value)):
        return ""
    if column in {"p", "p_adjusted"} and value < 0.001:
        return "<0.001"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if isinstance(value, float | np.floating):
        return _number(float(value))
    if column == "measure":
        return _label(str(value))
    return str(value)


def _number(value: float) -> str:
    """Return a number in ``N_DIGITS`` digits, and all before the point."""
    if abs(value) < FIRST_WITHOUT_DECIMALS:
        return f"{value:.{N_DIGITS}g}"
    return f"{value:,.0f}"


def _escaped(text: str) -> str:
    r"""Return text as LaTeX: no character means anything else, and a minus is one.

    Examples
    --------
    >>> print(_escaped("loss_a: -1.5e-05 & 95 %"))
    loss\_a: $-$1.5$\times10^{-5}$ \& 95 \%
    """
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {character: f"\\{character}" for character in "&%$#_{}"}
    special |= {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
    special |= SYMBOLS
    escaped = ""
    for place, character in enumerate(text):
        is_before_digit = text[place + 1 : place + 2].isdigit()
        follows_letter_of_word = place > 0 and text[place - 1].isalnum() and text[place - 1] != "e"
        if character == "-" and is_before_digit and not follows_letter_of_word:
            escaped += "$-$"
        else:
            escaped += special.get(character, character)
    escaped = re.sub(r"(?<=\d)e\$-\$0*(\d+)", r"$\\times10^{-\1}$", escaped)
    return " ".join(escaped.split())
