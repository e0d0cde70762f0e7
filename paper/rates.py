r"""The table `rates`: the worst agent's decision swap regret against T, beside what is promised.

The source is the paper's corollary on specific loss families, and the theorem behind it: with an
(n, lambda, delta)-approximate basis,

    regret <= O(lambda |A| sqrt(n |A| ln(.) / T)) + 2 delta.

Its corollary lets delta shrink with T, which gives slower rates (column ``paper``). Here the basis
is fixed, so two parts are told apart:

    linear part    the regret in the losses' linear forms in the basis; it falls like T^(-1/2), up
                   to logarithms, whatever the family. For the grid too: with a fixed number of
                   cells only the constant of its own route (``bounds``, simplex) differs
    floor          2 delta, with the proved delta of this population: regret in the true losses and
                   the linear part differ by at most that

The floor is an upper bound and regret soon lies below it: subtracting it would leave nothing to
fit. Hence slopes are fitted to both the regret and its linear part, and the latter is compared with
the theorem. Exact bases have no floor, and both are the same.

One run gives every T: adaptive weights know no horizon, and neither layout nor bases depend on
one (there is no cover), so what a run has played at round T is the run of T rounds. The T of one
run are therefore dependent, and intervals are over seeds alone.

Twenty agents with five actions. Streams without a context have no policies but the constants, so
decision swap regret is swap regret here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count, product, takewhile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from paper import figures
from paper.rates_slopes import laid_out, slopes
from regretless.agents.cohorts.responding import RespondingCohort
from regretless.market.model import MarketModel
from regretless.market.records.decision import Decision, one_hot
from regretless.market.regret.ledger import Ledger
from regretless.scenarios.build.scenario import Scenario
from regretless.scenarios.spec.scenario import validated
from regretless.scenarios.studies.processes import collect

FIRST, LONGEST, COSTLY = 1000, 64_000, 16_000  # rounds
AGENTS, ACTIONS = 20, 5
ROUNDING = 1e-9
STREAMS: dict[str, dict[str, Any]] = {
    "iid": {"kind": "iid"},
    "adaptive": {"kind": "breaker", "strength": 0.5},
}

Run = tuple[str, str, int, int, int]


@dataclass(frozen=True)
class Family:
    """A family of losses."""

    utility: str
    outcomes: int  # d
    paper: float  # the exponent of T in the paper's corollary, at this d
    longest: int = LONGEST  # rounds of a run
    parameters: dict[str, Any] = field(default_factory=dict)
    basis: Any = "auto"


LOGARITHMIC = -1 / (np.log(3) + 2)
PRICES = {"underage": [1.0, 4.0], "overage": [0.5, 2.0]}
GRID = {"kind": "lipschitz-grid", "error": 0.1}
FAMILIES: dict[str, Family] = {
    "linear": Family("linear", 3, -1 / 2),
    "separable powers": Family("ces", 3, -1 / 2, LONGEST, {"rho": {"choices": [0.5, 1.0, 2.0]}}),
    "monomials, beta = 2": Family("mean-variance", 3, -1 / 2),
    "exponential of ln y": Family("cobb-douglas", 3, LOGARITHMIC),
    "exponential of y": Family("cara", 3, LOGARITHMIC, COSTLY, {"risk_aversion": [1.0, 4.0]}),
    "Leontief": Family("leontief", 3, -(3 + 2) / (18 * 3 + 24), COSTLY),
    "convex, d = 1": Family("newsvendor", 1, -3 / 8, LONGEST, PRICES),
    "Lipschitz, d = 2": Family("lp-target", 2, -1 / (2 + 2), COSTLY, {"p": 3.0}, GRID),
}


class LinearPart:
    """Scores every agent of a model, one best-responding cohort, in its losses' linear forms."""

    def __init__(self, model: MarketModel) -> None:
        cohort = model.game.cohorts[0]
        assert isinstance(cohort, RespondingCohort)  # noqa: S101 - scripted agents have no coefficients
        self._model, self._basis = model, model.game.blocks[0].basis
        self._offset, self._weights = (table[cohort.row_of] for table in cohort.coefficients)
        self._ledger = Ledger(*self._offset.shape, measures=["decision_swap"])

    def add(self) -> None:
        """Add the round that was played last."""
        image = self._basis.transform(self._model.game.history.last()[0])
        actions = self._model.last_actions(0)
        play = Decision(one_hot(actions, self._offset.shape[1]), actions)
        self._ledger.add(play, self._offset + self._weights @ image, np.empty(0, dtype=np.intp))

    def worst(self) -> float:
        """Return the greatest decision swap regret per round."""
        regret = self._ledger.regret("decision_swap")
        assert regret is not None  # noqa: S101 - the measure is kept
        return float(regret.max())


def scenario(family: str, stream: str, *, rounds: int, seed: int) -> Scenario:
    """Return the scenario of one run."""
    chosen = FAMILIES[family]
    cohort = {"name": "agents", "count": AGENTS, "actions": ACTIONS, "utility": chosen.utility}
    cohort |= {"parameters": chosen.parameters, "basis": chosen.basis}
    raw = {
        "name": f"{family} {stream}",
        "rounds": rounds,
        "seed": seed,
        "adversary": STREAMS[stream] | {"outcomes": chosen.outcomes},
        "cohort": [cohort | {"measures": ["swap", "decision_swap"]}],
    }
    return Scenario(validated(raw, origin=Path()))


def horizons(rounds: int, first: int) -> list[int]:
    """List every T: doublings of ``first`` below ``rounds``, and ``rounds``."""
    doublings = (first << times for times in count())
    return [*takewhile(lambda horizon: horizon < rounds, doublings), rounds]


def cells(seeds: int) -> int:
    """Count the runs of the whole table."""
    return len(FAMILIES) * len(STREAMS) * seeds


def one_run(run: Run) -> list[dict[str, Any]]:
    """Play one run: family, stream, rounds, first T and seed.

    Returns
    -------
    list of dict
        A row per T: the worst agent's ``decision_swap_regret`` with its ``bound`` and
        ``bound_from_bias``, how many agents are ``above`` either of theirs, the worst
        ``linear_regret``, the ``floor``, the sum of positive certificates ``slack``, and
        ``milliseconds`` per round so far.
    """
    family, stream, rounds, first, seed = run
    model = scenario(family, stream, rounds=rounds, seed=seed).build(log_every=rounds)
    model.stream_logs_to(lambda _: None)
    linear, rows = LinearPart(model), []
    cell = {"family": family, "stream": stream, "seed": seed}
    loss, block = model.game.cohorts[0].loss, model.game.blocks[0]
    cell["floor"] = 2 * float(block.basis.certified_error(loss))
    started = perf_counter()
    for horizon in horizons(rounds, first):
        model.run(horizon, progress=linear.add)
        elapsed = perf_counter() - started
        measured = {"linear_regret": linear.worst(), "milliseconds": 1e3 * elapsed / horizon}
        rows.append(cell | {"rounds": horizon} | worst_agent(model) | measured)
    return rows


def worst_agent(model: MarketModel) -> dict[str, Any]:
    """Return regret and bounds of the agent with most regret, and who is above a bound."""
    agents = model.agents_frame()
    regret, bounds = agents["decision_swap_regret"], agents[["bound", "bound_from_bias"]]
    worst = agents.iloc[int(regret.to_numpy().argmax())]
    return {
        **{name: worst[name] for name in ("decision_swap_regret", *bounds)},
        "above": int((regret > bounds.min(axis=1) + ROUNDING).sum()),
        "slack": getattr(model.game.blocks[0].forecaster, "slack", float("nan")),
    }


def measure(  # noqa: PLR0913 - what to measure, and how
    *,
    rounds: int,
    seeds: int,
    first: int = FIRST,
    families: Sequence[str] = tuple(FAMILIES),
    jobs: int | None = None,
    progress: Callable[[int], Any] | None = None,
) -> pd.DataFrame:
    """Measure every cell: a row per run and T, in a fixed order.

    Parameters
    ----------
    rounds, seeds : int
        Most rounds per run (a costly family has fewer), runs per cell.
    first : int
        The least T.
    jobs, progress : as in ``processes.collect``
    """
    runs: list[Run] = [
        (family, stream, min(rounds, FAMILIES[family].longest), first, seed)
        for family, stream, seed in product(families, STREAMS, range(seeds))
    ]
    found = collect(one_run, runs, jobs=jobs, progress=progress)
    return pd.DataFrame([row for rows in found for row in rows])


def fits(table: pd.DataFrame) -> pd.DataFrame:
    """Fit the slopes of every family and stream, as ``rates_slopes.slopes``."""
    return slopes(table, {family: chosen.paper for family, chosen in FAMILIES.items()})


def text(table: pd.DataFrame) -> str:
    """Lay the greatest T of every family and stream out, with the slopes over all T."""
    return laid_out(table, fits(table))


def write(table: pd.DataFrame, out: Path) -> list[Path]:
    """Write rows and slopes as CSV and the rows as a figure; return the paths."""
    figure = rates_figure(table)
    return figures.written(
        out, {"rates.csv": table, "slopes.csv": fits(table), "rates.png": figure}
    )


def rates_figure(table: pd.DataFrame) -> Figure:
    """Draw a panel per stream: a line per family, means over seeds, beside the slope T^(-1/2)."""
    shown = table.assign(regret=table["linear_regret"].clip(lower=figures.LEAST))
    groups = figures.split(shown, "stream")
    label = "worst agent's regret, linear part"
    return figures.panelled(groups, _panel, size=(5.3, 3.3), across=1, ylabel=label, legend=3)


def _panel(axis: Axes, rows: pd.DataFrame) -> None:
    """Draw the lines of a stream, and the slope from the greatest mean at the first T."""
    figures.lines(axis, rows, "rounds", "regret", by="family", dots=False)
    rounds = np.unique(rows["rounds"])
    start = rows[rows["rounds"] == rounds[0]].groupby("family")["regret"].mean().max()
    falling = 1.5 * start * np.sqrt(rounds[0] / rounds)
    axis.plot(rounds, falling, color="#333333", lw=1.2, ls=":", label="slope -1/2")
    axis.set(xscale="log", yscale="log", xlabel="rounds, T")
    axis.set_xticks(rounds[::-2], [f"{T:g}" for T in rounds[::-2]])
    axis.xaxis.set_minor_locator(NullLocator())
