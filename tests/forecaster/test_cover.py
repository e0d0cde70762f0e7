"""Many losses served through few: distances are exact, and so is what the cover costs."""

import itertools
from typing import Any

import numpy as np
import pytest
import worlds

from regretless import MarketModel
from regretless.forecaster.events.cover import clustered, distance, paper_gamma, snapped
from regretless.forecaster.events.loss_table import responses_at
from regretless.market.core.arrays import Array
from regretless.market.game.round import play_round

Table = tuple[Array, Array]

SMALLEST = 1e-12


def table(seed: int, losses: int = 60, actions: int = 3, size: int = 4) -> Table:
    """Draw coefficients of both signs; some losses are alike, two are equal, one is 0."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(6, actions, size + 1))
    drawn = centres[rng.integers(6, size=losses)] + 0.05 * rng.normal(
        size=(losses, actions, size + 1)
    )
    drawn[1], drawn[2] = drawn[0], 0.0
    return np.ascontiguousarray(drawn[..., 0]), np.ascontiguousarray(drawn[..., 1:])


def by_force(offset: Array, weights: Array) -> Array:
    """Greatest |offset + weights @ s| over the corners s of the box, one loss at a time."""
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=weights.shape[-1])))
    values = offset[..., None] + weights @ corners.T
    return np.asarray(np.abs(values).max((-1, -2)))


def gaps(own: Table, offset: Array, weights: Array, cover: Any) -> Table:
    served = cover.representative_of
    return own[0] - offset[served], own[1] - weights[served]


COVERS: dict[str, Any] = {
    "snap coarse": lambda own: snapped(*own, gamma=0.8),
    "snap": lambda own: snapped(*own, gamma=0.1),
    "snap fine": lambda own: snapped(*own, gamma=1e-6),
    "cluster by radius": lambda own: clustered(*own, radius=0.5),
    "cluster by count": lambda own: clustered(*own, count=5),
    "one for all": lambda own: clustered(*own, count=1),
    "everybody": lambda own: clustered(*own),
}


@pytest.mark.parametrize("name", COVERS)
def test_every_loss_is_within_its_radius(name: str) -> None:
    """The radius is exactly the distance to the representative; all representatives serve."""
    own = table(0)
    cover = COVERS[name](own)
    assert cover.radius == pytest.approx(
        by_force(*gaps(own, cover.offset, cover.weights, cover)), abs=1e-9
    )
    assert cover.representative_of.shape == cover.radius.shape == (60,)
    assert sorted(set(cover.representative_of.tolist())) == list(range(len(cover.offset)))
    assert cover.weights.shape == (len(cover.offset), 3, 4)
    assert cover.offset.flags.c_contiguous
    assert cover.weights.flags.c_contiguous
    assert cover.representative_of[0] == cover.representative_of[1]  # equal losses


@pytest.mark.parametrize("gamma", [1.0, 0.3, 0.01, 1e-7])
def test_snapping_rounds_every_coefficient_to_the_nearest_multiple(gamma: float) -> None:
    """Each is off by at most gamma / 2, so the radius is at most (n + 1) gamma / 2."""
    own = table(1)
    cover = snapped(*own, gamma=gamma)
    for kept in (cover.offset, cover.weights):
        assert kept / gamma == pytest.approx(np.round(kept / gamma), abs=1e-6)
    for gap in gaps(own, cover.offset, cover.weights, cover):
        assert np.abs(gap).max() <= gamma / 2 * (1 + 1e-6)
    assert cover.radius.max() <= 5 * gamma / 2 * (1 + 1e-6)
    most = np.abs(own[1]).sum(-1).max() + 4 * gamma / 2
    assert np.abs(cover.weights).sum(-1).max() <= most * (1 + 1e-9)
    assert [paper_gamma(3, 10_000), paper_gamma(1, 1)] == pytest.approx([1 / 600, 0.5])
    with pytest.raises(ValueError, match="gamma must be positive"):
        snapped(*own, gamma=-gamma)


@pytest.mark.parametrize("radius", [0.0, 0.2, 0.6, 2.0])
def test_clusters_are_as_tight_as_was_wished_and_apart(radius: float) -> None:
    """No member is further than the wish; representatives are members further apart than it."""
    offset, weights = own = table(5)
    cover = clustered(*own, radius=radius)
    assert cover.radius.max() <= radius
    members = {row.tobytes() for row in offset}
    assert {row.tobytes() for row in cover.offset} <= members
    pairs = distance(cover.offset[:, None] - cover.offset, cover.weights[:, None] - cover.weights)
    assert (pairs[~np.eye(len(pairs), dtype=bool)] > radius).all()
    every = distance(offset[:, None] - cover.offset, weights[:, None] - cover.weights)
    assert cover.radius == pytest.approx(every.min(1), abs=SMALLEST)  # the nearest one serves
    assert np.array_equal(cover.representative_of, every.argmin(1))
    for wrong in ({"radius": -0.1}, {"count": 0}):
        with pytest.raises(ValueError, match="radius must be at least 0 and count at least 1"):
            clustered(*own, **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("size", "scale"), [(1, 1e9), (3, 1e-6), (40, 1.0)])
def test_the_farthest_joins_next(size: int, scale: float) -> None:
    """Every loss is compared with every representative, as the definition has it.

    So the greatest radius is at most twice the least that as many members allow (Gonzalez 1985).
    """
    offset, weights = (scale * part for part in table(3, losses=1300, size=size))
    near, served, chosen = np.full(1300, np.inf), np.zeros(1300, int), [0]
    for place in range(60):
        apart = distance(offset - offset[chosen[place]], weights - weights[chosen[place]])
        served, near = np.where(apart < near, place, served), np.minimum(apart, near)
        chosen.append(int(near.argmax()))
    cover = clustered(offset, weights, count=60)
    assert (cover.offset == offset[chosen[:60]]).all()
    assert (cover.representative_of == served).all()
    assert cover.radius == pytest.approx(near, rel=1e-12, abs=1e-14 * scale)


ROUNDS = 300


def market(cohorts: list[dict[str, Any]], **keys: Any) -> MarketModel:
    """Build a market of two goods against the breaker."""
    adversary = {"kind": "anti-forecast", "outcomes": 2, "strength": 0.7}
    given = {"rounds": ROUNDS, "seed": 4, "adversary": adversary} | keys
    return worlds.scenario(*cohorts, **given).build(log_every=ROUNDS)


def cohort(utility: str, cover: dict[str, Any] | None, **keys: Any) -> dict[str, Any]:
    own = {"parameters": PARAMETERS.get(utility, {})} | ({"cover": cover} if cover else {})
    return worlds.cohort(utility, 12, 3, utility, **own) | keys


PARAMETERS = {"ces": {"rho": {"choices": [0.4, 0.8]}}, "cara": {"risk_aversion": [1.0, 3.0]}}
KINDS: dict[str, dict[str, Any]] = {
    "paper": {"kind": "snap"},
    "snap": {"kind": "snap", "gamma": 0.2},
    "radius": {"kind": "cluster", "radius": 0.3},
    "count": {"kind": "cluster", "count": 3},
}


def test_the_forecaster_knows_every_action_in_every_round() -> None:
    """Covered or not, alone in a block or among others; reduced, exact and mixed bases."""
    model = market(
        [
            cohort("linear", KINDS["snap"]),
            cohort("linear", None, name="plain"),
            cohort("linear", KINDS["count"], name="few"),
            cohort("cobb-douglas", KINDS["radius"]),
            cohort("cobb-douglas", None, name="exact", basis={"kind": "exact"}),
            cohort("cara", KINDS["paper"], basis={"kind": "reduced"}),
        ]
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
            own, left[seated.block] = left[seated.block][:count], left[seated.block][count:]
            if seated.representative_of is not None:
                own = np.array(own)[seated.representative_of]
            assert (decision.actions == np.array(own)[seated.row_of]).all()
            assert (decision.probabilities.argmax(1) == own).all()


def radii_of(seated: Any) -> Array:
    """Return how far linear losses are from their representatives."""
    own = seated.loss.offset, seated.loss.weights
    return by_force(*gaps(own, *seated.coefficients, seated))


UTILITIES = ["linear", "ces", "cobb-douglas", "cara"]


@pytest.mark.parametrize(("kind", "utility"), [*zip(KINDS, UTILITIES, strict=True)])
def test_the_bound_of_a_covered_cohort_holds(kind: str, utility: str) -> None:
    """The a-priori bound with twice the radius in it, and the one from the biases."""
    model = market([cohort(utility, KINDS[kind])])
    model.run()
    agents = model.agents_frame()
    assert set(agents["guarantee"]) == {"decision-swap"}
    assert (agents["decision_swap_regret"] <= agents["bound"]).all()
    assert (agents["decision_swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()


def test_the_bound_rises_by_twice_the_radius() -> None:
    """A cover by the losses themselves costs nothing; a coarser one its radius, twice."""
    bounds, radii = [], []
    for radius in (1e-9, 0.4):
        model = market([cohort("linear", {"kind": "cluster", "radius": radius})])
        seated: Any = model.game.cohorts[0]
        radii.append(radii_of(seated))
        model.run(20)
        bounds.append(model.guarantees[0].bound())  # type: ignore[misc]
    assert radii[0].max() <= 1e-9
    assert 0.05 < radii[1].max() <= 0.4
    for one, other in itertools.combinations(range(len(seated.representative_of)), 2):
        if seated.representative_of[one] == seated.representative_of[other]:
            gap = 2 * (radii[1][one] - radii[1][other])
            assert bounds[1][one] - bounds[1][other] == pytest.approx(gap, abs=1e-9)
    plain = market([cohort("linear", None)])
    plain.run(20)
    # Programs end a little elsewhere: certificates and mixtures, which the bound counts, do too.
    assert bounds[0] == pytest.approx(plain.guarantees[0].bound(), rel=2e-3)  # type: ignore[misc]
