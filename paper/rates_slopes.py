r"""Slopes of regret against T on logarithmic axes, with intervals over seeds, as table and text.

A slope is the mean over seeds of least squares of ln regret on ln T, which equals the fit to the
geometric mean over seeds; the interval is Student's t, 95 %, over the seeds' slopes (none with one
seed). Regrets below ``NOISE`` are left out and counted. Where regret falls these are the late ones,
so that what remains looks flatter rather than steeper.

The verdict compares the linear part with T^(-1/2):

    as fast          the whole interval lies at or below -1/2
    not ruled out    its lower end does, and its upper end is below 0
    undecided        its lower end does, but it reaches 0: nothing is shown, take more seeds
    slower           it lies above -1/2
    too few T        no seed has three with a regret of ``NOISE`` or more
    no interval      one seed

``no_worse`` is the weak reading, a lower end at or below -1/2, and holds for the first three.

"slower" is no contradiction: the theorem bounds the level at every T, and a regret far below its
bound may fall more slowly for a while; the bound itself does, by its logarithms (``bound_slope``).
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from regretless.scenarios.studies.analysis import interval

THEORY = -1 / 2
NOISE = 1e-4
FEWEST = 3  # points under a slope


def slope(horizons: ArrayLike, regrets: ArrayLike) -> float:
    """Fit ln regret on ln T by least squares; NaN with fewer than ``FEWEST`` above ``NOISE``."""
    rounds, values = np.asarray(horizons, dtype=np.float64), np.asarray(regrets, dtype=np.float64)
    kept = values >= NOISE
    if kept.sum() < FEWEST:
        return math.nan
    return float(np.polyfit(np.log(rounds[kept]), np.log(values[kept]), 1)[0])


def slopes(table: pd.DataFrame, paper: Mapping[str, float]) -> pd.DataFrame:
    """Fit every family and stream of ``rates.measure``; ``paper`` has the corollary's exponents.

    Returns
    -------
    DataFrame
        One row per family and stream: ``slope``, ``low``, ``high`` and ``left_out`` of the
        regret, the same of its linear part with ``linear_``, ``bound_slope`` of the bound less
        the floor, ``theory``, ``paper``, ``no_worse`` and ``verdict``.
    """
    rows = []
    for (family, stream), cell in table.groupby(["family", "stream"], sort=False):
        linear = _fitted(cell, cell["linear_regret"])
        row = {"family": family, "stream": stream} | _fitted(cell, cell["decision_swap_regret"])
        row |= {f"linear_{key}": value for key, value in linear.items()}
        row["bound_slope"] = _fitted(cell, cell["bound"] - cell["floor"])["slope"]
        row |= {"theory": THEORY, "paper": paper[str(family)]}
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


def laid_out(table: pd.DataFrame, fits: pd.DataFrame) -> str:
    """Write the greatest T of every family and stream with its slopes, means over the seeds."""
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
