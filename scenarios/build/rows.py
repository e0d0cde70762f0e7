"""Rows of a cohort: agents with equal losses who hear as late and are there at the same times.

What a draft says of single agents (their distance from the forecaster, their stay) is said of rows
here, and what the theorem says of a whole run is said of the rounds of each row's stay:
with R(t) the bound on regret per round after t rounds,

    (left - entered) x regret over entered..left-1  <=  left R(left) + entered R(entered)

(``forecaster.events.bounds``, "Joining late"). R is taken with the solver's slack so far, which
only grows, so that the bound of an agent that has left stays valid without any record of that
round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from regretless.forecaster.events.bounds import BiasBound, GainBound, draw_term, regret_since
from regretless.market.core.randomness import stream
from regretless.market.game.network import Network
from regretless.market.game.presence import Stay, drawn_stays
from regretless.scenarios.build.drafts import Draft
from regretless.scenarios.spec.cohort import CohortSpec

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


def agents_stay(spec: CohortSpec, root: int, *, rounds: int) -> Stay | None:
    """Draw when the agents of a cohort are there (N rows); None where all are throughout."""
    if not spec.joins and spec.leaves is None and spec.entry_rate is spec.exit_rate is None:
        return None
    last = rounds if spec.leaves is None else min(spec.leaves, rounds)
    rng = stream(root, "cohort", spec.name, "presence")
    rates = spec.entry_rate, spec.exit_rate
    return drawn_stays(rng, spec.count, window=(spec.joins, last), rates=rates)


def split(draft: Draft, type_of: Rows) -> tuple[Rows, Rows]:
    """Give agents who differ in more than their loss rows of their own.

    Parameters
    ----------
    draft : Draft
    type_of : int array (N,)
        The distinct loss of each agent.

    Returns
    -------
    kind : int array (K,)
        The distinct loss of each row, in order.
    row_of : int array (N,)
    """
    keys = [type_of]
    keys += [] if draft.distance is None else [draft.distance]
    keys += [] if draft.stay is None else [draft.stay.entered, draft.stay.left]
    if len(keys) == 1:
        return np.arange(type_of.max() + 1), type_of
    found, row_of = np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)
    return found[:, 0], row_of.ravel()


def placed(drafts: Sequence[Draft], network: Network | None) -> list[Draft]:
    """Tell the agents of all cohorts, in order, how far from the forecaster they are."""
    if network is None:
        return list(drafts)
    ends = np.cumsum([draft.spec.count for draft in drafts])[:-1]
    parts = np.split(network.distance, ends)
    return [replace(draft, distance=part) for draft, part in zip(drafts, parts, strict=True)]


def stay_of_rows(draft: Draft, row_of: Rows) -> Stay | None:
    """Return when each row is there (K,); None where all are throughout."""
    if draft.stay is None:
        return None
    first = np.unique(row_of, return_index=True)[1]
    return Stay(draft.stay.entered[first], draft.stay.left[first])


def distance_of_rows(draft: Draft, row_of: Rows) -> Rows | None:
    """Return each row's distance from the forecaster (K,); None where all hear at once."""
    if draft.distance is None:
        return None
    return np.asarray(draft.distance[np.unique(row_of, return_index=True)[1]])


def over_stays(bias: BiasBound, weights: Array, stay: Stay, *, policies: int, losses: int) -> Array:
    """Bound the realised regret per round of each row over its own rounds, without gap and error.

    Parameters
    ----------
    bias : BiasBound
        Of the rounds so far.
    weights : array (K, A, n)
        Coefficients of protected losses.
    stay : Stay
    policies : int
        Number of benchmark policies beside the constants.
    losses : int
        Rows of the whole run, for the union over all of them.

    Returns
    -------
    array (K,)
        NaN for a row that has not played, and for one that came late where the gains are scalar.
    """
    total = np.full(len(weights), np.nan)
    left, actions = np.minimum(stay.left, bias.rounds), weights.shape[1]
    spans = np.stack([stay.entered, left], axis=1)
    pairs, which, sizes = np.unique(spans, axis=0, return_inverse=True, return_counts=True)
    members = np.split(np.argsort(which.ravel(), kind="stable"), np.cumsum(sizes)[:-1])
    for (first, last), rows in zip(pairs.tolist(), members, strict=True):
        if first >= last or (first and isinstance(bias, GainBound)):
            continue
        whole = replace(bias, rounds=last)
        if first:
            expected = regret_since(whole, weights[rows], joined=first, policies=policies)
        else:
            expected = whole.regret(weights[rows], policies=policies)
        drawn = draw_term(last - first, losses, actions=actions, comparators=actions + policies)
        total[rows] = expected + drawn
    return total
