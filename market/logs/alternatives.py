"""Alternatives in hindsight: what agents lost, and what they would have lost by another rule.

The alternatives of a cohort are every model and policy that it is compared with, and the best fixed
action of each agent (docs/measures.md). All losses are averages per round, in [0, 1], over the
rounds in which the agent was present. The **difference** of an alternative is its mean loss minus
the mean loss of what the agents did, so that a positive difference means that following the
forecast was better.

A run writes three tables from what is here: ``models`` (``models_table``), ``verdict``
(``verdict_table``) and the part of ``forecast_scores`` that is about decisions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.game.protocols import Cohort, numbered
from regretless.market.game.round import Game
from regretless.market.game.seats import Seat
from regretless.market.numerics import exact_sum
from regretless.market.records import policy_name
from regretless.market.regret.inference import mean_differences
from regretless.market.regret.ledger import Ledger
from regretless.market.regret.model_comparison import Series

SMALLEST_IMPROVEMENT = 1e-12  # a loss that is lower by less is lower by rounding alone
EVERYBODY = "everybody"  # the block of the verdict that has all cohorts together

# Kinds of alternatives, in the order of the verdict's rows.
BROADCAST = "broadcast"  # what the agents did
MODEL = "model"
POLICY = "policy"
ACTION = "action"
KINDS = (BROADCAST, MODEL, POLICY, ACTION)

MEAN_COLUMNS = ("cohort", "kind", "name", "agents", "mean_loss", "difference")
INTERVAL_COLUMNS = ("low", "high", "p_adjusted")
VERDICT_COLUMNS = (*MEAN_COLUMNS, *INTERVAL_COLUMNS, "better_off", "effective")
TYPES_WITHOUT_ROWS = dict.fromkeys(VERDICT_COLUMNS, "float64") | {
    "cohort": "str",
    "kind": "str",
    "name": "str",
    "agents": "int64",
    "better_off": "int64",
}


@dataclass(frozen=True)
class Alternative:
    """A rule that agents could have followed: its kind, one of ``KINDS``, and its name."""

    kind: str
    name: str


@dataclass(frozen=True, eq=False)
class CohortLosses:
    """Losses per round of the n agents of a cohort who came, with each of J alternatives.

    Attributes
    ----------
    cohort : str
        The cohort's name.
    alternatives : sequence of Alternative
        J of them; the first is what the agents did.
    losses : ndarray
        Mean loss (J, n) of each agent with each alternative, in [0, 1].
    series : Series or None
        Differences of the other J - 1 alternatives over time, if they were kept.
    multiplicity : ndarray of int
        How many agents each of the n stands for.
    decisions : ndarray or None
        Sums over all agents for each of A actions (2, 3 A): how often it was taken, what was lost
        by it, and what agents expected to lose. Each sum is two numbers that add up to it
        (``market.numerics.exact_sum``). None where agents expect nothing.
    """

    cohort: str
    alternatives: Sequence[Alternative]
    losses: Array
    series: Series | None
    multiplicity: Indices
    decisions: Array | None = None


def models_table(game: Game) -> pd.DataFrame:
    """Make a row per agent that came and model: the loss of following it, the regret to it."""
    parts = []
    for seat, (first_number, cohort) in zip(game.seats, numbered(game.cohorts), strict=True):
        model_names = seat.comparison.names
        if not model_names:
            continue
        ledger = cohort.ledger
        agents = np.flatnonzero(ledger.played[cohort.row_of])
        rows = cohort.row_of[agents]
        model_losses = seat.comparison.mean_loss(ledger.rounds)  # (K, M)
        regret_to_models = ledger.mean_loss()[:, np.newaxis] - model_losses
        columns = {
            "agent": np.repeat(agents + first_number, len(model_names)),
            "cohort": cohort.name,
            "model": np.tile(np.array(model_names, dtype=object), len(agents)),
            "mean_loss": model_losses[rows].ravel(),
            "regret_to_model": regret_to_models[rows].ravel(),
        }
        parts.append(pd.DataFrame(columns))
    if not parts:
        return pd.DataFrame()
    table = pd.concat(parts, ignore_index=True)
    return table if len(table) else table.astype({"model": "str", "cohort": "str"})


def losses_of_cohorts(game: Game) -> list[CohortLosses]:
    """Return the losses of each cohort of which somebody has played, with each alternative."""
    return [_losses_of_cohort(seat) for seat in game.seats if np.any(seat.cohort.ledger.rounds)]


def _losses_of_cohort(seat: Seat) -> CohortLosses:
    cohort = seat.cohort
    ledger = cohort.ledger
    alternatives = [Alternative(BROADCAST, "")]
    row_losses = [ledger.mean_loss()]  # (K,) of each alternative

    model_losses = seat.comparison.mean_loss(ledger.rounds)
    for m, model_name in enumerate(seat.comparison.names):
        alternatives.append(Alternative(MODEL, model_name))
        row_losses.append(model_losses[:, m])
    for j, policy in enumerate(cohort.policies):
        alternatives.append(Alternative(POLICY, policy_name(policy, f"policy {j}")))
        row_losses.append(ledger.followed[:, :, j].sum(1) / ledger.rounds_of_rows)
    alternatives.append(Alternative(ACTION, "best of each"))
    row_losses.append(ledger.fixed.sum(1).min(1) / ledger.rounds_of_rows)

    has_played = ledger.played[cohort.row_of]
    rows = cohort.row_of[has_played]
    return CohortLosses(
        cohort=cohort.name,
        alternatives=alternatives,
        losses=np.stack([losses[rows] for losses in row_losses]),
        series=seat.comparison.series(),
        multiplicity=_multiplicity(cohort, has_played),
        decisions=_sum_decisions(ledger, cohort.counts) if ledger.expects else None,
    )


def _multiplicity(cohort: Cohort, has_played: Mask) -> Indices:
    """Return how many agents each one that has played stands for (n,)."""
    multiplicity = cohort.multiplicity_of(has_played)
    if multiplicity is None:
        return np.ones(int(has_played.sum()), np.intp)
    return multiplicity


def _sum_decisions(ledger: Ledger, agents_per_row: Array) -> Array:
    """Add up over agents how often each action was taken, lost and was expected to lose."""
    expected_minus_realised = np.einsum("kaa->ka", ledger.surprise_fixed)
    expected_losses = ledger.played_losses + expected_minus_realised
    table = np.concatenate([ledger.count, ledger.played_losses, expected_losses], axis=1)
    return exact_sum.total(table, agents_per_row)


def verdict_table(cohorts: Sequence[CohortLosses]) -> pd.DataFrame:
    """Make a row per cohort and alternative: mean loss, difference with interval, who gains.

    What the agents did comes first, then models, policies and actions. With several cohorts a last
    block, ``EVERYBODY``, has all agents together: a cohort that an alternative is not open to does
    as it did. The intervals hold for all rows at once (``market.regret.inference``). The columns
    are those of docs/columns.md.
    """
    if not cohorts:
        return pd.DataFrame(columns=VERDICT_COLUMNS).astype(TYPES_WITHOUT_ROWS)
    blocks = _with_equal_batches(cohorts)
    if len(blocks) > 1 and EVERYBODY not in {block.cohort for block in blocks}:
        blocks.append(_join_cohorts(blocks))
    table = pd.concat([_mean_rows(block) for block in blocks], ignore_index=True)
    has_interval = np.concatenate([_rows_with_series(block) for block in blocks])

    means = [block.series.means() for block in blocks if block.series is not None]
    estimate = mean_differences(np.column_stack(means) if means else np.zeros((0, 0)))
    # A series weighs rounds equally, the table gives each agent the mean over its own rounds: the
    # intervals are moved to the table's means.
    shift = table["difference"].to_numpy()[has_interval] - estimate.mean
    columns = {
        "low": shift + estimate.low,
        "high": shift + estimate.high,
        "p_adjusted": estimate.p_adjusted,
        "effective": estimate.effective_rounds,
    }
    for name, values in columns.items():
        table[name] = np.nan
        table.loc[has_interval, name] = values
    return table[list(VERDICT_COLUMNS)]


def _with_equal_batches(cohorts: Sequence[CohortLosses]) -> list[CohortLosses]:
    """Bring all series into batches of the same rounds, the longest of any cohort."""
    all_series = [cohort.series for cohort in cohorts if cohort.series is not None]
    length = max((series.length for series in all_series), default=1)
    batches = max((len(series.in_batches_of(length).sums) for series in all_series), default=0)
    blocks = []
    for cohort in cohorts:
        if cohort.series is None:
            blocks.append(cohort)
        else:
            blocks.append(replace(cohort, series=cohort.series.in_batches_of(length, batches)))
    return blocks


def _mean_rows(cohort: CohortLosses) -> pd.DataFrame:
    """Make the rows of one cohort, without intervals."""
    difference = cohort.losses - cohort.losses[0]  # (J, n)
    multiplicity = cohort.multiplicity
    columns = {
        "cohort": cohort.cohort,
        "kind": [alternative.kind for alternative in cohort.alternatives],
        "name": [alternative.name for alternative in cohort.alternatives],
        "agents": int(multiplicity.sum()),
        "mean_loss": np.average(cohort.losses, axis=1, weights=multiplicity),
        "difference": np.average(difference, axis=1, weights=multiplicity),
        "better_off": (difference < -SMALLEST_IMPROVEMENT) @ multiplicity,
    }
    return pd.DataFrame(columns)


def _rows_with_series(cohort: CohortLosses) -> Mask:
    """Say which rows of a cohort get an interval: all but the first, if a series was kept."""
    has_series = cohort.series is not None
    kinds = [alternative.kind for alternative in cohort.alternatives]
    return np.array([has_series and kind != BROADCAST for kind in kinds])


def _join_cohorts(cohorts: Sequence[CohortLosses]) -> CohortLosses:
    """Put the agents of all cohorts together.

    A cohort that an alternative is not open to does as it did, which is its alternative 0.
    """
    distinct: dict[Alternative, None] = {}  # in the order of their first cohort
    for cohort in cohorts:
        distinct |= dict.fromkeys(cohort.alternatives)
    alternatives = sorted(distinct, key=lambda alternative: KINDS.index(alternative.kind))
    losses = []
    all_series = []
    for cohort in cohorts:
        index_of = {alternative: j for j, alternative in enumerate(cohort.alternatives)}
        # 0, what the agents did, stands in for an alternative that they did not have.
        indices = np.array([index_of.get(alternative, 0) for alternative in alternatives])
        losses.append(cohort.losses[indices])
        if cohort.series is not None:
            all_series.append(cohort.series.select(indices[1:] - 1))  # -1 for what was played
    return CohortLosses(
        cohort=EVERYBODY,
        alternatives=alternatives,
        losses=np.concatenate(losses, axis=1),
        series=_add_series(all_series) if len(all_series) == len(cohorts) else None,
        multiplicity=np.concatenate([cohort.multiplicity for cohort in cohorts]),
    )


def _add_series(all_series: Sequence[Series]) -> Series:
    """Add up series in equal batches over their agents."""
    # One after the other: ``np.sum`` of a list has another memory layout, and rounds otherwise.
    sums = all_series[0].sums
    present = all_series[0].agent_rounds
    for series in all_series[1:]:
        sums = sums + series.sums
        present = present + series.agent_rounds
    return Series(all_series[0].length, sums, present)
