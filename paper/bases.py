r"""The table `bases`: the paper's table of bases, re-measured.

One row per basis, number of outcomes d and wanted error delta: the paper's basis, the default here
and the alternatives. For each loss family a random population with extreme members is drawn
(``samples``), and over it are measured

    lipschitz_measured    the greatest sum |r_i| of a normalised loss
    error_measured        the greatest distance between a loss and its linear form, over a grid
                          and random outcomes that no basis was built on; a lower estimate

beside what the basis declares. A declared error holds at every outcome; for the reduced basis,
whose own error is a measured one, it is the certificate of this population. A declared lambda is
that of normalised losses, or of the paper's losses as they stand (``lipschitz_of``). What counts
for regret is the cost, lambda sqrt(n), at a given error.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from textwrap import fill
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pandas as pd

from paper.families import FAMILIES
from paper.harness import Row, Table
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis

TICKS = {1: 4999, 2: 53, 3: 14}  # of the grid of outcomes, along a coordinate
FEWEST_TICKS = 5
RANDOM = 1500  # outcomes beside the grid
NUMBERS = 1 << 22  # in one table of functions at outcomes
WIDTH = 110
BRIEF = "{:.3g}".format  # of a number
PRINTED = ("paper_n", "paper_n_leading", "paper_lipschitz", "paper_lipschitz_leading")


class Case(NamedTuple):
    """A row to measure."""

    family: str
    basis: str
    outcomes: int  # d
    error: float  # the wanted one, NaN where the basis is exact


def cases() -> list[Case]:
    """List the rows of the whole table."""
    return [
        Case(name, basis, outcomes, error)
        for name, family in FAMILIES.items()
        for basis, choice in family.choices.items()
        for outcomes, errors in choice.plan.items()
        for error in errors
    ]


def one_case(case: Case) -> Iterator[Row]:
    """Build a basis and measure it."""
    family = FAMILIES[case.family]
    choice, losses = family.choices[case.basis], family.losses(case.outcomes)
    started = perf_counter()
    basis = choice.build(losses, case.error)
    seconds = perf_counter() - started
    lipschitz, error = measured(basis, losses)
    declared = basis.error
    if choice.fitted:
        declared = max(basis.certified_error(loss) for loss in losses)
    paper = dict.fromkeys(PRINTED, math.nan) | family.paper(losses, case.error)
    yield {
        "family": case.family,
        "basis": case.basis,
        "role": choice.role,
        "d": case.outcomes,
        "delta": case.error,
        "n": basis.size,
        "lipschitz": basis.lipschitz,
        "cost": basis.lipschitz * math.sqrt(basis.size),
        "lipschitz_of": "raw" if choice.raw else "normalised",
        "lipschitz_measured": lipschitz,
        "error_declared": declared,
        "error_measured": error,
        **paper,
        "seconds": seconds,
    }


def measured(basis: Basis, losses: Sequence[Loss]) -> tuple[float, float]:
    """Return the greatest sum |r_i| and the greatest error of some losses."""
    points = outcomes(basis.outcomes)
    sums, errors = [], []
    for loss in losses:
        offset, weights = basis.coefficients(loss)
        sums.append(float(np.abs(weights).sum(-1).max()))
        flat = weights.reshape(-1, basis.size).T
        rows = max(1, NUMBERS // max(basis.size, offset.size))
        for start in range(0, len(points), rows):
            part = points[start : start + rows]
            linear = offset.ravel() + basis.transform(part) @ flat
            errors.append(float(np.abs(linear - loss.losses(part).reshape(linear.shape)).max()))
    return max(sums), max(errors)


def outcomes(goods: int) -> Array:
    """Outcomes (T, d): a grid with the corners, and random ones, half of them close to 0."""
    even = np.linspace(0, 1, TICKS.get(goods, FEWEST_TICKS))
    random = stream(0, "reproduce bases", "outcomes").random((RANDOM, goods))
    random[::2] **= 3
    return np.concatenate([list(product(even, repeat=goods)), random])


def text(table: pd.DataFrame) -> str:
    """Lay the table out, family by family."""
    told = fill(
        "lambda: declared (* for the paper's losses as they stand) and the greatest sum |r_i| of "
        "normalised losses; cost: lambda sqrt(n); error: declared (of the reduced "
        "basis: its certificate) and measured; paper: as printed (~ an O(.) with the "
        "constant 1); s: seconds to build",
        WIDTH,
    ).splitlines()
    for family, rows in table.groupby("family", sort=False):
        note = fill(f"{family}: {FAMILIES[str(family)].note}", WIDTH, subsequent_indent="    ")
        told += ["", note, _layout(rows)]
    return "\n".join(told)


def _layout(rows: pd.DataFrame) -> str:
    star = np.where(rows["lipschitz_of"] == "raw", "*", " ")
    width = rows["basis"].str.len().max()
    shown = {
        "basis": rows["basis"].str.ljust(width),
        "role": rows["role"].replace("alternative", ""),
        "d": rows["d"],
        "delta": rows["delta"].map("{:g}".format).replace("nan", "exact"),
        "n": rows["n"],
        "lambda": rows["lipschitz"].map(BRIEF) + star,
        "measured": rows["lipschitz_measured"].map(BRIEF),
        "cost": rows["cost"].map(BRIEF),
        "error": rows["error_declared"].map(BRIEF),
        "measured ": rows["error_measured"].map(BRIEF),
        "paper n": _printed(rows, "n"),
        "paper lambda": _printed(rows, "lipschitz"),
        "s": rows["seconds"].map("{:.1f}".format),
    }
    return pd.DataFrame(shown).to_string(index=False)


def _printed(rows: pd.DataFrame, column: str) -> "pd.Series[str]":
    """Return what the paper prints, the leading term where that is all."""
    exact, leading = rows[f"paper_{column}"], rows[f"paper_{column}_leading"]
    rough = ("~" + leading.map(BRIEF)).where(leading.notna(), "")
    return exact.map(BRIEF).where(exact.notna(), rough)


TABLES = {"bases": Table(one_case, ["family", "basis", "d", "delta"], cases, layout=text)}
