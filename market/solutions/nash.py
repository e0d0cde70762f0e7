"""Nash equilibria: pure ones by enumeration or best responses, mixed ones by QuantEcon.

Every equilibrium is checked: its certificate is the greatest gain of a deviation.

- Pure ones are found among all configurations, or, where there are too many, by letting agents
  change to their best response one after another from several starts. This ends in games with a
  potential (Monderer and Shapley 1996), and need not end in others.
- Mixed ones of two agents come from ``quantecon.game_theory`` (extra ``games``): all of them by
  support enumeration in small games without ties, some by the method of Lemke and Howson (1964) in
  others. Of three and more agents the method of McLennan and Tourky (2006) finds one.
"""

import importlib.util
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from regretless.market import register
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.solutions.solution import (
    Solution,
    best_and_worst,
    not_found,
    of_profile,
    tolerance_of,
)
from regretless.market.solutions.stage_game import StageGame

MAX_SUPPORT_ACTIONS = 7  # of each of two agents, up to which all supports are tried
MAX_PIVOT_STARTS = 50  # of Lemke and Howson's method, one for each action
MAX_MIXED_PROFILES = 5_000  # of a game whose mixed equilibria are looked for
MAX_MIXED_GAIN = 1e-6  # at a mixed equilibrium, as a share of the range of an agent's losses
N_STARTS = 8  # of best responses
MAX_SWEEPS = 200  # of best responses, over all agents
INSTALL = "mixed ones need quantecon: run pip install 'regretless[games]'"


@register.solution("nash")
def nash(game: StageGame) -> list[Solution]:
    """Nash equilibria: the best and the worst of those that are found."""
    if game.is_enumerable:
        found = pure_equilibria(game)
        tried = f"enumeration of {game.n_configurations:,} profiles by counts"
    elif game.why_too_slow:
        return [not_found("nash", f"{game.why_too_large}; {game.why_too_slow}")]
    else:
        found = list(equilibria_by_best_responses(game))
        tried = f"best responses from {N_STARTS} starts"
    mixed, mixed_tried = mixed_equilibria(game)
    found += mixed
    if mixed_tried:
        tried = f"{tried}; {mixed_tried}"
    if not found:
        return [not_found("nash", f"none found, tried {tried}")]
    number = f"{len(found)} found by {tried}"
    described = [replace(one, method=f"{one.method}; {number}") for one in found]
    return best_and_worst("nash", described)


def pure_equilibria(game: StageGame) -> list[Solution]:
    """Return all pure equilibria of an enumerable game, one of each configuration."""
    configurations = game.configurations
    limits = [tolerance_of(losses_of_type) for losses_of_type in configurations.losses]
    is_equilibrium = np.ones(len(configurations), dtype=np.bool_)
    for deviation in configurations.deviations():
        is_equilibrium[deviation.rows] &= deviation.gains <= limits[deviation.kind]
    found = []
    for index in np.flatnonzero(is_equilibrium):
        losses = configurations.losses_at(int(index))
        gain = float(configurations.greatest_gains[index])
        found.append(Solution("nash", losses, "pure", gain))
    return found


def equilibria_by_best_responses(game: StageGame) -> Iterator[Solution]:
    """Yield the pure equilibria at which best responses end, from several starts."""
    sizes = np.array(game.sizes)
    seen = set()
    for start in range(N_STARTS):
        rng = stream(0, "best responses", str(start))
        profile = rng.integers(sizes) if start else np.zeros(game.agents, dtype=np.intp)
        settled = settle_by_best_responses(game, profile)
        if settled is None:
            continue
        key = tuple(tuple(np.bincount(settled[agents]).tolist()) for agents in game.members)
        if key not in seen:
            seen.add(key)
            yield of_profile(game, "nash", settled, "pure")


def settle_by_best_responses(game: StageGame, profile: Indices) -> Indices | None:
    """Return the profile at which nobody gains by another action; None if none is reached."""
    current = np.array(profile, dtype=np.intp)
    for _ in range(MAX_SWEEPS):
        has_changed = False
        for agent, size in enumerate(game.sizes):
            deviations = np.repeat(current[np.newaxis], size, axis=0)
            deviations[:, agent] = np.arange(size)
            losses = game.losses_at(deviations)[:, agent]
            if losses[current[agent]] > losses.min() + tolerance_of(losses):
                current[agent] = losses.argmin()
                has_changed = True
        if not has_changed:
            return current
    return None


def mixed_equilibria(game: StageGame) -> tuple[list[Solution], str]:
    """Return equilibria in mixed strategies, and how they were looked for; "" if they were not."""
    if game.agents < 2 or game.n_profiles > MAX_MIXED_PROFILES:
        return [], ""
    if importlib.util.find_spec("quantecon") is None:
        return [], INSTALL
    profiles = np.indices(game.sizes).reshape(game.agents, -1).T
    losses = game.losses_at(profiles).reshape(*game.sizes, game.agents)
    strategies, tried = _strategies(game, losses)
    found = []
    ranges = np.ptp(losses.reshape(-1, game.agents), axis=0)
    magnitudes = np.abs(losses.reshape(-1, game.agents)).max(0)
    limits = np.maximum(MAX_MIXED_GAIN * ranges, 1e-12 * magnitudes)  # of each agent (N,)
    for of_agents in strategies:
        if any(strategy.max() > 1 - 1e-9 for strategy in of_agents):
            is_pure = all(strategy.max() > 1 - 1e-9 for strategy in of_agents)
            if is_pure and game.is_enumerable:
                continue  # enumeration has it
        means, gains = _mean_losses(losses, of_agents)
        if (gains <= limits).all():
            found.append(Solution("nash", means, "mixed", max(float(gains.max()), 0.0)))
    return found, tried


def _strategies(game: StageGame, losses: Array) -> tuple[list[tuple[Array, ...]], str]:
    """Return candidates of QuantEcon, and the name of its method; losses are (A_1, ..., A_N, N)."""
    from quantecon import game_theory  # noqa: PLC0415 - an extra

    players = []
    for agent in range(game.agents):
        own_first = np.moveaxis(
            -losses[..., agent], range(agent, game.agents), range(game.agents - agent)
        )
        players.append(game_theory.Player(np.ascontiguousarray(own_first)))
    quantecon_game: Any = game_theory.NormalFormGame(players)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # degenerate games are warned of; candidates are checked
        if game.agents > 2:
            found, result = game_theory.mclennan_tourky(
                quantecon_game, epsilon=MAX_MIXED_GAIN / 10, max_iter=500, full_output=True
            )
            return ([tuple(found)] if result.converged else []), "McLennan and Tourky's method"
        if max(game.sizes) <= MAX_SUPPORT_ACTIONS:
            return list(game_theory.support_enumeration(quantecon_game)), "support enumeration"
        starts = range(min(sum(game.sizes), MAX_PIVOT_STARTS))
        candidates = [
            game_theory.lemke_howson(quantecon_game, init_pivot=start) for start in starts
        ]
    return _distinct(candidates), "Lemke and Howson's method"


def _distinct(candidates: list[tuple[Array, ...]]) -> list[tuple[Array, ...]]:
    """Return candidates without those that repeat an earlier one."""
    kept: list[tuple[Array, ...]] = []
    for candidate in candidates:
        flat = np.concatenate(candidate)
        if not any(np.allclose(flat, np.concatenate(earlier), atol=1e-9) for earlier in kept):
            kept.append(candidate)
    return kept


def _mean_losses(losses: Array, strategies: tuple[Array, ...]) -> tuple[Array, Array]:
    """Return each agent's mean loss (N,) under mixed strategies, and its greatest gain (N,)."""
    n_agents = losses.shape[-1]
    means = np.empty(n_agents)
    gains = np.empty(n_agents)
    for agent in range(n_agents):
        expected = losses[..., agent]
        for other in reversed(range(n_agents)):  # from the last axis on, so that the rest stay
            if other != agent:
                expected = np.tensordot(expected, strategies[other], axes=(other, 0))
        means[agent] = expected @ strategies[agent]
        gains[agent] = means[agent] - expected.min()
    if not np.isfinite(means).all():
        raise UserError("solutions: losses are not finite; mend the market's profile_losses")
    return means, gains
