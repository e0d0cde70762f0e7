"""Adversaries with a motive: what they see, what they do, what they earn."""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import ArrayLike
from small_scenarios import TomlTable, cohort_table, make_scenario, play_to_end

from regretless import MarketModel, OutcomeDistribution, UserError, swap_regret
from regretless.agents import adversaries
from regretless.agents.adversaries.leader import RELATIVE_TIE, first_best, place_in_support
from regretless.agents.adversaries.nature import IID, MAX_SINGLE_DRAWS, Unchanging
from regretless.agents.adversaries.wrappers import Confined
from regretless.market.core import checkpoint
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import generator_state, stream
from regretless.market.game.protocols import Adversary, Follower
from regretless.market.game.round import play_round
from regretless.market.losses import Linear
from regretless.market.losses.outcome_spaces import Box
from regretless.market.losses.separable import SeparablePower
from regretless.market.records import AdversaryView, Context, Forecast, History, Round

ROUNDS = 12
SIGHT_NEEDED = {  # by what an adversary may read of the announced round
    "blocks": "mixture",
    "mean_label": "mixture",
    "play": "play",
    "rollout": "play",
    "drawn": "draw",
    "induced": "draw",
}
MEMBERS: list[TomlTable] = [
    {"kind": "pump-and-dump", "coordinates": [2], "exposure": [1.0, 0.0, 0.5], "pump": 3},
    {"kind": "drifting", "coordinates": [0, 1]},
]
SETTINGS: dict[str, tuple[int, TomlTable]] = {  # by kind of adversary: outcomes and parameters
    "anti-forecast": (3, {}),
    "bait-seller": (6, {}),
    "cma": (3, {"length": 1, "rows": 3}),
    "coalition": (3, {"members": MEMBERS}),
    "cyclic": (3, {}),
    "draw-seer": (3, {}),
    "drifting": (3, {}),
    "exp3": (3, {"length": 2}),
    "iid": (3, {}),
    "look-ahead": (2, {"horizon": 2, "grid": 2}),
    "myopic": (3, {}),
    "plan": (3, {"distributions": [[[1, 0, 0], [1, 1, 2], [0, 0, 1]]] * 2}),
    "pump-and-dump": (3, {"exposure": [1.0, 0.0, 0.5], "pump": 3, "dump": 2}),
    "regret-maximiser": (3, {}),
    "stackelberg-committer": (3, {"weights": [[0.9, 0.1, 0], [0, 0.2, 1], [0.5, 0.4, 0.6]]}),
    "staggered-seller": (6, {}),
    "switching": (3, {"length": 4}),
    "up-then-down": (3, {}),
}


def market_of_three_cohorts(
    adversary: str, outcomes: int, parameters: TomlTable, **keys: object
) -> MarketModel:
    """Build a market of best responders, quantal ones and bandits, of linear losses, in a block."""
    hard = cohort_table("hard", 4, 3, types=2)
    soft = cohort_table("soft", 4, 3, types=3, response="quantal", eta=9.0)
    bandits = cohort_table("bandits", 2, 3, response="exp3")
    table = {"kind": adversary, "outcomes": outcomes} | parameters
    return make_scenario(hard, soft, bandits, rounds=ROUNDS, adversary=table, **keys).build()


def market_against(player: Adversary, *weights_of_follower: ArrayLike) -> MarketModel:
    """Seat one best responder of each ``weights``, whose actions gain ``w . y``."""
    cohorts = []
    for number, weights in enumerate(weights_of_follower):
        parameters = {"weights": np.asarray(weights).tolist()}
        cohorts.append(cohort_table(f"c{number}", 1, 2, "affine", parameters=parameters))
    nature = {"kind": "iid", "outcomes": player.outcomes}
    model = make_scenario(*cohorts, adversary=nature).build()
    model.replace(adversary=player)
    return model


@cache
def uninterrupted(name: str) -> tuple[Array | None, list[Round]]:
    """Play a market against an adversary; return the adversary's support and the rounds."""
    game = market_of_three_cohorts(name, *SETTINGS[name]).game
    rounds = [play_round(game) for _ in range(ROUNDS)]
    return game.adversary.support, rounds


def assert_same_round(played: Round, expected: Round) -> None:
    assert played.number == expected.number
    assert (played.outcome == expected.outcome).all()
    assert (played.distribution.points == expected.distribution.points).all()
    assert (played.distribution.weights == expected.distribution.weights).all()
    assert played.forecasts[0].index == expected.forecasts[0].index


@pytest.mark.parametrize("name", SETTINGS)
def test_an_adversary_with_a_support_chooses_no_other_outcome(name: str) -> None:
    support, rounds = uninterrupted(name)
    if support is None:
        pytest.skip("its outcomes are no finite list")
    for played in rounds:
        distances = np.abs(played.distribution.points[:, None] - support).max(-1)
        assert (distances.min(1) == 0).all(), f"round {played.number}"


@pytest.mark.parametrize("name", SETTINGS)
def test_an_adversary_resumed_from_a_checkpoint_plays_the_same_rounds(
    name: str, tmp_path: Path
) -> None:
    """The rounds before the checkpoint are the same too, since the seed is."""
    _, expected = uninterrupted(name)
    stopped = market_of_three_cohorts(name, *SETTINGS[name])
    for round_index in range(5):
        assert_same_round(play_round(stopped.game), expected[round_index])
    checkpoint.save(tmp_path / "there.npz", stopped.state())
    resumed = market_of_three_cohorts(name, *SETTINGS[name])
    resumed.restore(checkpoint.load(tmp_path / "there.npz"))
    for round_index in range(5, ROUNDS):
        assert_same_round(play_round(resumed.game), expected[round_index])


@pytest.mark.parametrize("name", SETTINGS)
def test_an_adversary_cannot_read_what_it_does_not_declare_to_see(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = market_of_three_cohorts(name, *SETTINGS[name]).game
    player = game.adversary
    commit = player.commit
    refused_views: set[str] = set()

    def commit_after_trying_to_read_all(
        context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        for view, sight in SIGHT_NEEDED.items():
            if sight in player.sees:
                getattr(announced, view)
            else:
                with pytest.raises(ValueError, match=f"add '{sight}' to sees"):
                    getattr(announced, view)
                refused_views.add(view)
        return commit(context, history, announced)

    monkeypatch.setattr(player, "commit", commit_after_trying_to_read_all)
    for _ in range(3):
        play_round(game)
    assert refused_views == {
        view for view, sight in SIGHT_NEEDED.items() if sight not in player.sees
    }


@pytest.mark.parametrize("name", SETTINGS)
def test_the_forecast_is_drawn_after_the_adversary_commits_unless_it_sees_the_draw(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = market_of_three_cohorts(name, *SETTINGS[name]).game
    player = game.adversary
    commit = player.commit
    sees_the_draw = name == "draw-seer"
    states_at_commitment = []

    def commit_noting_the_stream(
        context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        states_at_commitment.append(generator_state(game.forecast_stream))
        return commit(context, history, announced)

    monkeypatch.setattr(player, "commit", commit_noting_the_stream)
    assert ("draw" in player.sees) == sees_the_draw
    assert game.adversary_sees_draw == sees_the_draw
    for _ in range(3):
        state_before_the_round = generator_state(game.forecast_stream)
        play_round(game)
        drawn_late = states_at_commitment[-1] == state_before_the_round
        assert drawn_late == (not sees_the_draw)
        assert generator_state(game.forecast_stream) != state_before_the_round


def test_a_sealed_outcome_cannot_be_changed() -> None:
    outcome = np.array([0.2, 0.3])
    sealed = OutcomeDistribution.pure(outcome)
    outcome[:] = 1.0
    assert (sealed.points == [[0.2, 0.3]]).all()
    with pytest.raises(ValueError, match="read-only"):
        sealed.points[0] = 0.5


@pytest.mark.parametrize(
    ("sees", "complaint"), [({"future"}, "unknown 'future'"), ("draw", "give a set")]
)
def test_a_sight_that_does_not_exist_is_refused(sees: set[str] | str, complaint: str) -> None:
    player = SimpleNamespace(outcomes=1, sees=sees)
    with pytest.raises(UserError, match=complaint):
        market_against(player, [[0.0], [1.0]])  # type: ignore[arg-type]


@pytest.mark.parametrize("cohort_index", [0, 1], ids=["best responders", "quantal"])
def test_announced_play_is_the_frequency_of_actions_over_draws(cohort_index: int) -> None:
    game = market_of_three_cohorts("anti-forecast", 3, {}).game
    for _ in range(25):
        play_round(game)
    cohort = game.cohorts[cohort_index]
    mixture = game.blocks[0].mixture(Context())
    assert len(mixture.weights) > 1, "the draw decides nothing"

    announced = cohort.strategy(mixture, Context())

    play_by_forecast = []
    for index in range(len(mixture.weights)):
        decision = cohort.decide(Forecast(mixture, index), Context())
        play_by_forecast.append(decision.probabilities)
    assert announced == pytest.approx(np.tensordot(mixture.weights, play_by_forecast, 1), abs=1e-12)

    draws = 4000
    rng = stream(3, "test")
    rows, first_agents = np.unique(cohort.row_of, return_index=True)
    times_played = np.zeros(announced.shape)
    for _ in range(draws):
        actions = cohort.decide(mixture.draw(rng), Context()).actions
        times_played[rows, actions[first_agents]] += 1
    standard_error = np.sqrt(announced * (1 - announced) / draws)
    assert (np.abs(times_played / draws - announced) <= 4.5 * standard_error + 1e-12).all()


def test_a_committer_plays_the_best_distribution_against_the_first_follower() -> None:
    """Conitzer and Sandholm's game: committing to a half each makes 3.5 of 2."""
    player = adversaries.StackelbergCommitter(
        2, stream(0, "x"), weights=[[2.0, 1.0], [4.0, 3.0]], margin=0
    )
    model = market_against(player, -np.eye(2)[::-1], -np.eye(2))
    distribution = play_round(model.game).distribution
    assert player.commitment.value == pytest.approx(3.5)
    assert distribution.points[distribution.weights.argsort()] == pytest.approx(player.support)
    assert distribution.weights == pytest.approx([0.5, 0.5])


def pump_and_dump_of_the_second_good() -> adversaries.PumpAndDump:
    return adversaries.PumpAndDump(
        2,
        stream(0, "x"),
        exposure=[0.0, 2.0],
        pump=2,
        dump=1,
        good=1,
        low=0.2,
        high=0.8,
        level=0.6,
        cost=0.3,
        rest=0.4,
    )


def test_pump_and_dump_pays_what_its_economics_say() -> None:
    player = pump_and_dump_of_the_second_good()
    follower = market_against(player, np.eye(2)).game.cohorts[0]
    pumping, dumping = player.payoff.values(follower.loss, player.support)[:, 0]
    assert player.support == pytest.approx(np.array([[0.4, 0.8], [0.4, 0.2]]))
    assert pumping == pytest.approx([-0.3, 2 * (0.6 - 0.8) - 0.3])
    assert dumping == pytest.approx([0.0, 2 * (0.6 - 0.2)])


def test_pump_and_dump_raises_a_price_for_as_long_as_it_says_and_drops_it() -> None:
    game = market_against(pump_and_dump_of_the_second_good(), np.eye(2)).game
    prices = [play_round(game).outcome[1] for _ in range(6)]
    assert prices == pytest.approx([0.8, 0.8, 0.2] * 2)


def test_staggered_offers_follow_the_schedule() -> None:
    """T = 1000: f = 177.8; five arms open 237.1 rounds apart, each free for f (1 - k/100)."""
    player = adversaries.StaggeredSeller(12, stream(0, "x"), rounds=1000)
    span = 1000**0.75
    for time in (0, 177, 178, 237, 238, 413, 414, 948, 949, 999):
        offers = player.offers(time).reshape(6, 2)
        assert (offers[0] == 0).all()
        for k in range(5):
            opens = k * 4 / 3 * span
            is_open = time >= opens
            is_free = is_open and time < opens + span * (1 - 0.01 * k)
            assert offers[k + 1].tolist() == [is_open, is_open and not is_free], (time, k)
    assert len(player.support) == 9  # arms 1 to 5 open, the newest free or not; 5 stays free


class Rehearsing(adversaries.LookAhead):
    """Rehearses, or does not, and always returns the same outcome."""

    rehearses = True

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        if self.rehearses:
            assert np.isfinite(self.plans(announced)).all()
        return OutcomeDistribution.pure(np.full(self.outcomes, 0.3))


@pytest.mark.parametrize("hull", ["basis", "image"])
def test_rollouts_leave_the_true_game_alone(hull: str) -> None:
    models = []
    for rehearses in (True, False):
        player = Rehearsing(2, stream(0, "x"), horizon=3)
        player.rehearses = rehearses
        model = market_of_three_cohorts("iid", 2, {}, forecaster={"hull": hull})
        model.replace(adversary=player)
        model.run(8)
        models.append(model)
    rehearsed, unrehearsed = models
    assert rehearsed.regret_frame().equals(unrehearsed.regret_frame())
    assert rehearsed.forecasts_frame().equals(unrehearsed.forecasts_frame())
    assert rehearsed.rounds_frame().equals(unrehearsed.rounds_frame())
    memories_of_bandits = [str(model.game.cohorts[2].state()) for model in models]
    assert memories_of_bandits[0] == memories_of_bandits[1]


def test_a_rollout_computes_the_losses_at_its_outcome_once(monkeypatch: pytest.MonkeyPatch) -> None:
    player = Rehearsing(2, stream(0, "x"), horizon=6)
    model = market_of_three_cohorts("iid", 2, {})
    model.replace(adversary=player)
    loss_of_bandits = model.game.cohorts[2].loss
    compute_losses = type(loss_of_bandits).losses
    outcomes = []

    def compute_and_note(loss: Linear, outcome: Array) -> Array:
        if loss is loss_of_bandits:
            outcomes.append(outcome)
        return compute_losses(loss, outcome)

    monkeypatch.setattr(type(loss_of_bandits), "losses", compute_and_note)
    play_round(model.game)
    is_realised = [bool((outcome == 0.3).all()) for outcome in outcomes]
    imagined = [outcome for outcome, real in zip(outcomes, is_realised, strict=True) if not real]
    assert any(is_realised)
    assert np.array_equal(imagined, player.support)


def test_only_cohorts_that_learn_have_a_memory() -> None:
    hard, soft, bandits = market_of_three_cohorts("iid", 2, {}).game.cohorts
    assert not hard.has_memory
    assert not soft.has_memory
    assert bandits.has_memory


def test_nothing_is_guaranteed_where_the_draw_is_seen() -> None:
    model = market_of_three_cohorts("draw-seer", 3, {})
    model.run()
    assert set(model.agents_frame()["guarantee"]) == {"none"}
    assert model.agents_frame()["bound"].isna().all()
    reason = "no guarantee, since the adversary sees the drawn forecast before it commits"
    notes = [guarantee.note for guarantee in model.guarantees[:2]]
    assert notes == [f"hard: {reason}", f"soft: {reason}"]


def test_members_of_a_coalition_control_their_own_coordinates() -> None:
    members = [
        {"kind": "iid", "coordinates": [3], "concentration": 0.0, "mean": 0.9},
        {"kind": "anti-forecast", "coordinates": [0, 2]},
        {"kind": "up-then-down", "coordinates": [1], "first": 1, "then": 0},
    ]
    game = market_of_three_cohorts("coalition", 4, {"members": members}).game
    assert game.adversary.sees == {"history", "mixture"}
    for round_index in range(ROUNDS):
        mixture = game.blocks[0].mixture(Context())
        mean_of_the_opposed = (mixture.weights @ mixture.points)[[0, 2]]
        outcome = play_round(game).outcome
        assert outcome[3] == 0.9
        assert outcome[1] == (round_index < ROUNDS // 2)
        assert (outcome[[0, 2]] == np.eye(2)[int(mean_of_the_opposed.argmin())]).all()


def coalition_of_a_committer_and_a_myopic_leader() -> adversaries.Coalition:
    committer: TomlTable = {
        "kind": "stackelberg-committer",
        "coordinates": [0],
        "weights": [[1.0], [0.0]],
        "margin": 0,
    }
    myopic: TomlTable = {
        "kind": "myopic",
        "coordinates": [1, 2],
        "weights": [[0.0, 2.0], [1.0, 0.0]],
    }
    return adversaries.Coalition(3, stream(0, "x"), members=[committer, myopic])


WEIGHTS_OF_A_FOLLOWER = [[-1.0, 0.0, 0.0], [1.0, -0.2, -0.1]]


def test_a_member_of_a_coalition_reads_losses_that_are_infinitely_steep_at_zero() -> None:
    members = [
        {"kind": "myopic", "coordinates": [0], "grid": 3},
        {"kind": "anti-forecast", "coordinates": [1, 2]},
    ]
    coalition = adversaries.Coalition(3, np.random.default_rng(0), members=members)
    weights = [[[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]]
    steep = SeparablePower(weights, 0.5)
    assert np.isinf(steep.lipschitz()).all()
    coalition.meet([Follower("steep", steep, np.zeros(1, dtype=np.intp))])
    (met,) = coalition.members[0].adversary.followers
    member_outcomes = np.array([[0.0], [0.25], [1.0]])
    full = np.array([[0.0, 0.5, 0.5], [0.25, 0.5, 0.5], [1.0, 0.5, 0.5]])
    assert (met.loss.losses(member_outcomes) == steep.losses(full)).all()


def test_a_leader_that_does_not_declare_losses_is_told_to_when_it_values_play() -> None:
    leader = adversaries.Myopic(2, np.random.default_rng(0))
    with pytest.raises(UserError, match="add 'losses' to its sees"):
        leader.worth([np.full((1, 2), 0.5)])


def leader_of_two_kinds_of_followers() -> adversaries.Myopic:
    """Return a leader of three outcomes who has met two agents in two rows, and five in one."""
    leader = adversaries.Myopic(2, np.random.default_rng(0), support=[[1, 0], [0, 1], [0.5, 0.25]])
    two_losses = Linear([[[0.5, 0.3], [0.1, 0.8]], [[0.2, 0.3], [0.9, 0.4]]])
    one_loss = Linear([[[0.7, 0.1], [0.3, 0.6]]])
    five_agents = Follower("five", one_loss, np.zeros(1, dtype=np.intp), np.array([5]))
    leader.meet([Follower("two", two_losses, np.array([1, 0])), five_agents])
    return leader


def test_the_worth_of_an_outcome_is_the_mean_over_agents_of_what_they_pay() -> None:
    leader = leader_of_two_kinds_of_followers()
    of_two = np.array([[0.25, 0.75], [1.0, 0.0]])
    of_five = np.array([[0.4, 0.6]])
    two, five = leader.followers
    paid_by_two = (two.loss.losses(leader.support) * of_two).sum((1, 2))
    paid_by_five = 5 * (five.loss.losses(leader.support) * of_five).sum((1, 2))
    expected = (paid_by_two + paid_by_five) / 7
    np.testing.assert_allclose(leader.worth([of_two, of_five]), expected, rtol=1e-14)
    np.testing.assert_allclose(leader.worth([None, of_five]), paid_by_five / 5, rtol=1e-14)


def test_the_worth_of_play_with_another_number_of_actions_is_refused() -> None:
    leader = leader_of_two_kinds_of_followers()
    with pytest.raises(ValueError, match="could not be broadcast"):
        leader.worth([np.full((2, 3), 1 / 3), None])


@pytest.mark.parametrize(
    ("outcome", "place"), [([0.0, 1.0], 1), ([0.5, 0.25], 2), ([0.5, 0.5], -1), ([0.0], -1)]
)
def test_an_outcome_is_found_where_it_first_stands_in_the_support(
    outcome: list[float], place: int
) -> None:
    support = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.25], [0.0, 1.0]])
    assert place_in_support(np.array(outcome), support) == place


class HalfCube(Box):
    """The outcomes up to one half, to which others are moved by halving them."""

    def move_inside(self, u: ArrayLike) -> Array:
        return np.asarray(u, dtype=np.float64) / 2


@pytest.mark.parametrize(
    ("outcome", "moved"), [([0.25, 0.5], [0.25, 0.5]), ([1, 0.5], [0.5, 0.25])]
)
def test_an_outcome_is_moved_into_a_space_unless_its_support_lists_it(
    outcome: list[float], moved: list[float]
) -> None:
    unchanging = Unchanging(2, np.random.default_rng(0), value=outcome)
    confined = Confined(
        unchanging, HalfCube([0, 0], [1, 1]), support=np.array([[0, 0], [0.25, 0.5]])
    )
    committed = confined.commit(Context(), History(2), AdversaryView())
    assert committed.points.tolist() == [moved]


def test_a_coalition_sees_what_any_of_its_members_sees() -> None:
    coalition = coalition_of_a_committer_and_a_myopic_leader()
    assert coalition.sees == {"history", "mixture", "play", "losses"}


def test_a_coalition_plays_the_product_of_its_members_distributions() -> None:
    coalition = coalition_of_a_committer_and_a_myopic_leader()
    distribution = play_round(market_against(coalition, WEIGHTS_OF_A_FOLLOWER).game).distribution
    committer = coalition.members[0].adversary
    commitment = committer.commitment.mixture  # of the outcomes 0 and 1
    assert 0 < commitment[0] < 1
    assert distribution.weights == pytest.approx(commitment[commitment > 0])
    assert (distribution.points[:, 1:] == distribution.points[0, 1:]).all()


def test_a_coalition_earns_the_sum_of_its_members_payoffs() -> None:
    coalition = coalition_of_a_committer_and_a_myopic_leader()
    follower = market_against(coalition, WEIGHTS_OF_A_FOLLOWER).game.cohorts[0]
    assert coalition.payoff is not None
    assert coalition.support.tolist() == [[0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1]]
    payoffs = coalition.payoff.values(follower.loss, coalition.support)[:, 0]
    assert payoffs == pytest.approx(np.array([[0, 1], [2, 0], [1, 1], [3, 0]]))


def test_a_coalition_of_members_who_are_certain_commits_to_one_outcome() -> None:
    members: list[TomlTable] = [
        {"kind": "cyclic", "coordinates": [2]},
        {"kind": "drifting", "coordinates": [1, 0], "concentration": 0.0},
    ]
    coalition = adversaries.Coalition(3, stream(0, "x"), members=members)
    history = History(3)
    committed = coalition.commit(coalition.context(history), history, AdversaryView())
    cyclic, drifting = (member.adversary for member in coalition.members)
    assert committed.weights.tolist() == [1.0]
    assert committed.points[0, 2] == cyclic.mean_at(0)[0]
    assert committed.points[0, [1, 0]].tolist() == drifting._mean.tolist()


def test_a_coalition_with_a_member_without_support_has_none() -> None:
    coalition = adversaries.Coalition(3, stream(0, "x"), members=MEMBERS[::-1])
    assert coalition.support is None


def test_members_of_a_coalition_are_shown_no_more_than_they_declare() -> None:
    members: list[TomlTable] = [
        {"kind": "draw-seer", "coordinates": [0]},
        {"kind": "look-ahead", "coordinates": [1], "horizon": 2},
        {"kind": "iid", "coordinates": [2]},
    ]
    game = market_of_three_cohorts("coalition", 3, {"members": members}).game
    views_of_member: dict[str, set[str]] = {}

    def commit_noting_what_is_shown(
        member: Adversary, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        views_of_member[type(member).__name__] = set(announced.makers)
        assert history.mean.shape == (1,)
        assert history.last(3).shape[1:] == (1,)
        return type(member).commit(member, context, history, announced)

    for member in game.adversary.members:
        member.adversary.commit = partial(commit_noting_what_is_shown, member.adversary)
    assert game.adversary_sees_draw
    for _ in range(3):
        play_round(game)
    undrawn_views = {"blocks", "play", "rollout"}
    assert views_of_member == {
        "DrawSeer": undrawn_views | {"drawn", "induced"},
        "LookAhead": undrawn_views,
        "IID": set(),
    }


class SecondBest(adversaries.RegretMaximiser):
    """Chooses what a method of its own calls the best."""

    def best(self, worth: Array) -> Array:
        return np.asarray(self.support[int(np.argsort(-worth, kind="stable")[1])])


def test_what_a_subclass_calls_the_best_is_chosen_and_charged() -> None:
    player = SecondBest(1, stream(0, "x"), grid=3)
    player.meet([Follower("followers", Linear(np.eye(1, 2)[..., None]), np.arange(1))])
    play = np.array([[1.0, 0.0]])  # whoever plays 0 loses y, and nothing by playing 1
    view = AdversaryView(None, play=lambda: (play,))
    sealed = [player.commit(Context(), History(1), view).points[0] for _ in range(2)]
    # 1 is the best each time, since it adds most to the regret of 0.
    assert sealed == [[0.5], [0.5]]
    (regret_sums,) = vars(player)["_regret_sums"]
    assert regret_sums[0, 0, 1] == 1.0


@pytest.mark.parametrize("agent", [None, 1])
def test_a_regret_maximiser_seals_what_makes_the_worst_regret_greatest(agent: int | None) -> None:
    """Every outcome of its support is tried, one by one."""
    rng = np.random.default_rng(0)
    player = adversaries.RegretMaximiser(2, stream(0, "x"), grid=3, agent=agent)
    loss = Linear(rng.random((3, 4, 2)) / 2, np.zeros((3, 4)))
    player.meet([Follower("followers", loss, np.arange(3))])
    targets = range(3) if agent is None else [agent]
    strategies: list[Array] = []
    outcomes: list[Array] = []

    def worst_regret_after(outcome: Array) -> float:
        losses = loss.losses(np.array([*outcomes, outcome]))
        play = np.array(strategies)
        return max(swap_regret(losses[:, row], play[:, row]) for row in targets)

    def announced_play(strategy: Array) -> Callable[[], tuple[Array]]:
        return lambda: (strategy,)

    for round_index in range(25):
        strategies.append(rng.dirichlet(np.ones(4), 3))
        view = AdversaryView(None, play=announced_play(strategies[-1]))
        sealed = player.commit(Context(), History(2), view).points[0]
        greatest = max(map(worst_regret_after, player.support))
        assert worst_regret_after(sealed) == pytest.approx(greatest, abs=1e-12), round_index
        outcomes.append(sealed)


@pytest.mark.parametrize("seed", range(6))
def test_no_bound_is_broken_by_an_adversary_that_aims_at_the_regret(seed: int) -> None:
    growers = cohort_table("growers", 5, 4, "ces", parameters={"rho": 0.5})
    adversary = {"kind": "regret-maximiser", "outcomes": 2, "grid": 2}
    model = play_to_end(make_scenario(growers, rounds=300, adversary=adversary), seed=seed)
    agents = model.agents_frame()
    for bound in ("bound_from_bias", "bound_from_variation", "bound"):
        assert (agents["decision_swap_regret"] <= agents[bound]).all(), bound


@pytest.mark.parametrize("outcomes", [1, 3, MAX_SINGLE_DRAWS + 1])
def test_outcomes_of_nature_are_those_of_one_draw_from_beta_distributions(outcomes: int) -> None:
    nature = IID(outcomes, np.random.default_rng(4), mean=0.3, concentration=5.0)
    same_stream = np.random.default_rng(4)
    for _ in range(5):
        outcome = nature.outcome(History(outcomes), AdversaryView())
        drawn = same_stream.beta(np.full(outcomes, 5 * 0.3), np.full(outcomes, 5 * (1 - 0.3)))
        assert outcome.tobytes() == drawn.tobytes()


def test_each_outcome_of_nature_is_drawn_about_its_own_mean() -> None:
    means = np.array([0.2, 0.5, 0.7])
    nature = IID(3, np.random.default_rng(4), mean=means, concentration=5.0)
    drawn = np.random.default_rng(4).beta(5 * means, 5 * (1 - means))
    assert nature.outcome(History(3), AdversaryView()).tobytes() == drawn.tobytes()


def test_who_passes_on_what_was_played_learns_where_the_other_one_does() -> None:
    of_learner: TomlTable = {"kind": "exp3", "coordinates": [0, 1]}
    of_nature: TomlTable = {"kind": "iid", "coordinates": [2]}
    with_learner = adversaries.Coalition(3, stream(0, "x"), members=[of_learner, of_nature])
    without_learner = adversaries.Coalition(
        2,
        stream(0, "x"),
        members=[{"kind": "myopic", "coordinates": [0]}, {"kind": "iid", "coordinates": [1]}],
    )
    assert with_learner.learns
    assert not without_learner.learns
    assert without_learner.observes_play  # its payoff is in the tables


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("outcomes", [1, 2, 20])
def test_the_first_best_outcome_is_the_first_within_rounding_of_the_greatest(
    outcomes: int, size: float
) -> None:
    rng = stream(2, "worth")
    for _ in range(20):
        worth = size * rng.integers(-3, 4, outcomes) * (1 + 1e-14 * rng.normal(size=outcomes))

        index = first_best(worth)

        tolerance = RELATIVE_TIE * max(np.abs(worth).max(), 1.0)
        assert index == np.flatnonzero(worth >= worth.max() - tolerance)[0]


def test_the_first_outcome_is_best_where_a_worth_is_not_known() -> None:
    assert first_best(np.array([0.0, 3.0, np.nan])) == 0
