r"""Which values of the sampled keys give what was observed.

Run r of a Latin hypercube has keys theta_r, drawn evenly from their ranges, and moments m_r, with
noise of its own. Given observed moments m*, the posterior of theta under the even prior is
approximated by regression adjustment (Beaumont, Zhang and Balding, Genetics 162, 2002): with phi
the logit of theta's share of its range, and weights w_r = 1 - (|m_r - m*| / h)^2 for runs within h,
the distance of the nearest half (each moment in units of its median deviation),

    phi_r = alpha + beta (m_r - m*) + error,       phi_r* = phi_r - beta (m_r - m*),

and estimate and 95 % interval are the weighted quantiles 0.5, 0.025 and 0.975 of phi_r*. The
interval holds the noise of one observation, as a run of the same length has it; it is wide where
the moments do not tell the keys apart. Where an observed moment lies outside what all runs gave,
nothing is estimated.
"""

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError, closest
from regretless.market.logs.comparisons import EVERYBODY
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.studies.analysis.measures import MEASURES
from regretless.scenarios.studies.sampling import FEWEST, SampleSpec, Span
from regretless.scenarios.studies.sensitivity import measured

NEAREST = 0.5
QUANTILES = (0.5, 0.025, 0.975)
CALIBRATION = {"key": "str", "runs": "int64"} | dict.fromkeys(
    ["estimate", "low", "high", "prior_low", "prior_high"], "float64"
)


def calibration_table(
    cohorts: pd.DataFrame, parameters: pd.DataFrame, sample: SampleSpec
) -> pd.DataFrame:
    """Estimate every sampled key from ``sample.targets``.

    Returns
    -------
    frame
        ``key``, ``runs`` that were near enough to count, ``estimate``, ``low``, ``high``,
        ``prior_low``, ``prior_high``; NaN where the runs do not reach what was observed.

    Raises
    ------
    UserError
        If some run has no number of a target.
    """
    moments = _moments(measured(cohorts), list(sample.targets))
    keys = parameters.set_index("run").loc[moments.index]
    observed = np.array(list(sample.targets.values()))
    weights, apart = nearness(moments.to_numpy(), observed)
    rows = [
        [key, int((weights > 0).sum()), *_estimate(span, keys[key].to_numpy(), weights, apart)]
        for key, span in sample.keys.items()
    ]
    return pd.DataFrame(rows, columns=list(CALIBRATION)).astype(CALIBRATION)


def check_targets(sample: SampleSpec, scenario: ScenarioSpec) -> None:
    """Raise UserError for a target that no run of a scenario can have."""
    known = {*scenario.measures} | {
        f"{cohort}.{measure}"
        for cohort in (*(own.name for own in scenario.cohort), EVERYBODY)
        for measure in (*MEASURES, *scenario.measures)
    }
    for target in sample.targets:
        if target not in known:
            raise UserError(f"sample.targets.{target}: no such measure; {closest(target, known)}")


def _moments(table: pd.DataFrame, targets: list[str]) -> pd.DataFrame:
    """Pick the targets' columns, of a name alone everybody's, or those of the one cohort.

    Raises
    ------
    UserError
        If some run has no number of a target.
    """
    columns = sorted(table.columns.to_list(), key=lambda where: where[0] == EVERYBODY)
    known: dict[str, Any] = {where[1]: where for where in columns}
    known |= {".".join(where): where for where in table.columns}
    for target in targets:
        if target not in known:
            cure = "choose one that every run has"
            raise UserError(f"sample.targets.{target}: not every run measured it; {cure}")
    return table[[known[target] for target in targets]]


def nearness(moments: Array, observed: Array) -> tuple[Array, Array]:
    """Return the weights of runs (R,), and how far their moments are from those observed (R, k).

    The weights are 0 where an observed moment is beyond all runs, or the runs are too few.
    """
    spread = np.median(np.abs(moments - np.median(moments, axis=0)), axis=0)
    apart = (moments - observed) / np.where(spread > 0, spread, 1.0)
    inside = (moments.min(0) <= observed) & (observed <= moments.max(0))
    distance = np.linalg.norm(apart, axis=1)
    if not inside.all() or len(moments) < FEWEST:
        return np.zeros(len(moments)), apart
    width = max(float(np.quantile(distance, NEAREST)), np.finfo(np.float64).tiny)
    return np.maximum(1 - (distance / width) ** 2, 0.0), apart


def _estimate(span: Span, values: Array, weights: Array, apart: Array) -> list[Any]:
    """Return estimate, low and high of a key, and its range."""
    ends = [float(span.low), float(span.high)]
    if not weights.any():
        return [*[np.nan] * 3, *ends]
    phi = logit(span.shares(values))
    design = np.column_stack([np.ones(len(phi)), apart])
    root = np.sqrt(weights)
    beta = np.linalg.lstsq(design * root[:, None], phi * root, rcond=None)[0][1:]
    adjusted = phi - apart @ beta
    order = np.argsort(adjusted, kind="stable")
    levels = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    shares = expit(np.interp(QUANTILES, levels, adjusted[order]))
    return [*(float(span.values(np.array([share]))[0]) for share in shares), *ends]
