r"""What an arm of a study is worth to agents by a parameter of theirs, in comparable units.

"Do risk-averse agents gain more from the forecast?" Losses cannot say: they are normalised agent
by agent, and utilities of agents who differ in their aversion to risk have no common unit. Their
**certainty equivalents** have: the sure amount in every round that would be as good to an agent as
its rounds were. With U its average utility per round, -(loss_offset + loss_scale mean_loss),

    cara            C = -ln(-U) / gamma                              wealth, outcomes in [0, 1]
    mean-variance   C = m + (1 - sqrt(1 - 2 gamma (U - m))) / gamma  return, m the reference
    ces             C = U^(1 / v), without v U^(1 / rho)             equal amounts of all goods
    others          C = U

for gamma = risk_aversion. Weights of goods sum to 1, as drawn ones do; otherwise C is in proportion
to the amounts. Mean-variance utility is R - (gamma / 2) (R - m)^2, which rises up to m + 1 / gamma,
and C is on the rising part. Where returns have a unit, C is in that unit.

A gain is the difference of C between an arm and its control of the same agent, the same seed and
the same values of all other keys. Of each seed the mean gain among who is alike is taken, and the
slope of gains in the parameter, by least squares: the interaction of arm and parameter. Seeds are
independent repetitions, so that intervals over them are Student's.
"""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtr

from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError, closest
from regretless.market.logs.counted import COUNT_COLUMN
from regretless.market.regret.inference import holm
from regretless.scenarios.studies.analysis.contrasts import alike
from regretless.scenarios.studies.analysis.measures import (
    INTERVAL,
    SEEDS,
    interval,
    keys_of,
    text_of,
    typed_table,
)
from regretless.scenarios.studies.analysis.parameters import PREFIX, parts_by_parameter

EQUIVALENT = "certainty_equivalent"
SLOPE = "slope"  # in place of a range: what a parameter that is greater by 1 adds to the gain
GAINS_BY = {
    **dict.fromkeys(["key", "value", "against", "cohort", "parameter", "range"], "str"),
    **SEEDS,
    "p": "float64",
    "p_adjusted": "float64",  # by Holm's method, for all rows of the table
}


def certainty_equivalents(agents: pd.DataFrame, scale: tuple[float, float]) -> Array:
    """Return the certainty equivalent per round of each agent (N,) of a run.

    ``scale``: what 0 and 1 of outcomes stand for where losses are in the unit of the data.
    """
    utility = -(agents["loss_offset"] + agents["loss_scale"] * agents["mean_loss"])
    result: Array = utility.to_numpy(dtype=np.float64).copy()
    low, high = scale
    for kind, members in agents.groupby("utility", sort=False):
        place = agents.index.get_indexer(members.index)
        average = result[place]
        if kind == "cara":
            gamma = _parameter(members, "cara", "risk_aversion")
            result[place] = -np.log(-average) / gamma
        elif kind == "ces":
            degree = members[f"{PREFIX}rho"].astype(np.float64)
            if f"{PREFIX}v" in members:
                degree = members[f"{PREFIX}v"].astype(np.float64).fillna(degree)
            result[place] = np.maximum(average, 0.0) ** (1.0 / degree.to_numpy())
        elif kind == "mean-variance":
            gamma = _parameter(members, "mean-variance", "risk_aversion")
            reference = _parameter(members, "mean-variance", "reference")
            has_unit = members["unit"].fillna("").astype(str).to_numpy() != ""
            own = np.where(has_unit, (average - low) / (high - low), average)
            root = np.sqrt(np.maximum(1.0 - 2.0 * gamma * (own - reference), 0.0))
            equivalent = reference + (1.0 - root) / gamma
            result[place] = np.where(has_unit, low + (high - low) * equivalent, equivalent)
    return result


def _parameter(agents: pd.DataFrame, utility: str, name: str) -> Array:
    """Return a parameter of the utility of each agent (N,), its default where none is given."""
    default = inspect.signature(register.utility[utility]).parameters[name].default
    column = f"{PREFIX}{name}"
    if column not in agents:
        return np.full(len(agents), float(default))
    return np.asarray(agents[column].astype(np.float64).fillna(default))


def gains_by_parameter(
    agents: pd.DataFrame,
    parameters: pd.DataFrame,
    by: str,
    *,
    controls: Mapping[str, Any],
) -> pd.DataFrame:
    """Return what each value of a key is worth to agents by a parameter (``GAINS_BY``).

    Parameters
    ----------
    agents : DataFrame
        Of all runs, with their ``run`` and ``certainty_equivalent``.
    parameters : DataFrame
        A row per run: ``run``, ``seed`` and the keys that vary.
    by : str
        The parameter, with or without ``param_`` in front.
    controls : mapping
        By key the value that the others are compared with; the first where there is none.

    UserError if no agent has the parameter, or agents do not differ in it.
    """
    name = by.removeprefix(PREFIX)
    parts = [part for part in parts_by_parameter(agents) if part.parameter == name]
    if not parts:
        names = [str(column).removeprefix(PREFIX) for column in agents.filter(regex=f"^{PREFIX}")]
        if name in names:
            raise UserError(f"effects by '{by}': agents do not differ in it; name another")
        raise UserError(f"effects by '{by}': {closest(name, names)}")
    keys = keys_of(parameters)
    rows: list[list[Any]] = []
    for part in parts:
        members = agents.loc[part.ranges.index]
        people = pd.DataFrame(
            {
                "run": members["run"],
                "agent": members["agent"],
                "parameter": members[f"{PREFIX}{name}"],
                "range": part.ranges,
                "weight": members.get(COUNT_COLUMN, pd.Series(1.0, index=members.index)),
                EQUIVALENT: members[EQUIVALENT],
            }
        ).merge(parameters, on="run")
        ranges = list(part.ranges.drop_duplicates())
        for key in keys:
            values = list(parameters[key].drop_duplicates())
            control = next((v for v in values if alike(controls.get(key), v)), values[0])
            for value in values:
                if not alike(value, control):
                    gains = _gains(people, key, value, control, keys=keys)
                    words = [key, text_of(value), text_of(control), part.cohort, name]
                    rows += [[*words, *row] for row in _summed_up(gains, ranges)]
    table = typed_table([[*row, np.nan] for row in rows], GAINS_BY)
    is_tested = table["p"].notna()
    table.loc[is_tested, "p_adjusted"] = holm(table.loc[is_tested, "p"].to_numpy())
    return table


def _gains(
    people: pd.DataFrame, key: str, value: Any, control: Any, *, keys: Sequence[str]
) -> pd.DataFrame:
    """Return the gain of each agent of an arm over its control, where they are the same people."""
    other_keys = [other for other in keys if other != key]
    pair = ["seed", "agent", "parameter", *other_keys]
    in_arm = people[people[key] == value]
    in_control = people.loc[people[key] == control, [*pair, EQUIVALENT]]
    gains: pd.DataFrame = in_arm.merge(in_control, on=pair, suffixes=("", "_in_control"))
    gains["gain"] = gains[EQUIVALENT] - gains[f"{EQUIVALENT}_in_control"]
    return gains


def _summed_up(gains: pd.DataFrame, ranges: Sequence[str]) -> list[list[Any]]:
    """Return range, seeds, mean, ends and p of the mean gain in each range, then of the slope."""
    rows = []
    for name in ranges:
        in_range = gains[gains["range"] == name]
        means = []
        for _, of_seed in in_range.groupby("seed"):
            means.append(float(np.average(of_seed["gain"], weights=of_seed["weight"])))
        rows.append([name, *_tested(means)])
    if pd.api.types.is_numeric_dtype(gains["parameter"]):
        slopes = []
        for _, of_seed in gains.groupby("seed"):
            values = of_seed["parameter"].to_numpy(dtype=np.float64)
            if np.ptp(values) > 0:
                line = np.polyfit(
                    values,
                    of_seed["gain"],
                    deg=1,
                    w=np.sqrt(of_seed["weight"].to_numpy(dtype=np.float64)),
                )
                slopes.append(float(line[0]))
        rows.append([SLOPE, *_tested(slopes)])
    return rows


def _tested(values: Sequence[float]) -> list[float]:
    """Return how many values there are, their mean, its 95 % interval, and p of a mean of 0."""
    mean, low, high = interval(values)
    p = np.nan
    if len(values) > 1 and np.std(values) > 0:
        error = np.std(values, ddof=1) / np.sqrt(len(values))
        p = float(2.0 * stdtr(len(values) - 1, -abs(mean / error)))
    ends = dict(zip(INTERVAL, (mean, low, high), strict=True))
    return [len(values), *ends.values(), p]
