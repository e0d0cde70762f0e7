"""`reproduce crowding`: who crowds when goods answer to demand, and at what price.

Does trusting one broadcast make everybody crowd?

Forty risk-neutral agents choose among three baskets, each mostly of one good (tastes drawn around
the same table), and put their whole budget into it. Fundamentals are i.i.d. around 1/2, so that no
good is better than another by itself. The price is the last demand (adjustment 1), and the market

    congestion (impact 0.4)   makes crowded goods yield less
    none (impact 0)           leaves them alone: the reference
    momentum (impact -0.4)    makes them yield more

after the round (lagged, the guarantee holds) or in it (same-round, nothing is guaranteed). Who
listens:

    best response   everybody trusts the decision-swap forecast
    quantal         everybody trusts it, with noise (eta 30)
    hedge           nobody listens, everybody learns alone
    running mean    everybody trusts the mean of all outcomes so far

Columns are those of ``market.game.crowding``, means over the rounds, with the agents' mean loss
and the worst swap regret. ``even`` and ``ceiling`` are the concentrations of a demand that is
spread evenly and of one in which all agents choose the same basket.

What was found with T = 1000 (the command prints the numbers anew):

- Trusting one broadcast does make agents crowd, but prices are not the reason: best responders are
  as concentrated (0.6, of 0.68 if all choose alike) without any price effect as with congestion,
  because all hear the same forecast. Who learns alone or trusts with noise stays spread out (0.35).
- Congestion makes the crowd's forecast defeat itself a little. Lagged, the forecaster keeps up:
  swap regret is 0.01, where followers of the running mean, always late, have 0.11. In the same
  round nobody who best-responds to a common forecast can keep up: swap regret 0.22, and the loss
  is 0.61 where learners lose 0.50.
- Momentum is self-fulfilling and gathers everybody, learners and noisy followers too (0.60 to
  0.66), in one good for good: demand hardly moves any more, and all lose less (0.37 to 0.39).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from regretless.market.game.crowding import MEASURES, concentration, crowding
from regretless.market.game.prices import exposure
from regretless.market.model import MarketModel
from regretless.scenarios.build.scenario import Scenario
from regretless.scenarios.reproduce.crowding_figure import crowding_figure
from regretless.scenarios.reproduce.workers import collect
from regretless.scenarios.spec.scenario import validated

MARKETS: dict[str, tuple[str, float]] = {
    "no effect": ("lagged", 0.0),
    "lagged congestion": ("lagged", 0.4),
    "same-round congestion": ("same-round", 0.4),
    "lagged momentum": ("lagged", -0.4),
    "same-round momentum": ("same-round", -0.4),
}
LISTENERS: dict[str, tuple[dict[str, Any], str]] = {
    "best response": ({"response": "best-response"}, "decision-swap"),
    "quantal": ({"response": "quantal", "eta": 30.0}, "decision-swap"),
    "hedge": ({"response": "hedge"}, "decision-swap"),
    "running mean": ({"response": "best-response"}, "running-mean"),
}
COHORT: dict[str, Any] = {
    "name": "agents",
    "utility": "linear",
    "count": 40,
    "actions": 3,
    "parameters": {
        "weights": [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]],
        "concentration": 6.0,
    },
    "measures": ["external", "swap"],
}
GOODS = 3
NUMBERS = (
    *MEASURES,
    "even",
    "ceiling",
    "mean_loss",
    "swap_regret",
    "bound",
    "bound_from_bias",
    "clipped",
)
SHOWN = ("concentration", "churn", "confirmed", "mean_loss", "swap_regret", "bound")
Run = tuple[str, str, int, int]


def scenario(market: str, listener: str, *, rounds: int, seed: int) -> Scenario:
    """Return the scenario of one cell and seed."""
    feedback, impact = MARKETS[market]
    cohort, forecaster = LISTENERS[listener]
    raw = {
        "name": "table",
        "rounds": rounds,
        "seed": seed,
        "adversary": {"kind": "iid", "outcomes": GOODS, "concentration": 20.0},
        "forecaster": {"kind": forecaster},
        "market": {"feedback": feedback, "impact": impact, "adjustment": 1.0},
        "cohort": [COHORT | cohort],
    }
    return Scenario(validated(raw, origin=Path()))


def cells(seeds: int) -> int:
    """Count the runs of the whole table."""
    return len(MARKETS) * len(LISTENERS) * seeds


def ceiling(model: MarketModel) -> float:
    """Return the concentration of demand if all agents chose the same basket, the worst one."""
    (cohort,) = model.game.cohorts
    together = exposure(cohort.loss)[cohort.row_of].mean(0)
    return float(concentration(together).max())


def one_run(run: Run) -> dict[str, Any]:
    """Play one run: its cell, means of ``crowding.MEASURES``, loss, regret and bounds."""
    market, listener, rounds, seed = run
    model = scenario(market, listener, rounds=rounds, seed=seed).build(log_every=rounds)
    model.run()
    agents = model.agents_frame()
    measured = crowding(model.rounds_frame(), model.forecasts_frame())
    assert model.game.market is not None  # noqa: S101 - the scenario has one
    return {
        "market": market,
        "listener": listener,
        "seed": seed,
        "rounds": rounds,
        "guarantee": agents["guarantee"].iloc[0],
        **{name: measured[name].mean() for name in MEASURES},
        "even": 1 / GOODS,
        "ceiling": ceiling(model),
        "mean_loss": agents["mean_loss"].mean(),
        "swap_regret": agents["swap_regret"].max(),
        "bound": agents["bound"].max(),
        "bound_from_bias": agents["bound_from_bias"].max(),
        "clipped": model.game.market.clipped_share,
    }


def measure(
    *,
    rounds: int,
    seeds: int,
    jobs: int | None = None,
    progress: Callable[[int], Any] | None = None,
) -> pd.DataFrame:
    """Measure every cell.

    Parameters
    ----------
    rounds, seeds : int
        Rounds per run, runs per cell.
    jobs, progress : as in ``workers.collect``

    Returns
    -------
    DataFrame
        One row per run, in a fixed order.
    """
    runs = [(m, who, rounds, s) for m, who, s in product(MARKETS, LISTENERS, range(seeds))]
    return collect(one_run, runs, jobs=jobs, progress=progress)


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Average the runs of every cell (market, listener), with its guarantee beside the numbers."""
    groups = table.groupby(["market", "listener"], sort=False)
    numbers: pd.DataFrame = groups[list(NUMBERS)].mean()
    return numbers.assign(guarantee=groups["guarantee"].first())


def text(table: pd.DataFrame) -> str:
    """Lay the means out, and answer the question in numbers."""
    cell = means(table)
    title = (
        f"40 agents, 3 goods, T = {table['rounds'].iloc[0]}: mean over "
        f"{table['seed'].nunique()} seeds; worst agent's swap regret and bound"
    )
    rows = cell[[*SHOWN, "guarantee"]].reset_index()
    grid = rows.to_string(index=False, na_rep="none", float_format=lambda value: f"{value:.4f}")
    return "\n".join([title, grid, "", *answers(cell)])


def answers(cell: pd.DataFrame) -> list[str]:
    """Answer in one line per market: who crowds, and what it does to them.

    Parameters
    ----------
    cell : DataFrame
        As ``means`` returns it.
    """
    even, most = cell["even"].mean(), cell["ceiling"].mean()
    ends = f"(evenly spread {even:.2f}, all agents alike {most:.2f}):"
    lines = [f"Does trusting one broadcast make everybody crowd? Concentration of demand {ends}"]
    for market in cell.index.unique("market"):
        trust, alone = cell.loc[(market, "best response")], cell.loc[(market, "hedge")]
        lines.append(
            f"  {market}: {trust['concentration']:.2f} by trust, {alone['concentration']:.2f} by "
            f"learning alone; {trust['churn']:.0%} and {alone['churn']:.0%} of all budgets change "
            f"goods a round; mean loss {trust['mean_loss']:.3f} and {alone['mean_loss']:.3f}; the "
            f"market moved outcomes {abs(trust['confirmed']):.3f} "
            f"{'towards' if trust['confirmed'] >= 0 else 'away from'} the forecast"
        )
    return lines


def write(table: pd.DataFrame, out: Path) -> list[Path]:
    """Write the runs and their means as CSV, and a figure; return the paths."""
    out.mkdir(parents=True, exist_ok=True)
    runs, cell, figure = (out / f"{name}" for name in ("runs.csv", "means.csv", "crowding.png"))
    table.to_csv(runs, index=False)
    means(table).to_csv(cell)
    crowding_figure(table).savefig(figure, dpi=150)
    return [runs, cell, figure]
