"""Adversaries with a motive: what they see, what they do, what they earn."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import worlds

from regretless import MarketModel, OutcomeDistribution, UserError, swap_regret
from regretless.agents import adversaries
from regretless.market.core import checkpoint
from regretless.market.core.randomness import generator_state, stream
from regretless.market.game.protocols import Follower
from regretless.market.game.round import play_round
from regretless.market.losses import Linear
from regretless.market.records import AdversaryView, Context, Forecast, History

ROUNDS = 12
READ = {"blocks": "mixture", "mean_label": "mixture", "play": "play", "rollout": "play"}
READ |= {"drawn": "draw", "induced": "draw"}
MEMBERS = [
    {"kind": "pump-and-dump", "coordinates": [2], "exposure": [1.0, 0.0, 0.5], "pump": 3},
    {"kind": "drifting", "coordinates": [0, 1]},
]
PLAIN = ("anti-forecast", "cyclic", "draw-seer", "drifting", "iid", "myopic", "regret-maximiser")
SETTINGS: dict[str, tuple[int, dict[str, Any]]] = {  # outcomes and parameters
    **{name: (3, {}) for name in PLAIN},
    "bait-seller": (6, {}),
    "coalition": (3, {"members": MEMBERS}),
    "cma": (3, {"length": 1, "rows": 3}),
    "exp3": (3, {"length": 2}),
    "look-ahead": (2, {"horizon": 2, "grid": 2}),
    "plan": (3, {"distributions": [[[1, 0, 0], [1, 1, 2], [0, 0, 1]]] * 2}),
    "pump-and-dump": (3, {"exposure": [1.0, 0.0, 0.5], "pump": 3, "dump": 2}),
    "stackelberg-committer": (3, {"weights": [[0.9, 0.1, 0], [0, 0.2, 1], [0.5, 0.4, 0.6]]}),
    "staggered-seller": (6, {}),
    "switching": (3, {"length": 4}),
    "up-then-down": (3, {}),
}


def mixed(kind: str, outcomes: int, parameters: Any, **keys: Any) -> MarketModel:
    """Best responders, quantal ones and bandits, of linear losses, in one block."""
    hard = worlds.cohort("hard", 4, 3, types=2)
    soft = worlds.cohort("soft", 4, 3, types=3, response="quantal", eta=9.0)
    bandits = worlds.cohort("bandits", 2, 3, response="exp3")
    adversary = {"kind": kind, "outcomes": outcomes} | parameters
    return worlds.scenario(hard, soft, bandits, rounds=ROUNDS, adversary=adversary, **keys).build()


def against(player: Any, *weights: Any) -> MarketModel:
    """Seat one best responder of each ``weights``, whose actions gain ``w . y``."""
    told = [{"weights": np.asarray(own).tolist()} for own in weights]
    cohorts = [worlds.cohort(f"c{i}", 1, 2, "affine", parameters=own) for i, own in enumerate(told)]
    nature = {"kind": "iid", "outcomes": player.outcomes}
    model = worlds.scenario(*cohorts, adversary=nature).build()
    model.replace(adversary=player)
    return model


@pytest.mark.parametrize("name", SETTINGS)
def test_distributions_are_within_the_support_repeat_and_resume(name: str, tmp_path: Path) -> None:
    whole, first, second = (mixed(name, *SETTINGS[name]) for _ in range(3))
    rounds, support = [play_round(whole.game) for _ in range(ROUNDS)], whole.game.adversary.support
    for t, one in enumerate(rounds):
        if t == 5:
            checkpoint.save(tmp_path / "there.npz", first.state())
            second.restore(checkpoint.load(tmp_path / "there.npz"))
        other = play_round(first.game if t < 5 else second.game)
        assert (one.outcome == other.outcome).all()
        assert (one.distribution.points == other.distribution.points).all()
        assert (one.distribution.weights == other.distribution.weights).all()
        assert one.forecasts[0].index == other.forecasts[0].index
        if support is not None:
            apart = np.abs(one.distribution.points[:, None] - support).max(-1)
            assert (apart.min(1) == 0).all()


@pytest.mark.parametrize("name", SETTINGS)
def test_declared_sight_is_enforced(name: str) -> None:
    """Whoever does not declare a sight cannot read it; only one that sees the draw gets it."""
    game, states, refused = mixed(name, *SETTINGS[name]).game, [], set()
    player: Any = game.adversary
    inner = player.commit

    def watched(context: Any, history: Any, announced: Any) -> Any:
        states.append(generator_state(game.forecast_stream))
        for what, sight in READ.items():
            if sight in player.sees:
                getattr(announced, what)
            else:
                with pytest.raises(ValueError, match=f"add '{sight}' to sees"):
                    getattr(announced, what)
                refused.add(what)
        return inner(context, history, announced)

    player.commit = watched
    assert ("draw" in player.sees) == game.adversary_sees_draw == (name == "draw-seer")
    for _ in range(3):
        before = generator_state(game.forecast_stream)
        play_round(game)
        assert (states[-1] == before) == (name != "draw-seer")
        assert generator_state(game.forecast_stream) != before
    assert refused == {what for what, sight in READ.items() if sight not in player.sees}


def test_what_is_sealed_cannot_be_changed_nor_an_unknown_sight_declared() -> None:
    outcome = np.array([0.2, 0.3])
    strategy = OutcomeDistribution.pure(outcome)
    outcome[:] = 1.0
    assert (strategy.points == [[0.2, 0.3]]).all()
    with pytest.raises(ValueError, match="read-only"):
        strategy.points[0] = 0.5
    for sees, complaint in (({"future"}, "unknown 'future'"), ("draw", "give a set")):
        with pytest.raises(UserError, match=complaint):
            against(SimpleNamespace(outcomes=1, sees=sees), [[0.0], [1.0]])


@pytest.mark.parametrize("place", [0, 1])
def test_announced_play_is_the_frequency_of_actions_over_draws(place: int) -> None:
    game = mixed("anti-forecast", 3, {}).game
    for _ in range(25):
        play_round(game)
    mixture, cohort = game.blocks[0].mixture(Context()), game.cohorts[place]
    assert len(mixture.weights) > 1  # else the draw decides nothing
    strategy = cohort.strategy(mixture, Context())
    heard = [Forecast(mixture, i) for i in range(len(mixture.weights))]
    play = [cohort.decide(forecast, Context()).probabilities for forecast in heard]
    assert strategy == pytest.approx(np.tensordot(mixture.weights, play, 1), abs=1e-12)
    rows, agents = np.unique(cohort.row_of, return_index=True)
    draws, rng, seen = 4000, stream(3, "test"), np.zeros(strategy.shape)
    for _ in range(draws):
        seen[rows, cohort.decide(mixture.draw(rng), Context()).actions[agents]] += 1
    error = np.sqrt(strategy * (1 - strategy) / draws)
    assert (np.abs(seen / draws - strategy) <= 4.5 * error + 1e-12).all()


def test_commitment_is_the_best_distribution_against_the_first_follower() -> None:
    """Conitzer and Sandholm's game: committing to a half each makes 3.5 of 2."""
    player = adversaries.StackelbergCommitter(2, stream(0, "x"), weights=[[2.0, 1.0], [4.0, 3.0]])
    model = against(player, -np.eye(2)[::-1], -np.eye(2))
    distribution = play_round(model.game).distribution
    assert player.commitment.value == pytest.approx(3.5)
    assert distribution.points[distribution.weights.argsort()] == pytest.approx(player.support)
    assert distribution.weights == pytest.approx([0.5, 0.5])


def test_pump_and_dump_pays_what_its_economics_say() -> None:
    told = {"good": 1, "low": 0.2, "high": 0.8, "level": 0.6, "cost": 0.3, "rest": 0.4}
    player = adversaries.PumpAndDump(2, stream(0, "x"), exposure=[0.0, 2.0], pump=2, dump=1, **told)
    game = against(player, np.eye(2)).game
    assert player.support == pytest.approx(np.array([[0.4, 0.8], [0.4, 0.2]]))
    up, down = player.payoff.values(game.cohorts[0].loss, player.support)[:, 0]
    assert up == pytest.approx([-0.3, 2 * (0.6 - 0.8) - 0.3])
    assert down == pytest.approx([0.0, 2 * (0.6 - 0.2)])
    rows = [play_round(game).outcome[1] for _ in range(6)]
    assert rows == pytest.approx([0.8, 0.8, 0.2] * 2)


def test_staggered_offers_follow_the_schedule() -> None:
    """T = 1000: f = 177.8; five arms open 237.1 rounds apart, each free for f (1 - k/100)."""
    player = adversaries.StaggeredSeller(12, stream(0, "x"), rounds=1000)
    span = 1000**0.75
    for time in (0, 177, 178, 237, 238, 413, 414, 948, 949, 999):
        offers = player.offers(time).reshape(6, 2)
        assert (offers[0] == 0).all()
        for k in range(5):
            opens = k * 4 / 3 * span
            free = opens <= time < opens + span * (1 - 0.01 * k)
            assert offers[k + 1].tolist() == [time >= opens, time >= opens and not free]
    assert len(player.support) == 9  # arms 1 to 5 open, the newest free or not; 5 stays free


class Silent(adversaries.LookAhead):
    """Rehearses, or does not, and always returns the same outcome."""

    quiet = False

    def commit(self, context: Any, history: Any, announced: Any) -> OutcomeDistribution:
        assert self.quiet or np.isfinite(self.plans(announced)).all()
        return OutcomeDistribution.pure(np.full(self.outcomes, 0.3))


@pytest.mark.parametrize("hull", ["basis", "image"])
def test_rollouts_leave_the_true_game_alone(hull: str) -> None:
    logs = []
    for quiet in (True, False):
        player = Silent(2, stream(0, "x"), horizon=3)
        player.quiet = quiet
        model = mixed("iid", 2, {}, forecaster={"hull": hull})
        model.replace(adversary=player)
        model.run(8)
        logs.append([model.regret_frame(), model.forecasts_frame(), model.rounds_frame()])
        logs[-1].append(pd.Series(str(model.game.cohorts[2].state())))
    assert all(one.equals(other) for one, other in zip(*logs, strict=True))


def test_a_rollout_computes_the_losses_at_its_outcome_once(monkeypatch: pytest.MonkeyPatch) -> None:
    player = Silent(2, stream(0, "x"), horizon=6)
    model = mixed("iid", 2, {})
    model.replace(adversary=player)
    loss_of_bandits = model.game.cohorts[2].loss
    compute_losses = type(loss_of_bandits).losses
    outcomes = []

    def noted(loss: Any, outcome: Any) -> Any:
        if loss is loss_of_bandits:
            outcomes.append(outcome)
        return compute_losses(loss, outcome)

    monkeypatch.setattr(type(loss_of_bandits), "losses", noted)
    play_round(model.game)
    is_realised = [bool((outcome == 0.3).all()) for outcome in outcomes]
    imagined = [outcome for outcome, real in zip(outcomes, is_realised, strict=True) if not real]
    assert any(is_realised)
    assert np.array_equal(imagined, player.support)


def test_only_cohorts_that_learn_have_a_memory() -> None:
    hard, soft, bandits = mixed("iid", 2, {}).game.cohorts
    assert [hard.has_memory, soft.has_memory, bandits.has_memory] == [False, False, True]


def test_nothing_is_guaranteed_where_the_draw_is_seen() -> None:
    model = mixed("draw-seer", 3, {})
    model.run()
    assert set(model.agents_frame()["guarantee"]) == {"none"}
    assert model.agents_frame()["bound"].isna().all()
    why = "no guarantee, since the adversary sees the drawn forecast before it commits"
    assert [promise.note for promise in model.guarantees[:2]] == [f"hard: {why}", f"soft: {why}"]


def test_members_control_their_own_coordinates() -> None:
    members = [
        {"kind": "iid", "coordinates": [3], "concentration": 0.0, "mean": 0.9},
        {"kind": "anti-forecast", "coordinates": [0, 2]},
        {"kind": "up-then-down", "coordinates": [1], "first": 1, "then": 0},
    ]
    game = mixed("coalition", 4, {"members": members}).game
    assert game.adversary.sees == {"history", "mixture"}
    for t in range(ROUNDS):
        label = game.blocks[0].mixture(Context())
        mean = (label.weights @ label.points)[[0, 2]]
        y = play_round(game).outcome
        assert y[3] == 0.9
        assert y[1] == (t < ROUNDS // 2)
        assert (y[[0, 2]] == np.eye(2)[int(mean.argmin())]).all()


def test_a_coalition_plays_the_product_and_earns_the_sum() -> None:
    one = {"kind": "stackelberg-committer", "coordinates": [0], "weights": [[1.0], [0.0]]}
    two = {"kind": "myopic", "coordinates": [1, 2], "weights": [[0.0, 2.0], [1.0, 0.0]]}
    player = adversaries.Coalition(3, stream(0, "x"), members=[one, two])
    assert player.sees == {"history", "mixture", "play", "losses"}
    game = against(player, [[-1.0, 0.0, 0.0], [1.0, -0.2, -0.1]]).game
    distribution = play_round(game).distribution
    leader = player.members[0].adversary
    own = leader.commitment.mixture  # of the outcomes 0 and 1
    assert 0 < own[0] < 1
    assert distribution.weights == pytest.approx(own[own > 0])
    assert (distribution.points[:, 1:] == distribution.points[0, 1:]).all()
    assert player.payoff is not None
    assert player.support.tolist() == [[i, *pair] for i in (0, 1) for pair in ([1, 0], [0, 1])]
    values = player.payoff.values(game.cohorts[0].loss, player.support)[:, 0]
    assert values == pytest.approx(np.array([[0, 1], [2, 0], [1, 1], [3, 0]]))
    assert adversaries.Coalition(3, stream(0, "x"), members=MEMBERS[::-1]).support is None


def test_members_are_shown_no_more_than_they_declare() -> None:
    seen: dict[str, set[str]] = {}
    members: list[dict[str, Any]] = [
        {"kind": "draw-seer", "coordinates": [0]},
        {"kind": "look-ahead", "coordinates": [1], "horizon": 2},
        {"kind": "iid", "coordinates": [2]},
    ]
    game = mixed("coalition", 3, {"members": members}).game

    def noted(own: Any, context: Any, history: Any, announced: Any) -> Any:
        seen[type(own).__name__] = set(announced.makers)
        assert history.mean.shape == history.last(3).shape[1:] == (1,)
        return type(own).commit(own, context, history, announced)

    for member in game.adversary.members:
        member.adversary.commit = partial(noted, member.adversary)
    assert game.adversary_sees_draw
    for _ in range(3):
        play_round(game)
    usual = {"blocks", "play", "rollout"}
    assert seen == {"DrawSeer": usual | {"drawn", "induced"}, "LookAhead": usual, "IID": set()}


@pytest.mark.parametrize("agent", [None, 1])
def test_it_seals_what_makes_the_worst_regret_greatest(agent: int | None) -> None:
    """Against every outcome of its support, tried one by one."""
    rng = np.random.default_rng(0)
    player = adversaries.RegretMaximiser(2, stream(0, "x"), grid=3, agent=agent)
    loss = Linear(rng.random((3, 4, 2)) / 2, np.zeros((3, 4)))
    player.meet([Follower("some", loss, np.arange(3))])
    distributions, outcomes = [], []

    def regret(last: Any) -> float:
        losses, play = loss.losses(np.array([*outcomes, last])), np.array(distributions)
        aims = range(3) if agent is None else [agent]
        return max(swap_regret(losses[:, k], play[:, k]) for k in aims)

    for t in range(25):
        distributions.append(rng.dirichlet(np.ones(4), 3))
        announced = AdversaryView(None, play=lambda: (distributions[-1],))
        sealed = player.commit(Context(), History(2), announced).points[0]
        assert regret(sealed) == pytest.approx(max(map(regret, player.support)), abs=1e-12), t
        outcomes.append(sealed)


@pytest.mark.parametrize("seed", range(6))
def test_no_bound_is_broken_by_who_aims_at_the_regret(seed: int) -> None:
    own = worlds.cohort("own", 5, 4, "ces", parameters={"rho": 0.5})
    adversary = {"kind": "regret-maximiser", "outcomes": 2, "grid": 2}
    model = worlds.played(worlds.scenario(own, rounds=300, adversary=adversary), seed=seed)
    agents = model.agents_frame()
    for bound in ("bound_from_bias", "bound_from_variation", "bound"):
        assert (agents["decision_swap_regret"] <= agents[bound]).all()
