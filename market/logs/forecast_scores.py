r"""How good the forecast was: of the outcomes, beside every model, and of what agents decided on.

**Outcomes.** The run keeps, of its last rounds, the label forecasts (the outcomes that the
predictions suggest) of the broadcast and of every model (``market.game.round``). Scored are the
errors of the label, and the distribution that the label makes with the last ``WINDOW`` errors of
its own,

    F_t = the empirical distribution of  label_t + error_s,  s = t - WINDOW .. t - 1,

by its continuous ranked probability score, E|X - y| - E|X - X'| / 2, its probability integral
transforms F_t(y_t), even on [0, 1] where it is calibrated, and the coverage of its intervals
(Gneiting and Katzfuss 2014, Annual Review of Statistics and Its Application 1,
doi:10.1146/annurev-statistics-062713-085831).

**Probabilities.** F_t gives the probability that the outcome is above its median over the run.
Rounds are grouped by the tenth in which that probability lies. Each group has a row: the mean
probability, and the share of its rounds in which the outcome was above the median (as
``sklearn.calibration.calibration_curve``).

**Decisions.** Each action of a cohort has a row: the loss that agents expected when they took it,
and the loss that they had. The two are equal where the forecast is decision calibrated (Zhao, Kim,
Sahoo, Ma and Ermon 2021, arXiv:2107.05719).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array
from regretless.market.logs.alternatives import CohortLosses
from regretless.market.records import MAX_RECENT, ForecastRecord

WINDOW = 64  # errors that a distribution is made of
FEWEST_ERRORS = 16  # without so many earlier rounds a round has no distribution
PIT_BINS = 10  # of the histogram of probability integral transforms
PROBABILITY_BINS = 10
INTERVALS = {"coverage_50": (0.25, 0.75), "coverage_90": (0.05, 0.95)}
BROADCAST = "broadcast"

WORD_COLUMNS = ["block", "source", "outcome", "cohort"]
COLUMNS = [
    *("kind", "block", "source", "outcome", "cohort", "action", "rounds", "share"),
    *("mae", "rmse", "crps", *INTERVALS, *(f"pit_{i}" for i in range(PIT_BINS))),
    *("predicted", "observed", "expected_loss", "mean_loss"),
]

Row = dict[str, Any]


def scores_table(
    records: Mapping[str, ForecastRecord], outcomes: Array, cohorts: Sequence[CohortLosses]
) -> pd.DataFrame:
    """Make the table of scores; columns that say nothing of a row are empty.

    Parameters
    ----------
    records : mapping
        By block, the label forecasts of its last rounds.
    outcomes : ndarray
        The last outcomes (T, d).
    cohorts : sequence of CohortLosses
        What each cohort decided and lost.

    Returns
    -------
    frame
        A row per block, source and outcome, a row per bin of its probabilities, and a row per
        cohort and action taken.
    """
    rows: list[Row] = []
    if len(outcomes):
        for block, record in records.items():
            rows.extend(_outcome_rows(block, record, outcomes))
    for cohort in cohorts:
        if cohort.decisions is not None:
            rows.extend(_decision_rows(cohort.cohort, cohort.decisions))
    table = pd.DataFrame(rows, columns=COLUMNS)
    if not rows:  # pandas cannot tell what the values would have been
        numbers = [name for name in COLUMNS if name not in {"kind", *WORD_COLUMNS}]
        table = table.astype({"kind": "str"} | dict.fromkeys(numbers, "float64"))
    table[WORD_COLUMNS] = table[WORD_COLUMNS].astype(object).fillna("")
    return table.astype({"action": "Int64", "rounds": "Int64"})


def _decision_rows(cohort: str, decisions: Array) -> Iterator[Row]:
    """Yield a row per action taken; ``decisions`` as in ``CohortLosses``."""
    count, realised_losses, expected_losses = decisions.sum(0).reshape(3, -1)
    for action in np.flatnonzero(count):
        yield {
            "kind": "decision",
            "cohort": cohort,
            "action": int(action),
            "share": count[action] / count.sum(),
            "mean_loss": realised_losses[action] / count[action],
            "expected_loss": expected_losses[action] / count[action],
        }


def _outcome_rows(block: str, record: ForecastRecord, outcomes: Array) -> Iterator[Row]:
    """Yield the rows of a block's broadcast and of its models, for each outcome."""
    labels = record.last(MAX_RECENT)  # (T, sources, d)
    recorded_outcomes = outcomes[len(outcomes) - len(labels) :]
    for source_index, source in enumerate((BROADCAST, *record.models)):
        for coordinate, outcome in enumerate(recorded_outcomes.T):
            identity = {"block": block, "source": source, "outcome": f"y_{coordinate}"}
            label = labels[:, source_index, coordinate]
            yield from (identity | row for row in score_series(outcome, label))


def score_series(outcome: Array, label: Array) -> Iterator[Row]:
    """Yield the scores of a forecast (T,) of one outcome (T,), then a row per bin of probability.

    With at most ``FEWEST_ERRORS`` rounds there are only the scores of the label.
    """
    error = outcome - label
    scores: Row = {
        "kind": "outcome",
        "rounds": len(error),
        "mae": np.abs(error).mean(),
        "rmse": np.sqrt((error**2).mean()),
    }
    if len(error) <= FEWEST_ERRORS:
        yield scores
        return
    ensembles = error_ensembles(label, error)
    scored_outcome = outcome[FEWEST_ERRORS:]
    crps, pit_values = ensemble_scores(ensembles, scored_outcome)
    scores["crps"] = crps.mean()
    for name, (low, high) in INTERVALS.items():
        scores[name] = ((low <= pit_values) & (pit_values <= high)).mean()
    histogram, _ = np.histogram(pit_values, PIT_BINS, (0.0, 1.0))
    for bin_index, share in enumerate(histogram / len(pit_values)):
        scores[f"pit_{bin_index}"] = share
    yield scores
    yield from reliability(ensembles, scored_outcome)


def error_ensembles(label: Array, error: Array) -> Array:
    """Return the distribution of each round from ``FEWEST_ERRORS`` on, as members (t, WINDOW).

    Member i is the round's label plus the error of i + 1 rounds before; NaN before the first round.
    """
    rounds = np.arange(FEWEST_ERRORS, len(error))
    error_rounds = rounds[:, np.newaxis] - np.arange(1, WINDOW + 1)
    members = label[rounds, np.newaxis] + error[np.maximum(error_rounds, 0)]
    return np.where(error_rounds >= 0, members, np.nan)


def reliability(ensembles: Array, outcome: Array) -> Iterator[Row]:
    """Yield a row per bin of the probability that an outcome is above the median of all.

    ``ensembles`` (T, m) are the forecasts of outcomes (T,), NaN for members that are not there.
    """
    median = np.median(outcome)
    member_is_above = ensembles > median  # (T, m), false for NaN
    probability = member_is_above.sum(1) / (~np.isnan(ensembles)).sum(1)
    inner_edges = np.arange(1, PROBABILITY_BINS) / PROBABILITY_BINS
    bin_of_round = np.searchsorted(inner_edges, probability)
    for bin_index in np.unique(bin_of_round):
        is_in_bin = bin_of_round == bin_index
        yield {
            "kind": "probability",
            "share": is_in_bin.mean(),
            "predicted": probability[is_in_bin].mean(),
            "observed": (outcome[is_in_bin] > median).mean(),
        }


def ensemble_scores(ensembles: Array, outcome: Array) -> tuple[Array, Array]:
    """Return the CRPS (T,) and the probability integral transforms (T,) of ensembles.

    The members of ``ensembles`` (T, m) are equally likely, NaN for those that are not there;
    ``outcome`` is (T,).

    >>> crps, pit_values = ensemble_scores(np.array([[0.0, 1.0, 2.0, np.nan]]), np.array([1.0]))
    >>> crps.round(4), pit_values
    (array([0.2222]), array([0.5]))
    """
    ordered = np.sort(ensembles, axis=1)  # NaN last
    count = (~np.isnan(ordered)).sum(1)
    rank = np.arange(ordered.shape[1])
    # E|X - X'| / 2, by ranks of the ordered members.
    spread = np.nansum((2 * rank + 1 - count[:, None]) * ordered, axis=1) / count**2
    distance = np.nansum(np.abs(ordered - outcome[:, None]), axis=1) / count
    below = (ordered < outcome[:, None]).sum(1)
    tied = (ordered == outcome[:, None]).sum(1)
    # The outcome counts as one more member, in the middle of those that it ties with.
    transform = (below + (tied + 1) / 2) / (count + 1)
    return distance - spread, transform
