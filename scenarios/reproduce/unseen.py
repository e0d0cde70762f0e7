r"""`reproduce unseen`: regret of agents whose losses the online forecaster was never told.

Forty named agents with five actions and three goods are protected; a hundred others of the same
kind enter before round 1 and only listen. The stream is the breaker at strength 1/2.

    named     their losses are protected
    covered   within gamma of a protected loss: they play its best response; the theorem holds, with
              twice the distance added
    unseen    further away: they play their own best response in the basis, without a guarantee

``size`` is n and ``lipschitz`` lambda. The CES populations have shares around a common table and
one, two or four powers (n = 3, 6, 12 at lambda 1). The CARA populations have shares around the same
table, risk aversion 2, and bases of the same error 0.1 and different lambda: Chebyshev and Taylor
polynomials of the exponential.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from regretless.market.core.randomness import stream
from regretless.market.model import MarketModel
from regretless.scenarios.build.scenario import Scenario
from regretless.scenarios.reproduce import streams
from regretless.scenarios.reproduce.unseen_figure import unseen_figure
from regretless.scenarios.reproduce.workers import collect
from regretless.scenarios.spec.scenario import validated

NAMED, OTHERS, ACTIONS, GOODS, CONCENTRATION = 40, 100, 5, 3, 40.0
GAMMAS = (0.05, 0.1, 0.2)
ERROR = 0.1
POWERS: dict[str, list[float]] = {
    "ces, 1 power": [1.0],
    "ces, 2 powers": [0.5, 1.0],
    "ces, 4 powers": [0.5, 1.0, 2.0, 3.0],
}
BASES = {"cara, chebyshev": "chebyshev", "cara, taylor": "taylor"}
SETTINGS = [*POWERS, *BASES]
GROUPS = ("named", "covered", "unseen")

Run = tuple[str, float, int, int]


def scenario(run: Run) -> Scenario:
    """Return the scenario of a run: setting, gamma, rounds and seed."""
    setting, gamma, rounds, seed = run
    kind = people(setting)
    named = kind | {"name": "named", "count": NAMED}
    if setting in BASES:
        named["basis"] = {"kind": BASES[setting], "error": ERROR}
    others = kind | {"name": "others", "count": OTHERS, "joins": 1, "gamma": gamma}
    raw = {
        "name": "unseen",
        "rounds": rounds,
        "seed": seed,
        "adversary": {"outcomes": GOODS} | streams.STREAMS["adaptive"],
        "forecaster": {"kind": "decision-swap"},
        "cohort": [named, others],
    }
    return Scenario(validated(raw, origin=Path()))


def people(setting: str) -> dict[str, Any]:
    """Return what both cohorts of a setting share."""
    common = {"actions": ACTIONS, "measures": ["external", "swap"]}
    shares = stream(0, "reproduce unseen").dirichlet([1.0] * GOODS, ACTIONS)
    parameters = {"weights": shares.tolist(), "concentration": CONCENTRATION}
    if setting in BASES:
        return common | {"utility": "cara", "parameters": parameters | {"risk_aversion": 2.0}}
    parameters |= {"rho": {"choices": POWERS[setting]}}
    return common | {"utility": "ces", "parameters": parameters}


def plan(rounds: int, seeds: int) -> list[Run]:
    """List all runs."""
    return [(s, g, rounds, seed) for s, g, seed in product(SETTINGS, GAMMAS, range(seeds))]


def cells(seeds: int) -> int:
    """Count the runs of the whole table."""
    return len(plan(1, seeds))


def one_run(run: Run) -> dict[str, Any]:
    """Play one run: its cell, and a row for each group in a cell ``rows``."""
    model, _ = streams.timed(scenario(run))
    setting, gamma, rounds, seed = run
    basis = model.game.blocks[0].basis
    cell = {"setting": setting, "size": basis.size, "lipschitz": basis.lipschitz}
    cell |= {"gamma": gamma, "rounds": rounds, "seed": seed}
    return {"rows": [cell | row for row in measured(model)]}


def measured(model: MarketModel) -> list[dict[str, Any]]:
    """Measure the groups: how many agents, worst and mean swap regret, the greatest bound."""
    table = model.agents_frame()
    promised = table["guarantee"] != "none"
    group = table["cohort"].where(table["cohort"] == "named", "unseen")
    group = group.mask((group == "unseen") & promised, "covered")
    rows = []
    for name in GROUPS:
        members = table[group == name]
        own = members["swap_regret"]
        rows.append(
            {
                "group": name,
                "agents": len(members),
                "worst": own.max(),
                "mean": own.mean(),
                "bound": members["bound"].max() if name != "unseen" else float("nan"),
            }
        )
    return rows


def measure(
    *,
    rounds: int,
    seeds: int,
    jobs: int | None = None,
    progress: Callable[[int], Any] | None = None,
) -> pd.DataFrame:
    """Measure every cell: one row per setting, gamma, seed and group.

    Parameters
    ----------
    rounds, seeds : int
        Rounds per run, runs per cell.
    jobs, progress : as in ``workers.collect``
    """
    runs = collect(one_run, plan(rounds, seeds), jobs=jobs, progress=progress)
    return pd.DataFrame([row for rows in runs["rows"] for row in rows])


def text(table: pd.DataFrame) -> str:
    """Lay the table out: means over the seeds."""
    keys = ["setting", "size", "lipschitz", "gamma", "group"]
    means = table.groupby(keys, sort=False)[["agents", "worst", "mean", "bound"]].mean()
    shown = means.reset_index()
    shown["agents"] = shown["agents"].map("{:.0f}".format)
    for name, empty in {"worst": "", "mean": "", "bound": "none"}.items():
        shown[name] = shown[name].map("{:.4f}".format).replace("nan", empty)
    title = (
        f"swap regret per round, T = {table['rounds'].iloc[0]}, breaker: "
        f"mean over {table['seed'].nunique()} seeds of the worst and of the mean agent"
    )
    return f"{title}\n{shown.to_string(index=False)}"


def write(table: pd.DataFrame, out: Path) -> list[Path]:
    """Write the runs as CSV and the table as a figure; return the paths."""
    out.mkdir(parents=True, exist_ok=True)
    rows, figure = out / "unseen.csv", out / "unseen.png"
    table.to_csv(rows, index=False)
    unseen_figure(table).savefig(figure, dpi=150)
    return [rows, figure]
