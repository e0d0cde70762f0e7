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

*basis*     A loss that was not listed acts as the listed loss l' with the nearest linear form, if
their distance r on the cube is at most gamma; then |l - l'| <= r + delta + delta', which costs
twice that. Otherwise it plays the best response of its own form, and has no bound.

*net*       Continuous actions: policies into [0, 1]^m are rounded to the net, L theta.

Omniprediction regret has one comparator for all actions: N = A + C.

**Sample complexity** (docs/offline.md). Before the run e is at most what ``guarantees`` has for
certificates within their tolerance; ``sample_size`` adds everything up, with all constants.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from regretless.forecaster.events.cover import nearest
from regretless.forecaster.events.decision_events import VectorEvents
from regretless.forecaster.events.loss_events import GainEvents
from regretless.forecaster.events.loss_table import ProtectedLosses
from regretless.forecaster.minimax.cube import cube
from regretless.forecaster.offline.certificate import BatchBound, Measure
from regretless.forecaster.offline.continuous_actions import ContinuousLoss, radius
from regretless.forecaster.offline.tables import AnyLoss, Listed, Rows, same
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.forecaster.weights import rule_of
from regretless.market.best_response import best_response, expected_losses
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import check_like
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.core.validation import check_probability
from regretless.market.losses import Loss
from regretless.market.records import Decision, Mixture
from regretless.market.regret.ledger import Ledger

ROWS_AT_ONCE = 1024  # rows whose losses are computed at once
MAX_MEGABYTES = 2048.0
MAX_ROWS = 10**18
EQUAL_FORMS = 1e-12  # linear forms closer than this are equal
MEASURES = ("omniprediction", "decision_swap")
EVENTS = {"coordinates": VectorEvents, "losses": GainEvents}


def errors(
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
    # ln N: a comparator is chosen for every action, or one for all actions
    n_choices = actions if measure == "decision_swap" else 1
    log_assignments = n_choices * math.log(actions + policies)
    log_promises = math.log(2 * losses / kappa) + log_assignments  # ln(2 K N / kappa)
    sampling = math.sqrt(2 * log_promises / rounds)
    if kept == rounds:
        return sampling, 0.0
    share_left_out = 1 - (kept - 1) / rounds
    return sampling, math.sqrt(2 * share_left_out * log_promises / kept)


def make_player(
    protected: Listed, kinds: tuple[str, str], *, rounds: int, policies: int
) -> UnbiasedPrediction:
    """Make the online forecaster of a run of so many rounds, before the first.

    ``kinds`` are those of the events, as in ``EVENTS``, and of the weights.
    """
    kind_of_events, kind_of_weights = kinds
    # The context of a round is the tuple of all suggestions: policy c picks entry c of it.
    pick_suggestions = tuple(itemgetter(policy_index) for policy_index in range(policies))
    groups = []
    for offset, weights in protected.forms:
        groups.append(ProtectedLosses(offset, weights, pick_suggestions))
    try:
        rule = rule_of(kind_of_weights, rounds)
        events = EVENTS[kind_of_events](groups, rule)
        return UnbiasedPrediction(events, cube(protected.basis.size, protected.basis.hull))
    except ValueError as reason:
        raise UserError(str(reason)) from reason


class OnlineToBatch:
    """The uniform mixture of so many ``kept`` rounds' prediction functions.

    ``states`` of the online forecaster, a tree of arrays, are those before these rounds.
    ``online`` has the regret (K,) of the run per round, of each stack, by measure. UserError if the
    kept rounds do not fit into memory, or rows count unequally.
    """

    def __init__(self, estimator: Any, listed: Listed, rows: Rows) -> None:
        if not rows.exchangeable:
            raise UserError("base = 'none' knows no sample_weight and groups; use base='auto'")
        self.listed = listed  # the protected losses and their linear forms
        self.kinds = (estimator.events, estimator.weights)  # of the events and of their weights
        self.gamma = estimator.gamma  # a loss this near to a listed one acts as it does
        self.kappa = estimator.kappa  # probability that the bounds fail
        self.policies = len(estimator.policies)
        self.rounds = len(rows.outcomes)
        player = self._new_player()
        rounds = self.rounds
        # how many rounds' prediction functions are mixed
        self.kept = min(estimator.rounds_kept or math.ceil(10 * math.sqrt(rounds)), rounds)
        megabytes = self.kept * _bytes(player.state()) / 2**20
        if megabytes > MAX_MEGABYTES:
            fault = f"rounds_kept = {self.kept}: they take {megabytes:,.0f} MiB"
            raise UserError(f"{fault}; keep fewer, or use events='losses'")
        rng = stream(estimator.random_state or 0, "omniprediction")
        order = rng.permutation(rounds)
        times = np.sort(rng.choice(rounds, self.kept, replace=False))
        self._play_all(player, rows[order], times.tolist())
        self._prepare_to_solve()

    def _play_all(self, player: UnbiasedPrediction, rows: Rows, times: list[int]) -> None:
        """Play all rounds; keep their regret, and the states before some of them."""
        protected = self.listed
        states = []
        no_agents = np.empty(0, dtype=np.intp)
        ledgers = []
        for offset, _weights in protected.forms:
            n_losses, n_actions = offset.shape
            ledger_of_stack = Ledger(
                rows=n_losses, actions=n_actions, policies=self.policies, measures=MEASURES
            )
            ledgers.append(ledger_of_stack)
        kept_rounds = set(times)
        for t, suggestions in enumerate(self._suggestions(rows.seen)):
            row_of_chunk = t % ROWS_AT_ONCE
            if row_of_chunk == 0:
                outcomes = rows.outcomes[t : t + ROWS_AT_ONCE]
                statistics = protected.basis.transform(outcomes)
                losses = protected.values(outcomes)
            if t in kept_rounds:
                states.append(player.state())
            mixture = player.mixture(suggestions)
            for ledger, (offset, weights), losses_of_stack in zip(
                ledgers, protected.forms, losses, strict=True
            ):
                decision = Decision(strategy(offset, weights, mixture), no_agents)
                ledger.add(decision, losses_of_stack[row_of_chunk], suggestions)
            player.update(statistics[row_of_chunk])
        self.states: Any = _stacked(states)
        self.online: Any = []
        for ledger in ledgers:
            self.online.append({measure: ledger.regret(measure) for measure in MEASURES})

    def _new_player(self) -> UnbiasedPrediction:
        """Make the online forecaster as it was before the first round."""
        return make_player(self.listed, self.kinds, rounds=self.rounds, policies=self.policies)

    def _prepare_to_solve(self) -> None:
        """Make what is not saved: a forecaster that takes the kept states, and its solutions."""
        self._player = self._new_player()
        self._solved: dict[tuple[int, ...], Mixture] = {}
        check_like(_at(self.states, 0), self._player.state())

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._prepare_to_solve()

    def _suggestions(self, inputs: Array) -> Indices:
        return inputs[:, inputs.shape[1] - self.policies :].astype(np.intp)

    def at(self, suggestions: tuple[int, ...]) -> Mixture:
        """Return all kept rounds' mixtures as one, solved once for each tuple."""
        if suggestions not in self._solved:
            mixtures = [self.in_round(index, suggestions) for index in range(self.kept)]
            points = np.concatenate([mixture.points for mixture in mixtures])
            weights = np.concatenate([mixture.weights for mixture in mixtures]) / len(mixtures)
            self._solved[suggestions] = Mixture(points, weights)
        return self._solved[suggestions]

    def in_round(self, index: int, suggestions: tuple[int, ...]) -> Mixture:
        """Solve a kept round for a tuple of suggestions."""
        self._player.restore(_at(self.states, index))
        return self._player.mixture(suggestions)

    def mixtures(self, inputs: Array) -> tuple[Indices, list[Mixture]]:
        """Return a list of mixtures, and which of them (m,) each row is predicted by, first."""
        if not self.policies:
            return np.zeros(len(inputs), dtype=np.intp), [self.at(())]
        distinct, mixture_of_row = np.unique(self._suggestions(inputs), axis=0, return_inverse=True)
        return mixture_of_row.ravel(), [self.at(tuple(row)) for row in distinct.tolist()]

    def mean(self, inputs: Array) -> Array:
        """Return the mean prediction (m, n) of s(y)."""
        mixture_of_row, mixtures = self.mixtures(inputs)
        return np.array([mixture.mean for mixture in mixtures])[mixture_of_row]

    def play(self, loss: AnyLoss, inputs: Array) -> tuple[Array, Array]:
        """Return the mixed strategies (m, A) of a single loss and the losses (m,) it expects."""
        offset, weights, *_ = self._choice(self.listed.finite(loss))
        mixture_of_row, mixtures = self.mixtures(inputs)
        strategies_of_mixtures = []
        expected_losses_of_mixtures = []
        for mixture in mixtures:
            strategies_of_mixtures.append(strategy(offset[None], weights[None], mixture)[0])
            least_loss = (offset[None] + mixture.points @ weights.T).min(1)
            expected_losses_of_mixtures.append(mixture.weights @ least_loss)
        strategies = np.array(strategies_of_mixtures)
        probabilities = strategies[mixture_of_row] / strategies.sum(1)[mixture_of_row, None]
        return probabilities, np.array(expected_losses_of_mixtures)[mixture_of_row]

    def alternatives(
        self, loss: Loss, inputs: Array, names: Sequence[str] | None = None
    ) -> Indices:
        """Return no comparators (0, m) but constants and policies."""
        return np.empty((0, len(inputs)), dtype=np.intp)

    def _choice(self, loss: Loss) -> tuple[Array, Array, tuple[int, int] | None, float]:
        """Find out how a single loss plays; UserError if the basis does not span it.

        By the best response of a linear form (A,), (A, n); the stack and row of the listed loss
        that has it, None for its own; how far that loss is at most.
        """
        listed = self.listed
        try:
            offset, weights = listed.basis.coefficients(loss)
        except ValueError as reason:
            raise UserError(f"the fitted basis does not serve this loss: {reason}") from reason
        least_distance = np.inf
        stack = 0
        row = 0
        for index, (listed_offset, listed_weights) in enumerate(listed.forms):
            if listed_offset.shape[1] == loss.actions:
                cover = nearest(
                    offset[None],
                    weights[None],
                    kept_offset=listed_offset,
                    kept_weights=listed_weights,
                )
                if cover.radius[0] < least_distance:
                    least_distance = float(cover.radius[0])
                    stack = index
                    row = int(cover.representative_of[0])
        if least_distance > max(self.gamma, EQUAL_FORMS):
            return offset, weights, None, np.inf
        nearest_loss = listed.stacks[stack][row]
        distance = 0.0
        if not same(loss, nearest_loss):
            error_of_own = listed.basis.certified_error(loss.as_stack())
            error_of_nearest = listed.basis.certified_error(nearest_loss.as_stack())
            distance = least_distance + (error_of_own + error_of_nearest)
        listed_offset, listed_weights = listed.forms[stack]
        return listed_offset[row], listed_weights[row], (stack, row), distance

    def bound(self, loss: AnyLoss, measure: Measure) -> BatchBound | None:
        """Bound a loss's regret on fresh examples; None where it plays as no listed one."""
        *_, listed_place, distance = self._choice(self.listed.finite(loss))
        if listed_place is None:
            return None
        steepest = self.listed.steepest
        if isinstance(loss, ContinuousLoss):
            steepest = loss.constant
        return self._bound(listed_place, measure, distance=distance, steepest=steepest)

    def worst(self) -> float:
        """Bound the decision swap regret on fresh examples of all listed losses."""
        measure: Measure = "decision_swap"
        totals = []
        for stack, regrets in enumerate(self.online):
            worst_row = int(regrets[measure].argmax())
            bound = self._bound(
                (stack, worst_row), measure, distance=0.0, steepest=self.listed.steepest
            )
            totals.append(bound.total)
        return max(totals)

    def _bound(
        self, listed_place: tuple[int, int], measure: Measure, *, distance: float, steepest: float
    ) -> BatchBound:
        """Bound the regret of a loss that plays as a listed one: by its stack, and row in it."""
        stack, row = listed_place
        listed = self.listed
        sampling, choice_of_rounds = errors(
            measure,
            losses=len(listed.single_losses),
            actions=listed.stacks[stack].actions,
            policies=self.policies,
            kappa=self.kappa,
            rounds=self.rounds,
            kept=self.kept,
        )
        net = 0.0  # what policies lose when their points are rounded to the net of actions
        if listed.net is not None:
            net = steepest * radius(listed.net)
        online = float(self.online[stack][measure][row])
        # twice the distance: what is played and what it is compared with are both off by it
        return BatchBound(online, sampling, choice_of_rounds, 2 * distance, net)


def strategy(offset: Array, weights: Array, mixture: Mixture) -> Array:
    """Mixed strategies (K, A) of best responses to a mixture; offset (K, A), weights (K, A, n)."""
    strategies = np.zeros(offset.shape)
    loss_index = np.arange(len(offset))
    for point, probability in zip(mixture.points, mixture.weights, strict=True):
        actions = best_response(expected_losses(offset, weights, point))
        strategies[loss_index, actions] += probability  # of loss k its best action, actions[k]
    return strategies


def sample_size(estimator: Any, protected: Listed, regret: float) -> int:
    """Return how many examples suffice for a decision swap regret in (0, 1); all rounds are kept.

    With probability 1 - kappa no listed loss regrets more on fresh examples, if the solver meets
    its tolerance. UserError if the error of the basis is larger.
    """
    check_probability("regret", regret)
    policies = len(estimator.policies)
    kinds = (estimator.events, estimator.weights)

    def bound_after(rounds: int) -> float:
        player = make_player(protected, kinds, rounds=rounds, policies=policies)
        bound = player.beforehand(rounds)
        totals = []
        for stack, (_offset, weights) in zip(protected.stacks, protected.forms, strict=True):
            online = float(bound.a_priori(weights, policies=policies).max())
            sampling, _choice_of_rounds = errors(
                "decision_swap",
                losses=len(protected.single_losses),
                actions=stack.actions,
                policies=policies,
                kappa=estimator.kappa,
                rounds=rounds,
                kept=rounds,
            )
            totals.append(online + 2 * protected.basis.certified_error(stack) + sampling)
        return max(totals)

    low = 0
    high = 1
    while bound_after(high) > regret:
        low = high
        high = 2 * high
        if high > MAX_ROWS:
            raise UserError(f"regret = {regret}: below the error of the basis; lower delta")
    return bisect_left(
        range(high),
        True,  # noqa: FBT003
        lo=low + 1,
        key=lambda rounds: bound_after(rounds) <= regret,
    )


def _bytes(tree: Any) -> int:
    """Return the size of a tree of arrays."""
    return sum(map(_bytes, tree.values())) if isinstance(tree, dict) else np.asarray(tree).nbytes


def _stacked(states: Sequence[Any]) -> Any:
    """Put trees of the same shape side by side: arrays and numbers get a first axis."""
    first_state = states[0]
    if isinstance(first_state, dict):
        return {key: _stacked([state[key] for state in states]) for key in first_state}
    if isinstance(first_state, np.ndarray):
        return np.array(states)
    if all(state == first_state for state in states):
        return first_state
    return np.array(states)


def _at(tree: Any, index: int) -> Any:
    """Return one of the trees that ``_stacked`` put side by side."""
    if isinstance(tree, dict):
        return {key: _at(part, index) for key, part in tree.items()}
    if not isinstance(tree, np.ndarray):
        return tree
    return tree[index] if tree.ndim > 1 else tree[index : index + 1].tolist()[0]
