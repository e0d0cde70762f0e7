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
from regretless.market.logs.counted import mean_of
from regretless.market.losses import Loss
from regretless.market.model import MarketModel
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.validation import listed_in_full

MUCH = 0.2  # share of clipped rows above which there is a warning
TINY = 1e-6  # losses in [0, 1] that differ by at most so much are alike
AGENTS, POINTS, ROWS = 64, 256, 20_000  # of each at most so many are looked at
AT_ONCE = 200_000  # losses


def annotate(
    model: MarketModel, spec: ScenarioSpec, rows: Array | None, shares: Mapping[str, float]
) -> None:
    """Give a model its notes and warnings; ``rows`` (T, d) and ``shares`` are as in ``Table``."""
    game, own, data, strange = model.game, spec.adversary, spec.data, list[str]()
    if spec.game is None and not game.has_personal_losses:  # there losses say it all, or not enough
        if rows is not None and len(rows) >= POINTS:  # in few one action may be best by chance
            outcomes = rows[_places(len(rows), ROWS)]
        else:
            rng, shape = np.random.default_rng(0), (POINTS, game.adversary.outcomes)
            corners = rng.random(shape), rng.integers(2, size=shape).astype(np.float64)
            outcomes = game.adversary.reachable(np.concatenate(corners))
        strange += [
            f"cohort.{cohort.name}: with utility '{cohort.utility}' {found}, so that the "
            "forecast changes nothing; outcomes are in [0, 1]: give parameters of that size"
            for cohort in game.cohorts
            if (found := _found(cohort.loss, outcomes, dominant=game.market is None))
        ]
    notes, warnings = list(listed_in_full(spec)), list(strange)
    is_played_ahead = game.market is not None and game.market.can_be_played_ahead
    if spec.forecaster.objective == "welfare" and game.market is not None and not is_played_ahead:
        why = "accounts and losses of each agent's own are not foreseen"
        notes.append(f"forecaster.objective: welfare is what agents expect to lose, since {why}")
    for cohort in game.cohorts if spec.forecaster.objective != "none" else ():
        if not cohort.predictable:
            why = "nobody foresees what they do"
            notes.append(f"{cohort.name}: forecaster.objective leaves them out, since {why}")
        elif spec.forecaster.objective == "welfare" and not (is_played_ahead or cohort.listens):
            why = "they hear no forecast"
            notes.append(f"{cohort.name}: forecaster.objective leaves them out, since {why}")
    key = game.adversary.innermost.noise
    if own is not None and key is not None and own.parameters.get(key) == 0:  # no limit of noise
        notes.append(f"adversary.{key} = 0: outcomes are the mean itself, without noise")
    for name in sorted({*data.outcomes} & {*data.context}) if data else ():
        known = f"data.context: everybody knows the outcome '{name}' before its round"
        warnings.append(f"{known}; leave it out unless that is meant")
    for name, share in shares.items():
        if share > MUCH and not (data is not None and data.clip):
            of = f" of forecast {name}" * bool(name)
            rows_of = f"{100 * share:.1f} % of the data rows{of} were clipped into the scale"
            cure = "widen data.scale, or write data.clip = true if that is meant"
            warnings.append(f"{rows_of}; {cure}")
    model.notes, model.warnings = (*notes, *strange), tuple(warnings)


def _found(loss: Loss, outcomes: Array, *, dominant: bool) -> str:
    """Say that actions do not depend on outcomes (T, d); empty where they do for somebody.

    ``dominant``: whether to tell one that is always best, as a bid in a market may well be.
    """
    some = loss[_places(len(loss), min(AGENTS, max(AT_ONCE // loss.actions, 1)))]
    regret = np.zeros((len(some), loss.actions))  # of always playing an action, at worst
    step = max(AT_ONCE // regret.size, 1)
    for first in range(0, len(outcomes), step):
        values = some.losses(outcomes[first : first + step])
        regret = np.maximum(regret, (values - values.min(-1, keepdims=True)).max(0))
        if (regret.min(-1) > TINY).any():
            return ""
    if regret.max() <= TINY:
        return f"all actions have the same loss within {TINY:g}"
    return "one action is best whatever the outcome is, for every agent" * dominant


def _places(count: int, most: int) -> Indices:
    """Return at most so many places among ``count``, spread evenly."""
    return np.linspace(0, count - 1, min(count, most)).astype(np.intp)


def extents(model: MarketModel) -> dict[str, Extent]:
    """Say what was followed of every cohort that keeps its exploitability and has played."""
    tracker, cohorts = model.tracker, model.game.cohorts
    if tracker is None or not model.played:
        return {}
    return {cohorts[place].name: tracker.extent(place) for place in tracker.rows}


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
            cells = f"exploitability over {extent.points} cells of outcomes, each at its mean"
            error = f"losses are off by at most {extent.quantisation_error:.2g} on average"
            yield f"{name}: {cells}: {error}"
        rows, tracker = agents[agents["cohort"] == name], model.tracker
        known = rows["leader_surplus"].notna().sum() if set(LEADER_COLUMNS) <= set(rows) else 0
        if tracker is not None and known:
            surplus, cap = (mean_of(rows, column) for column in LEADER_COLUMNS)
            limit = f"cap {cap:.3f}{', mean over agents' if known > 1 else ''}"
            paid = tracker.mean_leader_payoff(
                [cohort.name for cohort in model.game.cohorts].index(name)
            )
            yield f"{name}: leader surplus {surplus:.3f} ({limit}), paid {paid:.3f} per round"
