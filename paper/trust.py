"""``python -m paper.trust WHAT [--runs N] [--rounds T]``: the test of a reference.

    benign    runs in which a reference that is calibrated, or learns to be, is given up (300 runs)
    hostile   rounds until it is given up, worst regret and mean loss under attack (20 seeds)
    series    the same on the bundled series and on those that installed packages hold (3 seeds)

Twelve or twenty agents with five actions each listen, fifty to a series.
"""

import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import beta

from paper.listed import Crowd, against_listed, against_mean, random_losses
from paper.series import SERIES, cell, outcomes, written
from regretless import load
from regretless.forecaster import (
    GainEvents,
    ProtectedLosses,
    Reference,
    RunningMean,
    UnbiasedPrediction,
)
from regretless.forecaster.events.assignments import Assignments
from regretless.forecaster.models import Aggregate, ExponentialSmoothing
from regretless.forecaster.models.panel import PANEL, made
from regretless.forecaster.reference import SURPRISE
from regretless.forecaster.trust import Trust
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.scenarios.executor import collect
from regretless.scenarios.studies.design import CATALOGUE, read_study

AGENTS, ACTIONS, SIZE = 20, 5, 3


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


def found(steps: Array, surprise: Array) -> bool:
    """Whether increments (T, ...) of R, and of S (T,), ever make the test fail."""
    trust, alone = Trust(int(np.prod(steps.shape[1:]))), Trust(1, least=SURPRISE)
    regret, squares = steps.cumsum(0), (steps**2).cumsum(0)
    surprising = surprise.cumsum() > alone.limit((surprise**2).cumsum())
    axes = tuple(range(1, steps.ndim))
    doubtful = (regret > trust.hint(squares)).any(axes)
    return bool((regret > trust.limit(squares)).any() or (surprising & doubtful).any())


def summed(steps: Array) -> bool:
    """Whether the greatest regrets of actions (T, K, A, A) ever add up to too much."""
    regret, squares = steps.cumsum(0), (steps**2).cumsum(0)
    best = regret.argmax(3)[..., None]
    total, spread = (np.take_along_axis(own, best, 3).sum((2, 3)) for own in (regret, squares))
    return Trust(AGENTS * ACTIONS**ACTIONS).rejects(total, spread)


def benign(rounds: int, run: tuple[str, int]) -> tuple[bool, bool]:
    """Return whether a run's reference is given up, by regrets and by biases.

    All rounds at once: regret against every action, and the bias of every coordinate, of the
    actions that are best responses to the reference.
    """
    kind, seed = run
    rng = stream(seed, "benchmarks", kind)
    seen, means = outcomes_of(kind.partition(",")[0], rounds, rng)
    weights = -rng.dirichlet(np.ones(SIZE), (AGENTS, ACTIONS))
    points = said(KINDS[kind], seen, means)
    chosen = np.eye(ACTIONS)[np.einsum("kan,tn->tka", weights, points).argmin(2)]
    came = np.einsum("kan,tn->tka", weights, seen)
    gaps = (chosen * came).sum(2)[:, :, None, None] - came[:, :, None]
    scale = np.abs(weights[:, :, None] - weights[:, None]).sum(3).max((1, 2))
    regrets = chosen[..., None] * gaps / scale[:, None, None]
    surprise = (chosen * np.einsum("kan,tn->tka", weights, seen - points)).sum(2).mean(1)
    biases = chosen[..., None] * (points - seen)[:, None, None]
    known = found(regrets, surprise) or summed(regrets)
    return known, found(np.stack([biases, -biases], 1), surprise)


def false_alarms(runs: int, rounds: int, jobs: int) -> Iterator[dict[str, Any]]:
    """Yield how many runs lost a good reference, with the upper 95 % limit of their share."""
    plan = [(kind, seed) for kind in KINDS for seed in range(runs // len(KINDS))]
    lost = np.array(collect(partial(benign, rounds), plan, jobs=jobs))
    for events, own in zip(("losses", "coordinates"), lost.T, strict=True):
        upper = beta.ppf(0.95, own.sum() + 1, len(plan) - own.sum())
        kinds = sorted({kind for (kind, _), at in zip(plan, own, strict=True) if at})
        yield {"events": events, "runs": len(plan), "given up": own.sum(), "upper limit": upper} | {
            "kinds": "; ".join(kinds)
        }


def judged(model: Any) -> dict[str, Any]:
    """Return when each block gave its reference up, worst regret and mean loss."""
    agents = model.agents_frame()
    told = [block.forecaster.reference.disproved_at for block in model.game.blocks]
    return {
        "given up": told[0] if len(told) == 1 else str(told),
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


def attacked(rounds: int, run: tuple[str, int]) -> dict[str, Any]:
    """Play an attack on agents who hear the aggregate of the panel."""
    name, seed = run
    shape = np.empty((TRUSTED, ACTIONS, SIZE))
    crowd = Crowd(*random_losses(shape, np.random.default_rng(seed), count=TRUSTED))
    model = Aggregate(made(PANEL, SIZE), SIZE)
    listed = ProtectedLosses(crowd.offset, crowd.weights)
    events = Assignments(GainEvents([listed], models=len(model.made_of)))
    reference = Reference(model)
    player = UnbiasedPrediction(events, reference=reference)
    support = np.array(list(product([0.0, 1.0], repeat=SIZE)))
    for _ in range(rounds):
        mixture = player.mixture()
        truth = ATTACKS[name](crowd, mixture, support)
        crowd.add(crowd.strategies(mixture), truth)
        player.update(truth)
    bound = player.from_variation(listed).max()
    found = reference.disproved_at
    return {"attack": name, "found": found, "regret": crowd.regret().max() / rounds} | {
        "loss": crowd.cost.mean() / rounds,
        "variation": bound / rounds,
    }


def hostile(seeds: int, rounds: int, jobs: int) -> pd.DataFrame:
    """Return what attacks do, by attack."""
    plan = [(name, seed) for name in ATTACKS for seed in range(seeds)]
    rows = pd.DataFrame(collect(partial(attacked, rounds), plan, jobs=jobs))
    return rows.groupby("attack", sort=False).agg(["mean", "max"])


def on_series(run: tuple[str, dict[str, Any], str, int]) -> dict[str, Any]:
    """Play a series."""
    name, keys, path, seed = run
    model = load(path, **keys).build(seed=seed)
    model.run()
    return {"series": name, "seed": seed} | judged(model)


def series(seeds: int, rounds: int, jobs: int) -> pd.DataFrame:
    """Return loss and regret of the default with data."""
    plan: list[Any] = []
    study = read_study("skill").spec.grid["stream"]
    bundled = str(CATALOGUE / "scenarios/listeners.toml")
    for name, keys in study.items():
        if "data.file" in keys:
            plan += [(name, keys | {"rounds": rounds}, bundled, seed) for seed in range(seeds)]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, read in SERIES.items():
            try:
                table = read()
            except (ImportError, FileNotFoundError):
                continue
            table.to_csv(folder / f"{name}.csv", index=False)
            kind = "one" if len(outcomes(table)) == 1 else "many"
            written(folder, kind, {name: cell(name, table)})
            keys = cell(name, table) | {"rounds": min(rounds, len(table))}
            path = str(folder / f"{kind}-base.toml")
            plan += [(name, keys, path, seed) for seed in range(seeds)]
        return pd.DataFrame(collect(on_series, plan, jobs=jobs))


def main() -> None:
    """Measure and print."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["benign", "hostile", "series"])
    for option in ("runs", "rounds", "jobs"):
        parser.add_argument(f"--{option}", type=int)
    given = parser.parse_args()
    jobs = given.jobs or 2
    if given.what == "benign":
        table = pd.DataFrame(false_alarms(given.runs or 300, given.rounds or 5000, jobs))
    elif given.what == "hostile":
        table = hostile(given.runs or 20, given.rounds or 2000, jobs)
    else:
        rows = series(given.runs or 3, given.rounds or 2000, jobs)
        own: dict[Any, Any] = {"given up": list} | dict.fromkeys(rows.columns[3:], "mean")
        table = rows.groupby("series", sort=False).agg(own)
    print(table.round(4).to_string())  # noqa: T201


if __name__ == "__main__":
    main()
