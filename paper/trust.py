"""The test of a reference: when it is given up, and what that costs.

``trust-benign``: runs of 5,000 rounds in which a reference that is calibrated, or learns to be, is
given up, with the upper 95 % limit of their share; by the regrets of listed losses and by biases.

``trust-hostile``: rounds until it is given up, worst regret and mean loss under attack, with the
standard error of each; without bets on surprises, and with a band however early it is given up.

``trust-series``: the same on the bundled series and those that installed packages hold, beside a
reference that is never trusted: the difference is the most that a return of trust could gain.

Twelve or twenty agents with five actions each listen, fifty to a series.
"""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import beta

from paper.harness import Row, Table
from paper.listed import STREAMS, Crowd, against_listed, against_mean, random_losses
from paper.series import market, tables
from regretless import load
from regretless.forecaster import (
    ProtectedLosses,
    Reference,
    RunningMean,
    UnbiasedPrediction,
)
from regretless.forecaster.events.loss_events import Assignments
from regretless.forecaster.models import Aggregate, ExponentialSmoothing, Model
from regretless.forecaster.models.aggregate import PANEL, make_panel
from regretless.forecaster.switch_test import (
    BET_SHARES,
    FALSE_ALARMS,
    GREATEST_SURPRISE,
    SwitchTest,
)
from regretless.forecaster.unbiased import ROUNDING
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.model import MarketModel
from regretless.market.records import Mixture
from regretless.scenarios.studies.design import CATALOGUE

AGENTS = 20
ACTIONS = 5
SIZE = 3  # numbers that are predicted, n
KINDS_OF_TEST = 2  # single regrets, and their sums over actions


def outcomes_of(kind: str, rounds: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return outcomes (T, n) and their means (T, n)."""
    round_index = np.arange(rounds)[:, np.newaxis]
    match kind:
        case "drift":
            means = 0.5 + 0.4 * np.sin(round_index / 400 + np.arange(SIZE))
        case "season":
            means = 0.5 + 0.3 * np.sin(2 * np.pi * round_index / 24 + np.arange(SIZE))
        case _:
            means = np.tile(rng.uniform(0.1, 0.9, SIZE), (rounds, 1))
    if kind in ("coins", "learned"):
        return (rng.random((rounds, SIZE)) < means).astype(float), means
    concentration = 20.0
    return rng.beta(concentration * means, concentration * (1 - means)), means


REFERENCES: dict[str, Callable[[], Model] | None] = {  # by kind of run; None knows the mean
    "coins": None,
    "constant": None,
    "drift": None,
    "season": None,
    "learned": lambda: RunningMean(SIZE),
    "drift, learned": lambda: ExponentialSmoothing(SIZE, rate=0.1),
}


def predictions_of(make: Callable[[], Model] | None, outcomes: Array, means: Array) -> Array:
    """Return what a reference predicts in every round (T, n)."""
    if make is None:
        return means
    model = make()
    points = []
    for outcome in outcomes:
        points.append(model.predict().statistics)
        model.update(outcome)
    return np.array(points)


def is_rejected(gains: Array, surprise: Array, *, kinds: int) -> bool:
    """Whether the test ever fails, from all rounds at once.

    Parameters
    ----------
    gains : array (T, ...)
        Increments of R, of all that is tested.
    surprise : array (T,)
        s / m of every round.
    kinds : int
        Of test, which share alpha.
    """
    test = SwitchTest(kinds * int(np.prod(gains.shape[1:])))
    regret = gains.cumsum(0)
    squares = (gains**2).cumsum(0)
    bets = np.log1p(np.outer(np.minimum(surprise, GREATEST_SURPRISE), BET_SHARES))
    log_wealth = np.logaddexp.reduce(bets.cumsum(0), axis=1)
    is_surprising = log_wealth > np.log(len(BET_SHARES) / FALSE_ALARMS)
    axes = tuple(range(1, gains.ndim))
    is_doubtful = (regret > test.hint(squares)).any(axes)
    return test.rejects(regret, squares) or bool((is_surprising & is_doubtful).any())


def is_rejected_in_sum(gains: Array) -> bool:
    """Whether the greatest regrets of actions ever add up to too much.

    ``gains`` (T, K, A, A) are the increments of every regret.
    """
    regret = gains.cumsum(0)
    squares = (gains**2).cumsum(0)
    best_action = regret.argmax(3)[..., np.newaxis]
    total_regret = np.take_along_axis(regret, best_action, 3).sum((2, 3))
    total_squares = np.take_along_axis(squares, best_action, 3).sum((2, 3))
    test = SwitchTest(KINDS_OF_TEST * AGENTS * ACTIONS**ACTIONS)
    return test.rejects(total_regret, total_squares)


def benign(kind: str, rounds: int, seed: int) -> Iterator[Row]:
    """Tell whether a run's reference is given up, by regrets and by biases.

    All rounds at once: regret against every action, and the bias of every coordinate, of the
    actions that are best responses to the reference.
    """
    rng = stream(seed, "benchmarks", kind)
    outcomes, means = outcomes_of(kind.partition(",")[0], rounds, rng)
    weights = -rng.dirichlet(np.ones(SIZE), (AGENTS, ACTIONS))
    points = predictions_of(REFERENCES[kind], outcomes, means)
    best_action = np.einsum("kan,tn->tka", weights, points).argmin(2)
    is_played = np.eye(ACTIONS)[best_action]  # (T, K, A)
    losses = np.einsum("kan,tn->tka", weights, outcomes)
    played_loss = (is_played * losses).sum(2)
    excess = played_loss[:, :, np.newaxis, np.newaxis] - losses[:, :, np.newaxis]
    scale = np.abs(weights[:, :, np.newaxis] - weights[:, np.newaxis]).sum(3).max((1, 2))
    regrets = is_played[..., np.newaxis] * excess / scale[:, np.newaxis, np.newaxis]
    biases = is_played[..., np.newaxis] * (points - outcomes)[:, np.newaxis, np.newaxis]
    both_signs = np.stack([biases, -biases], 1)
    surprise = _surprise(np.einsum("tka,kan->tn", is_played, weights), points, outcomes)
    given_up = {
        "losses": is_rejected(regrets, surprise, kinds=KINDS_OF_TEST)
        or is_rejected_in_sum(regrets),
        "coordinates": is_rejected(both_signs, surprise, kinds=1),
    }
    for events, is_given_up in given_up.items():
        yield {
            "events": events,
            "runs": 1,
            "given up": int(is_given_up),
            "kinds": kind if is_given_up else "",
        }


def _surprise(slopes: Array, points: Array, outcomes: Array) -> Array:
    """Return s / m of every round (T,): the losses' excess over the most that it could be.

    ``slopes`` (T, n) are the weights of the actions played, added up over agents.
    """
    excess = (slopes * (outcomes - points)).sum(1)
    greatest = (slopes * points).sum(1) - np.minimum(slopes, 0.0).sum(1)
    no_surprise = np.zeros(len(points))
    return np.asarray(np.divide(excess, greatest, out=no_surprise, where=greatest > ROUNDING))


class Alarms(Table):
    """Adds up alarms."""

    def summed(self, table: pd.DataFrame) -> pd.DataFrame:
        """Count, with the upper limit of the share."""
        groups = table.groupby("events", sort=False)
        lines = groups.agg({"runs": "sum", "given up": "sum"})
        alarms = lines["given up"]
        runs = lines["runs"]
        lines["upper limit"] = beta.ppf(0.95, alarms + 1, runs - alarms)
        lines["kinds"] = groups["kinds"].agg(lambda kinds: "; ".join(sorted({*kinds} - {""})))
        return lines


def scores(model: MarketModel) -> Row:
    """Return when each block gave its reference up, worst regret and mean loss."""
    agents = model.agents_frame()
    forecasters: list[Any] = [block.forecaster for block in model.game.blocks]
    given_up = [forecaster.reference.disproved_at for forecaster in forecasters]
    return {
        "given up": str(given_up),
        "regret": agents["decision_swap_regret"].max(),
        "loss": agents["mean_loss"].mean(),
        "bound": agents["bound"].max(),
        "variation": agents["bound_from_variation"].max(),
    }


def greedy(crowd: Crowd, mixture: Mixture, support: Array) -> Array:
    """Return what costs everybody most, of the support (m, n)."""
    strategy = crowd.strategies(mixture)
    costs = [(strategy * (crowd.offset + crowd.weights @ truth)).sum() for truth in support]
    return np.asarray(support[int(np.argmax(costs))])


ATTACKS = {
    "hunter of the worst": against_listed,
    "greedy on all losses": greedy,
    "against the mean": against_mean,
}
CORNERS = np.array(list(product([0.0, 1.0], repeat=SIZE)))  # what an attack chooses from
ATTACKED = 12  # agents


def random_crowd(seed: int) -> Crowd:
    """Draw the losses of the agents who are attacked."""
    shape = np.empty((ATTACKED, ACTIONS, SIZE))
    offset, weights = random_losses(shape, np.random.default_rng(seed), count=ATTACKED)
    return Crowd(offset, weights)


class Unsurprised(Reference):
    """Is given up by its regret alone."""

    def judge(self, **evidence: Any) -> None:
        """Judge it as if no loss surprised."""
        super().judge(**{**evidence, "surprise": 0.0})


class Banded(Reference):
    """Has a band, and is a candidate, however early it was given up."""

    early = False


TESTS = {"default": Reference, "by regret alone": Unsurprised, "always a band": Banded}


def attacked(instance: tuple[str, str], rounds: int, seed: int) -> Iterator[Row]:
    """Play an attack on agents who hear the aggregate of the panel, with a test of it."""
    attack, test = instance
    crowd = random_crowd(seed)
    model = Aggregate(make_panel(PANEL, SIZE), SIZE)
    listed = ProtectedLosses(crowd.offset, crowd.weights)
    events = Assignments([listed], models=len(model.made_of))
    reference = TESTS[test](model)
    forecaster = UnbiasedPrediction(events, reference=reference)
    for _ in range(rounds):
        mixture = forecaster.mixture()
        truth = ATTACKS[attack](crowd, mixture, CORNERS)
        crowd.add(crowd.strategies(mixture), truth)
        forecaster.update(truth)
    yield {
        "attack": attack,
        "test": test,
        "found": reference.disproved_at,
        "regret": crowd.regret().max() / rounds,
        "loss": crowd.cost.mean() / rounds,
        "variation": forecaster.from_variation(listed).max() / rounds,
    }


BUNDLED = {name: keys for name, keys in STREAMS.items() if "data.file" in keys}
TRUSTED_OR_NOT: dict[str, dict[str, Any]] = {"trusted": {}, "never": {"forecaster.give_up": 0.0}}


def on_series(instance: tuple[str, str], rounds: int, seed: int) -> Iterator[Row]:
    """Play a series with the default for data, or with a reference that is never trusted."""
    name, trusted = instance
    if name in BUNDLED:
        keys = {**BUNDLED[name], **TRUSTED_OR_NOT[trusted], "rounds": rounds}
        model = load(str(CATALOGUE / "scenarios/listeners.toml"), **keys).build(seed=seed)
    else:
        keys = TRUSTED_OR_NOT[trusted]
        model = market(name, tables()[name], rounds=rounds, seed=seed, keys=keys)
    model.run()
    yield {"series": name, "reference": trusted, **scores(model)}


TABLES = {
    "trust-benign": Alarms(benign, ["events"], lambda: list(REFERENCES), rounds=5000, seeds=50),
    "trust-hostile": Table(
        attacked,
        ["attack", "test"],
        lambda: list(product(ATTACKS, TESTS)),
        rounds=2000,
        seeds=20,
        aggregations={"regret": ["mean", "sem"], "loss": ["mean", "sem"]},
    ),
    "trust-series": Table(
        on_series,
        ["series", "reference"],
        lambda: list(product([*BUNDLED, *tables()], TRUSTED_OR_NOT)),
        rounds=2000,
        seeds=1,
        aggregations={"given up": ", ".join},
    ),
}
