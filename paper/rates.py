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

One run gives every T: adaptive weights know no horizon, and what a run has played at round T is
the run of T rounds. The T of one run are therefore dependent, and intervals are over seeds alone.
Twenty agents with five actions; the only policies are the constants.

A slope is the mean over seeds of least squares of ln regret on ln T; the interval is Student's t,
95 %, over the seeds' slopes. Regrets below ``NOISE`` are left out and counted. The verdict compares
the linear part with T^(-1/2): "as fast" if the whole interval lies at or below -1/2; "slower" if it
lies above; between, "not ruled out" if its upper end is below 0 and else "undecided"; "too few T"
where no seed has three with a regret of ``NOISE`` or more, "no interval" with one seed.
``no_worse`` is the weak reading, a lower end at or below -1/2. "slower" is no contradiction: the
theorem bounds the level at every T, and the bound itself falls more slowly (``bound_slope``).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import ArrayLike

from paper import figures
from paper.harness import Row, Table
from regretless.agents.cohorts.responding import RespondingCohort
from regretless.market.model import MarketModel
from regretless.market.records import Decision, one_hot
from regretless.market.regret.ledger import Ledger
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.validation import validated
from regretless.scenarios.studies.analysis.measures import interval

FIRST_HORIZON = 1000  # rounds
MAX_ROUNDS = 64_000
MAX_ROUNDS_OF_COSTLY = 16_000
AGENTS = 20
ACTIONS = 5
ROUNDING = 1e-9
THEORY = -1 / 2  # exponent of T
NOISE = 1e-4  # regrets below are left out of slopes
MIN_POINTS = 3  # under a slope
STREAMS: dict[str, dict[str, Any]] = {
    "iid": {"kind": "iid"},
    "adaptive": {"kind": "anti-forecast", "strength": 0.5},
}


@dataclass(frozen=True)
class Family:
    """A family of losses.

    Parameters
    ----------
    utility : str
        Of the cohort, as a scenario file names it.
    outcomes : int
        d.
    paper_exponent : float
        Of T in the paper's corollary, at this d.
    max_rounds : int
        Of a run.
    parameters : dict
        Of the utility.
    basis : str or dict
        As a scenario file has it.
    """

    utility: str
    outcomes: int
    paper_exponent: float
    max_rounds: int = MAX_ROUNDS
    parameters: dict[str, Any] = field(default_factory=dict)
    basis: str | dict[str, Any] = "auto"


EXPONENTIAL_EXPONENT = -1 / (np.log(3) + 2)
FAMILIES: dict[str, Family] = {
    "linear": Family("linear", outcomes=3, paper_exponent=-1 / 2),
    "separable powers": Family(
        "ces",
        outcomes=3,
        paper_exponent=-1 / 2,
        parameters={"rho": {"choices": [0.5, 1.0, 2.0]}},
    ),
    "monomials, beta = 2": Family("mean-variance", outcomes=3, paper_exponent=-1 / 2),
    "exponential of ln y": Family("cobb-douglas", outcomes=3, paper_exponent=EXPONENTIAL_EXPONENT),
    "exponential of y": Family(
        "cara",
        outcomes=3,
        paper_exponent=EXPONENTIAL_EXPONENT,
        max_rounds=MAX_ROUNDS_OF_COSTLY,
        parameters={"risk_aversion": [1.0, 4.0]},
    ),
    "Leontief": Family(
        "leontief",
        outcomes=3,
        paper_exponent=-(3 + 2) / (18 * 3 + 24),
        max_rounds=MAX_ROUNDS_OF_COSTLY,
    ),
    "convex, d = 1": Family(
        "newsvendor",
        outcomes=1,
        paper_exponent=-3 / 8,
        parameters={"underage": [1.0, 4.0], "overage": [0.5, 2.0]},
    ),
    "Lipschitz, d = 2": Family(
        "lp-target",
        outcomes=2,
        paper_exponent=-1 / (2 + 2),
        max_rounds=MAX_ROUNDS_OF_COSTLY,
        parameters={"p": 3.0},
        basis={"kind": "lipschitz-grid", "error": 0.1},
    ),
}


class LinearPart:
    """Scores every agent of a model, one best-responding cohort, in its losses' linear forms."""

    def __init__(self, model: MarketModel) -> None:
        cohort = model.game.cohorts[0]
        assert isinstance(cohort, RespondingCohort)  # noqa: S101 - scripted agents have no coefficients
        offset, weights = cohort.coefficients
        self._model = model
        self._basis = model.game.blocks[0].basis
        self._offset = offset[cohort.row_of]
        self._weights = weights[cohort.row_of]
        self._ledger = Ledger(*self._offset.shape, measures=["decision_swap"])

    def add(self) -> None:
        """Add the round that was played last."""
        outcome = self._model.game.history.last()[0]
        linear_losses = self._offset + self._weights @ self._basis.transform(outcome)
        actions = self._model.last_actions(0)
        decision = Decision(one_hot(actions, self._offset.shape[1]), actions)
        no_suggestions = np.empty(0, dtype=np.intp)
        self._ledger.add(decision, linear_losses, no_suggestions)

    def worst(self) -> float:
        """Return the greatest decision swap regret per round."""
        regret = self._ledger.regret("decision_swap")
        assert regret is not None  # noqa: S101 - the measure is kept
        return float(regret.max())


def scenario(family: str, stream: str, *, rounds: int, seed: int) -> Scenario:
    """Return the scenario of one run."""
    losses = FAMILIES[family]
    cohort = {
        "name": "agents",
        "count": AGENTS,
        "actions": ACTIONS,
        "utility": losses.utility,
        "parameters": losses.parameters,
        "basis": losses.basis,
        "measures": ["swap", "decision_swap"],
    }
    keys = {
        "name": f"{family} {stream}",
        "rounds": rounds,
        "seed": seed,
        "adversary": {**STREAMS[stream], "outcomes": losses.outcomes},
        "cohort": [cohort],
    }
    return Scenario(validated(keys, origin=Path()))


def horizons(rounds: int, first: int) -> list[int]:
    """List every T: doublings of ``first`` below ``rounds``, and ``rounds``."""
    all_horizons = []
    horizon = first
    while horizon < rounds:
        all_horizons.append(horizon)
        horizon *= 2
    return [*all_horizons, rounds]


def one_run(
    instance: tuple[str, str], rounds: int, seed: int, *, first: int = FIRST_HORIZON
) -> Iterator[Row]:
    """Play a family and stream; a row per T from ``first`` on. A costly family plays less."""
    family, stream = instance
    rounds = min(rounds, FAMILIES[family].max_rounds)
    model = scenario(family, stream, rounds=rounds, seed=seed).build(log_every=rounds)
    model.stream_logs_to(lambda _: None)
    linear_part = LinearPart(model)
    basis = model.game.blocks[0].basis
    floor = 2 * float(basis.certified_error(model.game.cohorts[0].loss))
    started = perf_counter()
    for horizon in horizons(rounds, first):
        model.run(horizon, progress=linear_part.add)
        seconds = perf_counter() - started
        yield {
            "family": family,
            "stream": stream,
            "seed": seed,
            "floor": floor,
            "rounds": horizon,
            **worst_agent(model),
            "linear_regret": linear_part.worst(),
            "milliseconds": 1e3 * seconds / horizon,
        }


def worst_agent(model: MarketModel) -> dict[str, Any]:
    """Return regret and bounds of the agent with most regret, and who is above a bound."""
    agents = model.agents_frame()
    regret = agents["decision_swap_regret"]
    least_bound = agents[["bound", "bound_from_bias"]].min(axis=1)
    worst = agents.iloc[int(regret.to_numpy().argmax())]
    forecaster = model.game.blocks[0].forecaster
    return {
        "decision_swap_regret": worst["decision_swap_regret"],
        "bound": worst["bound"],
        "bound_from_bias": worst["bound_from_bias"],
        "above": int((regret > least_bound + ROUNDING).sum()),
        "certificate_sum": getattr(forecaster, "certificate_sum", math.nan),
    }


def slope(horizons: ArrayLike, regrets: ArrayLike) -> float:
    """Fit ln regret on ln T by least squares; NaN with too few regrets above ``NOISE``."""
    rounds = np.asarray(horizons, dtype=np.float64)
    values = np.asarray(regrets, dtype=np.float64)
    is_fitted = values >= NOISE
    if is_fitted.sum() < MIN_POINTS:
        return math.nan
    coefficients = np.polyfit(np.log(rounds[is_fitted]), np.log(values[is_fitted]), deg=1)
    return float(coefficients[0])


def slopes(table: pd.DataFrame) -> pd.DataFrame:
    """Fit every family and stream: the regret, its linear part, the bound less the floor."""
    rows = []
    for (family, stream), cell in table.groupby(["family", "stream"], sort=False):
        linear = _fit_seeds(cell, cell["linear_regret"])
        bound = _fit_seeds(cell, cell["bound"] - cell["floor"])
        rows.append(
            {
                "family": family,
                "stream": stream,
                **_fit_seeds(cell, cell["decision_swap_regret"]),
                **{f"linear_{key}": value for key, value in linear.items()},
                "bound_slope": bound["slope"],
                "theory": THEORY,
                "paper": FAMILIES[str(family)].paper_exponent,
                "no_worse": linear["low"] <= THEORY,
                "verdict": verdict(linear),
            }
        )
    return pd.DataFrame(rows)


def _fit_seeds(cell: pd.DataFrame, values: "pd.Series[float]") -> dict[str, float]:
    """Fit one measure of a family and stream, seed by seed."""
    points = pd.DataFrame({"rounds": cell["rounds"], "value": values})
    seeds = points.groupby(cell["seed"])
    slope_of_seeds = np.array([slope(rows["rounds"], rows["value"]) for _, rows in seeds])
    mean, low, high = interval(slope_of_seeds[np.isfinite(slope_of_seeds)])
    return {"slope": mean, "low": low, "high": high, "left_out": int((values < NOISE).sum())}


def verdict(fit: Mapping[str, float]) -> str:
    """Compare the interval of a slope with ``THEORY``, in the words of the module's text."""
    if math.isnan(fit["slope"]):
        return "too few T"
    if math.isnan(fit["low"]):
        return "no interval"
    if fit["high"] <= THEORY:
        return "as fast"
    if fit["low"] > THEORY:
        return "slower"
    return "not ruled out" if fit["high"] < 0 else "undecided"


def text(table: pd.DataFrame) -> str:
    """Lay the greatest T of every family and stream out, with the slopes over all T."""
    fits = slopes(table)
    cells = ["family", "stream"]
    last = table[table["rounds"] == table.groupby(cells)["rounds"].transform("max")]
    groups = last.groupby(cells, sort=False)
    worst = groups["decision_swap_regret"].agg(["mean", "min", "max"]).itertuples(index=False)
    means = groups.mean(numeric_only=True)
    printed = {
        "T": means["rounds"].map("{:.0f}".format),
        "worst agent": [f"{mean:.4f} ({least:.4f}-{most:.4f})" for mean, least, most in worst],
        "from bias": means["bound_from_bias"].map("{:.4f}".format),
        "bound": means["bound"].map("{:.2f}".format),
        "2 delta": means["floor"].map("{:.3f}".format),
    }
    frame = pd.DataFrame(printed, index=means.index).reset_index()
    frame["slope"] = [_slope_text(row, "") for row in fits.to_dict("records")]
    frame["linear part"] = [_slope_text(row, "linear_") for row in fits.to_dict("records")]
    frame["bound's"] = fits["bound_slope"].map("{:.2f}".format)
    frame["paper"] = fits["paper"].map("{:.2f}".format)
    frame["-1/2?"] = fits["verdict"]
    title = (
        f"worst agent's decision swap regret per round: mean over {table['seed'].nunique()} seeds "
        f"(least-greatest); slopes against T from {table['rounds'].min()}, 95 % over seeds"
    )
    return "\n".join([title, frame.to_string(index=False), *_warnings(table)])


def _slope_text(row: Mapping[Any, Any], prefix: str) -> str:
    """Write a slope with its interval, and a star where points are left out."""
    value = row[f"{prefix}slope"]
    low = row[f"{prefix}low"]
    high = row[f"{prefix}high"]
    if math.isnan(value):
        return "-"
    star = "*" if row[f"{prefix}left_out"] else ""
    if math.isnan(low):
        return f"{value:.2f}{star}"
    return f"{value:.2f}{star} ({low:.2f}, {high:.2f})"


def _warnings(table: pd.DataFrame) -> list[str]:
    """Say what is noise and what is above a bound."""
    lines = []
    is_noise = (table[["decision_swap_regret", "linear_regret"]] < NOISE).any(axis=1)
    n_noise = int(is_noise.sum())
    if n_noise:
        lines.append(f"* {n_noise} of {len(table)} rows are below {NOISE:g}, noise, and not fitted")
    n_vacuous = int((table["bound"] > 1).sum())
    if n_vacuous:
        lines.append(
            f"{n_vacuous} of {len(table)} bounds are above 1 and say nothing: losses are not"
        )
    n_above = int(table["above"].sum())
    lines.append(f"agents above a bound, over all rows: {n_above}")
    return lines


def rates_figure(table: pd.DataFrame) -> Figure:
    """Draw a panel per stream: a line per family, means over seeds, beside the slope T^(-1/2)."""
    table = table.assign(regret=table["linear_regret"].clip(lower=figures.MIN_DRAWN))
    return figures.draw_panels(
        figures.split(table, "stream"),
        _draw_stream,
        size=(5.3, 3.3),
        panels_per_row=1,
        ylabel="worst agent's regret, linear part",
        legend=2,
    )


def _draw_stream(axis: Axes, rows: pd.DataFrame) -> None:
    """Draw the lines of a stream, and the slope from the greatest mean at the first T."""
    figures.draw_lines(axis, rows, "rounds", "regret", by="family")
    rounds = np.unique(rows["rounds"])
    start = rows[rows["rounds"] == rounds[0]].groupby("family")["regret"].mean().max()
    falling = 1.5 * start * np.sqrt(rounds[0] / rounds)
    axis.plot(rounds, falling, color="#333333", lw=1.2, ls=":", label="slope -1/2")
    axis.set(xscale="log", yscale="log", xlabel="rounds, T")
    ticks = rounds[::-2]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.xaxis.set_minor_locator(NullLocator())


TABLES = {
    "rates": Table(
        one_run,
        ["family", "stream", "rounds"],
        lambda: list(product(FAMILIES, STREAMS)),
        rounds=MAX_ROUNDS,
        seeds=3,
        layout=text,
        attachments=lambda table: {"slopes.csv": slopes(table), "rates.png": rates_figure(table)},
    )
}
