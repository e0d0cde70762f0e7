"""Markets in which each agent has losses of its own: regrets, learners, logs, and what is refused.

The oracle is ``first_price.by_hand``: plain Python clears every round again for each bid.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import worlds
from first_price import AFFORDABLE, BIDDERS, GRID, FirstPrice, by_hand, written

from regretless import (
    UserError,
    exploitability,
    load,
    swap_regret,
)
from regretless.market import register
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.run import Options, run

LEARNERS, POOR = (3, 4), 6


def auction(folder: Path, cohorts: tuple[str, ...] = BIDDERS, **keys: Any) -> Scenario:
    return load(written(folder, cohorts), **keys)


def charged(agent: int, losses: Any, actions: Any) -> tuple[Any, Any]:
    """Return the losses by hand as the ledger is charged them, and the mixed strategies."""
    if agent == POOR:  # what it cannot afford is worth what it played
        own = losses[np.arange(len(losses)), actions][:, None]
        return np.where(np.array(GRID) <= AFFORDABLE, losses, own), actions
    if agent not in LEARNERS:
        return losses, actions
    learner, distributions = register.learner["hedge"](), []
    learner.start(1, len(GRID), horizon=len(losses))
    for row, action in zip(losses, actions, strict=True):
        distributions.append(learner.play()[0].copy())
        learner.learn(row[None], np.array([action]))
    return losses, np.array(distributions)


def test_measures_are_those_of_clearing_again_for_each_bid(tmp_path: Path) -> None:
    """Regrets, also of a window; exploitability of the joint of actions and vectors of losses."""
    model = worlds.played(auction(tmp_path))
    table = model.agents_frame().set_index("agent")
    hand, windows, exploited = by_hand(model), model.windows_frame(), []
    assert set(hand) == set(table[table["mean_loss"].notna()].index)
    assert len(hand) >= 8
    for agent, logged in hand.items():
        losses, played = charged(agent, *logged)
        own = table.loc[agent]
        found = own[["external_regret", "swap_regret", "decision_swap_regret"]].to_numpy(float)
        assert found == pytest.approx(worlds.regrets(losses, played)[1:])
        if len(losses) == 40:
            last = windows[(windows["agent"] == agent) & (windows["last"] == 39)]
            regret = swap_regret(losses[-10:], played[-10:])
            assert last["swap_regret"].item() == pytest.approx(regret)
        distributions = played if played.ndim == 2 else np.eye(losses.shape[1])[played]
        vectors, which = np.unique(losses, axis=0, return_inverse=True)
        joint = np.zeros(vectors.shape)
        np.add.at(joint, which.ravel(), distributions / len(distributions))
        for name, tolerance in (("exploitability_exact", 0.0), ("exploitability", 0.01)):
            exploited.append(exploitability(joint, vectors, tolerance))
            assert own[name] == pytest.approx(exploited[-1], abs=1e-6)
    assert max(exploited) > 0.1


def test_nothing_is_promised_and_a_line_says_why(tmp_path: Path) -> None:
    run(auction(tmp_path), Options(tmp_path / "run"))
    agents = pd.read_parquet(tmp_path / "run/agents.parquet")
    assert (agents["guarantee"] == "none").all()
    assert agents[["bound", "bound_from_variation"]].isna().all(axis=None)
    assert agents["swap_regret"].notna().sum() >= 8
    followers = agents[agents["cohort"] == "followers"]
    assert (followers["decision_swap_regret"] <= followers["bound_from_bias"] + 1e-12).all()
    told = json.dumps(json.loads((tmp_path / "run/manifest.json").read_text(encoding="utf-8")))
    assert "followers: no guarantee, since the losses of each agent depend on more" in told


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            lambda tables: [100 * table for table in tables],
            r"50.0; for cohort.followers return ",
        ),
        (
            lambda tables: [table[:1] for table in tables],
            r"an array \(1, 5\); for cohort.foll",
        ),
        (np.concatenate, r"array.*; return a list with an array, or None, for each of 6"),
    ],
)
def test_losses_that_do_not_fit_are_named(wrong: Any, says: str, tmp_path: Path) -> None:
    class Wrong(FirstPrice):
        """Returns what is none of its agents' losses."""

        def losses(self, decisions: Any) -> Any:
            return wrong(super().losses(decisions))

    model = auction(tmp_path).build()
    market: Any = model.game.market
    model.replace(market=Wrong(model.game.cohorts, np.random.default_rng(0), values=market.values))
    with pytest.raises(UserError, match=rf"Wrong.losses returned {says}"):
        model.run()
