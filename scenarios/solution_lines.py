"""What ``run`` prints of the solutions of the stage game, if the scenario asks for any.

The page of a run says the same of the price of anarchy and of solutions that were not found.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
from rich.console import RenderableType

from regretless.market.model import MarketModel
from regretless.market.solutions.solution import ratio_of_welfare
from regretless.scenarios.terminal import table

HEADERS = ["Solutions of the stage game", "loss", "welfare", "greatest\ngain"]
ROUNDING = 1e-12  # a gain below it is an error of floating-point numbers
CONCEPTS = {"ce": "correlated", "cce": "coarse correlated"}


def lines_on_solutions(
    model: MarketModel, closing_tables: Mapping[str, pd.DataFrame] | None, *, width: int
) -> Iterator[RenderableType]:
    """Yield play and solutions: of the only cohort, or of all together.

    What could not be computed is a line that says why.
    """
    if not model.solved.names:
        return
    closing_tables = closing_tables or {}
    solutions = closing_tables.get("solutions")
    if solutions is None:
        solutions = model.solutions()
    solutions = of_everybody(solutions)
    cells = []
    for row in solutions[solutions["mean_loss"].notna()].to_dict("records"):
        gain = gain_text(row["certificate"])
        cells.append([row["name"], f"{row['mean_loss']:.4f}", f"{row['welfare']:.4f}", gain])
    if cells:
        yield table(HEADERS, cells, width=width)
    anarchy = line_on_anarchy(solutions)
    if anarchy:
        yield f"  {anarchy}"
    play = solutions[solutions["name"] == "play"]
    for concept, noun in CONCEPTS.items():
        for distance in play[f"distance_{concept}"].dropna():
            yield f"  play is {distance:.4f} from the {noun} equilibria, in total variation"
    missing = solutions[solutions["mean_loss"].isna()]
    yield from lines_on_methods(missing)
    why_uncounted = model.solved.why_play_is_uncounted
    if why_uncounted and not missing["method"].str.contains(why_uncounted, regex=False).any():
        yield f"play: not counted, since {why_uncounted}"
    yield ""


def gain_text(gain: float) -> str:
    """Write the greatest gain of a deviation; "" if it is not known, 0 if it is rounding.

    >>> gain_text(0.00204), gain_text(8.9e-16), gain_text(float("nan"))
    ('0.002', '0', '')
    """
    if np.isnan(gain):
        return ""
    return f"{0.0 if abs(gain) < ROUNDING else gain:.2g}"


def of_everybody(solutions: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the only cohort, or of all together, which come last."""
    is_last_cohort: pd.Series[bool] = solutions["cohort"].eq(solutions["cohort"].iloc[-1])
    return solutions[is_last_cohort]


def line_on_anarchy(solutions: pd.DataFrame) -> str:
    """Say what the price of anarchy is; "" where the table lacks one of the two, or a ratio."""
    welfare = of_everybody(solutions).set_index("name")["welfare"]
    worst_nash = welfare.get("worst nash", welfare.get("nash", np.nan))
    optimum = welfare.get("optimum", np.nan)
    if np.isnan([worst_nash, optimum]).any():
        return ""
    ratio = ratio_of_welfare(worst_nash, optimum)
    if ratio is None:
        return ""
    of_what = "total loss of the worst Nash equilibrium over the optimum's"
    if optimum > 0:  # losses are negative: profits
        of_what = "welfare of the optimum over the worst Nash equilibrium's"
    return f"price of anarchy: {ratio:.4g}, {of_what}"


def lines_on_methods(solutions: pd.DataFrame) -> Iterator[str]:
    """Yield how solutions were found, or why they were not, a line for each method."""
    rows = solutions.drop_duplicates(["name", "method"])
    for method, names in rows.groupby("method", sort=False)["name"]:
        yield f"{', '.join(names)}: {method}"
