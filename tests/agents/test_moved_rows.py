"""An adversary that moves the rows of a table within a budget."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from resuming import TABLES, check_resumes
from small_scenarios import TomlTable, cohort_table, make_scenario

from regretless.market.core.arrays import Array
from regretless.market.model import MarketModel
from regretless.market.records import AdversaryView, Mixture
from regretless.scenarios.assembly.scenario import Scenario

ROUNDS = 40
N_ROWS = 25  # the table is replayed in a loop
PLAIN: TomlTable = {"models": []}  # the forecaster alone, which is quicker
COHORT = cohort_table("traders", 4, 3, utility="ces", parameters={"rho": 0.5})
MOVERS: list[TomlTable] = [
    {"kind": "anti-forecast"},
    {"kind": "iid"},
    {"kind": "myopic"},
    {"kind": "myopic", "grid": 3},
    {"kind": "look-ahead", "horizon": 2, "grid": 2},
    {"kind": "regret-maximiser"},
    {"kind": "stackelberg-committer", "weights": [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]},
    {"kind": "plan", "distributions": [[[1, 1]]]},
    {"kind": "exp3"},
    {
        "kind": "coalition",
        "members": [
            {"kind": "anti-forecast", "coordinates": [0]},
            {"kind": "iid", "coordinates": [1]},
        ],
    },
    {
        "kind": "coalition",
        "members": [
            {"kind": "look-ahead", "horizon": 2, "grid": 2, "coordinates": [0]},
            {"kind": "regret-maximiser", "coordinates": [1]},
        ],
    },
]


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    """Return the folder of a table of two prices."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"bread": 2 + 3 * rng.random(N_ROWS), "milk": rng.random(N_ROWS)})
    table.to_csv(tmp_path / "prices.csv", index=False)
    return tmp_path


def moved_prices(folder: Path, adversary: TomlTable | None, **keys: object) -> Scenario:
    """Return a scenario of the table, moved by an adversary if there is one."""
    data = {
        "file": "prices.csv",
        "outcomes": ["bread", "milk"],
        "scale": {"bread": [6.0, 1.0], "milk": [0.0, 1.0]},
    }
    settings: TomlTable = {"rounds": ROUNDS, "adversary": adversary, "forecaster": PLAIN} | keys
    settings = {"cohort": [COHORT]} | settings
    return make_scenario(*settings.pop("cohort"), origin=folder, data=data, **settings)


def play(scenario: Scenario) -> MarketModel:
    """Play a scenario to its end."""
    model = scenario.build()
    model.run()
    return model


def outcomes_of(model: MarketModel) -> Array:
    """Return the outcomes of all rounds (T, 2)."""
    return model.rounds_frame()[["y_0", "y_1"]].to_numpy()


@pytest.mark.parametrize("kind", ["anti-forecast", "iid"])
def test_without_a_budget_the_bytes_are_those_of_the_data_alone(prices: Path, kind: str) -> None:
    without_adversary = play(moved_prices(prices, None))
    moved = play(moved_prices(prices, {"kind": kind, "moves": 0}))
    for name in TABLES:
        expected = getattr(without_adversary, f"{name}_frame")()
        pd.testing.assert_frame_equal(getattr(moved, f"{name}_frame")(), expected, obj=name)


@pytest.mark.parametrize("mover", MOVERS, ids=lambda mover: mover["kind"])
def test_every_outcome_is_within_the_budget_in_the_unit_of_the_data(
    prices: Path, mover: TomlTable
) -> None:
    rows = outcomes_of(play(moved_prices(prices, None)))
    moves = {"bread": 0.5, "milk": 0.03}
    model = play(moved_prices(prices, {"moves": moves, **mover}))
    distances = np.abs(outcomes_of(model) - rows)
    assert (distances <= np.array([0.1, 0.03]) + 1e-12).all()
    assert distances.max(0).min() > 0.02  # both coordinates are moved
    assert (model.agents_frame()["guarantee"] == "decision-swap").all()


def test_an_outcome_that_no_budget_names_stays_its_row(prices: Path) -> None:
    rows = outcomes_of(play(moved_prices(prices, None)))
    mover: TomlTable = {"kind": "anti-forecast", "moves": {"milk": 0.1}}
    outcomes = outcomes_of(play(moved_prices(prices, mover)))
    np.testing.assert_array_equal(outcomes[:, 0], rows[:, 0])
    assert (outcomes[:, 1] != rows[:, 1]).all()


def test_a_myopic_mover_chooses_the_worst_of_the_rows_moves(prices: Path) -> None:
    rows = outcomes_of(play(moved_prices(prices, None)))
    model = moved_prices(prices, {"kind": "myopic", "grid": 2, "moves": 0.05}).build()
    # By definition: the followers' mean loss at the four corners of each row's budget, at the play
    # that was announced.
    loss = model.game.cohorts[0].loss
    counts = np.bincount(model.game.cohorts[0].row_of, minlength=len(loss))
    shortfalls = []
    adversary = model.game.adversary
    inner_commit = adversary.commit

    def commit_and_compare(context: object, history: object, announced: AdversaryView) -> object:
        committed = inner_commit(context, history, announced)  # type: ignore[arg-type]
        row = rows[history.rounds]  # type: ignore[attr-defined]
        budget = np.array([0.01, 0.05])
        signs = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
        corners = np.clip(row + budget * signs, 0, 1)
        strategy = announced.play[0]
        assert strategy is not None
        mean_losses = np.einsum("mka,ka,k->m", loss.losses(corners), strategy, counts)
        shortfalls.append(
            mean_losses.max() - mean_losses[(corners == committed.points[0]).all(1)][0]
        )
        return committed

    adversary.commit = commit_and_compare  # type: ignore[method-assign, assignment]
    model.run()
    assert len(shortfalls) == ROUNDS
    assert max(shortfalls) <= 1e-9


@pytest.mark.parametrize(("kind", "budget"), [("anti-forecast", 0.5), ("myopic", 0.2)])
def test_followers_lose_more_where_an_opponent_moves_the_rows(
    prices: Path, kind: str, budget: float
) -> None:
    traders = cohort_table("traders", 4, 3, utility="newsvendor")
    losses = []
    for moves in (0.0, budget):
        scenario = make_scenario(
            traders,
            origin=prices,
            data={"file": "prices.csv", "outcomes": ["milk"]},
            rounds=200,
            forecaster=PLAIN,
            adversary={"kind": kind, "moves": moves},
        )
        losses.append(play(scenario).agents_frame()["mean_loss"].mean())
    assert losses[0] < losses[1]


def test_a_committer_weighs_the_rows_that_are_played_alone(prices: Path) -> None:
    """Later rows of the table, which are quite different, change nothing."""
    mover: TomlTable = {"kind": "stackelberg-committer", "moves": 0.2}
    outcomes = outcomes_of(play(moved_prices(prices, mover, rounds=N_ROWS)))
    table = pd.read_csv(prices / "prices.csv")
    unlike_rows = pd.DataFrame({"bread": np.full(75, 5.9), "milk": np.zeros(75)})
    pd.concat([table, unlike_rows]).to_csv(prices / "prices.csv", index=False)
    outcomes_of_longer_table = outcomes_of(play(moved_prices(prices, mover, rounds=N_ROWS)))
    np.testing.assert_array_equal(outcomes_of_longer_table, outcomes)


def test_labels_and_the_past_are_shown_as_moves_of_their_rows(prices: Path) -> None:
    mover: TomlTable = {"kind": "iid", "concentration": 0, "mean": 0.8, "moves": 0.01}
    model = moved_prices(prices, mover).build()
    model.run(30)
    adversary = model.game.adversary
    seen: dict[str, Array] = {}

    def look(context: object, history: object, announced: AdversaryView) -> object:
        seen["last"] = history.last(30)  # type: ignore[attr-defined]
        seen["mean"] = history.mean  # type: ignore[attr-defined]
        seen["label"] = announced.mean_label
        return inner_commit(context, history, announced)

    inner: object = adversary.mover  # type: ignore[attr-defined]
    inner_commit = inner.commit  # type: ignore[attr-defined]
    inner.commit = look  # type: ignore[attr-defined]
    adversary.sees = frozenset({"history", "mixture"})
    row = adversary.rows.rows_of(30)  # type: ignore[attr-defined]
    labels = np.array([row, row + np.array([0.002, 0.01]), row - 1.0])
    block = Mixture(labels, np.array([0.0, 1.0, 0.0]), labels=labels)
    adversary.commit(
        model.game.adversary.context(model.game.history),
        model.game.history,
        AdversaryView((block,)),
    )
    np.testing.assert_allclose(seen["last"], np.full((30, 2), 0.8), atol=1e-9)
    np.testing.assert_allclose(seen["mean"], [0.8, 0.8], atol=1e-9)
    np.testing.assert_allclose(seen["label"], [1.0, 1.0], atol=1e-9)


@pytest.mark.parametrize("kind", ["iid", "exp3", "regret-maximiser"])
def test_a_run_with_moved_rows_resumes(prices: Path, kind: str, tmp_path: Path) -> None:
    scenario = moved_prices(prices, {"kind": kind, "moves": 0.3})
    check_resumes(scenario.build, 17, tmp_path)


def coalition_of(*kinds: str) -> TomlTable:
    """Return a coalition with a member for each coordinate."""
    members = [{"kind": kind, "coordinates": [i]} for i, kind in enumerate(kinds)]
    return {"kind": "coalition", "members": members}


def test_members_move_rows_as_one_adversary_does_where_losses_are_sums(prices: Path) -> None:
    shoppers = cohort_table("traders", 4, 3, utility="linear")
    moves = {"bread": 0.5, "milk": 0.03}
    alone = moved_prices(prices, {"kind": "myopic", "grid": 2, "moves": moves}, cohort=[shoppers])
    members = [{"kind": "myopic", "grid": 2, "coordinates": [i]} for i in range(2)]
    coalition: TomlTable = {"kind": "coalition", "members": members, "moves": moves}
    together = moved_prices(prices, coalition, cohort=[shoppers])
    np.testing.assert_array_equal(outcomes_of(play(together)), outcomes_of(play(alone)))


def test_for_a_member_the_coordinates_of_the_others_stand_at_the_row(prices: Path) -> None:
    model = moved_prices(prices, coalition_of("myopic", "iid") | {"moves": 0.1}).build()
    model.run(7)
    adversary: Any = model.game.adversary
    member = adversary.mover.members[0]
    row = adversary.rows.rows_of(6)
    assert member.fill_outcomes([[0.25]]).tolist() == [[0.25, row[1]]]


def test_a_run_with_rows_moved_by_a_coalition_resumes(prices: Path, tmp_path: Path) -> None:
    coalition = coalition_of("regret-maximiser", "iid") | {"moves": 0.3}
    check_resumes(moved_prices(prices, coalition).build, 17, tmp_path)
