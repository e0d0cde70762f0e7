"""Arguments that mean nothing, and the one way in which a function may take them."""

import warnings
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from regretless import UserError
from regretless.market.losses import Linear

MEANINGLESS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([10**39, 10**400, -(10**400), 1e308, 5e-324]),
    st.floats(),
    st.complex_numbers(),
    st.text(max_size=4),
    st.binary(max_size=3),
    st.dates(),
    st.lists(st.one_of(st.integers(-2, 2), st.floats(), st.text(max_size=2)), max_size=3),
    st.dictionaries(
        st.one_of(st.text(max_size=2), st.integers(), st.none()), st.none(), max_size=2
    ),
    st.sampled_from([object(), pd.NA, pd.NaT, date(1, 1, 1), {1, 2}, len, int, (), [[1], [2, 3]]]),
    st.sampled_from([np.zeros((0, 2)), np.full((2, 2), np.nan), np.array(["a"]), np.array(3.0)]),
    st.just(Linear([[1.0], [0.5]])),
)

# what an argument that must be a number cannot be, by its name in a test
NO_NUMBER: dict[str, Any] = {
    "nan": np.nan,
    "inf": np.inf,
    "-inf": -np.inf,
    "huge": 10**39,
    "of hundreds of digits": 10**400,
    "negative": -1.0,
    "text": "5",
    "bytes": b"5",
    "complex": 1j,
    "a list": [0.5, 0.5, 0.5, 0.5],
    "a ragged table": [[0.1], [0.2, 0.3]],
    "an object": object(),
    "a mapping": {"a": 1},
    "a function": len,
    "a class": int,
}


def refuses_or_works(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Call a function; fail unless it works or raises a UserError of one line."""
    line = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(**arguments)
        except UserError as refusal:
            line = str(refusal)
    assert "\n" not in line
