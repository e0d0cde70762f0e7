r"""The paper's offline omnipredictor: the online forecaster's prediction functions, as a mixture.

The online forecaster is run over the rows in random order. In round t it is a function p_t from a
context to a mixture of predictions, where the context is the tuple of the policies' suggestions.
The offline predictor is the uniform mixture of the p_t of some rounds: their states are kept, and
each is solved once for each tuple (Lu, Roth, Shi, arXiv:2502.12564, online-to-batch reduction).

**Bound.** Let (x_1, y_1), ..., (x_T, y_T) be independent draws from one distribution and k(p) the
best response of a loss l with values in [0, 1]. For comparators c_a, one for each action a, let

    g_t(x, y) = E_{p ~ p_t(x)}[ l(k(p), y) - l(c_{k(p)}(x), y) ]   in [-1, 1].

*online*    e = max over assignments of (1/T) sum_t g_t(x_t, y_t), the decision swap regret of the
run, is measured with the true loss, so no error of a basis enters.

*sampling*  g_t(x_t, y_t) - E g_t(x, y) is a martingale difference within an interval of length 2.
By Azuma and Hoeffding, for K losses and N = (A + C)^A assignments at once, with probability
1 - kappa / 2, (1/T) sum_t E g_t <= e + sqrt(2 ln(2 K N / kappa) / T). Comparators are the A
constants and the C policies.

*kept*      The predictor mixes S <= T of the rounds, drawn uniformly without replacement. By
Hoeffding's bound in Serfling's form (1974), with probability 1 - kappa / 2, the mean over the kept
rounds exceeds that over all by at most sqrt(2 (1 - (S - 1) / T) ln(2 K N / kappa) / S), or 0 for
S = T.

*basis*     A loss that was not listed acts as the listed loss l' with the nearest linear form; with
r their distance on the cube, |l - l'| <= r + delta + delta', which costs twice that.

*net*       Continuous actions: policies into [0, 1]^m are rounded to the net, L theta.

Omniprediction regret has one comparator for all actions: N = A + C.

**Sample complexity** (docs/offline.md). Before the run e is at most what ``events.bounds`` has for
certificates within their tolerance; ``sample_size`` adds everything up, with all constants.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge

from regretless.forecaster.events.coordinate import VectorEvents
from regretless.forecaster.events.protected import ProtectedLosses
from regretless.forecaster.events.scalar import GainEvents
from regretless.forecaster.events.weights import rule_of
from regretless.forecaster.minimax.cube import cube
from regretless.forecaster.offline.certificate import BatchBound, Measure
from regretless.forecaster.offline.continuous_actions import radius
from regretless.forecaster.offline.tables import Listed, Rows
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import check_like
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis
from regretless.market.records import Decision, Mixture
from regretless.market.regret.ledger import Ledger
from regretless.market.response import best_response, expected_losses

CHUNK = 1024  # rows whose losses are computed at once
MOST_MEGABYTES = 2048.0
MOST_ROWS = 10**18
MEASURES = ("omniprediction", "decision_swap")
EVENTS = {"coordinates": VectorEvents, "losses": GainEvents}


def errors(  # noqa: PLR0913 - the numbers of the module docstring
    measure: Measure,
    *,
    losses: int,
    actions: int,
    policies: int,
    kappa: float,
    rounds: int,
    kept: int,
) -> tuple[float, float]:
    """Return what fresh examples, and the choice of kept rounds, add to the measured regret."""
    choices = actions if measure == "decision_swap" else 1
    logarithm = math.log(2 * losses / kappa) + choices * math.log(actions + policies)
    left = 0.0 if kept == rounds else 1 - (kept - 1) / rounds
    return math.sqrt(2 * logarithm / rounds), math.sqrt(2 * left * logarithm / kept)


def player_of(
    listed: Listed, kinds: tuple[str, str], *, rounds: int, policies: int
) -> UnbiasedPrediction:
    """Return the online forecaster of a run of so many rounds, before the first."""
    (events, weights), pairs = kinds, zip(listed.offsets, listed.weights, strict=True)
    rules = tuple(map(itemgetter, range(policies)))  # of the tuple of all suggestions
    groups = [ProtectedLosses(offset, own, rules) for offset, own in pairs]
    if events not in EVENTS:
        raise UserError(f"events = {events!r}: choose from {', '.join(EVENTS)}")
    try:
        made = EVENTS[events](groups, rule_of(weights, rounds))
        return UnbiasedPrediction(made, cube(listed.basis.size, listed.basis.hull))
    except ValueError as reason:
        raise UserError(str(reason)) from reason


class OnlineToBatch:
    """The uniform mixture of kept rounds' prediction functions.

    ``states`` of the online forecaster, a tree of arrays, are those before the rounds ``times``.
    ``online`` has the regret (K,) of the run per round, of each stack, by measure, ``bias`` the
    bound from its certificates, ``readout`` (1 + n, d) the linear reading of an outcome off s(y).
    UserError if the kept rounds do not fit into memory, or rows count unequally.
    """

    def __init__(self, estimator: Any, listed: Listed, rows: Rows) -> None:
        if not rows.exchangeable:
            raise UserError("base = 'none' knows no sample_weight and groups; use base='auto'")
        self.listed, (self.rounds, self.policies) = listed, rows.suggestions.shape
        self.kinds = estimator.events, estimator.weights
        player, rounds = self._fresh(), self.rounds
        kept = min(estimator.rounds_kept or math.ceil(10 * math.sqrt(rounds)), rounds)
        if (size := kept * _bytes(player.state()) / 2**20) > MOST_MEGABYTES:
            told = f"rounds_kept = {kept}: they take {size:,.0f} MiB"
            raise UserError(f"{told}; keep fewer, or use events='losses'")
        rng = stream(estimator.random_state or 0, "omniprediction")
        order = rng.permutation(rounds)
        times = np.sort(rng.choice(rounds, kept, replace=False))
        own: Any = {"policies": self.policies, "measures": MEASURES}
        ledgers = [Ledger(*offset.shape, **own) for offset in listed.offsets]
        self.times: list[int] = times.tolist()
        self.states: Any = _stacked(_played(player, listed, rows[order], ledgers, times))
        self.online: Any = [{name: own.regret(name) for name in MEASURES} for own in ledgers]
        self.bias, self.readout = player.bias_bound(), readout(listed.basis, rows.outcomes)
        self._wake()

    def _fresh(self) -> UnbiasedPrediction:
        return player_of(self.listed, self.kinds, rounds=self.rounds, policies=self.policies)

    def _wake(self) -> None:
        self._player = self._fresh()
        self._solved: dict[tuple[int, ...], Mixture] = {}
        check_like(_at(self.states, 0), self._player.state())

    def __getstate__(self) -> dict[str, Any]:
        return {name: own for name, own in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._wake()

    def at(self, suggestions: Sequence[int]) -> Mixture:
        """Return all kept rounds' mixtures as one, solved once for each tuple."""
        key = tuple(int(b) for b in suggestions)
        if key not in self._solved:
            solved = [self.in_round(i, key) for i in range(len(self.times))]
            points = np.concatenate([mixture.points for mixture in solved])
            mass = np.concatenate([mixture.weights for mixture in solved]) / len(solved)
            self._solved[key] = Mixture(points, mass)
        return self._solved[key]

    def in_round(self, index: int, suggestions: tuple[int, ...]) -> Mixture:
        """Solve a kept round for a tuple of suggestions."""
        self._player.restore(_at(self.states, index))
        return self._player.mixture(suggestions)

    def mixtures(self, seen: Rows) -> tuple[Indices, list[Mixture]]:
        """Return the prediction for each row: its place (m,) in a list of mixtures."""
        if not seen.suggestions.shape[1]:
            return np.zeros(len(seen), dtype=np.intp), [self.at(())]
        distinct, place = np.unique(seen.suggestions, axis=0, return_inverse=True)
        return place.ravel(), [self.at(row) for row in distinct]

    def mean(self, seen: Rows) -> Array:
        """Return the mean prediction (m, n) of s(y)."""
        place, mixtures = self.mixtures(seen)
        return np.array([mixture.mean for mixture in mixtures])[place]

    def play(self, loss: Loss, seen: Rows, *, gamma: float = 0.0) -> tuple[Array, Array]:
        """Return the mixed strategies (m, A) of a single loss and the losses (m,) it expects."""
        chosen, (place, mixtures) = self.listed.choose(loss, gamma), self.mixtures(seen)
        form = chosen.offset[None], chosen.weights[None]
        strategies = np.array([strategy(*form, mixture)[0] for mixture in mixtures])
        means = [m.weights @ (form[0] + m.points @ form[1][0].T).min(1) for m in mixtures]
        return strategies[place] / strategies.sum(1)[place, None], np.array(means)[place]

    def outcomes(self, seen: Rows) -> Array:
        """Forecast the outcome (m, d), in [0, 1]."""
        design = np.insert(self.mean(seen), 0, 1.0, axis=1)
        return np.asarray(np.clip(design @ self.readout, 0.0, 1.0))

    def theorem(
        self,
        place: tuple[int, int],
        measure: Measure,
        *,
        kappa: float,
        apart: float = 0.0,
        constant: float | None = None,
    ) -> BatchBound:
        """Bound the regret on fresh examples of a loss that plays as a listed one so far ``apart``.

        ``constant`` is its own in a continuous action, by default the greatest of those listed.
        """
        (stack, row), listed = place, self.listed
        sizes: Any = {"losses": len(listed.singles), "actions": listed.offsets[stack].shape[1]}
        sizes |= {"policies": self.policies, "rounds": self.rounds, "kept": len(self.times)}
        sampling, kept = errors(measure, kappa=kappa, **sizes)
        steepest = listed.steepest if constant is None else constant
        net = 0.0 if listed.net is None else steepest * radius(listed.net)
        return BatchBound(float(self.online[stack][measure][row]), sampling, kept, 2 * apart, net)

    def worst(self, kappa: float) -> float:
        """Bound the decision swap regret on fresh examples of all listed losses."""
        places = [(s, k) for s, own in enumerate(self.listed.offsets) for k in range(len(own))]
        return max(self.theorem(place, "decision_swap", kappa=kappa).total for place in places)

    def online_bound(self, place: tuple[int, int]) -> float:
        """Bound a listed loss's expected regret in the online run, from the run's certificates."""
        stack, row = place
        bound = self.bias.regret(self.listed.weights[stack], policies=self.policies)[row]
        return float(bound + 2 * self.listed.basis.certified_error(self.listed.stacks[stack]))


def _played(
    player: UnbiasedPrediction,
    listed: Listed,
    rows: Rows,
    ledgers: Sequence[Ledger],
    times: Indices,
) -> list[Any]:
    """Play all rounds and charge the ledgers; return the states before the kept ones."""
    states, nobody, kept = [], np.empty(0, dtype=np.intp), set(times.tolist())
    for t in range(len(rows.outcomes)):
        if t % CHUNK == 0:
            part = rows.outcomes[t : t + CHUNK]
            truths, values = listed.basis.transform(part), listed.values(part)
        if t in kept:
            states.append(player.state())
        suggestions = rows.suggestions[t]
        mixture = player.mixture(suggestions)
        forms = zip(ledgers, listed.offsets, listed.weights, values, strict=True)
        for ledger, offset, weights, table in forms:
            played = Decision(strategy(offset, weights, mixture), nobody)
            ledger.add(played, table[t % CHUNK], suggestions)
        player.update(truths[t % CHUNK])
    return states


def strategy(offset: Array, weights: Array, mixture: Mixture) -> Array:
    """Mixed strategies (K, A) of best responses to a mixture; offset (K, A), weights (K, A, n)."""
    found, every = np.zeros(offset.shape), np.arange(len(offset))
    for point, weight in zip(mixture.points, mixture.weights, strict=True):
        found[every, best_response(expected_losses(offset, weights, point))] += weight
    return found


def readout(basis: Basis, outcomes: Array) -> Array:
    """Regress outcomes (m, d) on a constant and their own s(y): coefficients (1 + n, d).

    By ridge regression (Hoerl and Kennard 1970) with the variance 1 / m of predictions' errors, as
    functions may be nearly collinear. The mean of s(y) is still mapped to the mean outcome.
    """
    table = basis.transform(outcomes)
    model = Ridge(alpha=1.0).fit(table, outcomes.reshape(len(outcomes), -1))
    weights = np.atleast_2d(model.coef_).T
    return np.vstack([outcomes.mean(0) - table.mean(0) @ weights, weights])


def sample_size(estimator: Any, listed: Listed, regret: float) -> int:
    """Return how many examples suffice for a decision swap regret in (0, 1); all rounds are kept.

    With probability 1 - kappa no listed loss regrets more on fresh examples, if the solver meets
    its tolerance. UserError if the error of the basis is larger.
    """
    if not 0 < regret < 1:
        raise UserError(f"regret = {regret!r}: give a number between 0 and 1")
    policies = len(estimator.policies)
    own: Any = {"losses": len(listed.singles), "policies": policies, "kappa": estimator.kappa}

    def most(rounds: int) -> float:
        kinds = estimator.events, estimator.weights
        player = player_of(listed, kinds, rounds=rounds, policies=policies)
        bias, totals = player.beforehand(rounds), []
        for stack, weights in zip(listed.stacks, listed.weights, strict=True):
            size = {"actions": weights.shape[1], "rounds": rounds, "kept": rounds}
            online = float(bias.regret(weights, policies=policies).max())
            sampling = errors("decision_swap", **own, **size)[0]
            totals.append(online + 2 * listed.basis.certified_error(stack) + sampling)
        return max(totals)

    low, high = 0, 1
    while most(high) > regret:
        low, high = high, 2 * high
        if high > MOST_ROWS:
            raise UserError(f"regret = {regret}: below the error of the basis; lower delta")
    return bisect_left(range(high), True, lo=low + 1, key=lambda rounds: most(rounds) <= regret)  # noqa: FBT003


def _bytes(tree: Any) -> int:
    return sum(map(_bytes, tree.values())) if isinstance(tree, dict) else np.asarray(tree).nbytes


def _stacked(states: Sequence[Any]) -> Any:
    """Put trees of the same shape side by side: arrays and numbers get a first axis."""
    first = states[0]
    if isinstance(first, dict):
        return {key: _stacked([state[key] for state in states]) for key in first}
    if isinstance(first, np.ndarray):
        return np.array(states)
    return first if all(state == first for state in states) else np.array(states)


def _at(tree: Any, index: int) -> Any:
    if isinstance(tree, dict):
        return {key: _at(part, index) for key, part in tree.items()}
    if not isinstance(tree, np.ndarray):
        return tree
    return tree[index] if tree.ndim > 1 else tree[index : index + 1].tolist()[0]
