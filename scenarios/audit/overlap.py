"""Overlap: whether each alternative was tried often enough for the log to say what it was worth."""

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array
from regretless.scenarios.audit.bandit_log import BanditLog
from regretless.scenarios.audit.propensities import Propensities


def overlap_table(
    log: BanditLog, propensities: Propensities, min_propensity: float
) -> pd.DataFrame:
    """Return a row for each action.

    Columns are ``agent``, ``action``, ``taken`` (rounds), ``mean_propensity``,
    ``least_propensity``, ``tried`` (share of the rounds in which the probability was at least
    ``min_propensity``), ``effective_rounds`` ((sum w)^2 / sum w^2 of the weights w of these rounds;
    Kish), ``largest_weight``, and where propensities were logged ``discrepancy``: by how many
    standard deviations the action was taken more often than they say.
    """
    rows = []
    for index, name in enumerate(log.names):
        probability = propensities.probability[:, index]
        was_taken = log.chosen == index
        is_tried = probability >= min_propensity
        weights = 1.0 / probability[was_taken & is_tried]
        effective = weights.sum() ** 2 / (weights**2).sum() if len(weights) else 0.0
        row = {
            "agent": log.agent,
            "action": name,
            "taken": int(was_taken.sum()),
            "mean_propensity": float(probability.mean()),
            "least_propensity": float(probability.min()),
            "tried": float(is_tried.mean()),
            "effective_rounds": float(effective),
            "largest_weight": float(weights.max()) if len(weights) else np.nan,
            "discrepancy": _discrepancy(was_taken, probability, is_logged=propensities.is_logged),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def _discrepancy(was_taken: Array, probability: Array, *, is_logged: bool) -> float:
    """Return the standardised excess of an action's rounds over what was logged."""
    variance = float((probability * (1 - probability)).sum())
    if not is_logged or variance == 0:
        return float("nan")
    return float((was_taken - probability).sum() / np.sqrt(variance))
