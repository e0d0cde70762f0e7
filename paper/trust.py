"""The test of a reference: when it is given up, and what that costs.

``trust-benign``: runs of 5,000 rounds in which a reference that is calibrated, or learns to be, is
given up, with the upper 95 % limit of their share; by the regrets of listed losses and by biases.

``trust-hostile``: rounds until it is given up, worst regret and mean loss under attack, with the
standard error of each; without bets on surprises, and with a band however early it is given up.

``trust-series``: the same on the bundled series and those that installed packages hold, beside a
reference that is never trusted: the difference is the most that a return of trust could gain.

Twelve or twenty agents with five actions each listen, fifty to a series.
"""

from collections.abc import Iterator
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
from regretless.forecaster.models import Aggregate, ExponentialSmoothing
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
from regretless.scenarios.studies.design import CATALOGUE

AGENTS, ACTIONS, SIZE = 20, 5, 3
KINDS_OF_TEST = 2  # single regrets, and their sums over actions


def outcomes_of(kind: str, rounds: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return outcomes (T, n) and their means."""
    steps = np.arange(rounds)[:, None]
    match kind:
        case "drift":
            means = 0.5 + 0.4 * np.sin(steps / 400 + np.arange(SIZE))
        case "season":
            means = 0.5 + 0.3 * np.sin(2 * np.pi * steps / 24 + np.arange(SIZE))
        case _:
            means = np.tile(rng.uniform(0.1, 0.9, SIZE), (rounds, 1))
    width = 1.0 if kind in ("coins", "learned") else 20.0
    if width == 1.0:
        return (rng.random((rounds, SIZE)) < means).astype(float), means
    return rng.beta(width * means, width * (1 - means)), means


KINDS: dict[str, Any] = {  # the reference; None knows the mean
    "coins": None,
    "constant": None,
    "drift": None,
    "season": None,
    "learned": lambda: RunningMean(SIZE),
    "drift, learned": lambda: ExponentialSmoothing(SIZE, rate=0.1),
}


def said(make: Any, seen: Array, means: Array) -> Array:
    """Return what a reference predicts in every round (T, n)."""
    if make is None:
        return means
    model, points = make(), []
    for truth in seen:
        points.append(model.predict().statistics)
        model.update(truth)
    return np.array(points)


def found(steps: Array, surprise: Array, *, kinds: int) -> bool:
    """Whether increments (T, ...) of R, and surprises s / m (T,), ever make the test fail.

    Alpha is shared among so many ``kinds`` of test.
    """
    trust = SwitchTest(kinds * int(np.prod(steps.shape[1:])))
    regret, squares = steps.cumsum(0), (steps**2).cumsum(0)
    wealth = np.logaddexp.reduce(
        np.log1p(np.outer(np.minimum(surprise, GREATEST_SURPRISE), BET_SHARES)).cumsum(0), axis=1
    )
    surprising = wealth > np.log(len(BET_SHARES) / FALSE_ALARMS)
    axes = tuple(range(1, steps.ndim))
    doubtful = (regret > trust.hint(squares)).any(axes)
    return trust.rejects(regret, squares) or bool((surprising & doubtful).any())


def summed(steps: Array) -> bool:
    """Whether the greatest regrets of actions (T, K, A, A) ever add up to too much."""
    regret, squares = steps.cumsum(0), (steps**2).cumsum(0)
    best = regret.argmax(3)[..., None]
    total, spread = (np.take_along_axis(own, best, 3).sum((2, 3)) for own in (regret, squares))
    return SwitchTest(KINDS_OF_TEST * AGENTS * ACTIONS**ACTIONS).rejects(total, spread)


def benign(kind: str, rounds: int, seed: int) -> Iterator[Row]:
    """Tell whether a run's reference is given up, by regrets and by biases.

    All rounds at once: regret against every action, and the bias of every coordinate, of the
    actions that are best responses to the reference.
    """
    rng = stream(seed, "benchmarks", kind)
    seen, means = outcomes_of(kind.partition(",")[0], rounds, rng)
    weights = -rng.dirichlet(np.ones(SIZE), (AGENTS, ACTIONS))
    points = said(KINDS[kind], seen, means)
    chosen = np.eye(ACTIONS)[np.einsum("kan,tn->tka", weights, points).argmin(2)]
    came = np.einsum("kan,tn->tka", weights, seen)
    gaps = (chosen * came).sum(2)[:, :, None, None] - came[:, :, None]
    scale = np.abs(weights[:, :, None] - weights[:, None]).sum(3).max((1, 2))
    regrets = chosen[..., None] * gaps / scale[:, None, None]
    slopes = np.einsum("tka,kan->tn", chosen, weights)
    cost = (slopes * (seen - points)).sum(1)
    most = (slopes * points).sum(1) - np.minimum(slopes, 0.0).sum(1)
    surprise = np.divide(cost, most, out=np.zeros(rounds), where=most > ROUNDING)
    biases = chosen[..., None] * (points - seen)[:, None, None]
    known = found(regrets, surprise, kinds=KINDS_OF_TEST) or summed(regrets)
    signed = np.stack([biases, -biases], 1)
    for events, lost in (("losses", known), ("coordinates", found(signed, surprise, kinds=1))):
        yield {"events": events, "runs": 1, "given up": int(lost), "kinds": kind if lost else ""}


class Alarms(Table):
    """Adds up alarms."""

    def summed(self, table: pd.DataFrame) -> pd.DataFrame:
        """Count, with the upper limit of the share."""
        told = table.groupby("events", sort=False)
        lines = told.agg({"runs": "sum", "given up": "sum"})
        lost, runs = lines["given up"], lines["runs"]
        lines["upper limit"] = beta.ppf(0.95, lost + 1, runs - lost)
        lines["kinds"] = told["kinds"].agg(lambda kinds: "; ".join(sorted({*kinds} - {""})))
        return lines


def judged(model: Any) -> dict[str, Any]:
    """Return when each block gave its reference up, worst regret and mean loss."""
    agents = model.agents_frame()
    told = [block.forecaster.reference.disproved_at for block in model.game.blocks]
    return {
        "given up": str(told),
        "regret": agents["decision_swap_regret"].max(),
        "loss": agents["mean_loss"].mean(),
        "bound": agents["bound"].max(),
        "variation": agents["bound_from_variation"].max(),
    }


def greedy(crowd: Crowd, mixture: Any, support: Array) -> Array:
    """Return what costs everybody most."""
    strategy = crowd.strategies(mixture)
    costs = [(strategy * (crowd.offset + crowd.weights @ s)).sum() for s in support]
    return np.asarray(support[int(np.argmax(costs))])


ATTACKS = {
    "hunter of the worst": against_listed,
    "greedy on all losses": greedy,
    "against the mean": against_mean,
}
TRUSTED = 12  # agents who are attacked


class Unsurprised(Reference):
    """Is given up by its regret alone."""

    def judge(self, **told: Any) -> None:
        """Judge it as if no loss surprised."""
        super().judge(**told | {"surprise": 0.0})


class Banded(Reference):
    """Has a band, and is a candidate, however early it was given up."""

    early = False


TESTS = {"default": Reference, "by regret alone": Unsurprised, "always a band": Banded}


def attacked(instance: tuple[str, str], rounds: int, seed: int) -> Iterator[Row]:
    """Play an attack on agents who hear the aggregate of the panel, with a test of it."""
    name, test = instance
    shape = np.empty((TRUSTED, ACTIONS, SIZE))
    crowd = Crowd(*random_losses(shape, np.random.default_rng(seed), count=TRUSTED))
    model = Aggregate(make_panel(PANEL, SIZE), SIZE)
    listed = ProtectedLosses(crowd.offset, crowd.weights)
    events = Assignments([listed], models=len(model.made_of))
    reference = TESTS[test](model)
    player = UnbiasedPrediction(events, reference=reference)
    support = np.array(list(product([0.0, 1.0], repeat=SIZE)))
    for _ in range(rounds):
        mixture = player.mixture()
        truth = ATTACKS[name](crowd, mixture, support)
        crowd.add(crowd.strategies(mixture), truth)
        player.update(truth)
    yield {
        "attack": name,
        "test": test,
        "found": reference.disproved_at,
        "regret": crowd.regret().max() / rounds,
        "loss": crowd.cost.mean() / rounds,
        "variation": player.from_variation(listed).max() / rounds,
    }


BUNDLED = {name: keys for name, keys in STREAMS.items() if "data.file" in keys}
TRUSTED_OR_NOT: dict[str, dict[str, Any]] = {"trusted": {}, "never": {"forecaster.give_up": 0.0}}


def on_series(instance: tuple[str, str], rounds: int, seed: int) -> Iterator[Row]:
    """Play a series with the default for data, or with a reference that is never trusted."""
    name, trusted = instance
    if name in BUNDLED:
        keys = BUNDLED[name] | TRUSTED_OR_NOT[trusted] | {"rounds": rounds}
        model = load(str(CATALOGUE / "scenarios/listeners.toml"), **keys).build(seed=seed)
    else:
        keys = TRUSTED_OR_NOT[trusted]
        model = market(name, tables()[name], rounds=rounds, seed=seed, keys=keys)
    model.run()
    yield {"series": name, "reference": trusted} | judged(model)


TABLES = {
    "trust-benign": Alarms(benign, ["events"], lambda: list(KINDS), 5000, 50),
    "trust-hostile": Table(
        attacked,
        ["attack", "test"],
        lambda: list(product(ATTACKS, TESTS)),
        2000,
        20,
        {"regret": ["mean", "sem"], "loss": ["mean", "sem"]},
    ),
    "trust-series": Table(
        on_series,
        ["series", "reference"],
        lambda: list(product([*BUNDLED, *tables()], TRUSTED_OR_NOT)),
        2000,
        1,
        {"given up": ", ".join},
    ),
}
