"""What a run says beside its results: what was left out or sampled, and what is hardly meant.

**Notes** stand in the run's output and its manifest. **Warnings** are written to standard error
before the first round as well.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array, Indices
from regretless.market.exploitability.tracker import LEADER_COLUMNS, TOLERANCE, Extent
from regretless.market.game.protocols import Adversary
from regretless.market.logs.counted import mean_of
from regretless.market.losses import Loss
from regretless.market.model import MarketModel
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.validation import listed_in_full

MAX_CLIPPED_SHARE = 0.2  # of the rows of the data, above which there is a warning
SAME_LOSS = 1e-6  # losses in [0, 1] that differ by at most so much are taken to be the same
MAX_AGENTS_CHECKED = 64
MIN_ROWS_CHECKED = 256  # in fewer rows of data one action may be best by chance
MAX_ROWS_CHECKED = 20_000
N_DRAWN_OUTCOMES = 256  # that are checked where there are no data
MAX_LOSSES_AT_ONCE = 200_000  # in memory
LEAST_PRINTED_ERROR = 1e-4  # what is less is at most that, too: 0.0001 reads better than 8.9e-05


def annotate(
    model: MarketModel,
    spec: ScenarioSpec,
    rows: Array | None,
    clipped_shares: Mapping[str, float],
) -> None:
    """Give a model its notes and warnings.

    Parameters
    ----------
    rows : array (T, d) or None
        The outcomes of the data.
    clipped_shares : mapping of str to float
        Which share of the rows was clipped into the scale, by the name of the forecast, and of the
        outcomes under no name.
    """
    on_indifference = list(_notes_on_indifference(model, spec, rows))
    on_impulse = list(_notes_on_impulse(spec, rows))
    model.notes = (
        *listed_in_full(spec),
        *_notes_on_objective(model, spec),
        *_notes_on_noise(model, spec),
        *on_indifference,
        *on_impulse,
    )
    model.warnings = (
        *on_indifference,
        *on_impulse,
        *_warnings_on_context(spec),
        *_warnings_on_clipping(spec, clipped_shares),
    )


def _notes_on_objective(model: MarketModel, spec: ScenarioSpec) -> Iterator[str]:
    """Yield whom, and what, the forecaster's objective leaves out."""
    objective = spec.forecaster.objective
    if objective == "none":
        return
    market = model.game.market
    is_welfare = objective == "welfare"
    is_foreseen = market is not None and market.can_be_played_ahead
    if is_welfare and market is not None and not is_foreseen:
        yield (
            "forecaster.objective: welfare is what agents expect to lose, since accounts and "
            "losses of each agent's own are not foreseen"
        )
    for cohort in model.game.cohorts:
        if not cohort.predictable:
            reason = "nobody foresees what they do"
        elif is_welfare and not is_foreseen and not cohort.listens:
            reason = "they hear no forecast"
        else:
            continue
        yield f"{cohort.name}: forecaster.objective leaves them out, since {reason}"


def _notes_on_noise(model: MarketModel, spec: ScenarioSpec) -> Iterator[str]:
    """Yield that an adversary without noise has no limit of noise."""
    key = model.game.adversary.innermost.noise
    if spec.adversary is None or key is None:
        return
    if spec.adversary.parameters.get(key) == 0:
        yield f"adversary.{key} = 0: outcomes are the mean itself, without noise"


def _notes_on_impulse(spec: ScenarioSpec, rows: Array | None) -> Iterator[str]:
    """Say that the rounds around an impulse come to the end of the data, where the run does not."""
    impulse = spec.impulse
    data = spec.data
    if impulse is None or data is None or rows is None:
        return
    n_rows = len(rows) if data.bootstrap is None else spec.rounds  # so many are drawn
    if impulse.round is None:
        end_round = spec.rounds + impulse.before + impulse.n_rounds + impulse.after
    else:
        end_round = impulse.round + impulse.n_rounds + impulse.after
    if spec.rounds <= n_rows < end_round:
        fault = f"impulse: the data end with round {n_rows - 1}, and begin anew after it"
        cure = "give an earlier impulse.round, or fewer rounds"
        yield f"{fault}, for the rounds up to {end_round - 1}; {cure}"


def _warnings_on_context(spec: ScenarioSpec) -> Iterator[str]:
    """Yield which outcomes, and where they are censored, are context: known beforehand."""
    if spec.data is None:
        return
    for name in sorted({*spec.data.outcomes} & {*spec.data.context}):
        yield (
            f"data.context: everybody knows the outcome '{name}' before its round; "
            "leave it out unless that is meant"
        )
    for name in sorted({*spec.data.censored_columns.values()} & {*spec.data.context}):
        yield (
            f"data.context: everybody knows '{name}', where the outcome is censored, before its "
            "round; leave it out unless that is meant"
        )


def _warnings_on_clipping(spec: ScenarioSpec, clipped_shares: Mapping[str, float]) -> Iterator[str]:
    """Yield where much of the data was clipped, and nobody said that it should be."""
    if spec.data is not None and spec.data.clip:
        return
    for name, share in clipped_shares.items():
        if share > MAX_CLIPPED_SHARE:
            what = f"the data rows of forecast {name}" if name else "the data rows"
            yield (
                f"{100 * share:.1f} % of {what} were clipped into the scale; "
                "widen data.scale, or write data.clip = true if that is meant"
            )


def _notes_on_indifference(
    model: MarketModel, spec: ScenarioSpec, rows: Array | None
) -> Iterator[str]:
    """Yield the cohorts that a forecast cannot guide, since outcomes do not change what is best."""
    game = model.game
    if spec.game is not None or game.has_personal_losses:  # losses say it all, or not enough
        return
    outcomes = _outcomes_to_check(game.adversary, rows)
    for cohort in game.cohorts:
        reason = _indifference(cohort.loss, outcomes, tell_dominance=game.market is None)
        if reason:
            yield (
                f"cohort.{cohort.name}: with utility '{cohort.utility}' {reason}, so that the "
                "forecast changes nothing; outcomes are in [0, 1]: give parameters of that size"
            )


def _outcomes_to_check(adversary: Adversary, rows: Array | None) -> Array:
    """Return outcomes (T, d): of the data where they are many, else drawn ones with corners."""
    if rows is not None and len(rows) >= MIN_ROWS_CHECKED:
        return rows[_spread_evenly(len(rows), MAX_ROWS_CHECKED)]
    rng = np.random.default_rng(0)
    shape = (N_DRAWN_OUTCOMES, adversary.outcomes)
    inner_points = rng.random(shape)
    corners = rng.integers(2, size=shape).astype(np.float64)
    return adversary.reachable(np.concatenate([inner_points, corners]))


def _indifference(loss: Loss, outcomes: Array, *, tell_dominance: bool) -> str:
    """Say that actions do not depend on outcomes (T, d); empty where they do for somebody.

    ``tell_dominance``: whether to tell of an action that is always best, as a bid in a market may
    well be.
    """
    n_agents = min(MAX_AGENTS_CHECKED, max(MAX_LOSSES_AT_ONCE // loss.actions, 1))
    sample = loss[_spread_evenly(len(loss), n_agents)]
    worst_regret = np.zeros((len(sample), loss.actions))  # of always playing an action
    n_outcomes_at_once = max(MAX_LOSSES_AT_ONCE // worst_regret.size, 1)
    for first in range(0, len(outcomes), n_outcomes_at_once):
        losses = sample.losses(outcomes[first : first + n_outcomes_at_once])
        regret = losses - losses.min(axis=-1, keepdims=True)
        worst_regret = np.maximum(worst_regret, regret.max(axis=0))
        if (worst_regret.min(axis=-1) > SAME_LOSS).any():
            return ""
    if worst_regret.max() <= SAME_LOSS:
        return f"all actions have the same loss within {SAME_LOSS:g}"
    if tell_dominance:
        return "one action is best whatever the outcome is, for every agent"
    return ""


def _spread_evenly(count: int, max_places: int) -> Indices:
    """Return at most so many places among ``count``, spread evenly."""
    return np.linspace(0, count - 1, min(count, max_places)).astype(np.intp)


def extents(model: MarketModel) -> dict[str, Extent]:
    """Say what was followed of every cohort that keeps its exploitability and has played."""
    tracker = model.tracker
    if tracker is None or not model.played:
        return {}
    cohorts = model.game.cohorts
    return {
        cohorts[cohort_index].name: tracker.extent(cohort_index) for cohort_index in tracker.rows
    }


def exploitability_record(model: MarketModel) -> dict[str, Any]:
    """Return the manifest's entry."""
    cohorts = {name: asdict(extent) for name, extent in extents(model).items()}
    return {"tolerance": TOLERANCE, "cohorts": cohorts}


def on_exploitability(model: MarketModel, agents: pd.DataFrame) -> Iterator[str]:
    """Yield the lines that go below the closing table."""
    for name, extent in extents(model).items():
        if extent.followed < extent.agents:
            sample = f"a sample of {extent.followed:,} of {extent.agents:,} agents"
            yield f"{name}: exploitability of {sample}"
        if extent.unsolved:
            unsolved = f"of {extent.unsolved:,} agents no method solved a program of exploitability"
            yield f"{name}: {unsolved} or surplus within its limits; their values are empty"
        if extent.quantisation_error:
            cells = f"exploitability over {extent.points:,} cells of outcomes, each at its mean"
            error_bound = max(extent.quantisation_error, LEAST_PRINTED_ERROR)
            error = f"losses are off by at most {error_bound:.2g} on average"
            yield f"{name}: {cells}: {error}"
        yield from _lines_on_leader(model, name, agents[agents["cohort"] == name])


def _lines_on_leader(model: MarketModel, cohort: str, members: pd.DataFrame) -> Iterator[str]:
    """Yield what the leader gained from a cohort; nothing where that was not measured."""
    if model.tracker is None or not set(LEADER_COLUMNS) <= set(members):
        return
    n_measured = members["leader_surplus"].notna().sum()
    if n_measured == 0:
        return
    surplus, cap = (mean_of(members, column) for column in LEADER_COLUMNS)
    limit = f"cap {cap:.3f}"
    if n_measured > 1:
        limit += ", mean over agents"
    cohort_index = [member.name for member in model.game.cohorts].index(cohort)
    paid = model.tracker.mean_leader_payoff(cohort_index)
    yield (
        f"{cohort}: leader surplus {surplus:.3f} ({limit}), paid {paid:.3f}, "
        "per round in units of the leader's payoff"
    )
