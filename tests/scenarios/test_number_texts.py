"""Numbers as tables write them: each is read as one number, or refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regretless.scenarios.number_texts import (
    PLAIN,
    NumberStyle,
    common_sign,
    find_sentinel,
    find_style,
    is_ambiguous,
    without_sign,
)

COMMA_THOUSANDS = NumberStyle(decimal=".", thousands=",")
POINT_THOUSANDS = NumberStyle(decimal=",", thousands=".")


@pytest.mark.parametrize(
    ("texts", "style"),
    [
        (["1", "20", "1500"], PLAIN),
        (["1.5", "-2", "3e4"], PLAIN),
        (["0.125", "0.250", "1.375", "2"], PLAIN),  # a leading zero is no thousand
        (["9,00", "10,39"], NumberStyle(decimal=",")),
        (["1,039", "900", "1,5"], NumberStyle(decimal=",")),
        (["1,039", "1500"], NumberStyle(decimal=",")),  # 1500 has no mark
        (["900", "1,039", "1,172", "1,295"], COMMA_THOUSANDS),
        (["900", "1.039", "1.172", "1.295"], POINT_THOUSANDS),
        (["1,234,567"], COMMA_THOUSANDS),
        (["1.234.567", "5"], POINT_THOUSANDS),
        (["1,234.50", "7.25"], COMMA_THOUSANDS),
        (["1.234,50", "7,25"], POINT_THOUSANDS),
        (["1 234,5", "12\u202f345,0"], NumberStyle(decimal=",", thousands=" ")),
        (["1'234.5"], NumberStyle(decimal=".", thousands="'")),
        (["\u22125", "7"], PLAIN),
        (["1,039", "2,172"], None),  # 1.039 or 1039
        (["wet"], None),
        (["1,23,4"], None),
    ],
)
def test_the_style_of_a_column_is_the_only_one_that_reads_it(
    texts: list[str], style: NumberStyle | None
) -> None:
    assert find_style(texts) == style


@pytest.mark.parametrize(
    ("style", "text", "number"),
    [
        (PLAIN, "1.039", 1.039),
        (POINT_THOUSANDS, "1.039", 1039.0),
        (POINT_THOUSANDS, "-1.234.567,25", -1234567.25),
        (COMMA_THOUSANDS, "1,039.5", 1039.5),
        (COMMA_THOUSANDS, "1,03", np.inf),
        (NumberStyle(decimal=","), "1.5", np.inf),
        (NumberStyle(thousands=" "), "1\u00a0500", 1500.0),
        (PLAIN, "\u22123.5", -3.5),
        (PLAIN, "0x1A", np.inf),
        (PLAIN, "(5)", np.inf),
        (PLAIN, "1_000", np.inf),
        (PLAIN, "nan", np.inf),
    ],
)
def test_a_style_reads_its_own_marks_and_no_others(
    style: NumberStyle, text: str, number: float
) -> None:
    assert style.read(text) == number


@given(st.floats(-1e12, 1e12), st.sampled_from([COMMA_THOUSANDS, POINT_THOUSANDS]))
def test_grouped_numbers_are_read_as_they_were_written(number: float, style: NumberStyle) -> None:
    english = f"{number:,.2f}"
    swapped = english.translate(str.maketrans(",.", ".,"))
    text = english if style.decimal == "." else swapped
    assert style.read(text) == float(f"{number:.2f}")


@pytest.mark.parametrize(
    ("text", "number", "sign"),
    [
        ("55.9%", "55.9", "%"),
        ("55,9 %", "55,9", "%"),
        ("$1,200", "1,200", "$"),
        ("-€5", "-5", "€"),
        ("1.234,50 EUR", "1.234,50", "EUR"),
        ("CHF 12", "12", "CHF"),
        ("12", "12", ""),
        ("EUR", "EUR", ""),
    ],
)
def test_a_sign_of_a_unit_is_told_from_its_number(text: str, number: str, sign: str) -> None:
    assert without_sign(text) == (number, sign)


def test_a_sign_is_common_if_every_number_carries_it() -> None:
    assert common_sign(["5%", "7 %"]) == "%"
    assert not common_sign(["5%", "0.07"])
    assert not common_sign(["$5", "€5"])


def test_a_comma_with_three_digits_behind_it_everywhere_is_ambiguous() -> None:
    assert is_ambiguous(["1,039", "2,500"])
    assert not is_ambiguous(["1,039", "2,5"])
    assert not is_ambiguous(["1,039", "1,172", "1,295", "900"])


@pytest.mark.parametrize(
    ("numbers", "sentinel"),
    [
        ([1.0, 5.0, -999.0, 3.0], -999.0),
        ([1.5, 2.5, -99.9, 3.0], -99.9),
        ([200.0, 1600.0, -999.0], -999.0),
        ([20.0, -200.0, 30.0, -200.0, -200.0, -5.0], -200.0),
        ([1.0, 2.0, 9999.0], 9999.0),
        ([9.99, 12.99, 9.99, 12.99, 9.99], None),  # two prices
        ([4.99, 9.99, 4.99, 9.99, 9.99], None),
        ([499.0, 999.0, 499.0, 999.0, 999.0], None),
        ([1.0, 2.0, 99.0], None),  # one day of 99 may be a good day
        ([0.0, 0.0, 0.0, 1000.0, 1100.0], None),  # nothing sold is a number
        ([1.0, 2.0, 3.0], None),
        ([-999.0, -500.0, 500.0], None),
        ([np.nan], None),
    ],
)
def test_a_number_far_from_all_others_may_stand_for_missing_values(
    numbers: list[float], sentinel: float | None
) -> None:
    assert find_sentinel(np.array(numbers)) == sentinel
