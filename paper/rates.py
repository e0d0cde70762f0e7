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
from itertools import count, product, takewhile
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

FIRST, LONGEST, COSTLY = 1000, 64_000, 16_000  # rounds
AGENTS, ACTIONS = 20, 5
ROUNDING = 1e-9
THEORY = -1 / 2
NOISE = 1e-4
FEWEST = 3  # points under a slope
STREAMS: dict[str, dict[str, Any]] = {
    "iid": {"kind": "iid"},
    "adaptive": {"kind": "anti-forecast", "strength": 0.5},
}


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


def one_run(
    instance: tuple[str, str], rounds: int, seed: int, *, first: int = FIRST
) -> Iterator[Row]:
    """Play a family and stream; a row per T from ``first`` on. A costly family plays less."""
    family, stream = instance
    rounds = min(rounds, FAMILIES[family].longest)
    model = scenario(family, stream, rounds=rounds, seed=seed).build(log_every=rounds)
    model.stream_logs_to(lambda _: None)
    linear = LinearPart(model)
    cell = {"family": family, "stream": stream, "seed": seed}
    loss, block = model.game.cohorts[0].loss, model.game.blocks[0]
    cell["floor"] = 2 * float(block.basis.certified_error(loss))
    started = perf_counter()
    for horizon in horizons(rounds, first):
        model.run(horizon, progress=linear.add)
        elapsed = perf_counter() - started
        measured = {"linear_regret": linear.worst(), "milliseconds": 1e3 * elapsed / horizon}
        yield cell | {"rounds": horizon} | worst_agent(model) | measured


def worst_agent(model: MarketModel) -> dict[str, Any]:
    """Return regret and bounds of the agent with most regret, and who is above a bound."""
    agents = model.agents_frame()
    regret, bounds = agents["decision_swap_regret"], agents[["bound", "bound_from_bias"]]
    worst = agents.iloc[int(regret.to_numpy().argmax())]
    return {
        **{name: worst[name] for name in ("decision_swap_regret", *bounds)},
        "above": int((regret > bounds.min(axis=1) + ROUNDING).sum()),
        "certificate_sum": getattr(
            model.game.blocks[0].forecaster, "certificate_sum", float("nan")
        ),
    }


def slope(horizons: ArrayLike, regrets: ArrayLike) -> float:
    """Fit ln regret on ln T by least squares; NaN with fewer than ``FEWEST`` above ``NOISE``."""
    rounds, values = np.asarray(horizons, dtype=np.float64), np.asarray(regrets, dtype=np.float64)
    kept = values >= NOISE
    if kept.sum() < FEWEST:
        return math.nan
    return float(np.polyfit(np.log(rounds[kept]), np.log(values[kept]), 1)[0])


def slopes(table: pd.DataFrame) -> pd.DataFrame:
    """Fit every family and stream: the regret, its linear part, the bound less the floor."""
    rows = []
    for (family, stream), cell in table.groupby(["family", "stream"], sort=False):
        linear = _fitted(cell, cell["linear_regret"])
        row = {"family": family, "stream": stream} | _fitted(cell, cell["decision_swap_regret"])
        row |= {f"linear_{key}": value for key, value in linear.items()}
        row["bound_slope"] = _fitted(cell, cell["bound"] - cell["floor"])["slope"]
        row |= {"theory": THEORY, "paper": FAMILIES[str(family)].paper}
        row |= {"no_worse": linear["low"] <= THEORY, "verdict": verdict(linear)}
        rows.append(row)
    return pd.DataFrame(rows)


def _fitted(cell: pd.DataFrame, values: "pd.Series[float]") -> dict[str, float]:
    """Fit one measure of a family and stream, seed by seed."""
    seeds = pd.DataFrame({"rounds": cell["rounds"], "value": values}).groupby(cell["seed"])
    found = np.array([slope(rows["rounds"], rows["value"]) for _, rows in seeds])
    mean, low, high = interval(found[np.isfinite(found)])
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
    worst = groups["decision_swap_regret"].agg(["mean", "min", "max"])
    means = groups.mean(numeric_only=True)
    shown = {
        "T": means["rounds"].map("{:.0f}".format),
        "worst agent": [f"{m:.4f} ({a:.4f}-{b:.4f})" for m, a, b in worst.itertuples(index=False)],
        "from bias": means["bound_from_bias"].map("{:.4f}".format),
        "bound": means["bound"].map("{:.2f}".format),
        "2 delta": means["floor"].map("{:.3f}".format),
    }
    frame = pd.DataFrame(shown, index=means.index).reset_index()
    frame["slope"] = [_slope(row, "") for row in fits.to_dict("records")]
    frame["linear part"] = [_slope(row, "linear_") for row in fits.to_dict("records")]
    frame["bound's"] = fits["bound_slope"].map("{:.2f}".format)
    frame["paper"] = fits["paper"].map("{:.2f}".format)
    frame["-1/2?"] = fits["verdict"]
    title = (
        f"worst agent's decision swap regret per round: mean over {table['seed'].nunique()} seeds "
        f"(least-greatest); slopes against T from {table['rounds'].min()}, 95 % over seeds"
    )
    return "\n".join([title, frame.to_string(index=False), *_warnings(table)])


def _slope(row: Mapping[Any, Any], prefix: str) -> str:
    """Write a slope with its interval and a star for each measure with points left out."""
    value, low, high = (row[f"{prefix}{key}"] for key in ("slope", "low", "high"))
    if math.isnan(value):
        return "-"
    star = "*" if row[f"{prefix}left_out"] else ""
    return f"{value:.2f}{star}" + ("" if math.isnan(low) else f" ({low:.2f}, {high:.2f})")


def _warnings(table: pd.DataFrame) -> list[str]:
    """Say what is noise and what is above a bound."""
    lines = []
    tiny = int((table[["decision_swap_regret", "linear_regret"]] < NOISE).any(axis=1).sum())
    if tiny:
        lines.append(f"* {tiny} of {len(table)} rows are below {NOISE:g}, noise, and not fitted")
    vacuous = int((table["bound"] > 1).sum())
    if vacuous:
        lines.append(
            f"{vacuous} of {len(table)} bounds are above 1 and say nothing: losses are not"
        )
    above = int(table["above"].sum())
    lines.append(f"agents above a bound, over all rows: {above}")
    return lines


def rates_figure(table: pd.DataFrame) -> Figure:
    """Draw a panel per stream: a line per family, means over seeds, beside the slope T^(-1/2)."""
    shown = table.assign(regret=table["linear_regret"].clip(lower=figures.MIN_DRAWN))
    groups = figures.split(shown, "stream")
    label = "worst agent's regret, linear part"
    return figures.draw_panels(
        groups, _panel, size=(5.3, 3.3), panels_per_row=1, ylabel=label, legend=3
    )


def _panel(axis: Axes, rows: pd.DataFrame) -> None:
    """Draw the lines of a stream, and the slope from the greatest mean at the first T."""
    figures.draw_lines(axis, rows, "rounds", "regret", by="family")
    rounds = np.unique(rows["rounds"])
    start = rows[rows["rounds"] == rounds[0]].groupby("family")["regret"].mean().max()
    falling = 1.5 * start * np.sqrt(rounds[0] / rounds)
    axis.plot(rounds, falling, color="#333333", lw=1.2, ls=":", label="slope -1/2")
    axis.set(xscale="log", yscale="log", xlabel="rounds, T")
    axis.set_xticks(rounds[::-2], [f"{T:g}" for T in rounds[::-2]])
    axis.xaxis.set_minor_locator(NullLocator())


TABLES = {
    "rates": Table(
        one_run,
        ["family", "stream", "rounds"],
        lambda: list(product(FAMILIES, STREAMS)),
        64_000,
        3,
        layout=text,
        attachments=lambda table: {"slopes.csv": slopes(table), "rates.png": rates_figure(table)},
    )
}
