"""Numbers as tables write them: decimal marks, marks between thousands, signs of units, no value.

``table_files`` reads a column of text in one **style**, which its file states or which is the
plain one; ``table_description`` finds the style of a column of which nothing is known. What could
be two different numbers is never read as one of them: ``1,039`` is 1039 or 1.039, and only the
values beside it, or the user, can say which.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from regretless.market.core.arrays import Array

# Texts that say that there is no value, wherever they stand.
MISSING = {"", "na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none"}
# Marks of statistical offices, packages and spreadsheets for a missing value; they are no words.
MISSING_MARKS = {"-", "--", "\u2013", "\u2014", "?", ".", "..", "...", "\u2026", ":", "*", "/"}
MISSING_MARKS |= {"n/e", "n.e.", "n.a.", "n.d.", "n/d", "k.a.", "s/d"}
MISSING_MARKS |= {"#div/0!", "#value!", "#ref!", "#num!", "#name?", "#null!"}
NO_THOUSANDS = "none"  # what a file writes where a column has no mark between thousands
GROUP_MARKS = {",": ",", ".": r"\.", " ": "[ \u00a0\u2009\u202f]", "'": "['\u2019]"}
MINUS_SIGNS = re.compile(r"^[\u2212\u2013](?=\s*[\d.,])")
UNIT_SIGNS = r"%|‰|€|\$|£|¥|₹|EUR|USD|GBP|CHF|JPY"
SIGN_BEFORE = re.compile(rf"([+-]?)\s*({UNIT_SIGNS})\s*([\d.,].*)")
SIGN_AFTER = re.compile(rf"(.*\d[.,]?)\s*({UNIT_SIGNS})")
GROUPED_BY_COMMA = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
GROUPED_BY_POINT = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+")
WHOLE = re.compile(r"[+-]?\d+")
HEXADECIMAL = re.compile(r"[+-]?0[xX][0-9a-fA-F]+")
IN_PARENTHESES = re.compile(r"\(\s*[\d.,' ]*\d[\d.,' ]*\)")
NUMBER_LIKE = re.compile(
    rf"(?:[-+\u2212\d.,'\u2019()\s]|{UNIT_SIGNS})*\d(?:[-+\u2212\d.,'()\s]|{UNIT_SIGNS})*"
)
MIN_GROUPED = 3  # different grouped numbers that make a mark one between thousands
MIN_REPEATS = 3  # of a negative number that may stand for missing values


@dataclass(frozen=True)
class NumberStyle:
    """The marks with which the numbers of a column are written.

    ``decimal`` is "." or ","; ``thousands`` is "," "." " " or "'" between groups of three digits,
    and empty where there is none.
    """

    decimal: str = "."
    thousands: str = ""

    def read(self, text: str) -> float:
        """Return the number that a text is in this style; infinity if it is no finite one."""
        number = plain_minus(text)
        if self.thousands and self._grouped.fullmatch(number):
            number = re.sub(GROUP_MARKS[self.thousands], "", number)
        if self.decimal != ".":
            number = number.replace(".", "_").replace(self.decimal, ".")
        if "_" in number:
            return np.inf
        try:
            value = float(number)
        except ValueError:
            return np.inf
        return np.inf if math.isnan(value) else value

    def reads_all(self, texts: Sequence[str]) -> bool:
        """Whether all texts are finite numbers in this style."""
        return all(math.isfinite(self.read(text)) for text in texts)

    @cached_property
    def _grouped(self) -> re.Pattern[str]:
        mark = GROUP_MARKS[self.thousands]
        fraction = rf"({re.escape(self.decimal)}\d*)?"
        return re.compile(rf"[+-]?\d{{1,3}}({mark}\d{{3}})+{fraction}([eE][+-]?\d+)?")


PLAIN = NumberStyle()
STYLES = (  # in the order in which they are tried
    PLAIN,
    NumberStyle(decimal=","),
    NumberStyle(decimal=".", thousands=","),
    NumberStyle(decimal=",", thousands="."),
    NumberStyle(decimal=".", thousands=" "),
    NumberStyle(decimal=",", thousands=" "),
    NumberStyle(decimal=".", thousands="'"),
    NumberStyle(decimal=",", thousands="'"),
)


def plain_minus(text: str) -> str:
    """Return a text without blanks around it, and with a hyphen for a typographer's minus."""
    return MINUS_SIGNS.sub("-", text.strip())


def without_sign(text: str) -> tuple[str, str]:
    """Split a text into the number that it holds and its unit's sign, which may be empty."""
    number = plain_minus(text)
    before = SIGN_BEFORE.fullmatch(number)
    if before is not None:
        return before[1] + before[3], before[2]
    after = SIGN_AFTER.fullmatch(number)
    if after is not None:
        return after[1], after[2]
    return number, ""


def common_sign(texts: Sequence[str]) -> str:
    """Return the sign of a unit that all texts carry, as ``%`` or ``€``; empty without one."""
    signs = {without_sign(text)[1] for text in texts}
    return signs.pop() if len(signs) == 1 else ""


def has_marked_thousands(texts: Sequence[str], mark: str) -> bool:
    """Whether a mark, "," or ".", that could be a decimal one stands between thousands.

    It does if all numbers that hold it have groups of three digits behind it and no leading zero,
    and if a number has two such groups, or numbers below 1000 stand there without the mark: in the
    same column 1.039 would be a decimal number beside 900 that lacks its three decimals.
    """
    pattern = GROUPED_BY_COMMA if mark == "," else GROUPED_BY_POINT
    marked = {text for text in texts if mark in text}
    unmarked = [text for text in texts if mark not in text]
    if not marked or not all(pattern.fullmatch(text) for text in marked):
        return False
    if any(text.count(mark) > 1 for text in marked):
        return True
    is_below_thousand = [WHOLE.fullmatch(text) and len(text.lstrip("+-")) <= 3 for text in unmarked]
    return len(marked) >= MIN_GROUPED and bool(unmarked) and all(is_below_thousand)


def find_style(texts: Sequence[str]) -> NumberStyle | None:
    """Return the style in which all texts are numbers; None if there is none, or several are.

    The texts are present values without signs of units.
    """
    texts = [plain_minus(text) for text in texts]
    if PLAIN.reads_all(texts):
        is_grouped = has_marked_thousands(texts, ".")
        return NumberStyle(decimal=",", thousands=".") if is_grouped else PLAIN
    if has_marked_thousands(texts, ","):
        return NumberStyle(decimal=".", thousands=",")
    if has_marked_thousands(texts, "."):
        return NumberStyle(decimal=",", thousands=".")
    if is_ambiguous(texts):
        return None
    return next((style for style in STYLES if style.reads_all(texts)), None)


def is_ambiguous(texts: Sequence[str]) -> bool:
    """Whether the comma of all numbers may be a decimal one as well as one between thousands."""
    marked = [text for text in texts if "," in text]
    unmarked = [text for text in texts if "," not in text]
    if not marked or not all(GROUPED_BY_COMMA.fullmatch(text) for text in marked):
        return False
    has_long = any(len(text.lstrip("+-")) > 3 for text in unmarked)
    return not has_long and not has_marked_thousands(texts, ",")


def may_be_thousands(texts: Sequence[str]) -> bool:
    """Whether numbers that are read as decimal ones all look like groups of three digits."""
    return bool(texts) and all(GROUPED_BY_POINT.fullmatch(text) for text in texts)


def find_sentinel(numbers: Array) -> float | None:
    """Return a number (T,) that seems to stand for missing values, such as -999; None without one.

    It is the least or the greatest and further from all others than these are from one another, or
    the only one below zero. It is made of nines or, if it is there three times and far from the
    others, any whole number below zero. Above zero it is whole and the greatest of three or more:
    9.99 beside 12.99 are prices.
    """
    present = numbers[np.isfinite(numbers)]
    if not len(present):
        return None
    for end in (float(present.min()), float(present.max())):
        other_numbers = present[present != end]
        if not len(other_numbers):
            return None
        distance = float(np.abs(other_numbers - end).min())
        is_far = distance > max(float(np.ptp(other_numbers)), 1.0)
        is_only_negative = end < 0 <= other_numbers.min()
        is_greatest_of_several = end > other_numbers.max() > other_numbers.min()
        if end > 0 and not (is_greatest_of_several and end.is_integer()):
            continue
        digits = f"{abs(end):g}".replace(".", "")
        is_of_nines = len(digits) > 1 and set(digits) == {"9"}
        is_repeated = len(present) - len(other_numbers) >= MIN_REPEATS
        if is_of_nines and (is_repeated or len(digits) > 2) and (is_far or is_only_negative):
            return end
        if is_repeated and is_far and end < 0 and end.is_integer():
            return end
    return None
