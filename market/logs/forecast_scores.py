r"""How good the forecast was: of the outcomes, beside every model, and of what agents decided on.

**Outcomes.** Of the last rounds there are the label forecasts (the outcomes that the predictions
suggest) of the broadcast and of every model (``market.game.round``). Scored are the
errors of the label, and the distribution that it makes with the last ``ERRORS`` errors of its own,

    F_t = the empirical distribution of  label_t + error_s,  s = t - ERRORS .. t - 1,

by its continuous ranked probability score, E|X - y| - E|X - X'| / 2, its probability integral
transforms F_t(y_t), even on [0, 1] where it is calibrated, and the coverage of its intervals
(Gneiting and Katzfuss 2014, Annual Review of Statistics and Its Application 1,
doi:10.1146/annurev-statistics-062713-085831).

**Probabilities.** F_t says how probable it is that the outcome is above its median. Of the rounds
whose probability is in the same tenth its mean, and the share in which the outcome was above
(as ``sklearn.calibration.calibration_curve``).

**Decisions.** Of each action of a cohort the loss that agents expected when they took it, and the
loss that they had: equal where the forecast is decision calibrated (Zhao, Kim, Sahoo, Ma and Ermon
2021, arXiv:2107.05719).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array
from regretless.market.logs.comparisons import Compared
from regretless.market.records import KEPT, ForecastRecord

ERRORS = 64  # that a distribution is made of
FIRST = 16  # errors, without which there is none
BINS = 10  # of probability integral transforms
COVERED = {"coverage_50": (0.25, 0.75), "coverage_90": (0.05, 0.95)}
BROADCAST = "broadcast"


def scores_table(
    records: Mapping[str, ForecastRecord], outcomes: Array, compared: Sequence[Compared]
) -> pd.DataFrame:
    """One row per block, source and outcome, per tenth of its probabilities, and per action taken.

    ``outcomes`` (T, d): the last ones. The columns that say nothing of a row are empty.
    """
    rows = [row for name, own in records.items() for row in _of_outcomes(name, own, outcomes)]
    for own in compared:
        if own.decisions is None:
            continue
        count, lost, expected = own.decisions.sum(0).reshape(3, -1)
        for action in np.flatnonzero(count):
            row = {"kind": "decision", "cohort": own.cohort, "action": int(action)}
            row |= {"share": count[action] / count.sum(), "mean_loss": lost[action] / count[action]}
            rows.append(row | {"expected_loss": expected[action] / count[action]})
    names = ["kind", "block", "source", "outcome", "cohort", "action", "rounds", "share"]
    names += ["mae", "rmse", "crps", *COVERED, *(f"pit_{i}" for i in range(BINS))]
    names += ["predicted", "observed", "expected_loss", "mean_loss"]
    table = pd.DataFrame(rows, columns=names)
    words = ["block", "source", "outcome", "cohort"]
    table[words] = table[words].astype(object).fillna("")
    return table.astype({"action": "Int64", "rounds": "Int64"})


def _of_outcomes(block: str, record: ForecastRecord, outcomes: Array) -> Iterator[dict[str, Any]]:
    labels = record.last(KEPT)
    outcomes = outcomes[len(outcomes) - len(labels) :]
    for place, source in enumerate((BROADCAST, *record.models)):
        for which, (outcome, label) in enumerate(zip(outcomes.T, labels[:, place].T, strict=True)):
            error, row = (
                outcome - label,
                {"block": block, "source": source, "outcome": f"y_{which}"},
            )
            whole = row | {"kind": "outcome", "rounds": len(error)}
            whole |= {"mae": np.abs(error).mean(), "rmse": np.sqrt((error**2).mean())}
            if len(error) <= FIRST:
                yield whole
                continue
            places, came = np.arange(FIRST, len(error)), outcome[FIRST:]
            before = places[:, None] - np.arange(1, ERRORS + 1)  # of each round, the last first
            drawn = label[places, None] + error[np.maximum(before, 0)]
            members = np.where(before >= 0, drawn, np.nan)
            crps, pit = ensemble_scores(members, came)
            for name, (low, high) in COVERED.items():
                whole[name] = ((low <= pit) & (pit <= high)).mean()
            shares = np.histogram(pit, BINS, (0.0, 1.0))[0] / len(pit)
            yield whole | {"crps": crps.mean()} | {f"pit_{i}": own for i, own in enumerate(shares)}
            yield from (row | one for one in reliability(members, came))


def reliability(members: Array, outcome: Array) -> Iterator[dict[str, Any]]:
    """Yield shares of outcomes (T,) above their median by what ensembles (T, m) say, by tenths."""
    middle = np.median(outcome)
    told = (members > middle).sum(1) / (~np.isnan(members)).sum(1)
    tenth = np.searchsorted(np.arange(1, BINS) / BINS, told)
    for one in np.unique(tenth):
        own = tenth == one
        shares = {"predicted": told[own].mean(), "observed": (outcome[own] > middle).mean()}
        yield {"kind": "probability", "share": own.mean()} | shares


def ensemble_scores(members: Array, outcome: Array) -> tuple[Array, Array]:
    """Return the CRPS (T,) and the probability integral transforms (T,) of ensembles.

    ``members`` (T, m) are alike, NaN for those that are not there; ``outcome`` is (T,).

    >>> crps, pit = ensemble_scores(np.array([[0.0, 1.0, 2.0, np.nan]]), np.array([1.0]))
    >>> crps.round(4), pit
    (array([0.2222]), array([0.5]))
    """
    ordered = np.sort(members, axis=1)  # NaN last
    count = (~np.isnan(ordered)).sum(1)
    rank = np.arange(ordered.shape[1])
    apart = np.nansum((2 * rank + 1 - count[:, None]) * ordered, axis=1) / count**2
    away = np.nansum(np.abs(ordered - outcome[:, None]), axis=1) / count
    below = (ordered < outcome[:, None]).sum(1)
    tied = (ordered == outcome[:, None]).sum(1)
    return away - apart, (below + (tied + 1) / 2) / (count + 1)  # the outcome is one more member
