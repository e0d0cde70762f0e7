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

TICKS = {1: 4999, 2: 53, 3: 14}  # of the grid of outcomes along a coordinate, by their number
TICKS_OF_MANY = 5  # with more outcomes
RANDOM_OUTCOMES = 1500  # beside the grid
MAX_NUMBERS = 1 << 22  # in one table of functions at outcomes
WIDTH = 110  # of the text, in characters
SHORT = "{:.3g}".format  # of a number
PRINTED = ("paper_n", "paper_n_leading", "paper_lipschitz", "paper_lipschitz_leading")


class Case(NamedTuple):
    """A row to measure."""

    family: str
    basis: str
    outcomes: int  # d
    error: float  # the wanted one, NaN where the basis is exact


def cases() -> list[Case]:
    """List the rows of the whole table."""
    all_cases = []
    for name, family in FAMILIES.items():
        for basis, choice in family.choices.items():
            for n_outcomes, errors in choice.plan.items():
                all_cases += [Case(name, basis, n_outcomes, error) for error in errors]
    return all_cases


def one_case(case: Case) -> Iterator[Row]:
    """Build a basis and measure it."""
    family = FAMILIES[case.family]
    choice = family.choices[case.basis]
    losses = family.losses(case.outcomes)
    started = perf_counter()
    basis = choice.build(losses, case.error)
    seconds = perf_counter() - started
    lipschitz, error = measured(basis, losses)
    declared_error = basis.error
    if choice.fitted:
        declared_error = max(basis.certified_error(loss) for loss in losses)
    paper = {**dict.fromkeys(PRINTED, math.nan), **family.paper(losses, case.error)}
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
        "error_declared": declared_error,
        "error_measured": error,
        **paper,
        "seconds": seconds,
    }


def measured(basis: Basis, losses: Sequence[Loss]) -> tuple[float, float]:
    """Return the greatest sum |r_i| and the greatest error of some losses."""
    outcomes = sampled_outcomes(basis.outcomes)
    sums = []
    errors = []
    for loss in losses:
        offset, weights = basis.coefficients(loss)
        sums.append(float(np.abs(weights).sum(-1).max()))
        weights_of_actions = weights.reshape(-1, basis.size).T  # of all agents, side by side
        rows_at_once = max(1, MAX_NUMBERS // max(basis.size, offset.size))
        for start in range(0, len(outcomes), rows_at_once):
            part = outcomes[start : start + rows_at_once]
            linear_losses = offset.ravel() + basis.transform(part) @ weights_of_actions
            true_losses = loss.losses(part).reshape(linear_losses.shape)
            errors.append(float(np.abs(linear_losses - true_losses).max()))
    return max(sums), max(errors)


def sampled_outcomes(n_outcomes: int) -> Array:
    """Return outcomes (T, d): a grid with the corners, and random ones, half of them close to 0."""
    ticks = np.linspace(0, 1, TICKS.get(n_outcomes, TICKS_OF_MANY))
    random = stream(0, "reproduce bases", "outcomes").random((RANDOM_OUTCOMES, n_outcomes))
    random[::2] **= 3
    return np.concatenate([list(product(ticks, repeat=n_outcomes)), random])


def text(table: pd.DataFrame) -> str:
    """Lay the table out, family by family."""
    lines = fill(
        "lambda: declared (* for the paper's losses as they stand) and the greatest sum |r_i| of "
        "normalised losses; cost: lambda sqrt(n); error: declared (of the reduced "
        "basis: its certificate) and measured; paper: as printed (~ an O(.) with the "
        "constant 1); s: seconds to build",
        WIDTH,
    ).splitlines()
    for family, rows in table.groupby("family", sort=False):
        note = fill(f"{family}: {FAMILIES[str(family)].note}", WIDTH, subsequent_indent="    ")
        lines += ["", note, _layout(rows)]
    return "\n".join(lines)


def _layout(rows: pd.DataFrame) -> str:
    star = np.where(rows["lipschitz_of"] == "raw", "*", " ")
    width = rows["basis"].str.len().max()
    printed = {
        "basis": rows["basis"].str.ljust(width),
        "role": rows["role"].replace("alternative", ""),
        "d": rows["d"],
        "delta": rows["delta"].map("{:g}".format).replace("nan", "exact"),
        "n": rows["n"],
        "lambda": rows["lipschitz"].map(SHORT) + star,
        "measured": rows["lipschitz_measured"].map(SHORT),
        "cost": rows["cost"].map(SHORT),
        "error": rows["error_declared"].map(SHORT),
        "measured ": rows["error_measured"].map(SHORT),
        "paper n": _printed(rows, "n"),
        "paper lambda": _printed(rows, "lipschitz"),
        "s": rows["seconds"].map("{:.1f}".format),
    }
    return pd.DataFrame(printed).to_string(index=False)


def _printed(rows: pd.DataFrame, column: str) -> "pd.Series[str]":
    """Return what the paper prints, the leading term where that is all."""
    exact = rows[f"paper_{column}"]
    leading_term = rows[f"paper_{column}_leading"]
    leading_text = ("~" + leading_term.map(SHORT)).where(leading_term.notna(), "")
    return exact.map(SHORT).where(exact.notna(), leading_text)


TABLES = {"bases": Table(one_case, ["family", "basis", "d", "delta"], cases, layout=text)}
