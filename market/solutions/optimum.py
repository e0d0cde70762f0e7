"""The planner's optimum: the profile with the least total loss, in units of the utilities."""

import numpy as np

from regretless.market import register
from regretless.market.core.arrays import Indices
from regretless.market.core.randomness import stream
from regretless.market.solutions.solution import Solution, not_found, of_profile
from regretless.market.solutions.stage_game import StageGame

N_STARTS = 4  # of the search, where there are too many profiles
MAX_SWEEPS = 50  # of the search, over all agents


@register.solution("optimum")
def optimum(game: StageGame) -> Solution:
    """Return the planner's optimum; its certificate is what an agent gains by leaving it."""
    if game.is_enumerable:
        configurations = game.configurations
        best = int(configurations.total_loss.argmin())
        method = f"enumeration of {len(configurations):,} profiles by counts"
        gain = float(configurations.greatest_gains[best])
        return Solution("optimum", configurations.losses_at(best), method, gain)
    if game.why_too_slow:
        return not_found("optimum", f"{game.why_too_large}; {game.why_too_slow}")
    found = []
    for start in range(N_STARTS):
        rng = stream(0, "optimum", str(start))
        profile = _descend(game, rng.integers(np.array(game.sizes)))
        found.append(profile)
    losses = game.losses_at(np.array(found)).sum(1)
    method = f"best of {N_STARTS} searches, agent by agent: no lower bound is known"
    return of_profile(game, "optimum", found[int(losses.argmin())], method)


def _descend(game: StageGame, profile: Indices) -> Indices:
    """Return a profile whose total loss no agent can lower alone, from a start, or the last one."""
    current = np.array(profile, dtype=np.intp)
    for _ in range(MAX_SWEEPS):
        has_changed = False
        for agent, size in enumerate(game.sizes):
            deviations = np.repeat(current[np.newaxis], size, axis=0)
            deviations[:, agent] = np.arange(size)
            totals = game.losses_at(deviations).sum(1)
            if totals.min() < totals[current[agent]] - 1e-12 * max(abs(totals.min()), 1.0):
                current[agent] = totals.argmin()
                has_changed = True
        if not has_changed:
            break
    return current
