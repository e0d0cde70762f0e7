"""What ``run`` prints of the solutions of the stage game, if the scenario asks for any."""

from collections.abc import Iterator, Mapping
from contextlib import suppress

import numpy as np
import pandas as pd
from rich.console import RenderableType

from regretless.market.core.errors import UserError
from regretless.market.model import MarketModel
from regretless.scenarios.terminal import table

HEADERS = ["Solutions of the stage game", "loss", "welfare", "greatest\ngain"]
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
    cohort = solutions["cohort"].iloc[-1]  # of several the last row is over all
    solutions = solutions[solutions["cohort"] == cohort]
    cells = []
    for row in solutions[solutions["mean_loss"].notna()].to_dict("records"):
        gain = "" if np.isnan(row["certificate"]) else f"{row['certificate']:.2g}"
        cells.append([row["name"], f"{row['mean_loss']:.4f}", f"{row['welfare']:.4f}", gain])
    if cells:
        yield table(HEADERS, cells, width=width)
    if cells and {"nash", "optimum"} <= {*model.solved.names}:
        with suppress(UserError):  # where no equilibrium was found, or losses have no ratio
            ratio = model.price_of_anarchy()
            optimum = solutions.loc[solutions["name"] == "optimum", "welfare"]
            of_what = "total loss of the worst Nash equilibrium over the optimum's"
            if (optimum > 0).any():  # losses are negative: profits
                of_what = "welfare of the optimum over the worst Nash equilibrium's"
            yield f"  price of anarchy: {ratio:.4g}, {of_what}"
    play = solutions[solutions["name"] == "play"]
    for concept, noun in CONCEPTS.items():
        for distance in play[f"distance_{concept}"].dropna():
            yield f"  play is {distance:.4f} from the {noun} equilibria, in total variation"
    missing = solutions[solutions["mean_loss"].isna()]
    for reason, names in missing.groupby("method", sort=False)["name"]:
        yield f"{', '.join(names)}: {reason}"
    yield ""
