"""Whether a search of a library finds better plans than those of ``regretless train``.

CMA-ES (Hansen 2016, arXiv:1604.00772; the package ``cma``) and its diagonal variant start where the
others do, at scores from N(0, 1) with a spread of 2, in generations of 16. Each search trains
against Hedge with ``BUDGET`` runs; printed are the payoff per round of its best plan, in runs with
new seeds, its standard error over searches, and how much more than it the evolution strategy found
with the same seeds.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import cma
import numpy as np
import pandas as pd

from paper.harness import Row, Table
from regretless import load
from regretless.agents.adversaries.learned import SEARCHES, WIDE, Search, softmax
from regretless.market.core.arrays import Array
from regretless.scenarios.training.train import Order, train

BUDGET, PHASES = 512, 8
LOOKING = {  # whether plans look at what followers played last
    "beating-mean-based-learners": False,
    "selling-to-learners": False,
    "smugglers": True,
    "pump-and-dump": False,
}


class Cma(Search):
    """Adapts the covariance of all scores."""

    generation = 16
    DIAGONAL: ClassVar[bool] = False

    def begin(self) -> None:
        """Start at random scores."""
        options = {
            "popsize": self.generation,
            "CMA_diagonal": self.DIAGONAL,
            "seed": int(self.rng.integers(1, 2**31)),
            "verbose": -9,
        }
        start = self.rng.normal(size=int(np.prod(self.shape)))
        self.strategy = cma.CMAEvolutionStrategy(start, WIDE, options)

    def propose(self) -> Array:
        """Return a generation of plans (G, P, S, m)."""
        self._asked: Any = self.strategy.ask()
        return softmax(np.array(self._asked).reshape(-1, *self.shape))

    def feedback(self, payoffs: Array) -> None:
        """Hand on what the plans were paid: the library minimises."""
        self.strategy.tell(self._asked, (-payoffs).tolist())

    def best(self) -> Array:
        """Return the plan at the centre."""
        return softmax(np.asarray(self.strategy.result.xfavorite).reshape(self.shape))


class DiagonalCma(Cma):
    """Adapts the variance of each score."""

    DIAGONAL = True


SEARCHES.update({"cma-es": Cma, "cma-es, diagonal": DiagonalCma})


def found(scenario: str, rounds: int, seed: int) -> Iterator[Row]:
    """Train by each search from one seed; yield the payoff of each best plan."""
    game = load(scenario, rounds=rounds, seed=seed)
    for name in ("cem", "es", "cma-es", "cma-es, diagonal"):
        order = Order(name, BUDGET, PHASES, looking=LOOKING[scenario], cohort="hedge", jobs=1)
        with TemporaryDirectory() as folder:
            won = train(game, order, Path(folder) / "out").iloc[0]
        payoff = float(won["value"] + won["surplus"])
        yield {"scenario": scenario, "search": name, "seed": seed, "payoff": payoff}


def lines(table: pd.DataFrame) -> str:
    """Lay out means, standard errors, and differences to the evolution strategy by seeds."""
    own = table[table["search"] == "es"].set_index(["scenario", "seed"])["payoff"]
    apart = table.join(own.rename("es"), on=["scenario", "seed"])
    apart["less es"] = apart["payoff"] - apart["es"]
    ways = apart.groupby(["scenario", "search"])[["payoff", "less es"]]
    return ways.agg(["mean", "sem"]).round(4).to_string()


INSTANCES = tuple(LOOKING)
TABLES = {
    "searches": Table(
        found, ["scenario", "search"], lambda: INSTANCES, rounds=200, seeds=10, layout=lines
    )
}
