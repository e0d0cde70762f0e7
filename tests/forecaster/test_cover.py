"""Many losses served through few: distances are exact, and so is what the cover costs."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from small_scenarios import cohort_table, make_scenario

from regretless import MarketModel
from regretless.forecaster.events.cover import clustered, distance, paper_gamma, snapped
from regretless.forecaster.events.loss_table import responses_at
from regretless.market.core.arrays import Array
from regretless.market.game.round import play_round

Table = tuple[Array, Array]


def draw_losses(seed: int, losses: int = 60, size: int = 4) -> Table:
    """Draw coefficients of both signs; some losses are alike, two are equal, one is 0."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(6, 3, size + 1))
    drawn = centres[rng.integers(6, size=losses)] + 0.05 * rng.normal(size=(losses, 3, size + 1))
    drawn[1] = drawn[0]
    drawn[2] = 0.0
    return np.ascontiguousarray(drawn[..., 0]), np.ascontiguousarray(drawn[..., 1:])


def radii_by_brute_force(losses: Table, offset: Array, weights: Array, served: Array) -> Array:
    """Greatest distance from representatives over the corners of the box, one loss at a time."""
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=weights.shape[-1])))
    differences = losses[0] - offset[served], losses[1] - weights[served]
    return np.asarray(np.abs(differences[0][..., None] + differences[1] @ corners.T).max((-1, -2)))


ROUNDS = 300
UTILITIES = ["linear", "ces", "cobb-douglas", "cara"]
PARAMETERS = {"ces": {"rho": {"choices": [0.4, 0.8]}}, "cara": {"risk_aversion": [1.0, 3.0]}}
KINDS: dict[str, dict[str, Any]] = {
    "paper": {"kind": "snap"},
    "snap": {"kind": "snap", "gamma": 0.2},
    "radius": {"kind": "cluster", "radius": 0.3},
    "count": {"kind": "cluster", "count": 3},
}
COVERS: list[tuple[Any, dict[str, Any], float]] = [  # and the greatest radius
    *((snapped, {"gamma": gamma}, 5 * gamma / 2) for gamma in (1.0, 0.8, 0.3, 0.1, 0.01, 1e-7)),
    *((clustered, {"radius": radius}, radius) for radius in (0.2, 0.5, 0.6, 2.0)),
    *((clustered, {"count": count}, math.inf) for count in (5, 1)),
    (clustered, {}, 0.0),
]


@pytest.mark.parametrize(("kind", "wish", "max_size"), COVERS)
def test_every_loss_is_within_its_radius(kind: Any, wish: dict[str, Any], max_size: float) -> None:
    """The radius is exactly the distance to the representative; all representatives serve."""
    losses = draw_losses(0)
    cover = kind(*losses, **wish)
    served = cover.representative_of
    force = radii_by_brute_force(losses, cover.offset, cover.weights, served)
    assert cover.radius == pytest.approx(force, abs=1e-9)
    assert cover.radius.max() <= max_size * (1 + 1e-6)
    assert served.shape == cover.radius.shape == (60,)
    assert sorted(set(served.tolist())) == list(range(len(cover.offset)))
    assert cover.weights.shape == (len(cover.offset), 3, 4)
    assert cover.offset.flags.c_contiguous
    assert cover.weights.flags.c_contiguous
    assert served[0] == served[1]  # equal losses
    if "gamma" in wish:  # every coefficient is the nearest multiple
        for covering_array, loss_array in ((cover.offset, losses[0]), (cover.weights, losses[1])):
            assert covering_array / wish["gamma"] == pytest.approx(
                np.round(covering_array / wish["gamma"]), abs=1e-6
            )
            assert np.abs(covering_array[served] - loss_array).max() <= wish["gamma"] / 2 * (
                1 + 1e-6
            )


def test_covers_know_the_papers_gamma_and_refuse_wishes_below_0() -> None:
    assert [paper_gamma(3, 10_000), paper_gamma(1, 1)] == pytest.approx([1 / 600, 0.5])
    with pytest.raises(ValueError, match="gamma must be positive"):
        snapped(*draw_losses(1), gamma=-0.1)
    for wrong in ({"radius": -0.1}, {"count": 0}):
        with pytest.raises(ValueError, match="radius must be at least 0 and count at least 1"):
            clustered(*draw_losses(1), **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("size", "scale"), [(1, 1e9), (3, 1e-6), (40, 1.0)])
def test_the_farthest_joins_next_until_all_are_near(size: int, scale: float) -> None:
    """By definition: a radius is at most twice the least of as many members (Gonzalez 1985)."""
    offset, weights = (scale * part for part in draw_losses(3, losses=1300, size=size))
    near = np.full(1300, np.inf)
    served = np.zeros(1300, int)
    chosen = [0]
    left = []
    for position in range(60):
        distances = distance(offset - offset[chosen[position]], weights - weights[chosen[position]])
        served = np.where(distances < near, position, served)
        near = np.minimum(distances, near)
        chosen.append(int(near.argmax()))
        left.append(near.max())
    cover = clustered(offset, weights, count=60)
    assert (cover.offset == offset[chosen[:60]]).all()
    assert (cover.representative_of == served).all()
    assert cover.radius == pytest.approx(near, rel=1e-12, abs=1e-14 * scale)
    assert left[19] > left[20]
    for wish, count in ((left[20] * (1 + 1e-9), 21), (left[20] * (1 - 1e-9), 22)):
        assert len(clustered(offset, weights, radius=wish).offset) == count


def covered_cohort(utility: str, cover: dict[str, Any] | None, **keys: Any) -> dict[str, Any]:
    """Return the table of twelve agents, with a cover if one is given."""
    cohort_keys = {"parameters": PARAMETERS.get(utility, {})} | ({"cover": cover} if cover else {})
    return cohort_table(utility, 12, 3, utility, **cohort_keys) | keys


def build_market(*cohorts: dict[str, Any]) -> MarketModel:
    """Build a market of two goods against the breaker."""
    adversary = {"kind": "anti-forecast", "outcomes": 2, "strength": 0.7}
    scenario = make_scenario(*cohorts, rounds=ROUNDS, seed=4, adversary=adversary)
    return scenario.build(log_every=ROUNDS)


def test_the_forecaster_knows_every_action_in_every_round() -> None:
    """Covered or not, alone in a block or among others; reduced, exact and mixed bases."""
    model = build_market(
        covered_cohort("linear", KINDS["snap"]),
        covered_cohort("linear", None, name="plain"),
        covered_cohort("linear", KINDS["count"], name="few"),
        covered_cohort("cobb-douglas", KINDS["radius"]),
        covered_cohort("cobb-douglas", None, name="exact", basis={"kind": "exact"}),
        covered_cohort("cara", KINDS["paper"], basis={"kind": "reduced"}),
    )
    for _ in range(60):
        played = play_round(model.game)
        left = []
        for block, forecast in zip(model.game.blocks, played.forecasts, strict=True):
            rows = block.forecaster.events.rows  # type: ignore[attr-defined]
            mass = responses_at(rows, np.ascontiguousarray(forecast.statistics))
            left.append([own.argmax() for own in np.split(mass, rows.start[1:-1])])
        for seated, decision in zip(model.game.cohorts, played.decisions, strict=True):
            count = len(seated.coefficients[0])
            own = left[seated.block][:count]
            left[seated.block] = left[seated.block][count:]
            if seated.representative_of is not None:
                own = np.array(own)[seated.representative_of]
            assert (decision.actions == np.array(own)[seated.row_of]).all()
            assert (decision.probabilities.argmax(1) == own).all()


@pytest.mark.parametrize(("kind", "utility"), [*zip(KINDS, UTILITIES, strict=True)])
def test_the_bound_of_a_covered_cohort_holds(kind: str, utility: str) -> None:
    """The a-priori bound with twice the radius in it, and the one from the biases."""
    model = build_market(covered_cohort(utility, KINDS[kind]))
    model.run()
    agents = model.agents_frame()
    assert set(agents["guarantee"]) == {"decision-swap"}
    assert (agents["decision_swap_regret"] <= agents["bound"]).all()
    assert (agents["decision_swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()


def test_the_bound_rises_by_twice_the_radius() -> None:
    """A cover by the losses themselves costs nothing; a coarser one its radius, twice."""
    bounds = []
    radii = []
    for cover in (None, {"kind": "cluster", "radius": 1e-9}, {"kind": "cluster", "radius": 0.4}):
        model = build_market(covered_cohort("linear", cover))
        model.run(20)
        bounds.append(model.guarantees[0].bound())  # type: ignore[misc]
        if cover:
            seated: Any = model.game.cohorts[0]
            served_loss = (seated.loss.offset, seated.loss.weights)
            served = seated.representative_of
            radii.append(radii_by_brute_force(served_loss, *seated.coefficients, served))
    assert radii[0].max() <= 1e-9
    assert 0.05 < radii[1].max() <= 0.4
    for first, other in itertools.combinations(range(len(served)), 2):
        if served[first] == served[other]:
            gap = 2 * (radii[1][first] - radii[1][other])
            assert bounds[2][first] - bounds[2][other] == pytest.approx(gap, abs=1e-9)
    # Programs end a little elsewhere: certificates and mixtures, which the bound counts, do too.
    assert bounds[1] == pytest.approx(bounds[0], rel=2e-3)
