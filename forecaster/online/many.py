r"""One forecast for the losses of each of many shops, learned round by round, in arrays.

    forecast = shops.predict_many(x)    before the round
    orders = shops.act_many("store", x)
    shops.learn_many(x, y)              after it; y (S,), NaN where an outcome is missing

It says what S separate ``OnlineOmnipredictor`` say, up to rounding. As long as a shop's models are
trusted, which most always are, their states are rows of arrays (``many_models``, ``many_games``).
A shop whose models are given up goes on with an ``OnlineOmnipredictor`` of its own, which takes
over all that was learned.

What is kept in arrays: losses of one outcome that are convex and piecewise linear, such as orders
of newsvendors, and the panel's models. Where losses or models are others, every shop has an
``OnlineOmnipredictor`` of its own from the first round on, and nothing is faster.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from regretless.forecaster.bases.convex import ReLUBasis
from regretless.forecaster.events.loss_events import GainEvents
from regretless.forecaster.models.aggregate import VARIATION_OFFSET
from regretless.forecaster.models.outcomes import lattice
from regretless.forecaster.models.pool import MIN_WEIGHT, ROUNDS_TO_TAKE_OVER
from regretless.forecaster.online import validation
from regretless.forecaster.online.inputs import Contexts
from regretless.forecaster.online.many_contexts import Context, ManyContexts
from regretless.forecaster.online.many_games import ManyGames
from regretless.forecaster.online.many_models import LearnedRounds, ManyModel, OpenRound, many_model
from regretless.forecaster.online.omnipredictor import MEASURES, OnlineOmnipredictor
from regretless.forecaster.online.outcome_distribution import ROUNDING, OnlineForecast
from regretless.market.core.arrays import Array, Indices, Integers, Mask
from regretless.market.core.compiled import compiled, over_rows
from regretless.market.core.errors import UserError, brief
from regretless.market.core.validation import check_int, check_name, check_probability
from regretless.market.losses import Convex1D, Loss
from regretless.market.records import Decision
from regretless.market.regret.ledger import Ledger

MAX_SHOPS = 1_000_000
COLUMNS_OF_SUMS = ("mean_loss", *(f"{one}_regret" for one in MEASURES), "bound", "best_model")
NO_POLICIES = np.zeros(0, dtype=np.intp)


@compiled(nogil=True)
def _write_statistics(
    outcomes: Array,
    weights: Array,
    starts: Integers,
    knots: Array,
    distances: Array,
    sizes: Integers,
    means: Array,
    first: int,
    last: int,
) -> None:
    """Write the means of s over distributions: of y, and of its distances from knots (compiled).

    Parameters
    ----------
    outcomes, weights : array (S, m)
        The distributions of all models, one after another.
    starts : int array (M + 1,)
        Where each begins.
    knots, distances : array (S, n - 1)
        Of each shop, ascending, and the greatest distances from them.
    sizes : int array (S,)
        How many statistics a shop has.
    means : array (S, M, n)
        Written, kept to [0, 1]; 0 beyond the shop's own.
    first, last : int
        Span of shops.
    """
    n_models = len(starts) - 1
    # of the outcomes between two knots: their weight, and the sum of weights times outcomes
    mass = np.empty(knots.shape[1] + 1)
    moment = np.empty(knots.shape[1] + 1)
    for s in range(first, last):
        n_knots = sizes[s] - 1
        for k in range(n_models):
            mass[:] = 0.0
            moment[:] = 0.0
            for j in range(starts[k], starts[k + 1]):
                if weights[s, j] == 0.0:
                    continue
                low = 0
                high = n_knots
                while low < high:
                    middle = (low + high) // 2
                    if knots[s, middle] <= outcomes[s, j]:
                        low = middle + 1
                    else:
                        high = middle
                mass[low] += weights[s, j]
                moment[low] += weights[s, j] * outcomes[s, j]
            total = mass.sum()
            total_moment = moment.sum()
            means[s, k, :] = 0.0
            means[s, k, 0] = min(max(total_moment, 0.0), 1.0)
            below = 0.0
            moment_below = 0.0
            for i in range(n_knots):
                below += mass[i]
                moment_below += moment[i]
                distance = knots[s, i] * below - moment_below
                distance += total_moment - moment_below - knots[s, i] * (total - below)
                means[s, k, 1 + i] = min(max(distance / distances[s, i], 0.0), 1.0)


@dataclass(frozen=True, eq=False)
class ManyForecasts:
    """What is broadcast to many shops before a round."""

    statistics: Array  # (S, n); those of a shop with fewer are filled up with 0
    outcomes: Array  # (S, m) of each shop's distribution, in its units
    weights: Array  # (S, m), their probabilities
    shops: "ManyOmnipredictors"
    alone: Mapping[int, OnlineForecast]  # of the shops that have an omnipredictor of their own

    def __repr__(self) -> str:
        return f"<ManyForecasts: {len(self.mean):,} shops, mean {self.mean.mean():.4g}>"

    @cached_property
    def mean(self) -> Array:
        """Mean outcome of each shop (S,)."""
        means = (self.weights * self.outcomes).sum(1)
        for shop, forecast in self.alone.items():
            means[shop] = forecast.mean
        return np.asarray(means)

    @cached_property
    def _distribution_functions(self) -> tuple[Array, Array]:
        order = np.argsort(self.outcomes, axis=1, kind="stable")
        ascending = np.take_along_axis(self.outcomes, order, axis=1)
        return ascending, np.cumsum(np.take_along_axis(self.weights, order, axis=1), axis=1)

    def quantile(self, q: float) -> Array:
        """Return the q-quantile of each shop's outcome (S,), q in (0, 1)."""
        level = check_probability("q", q)
        ascending, probability = self._distribution_functions
        places = (probability < level - ROUNDING).sum(1)
        places = np.minimum(places, ascending.shape[1] - 1)
        quantiles = ascending[np.arange(len(ascending)), places]
        for shop, forecast in self.alone.items():
            quantiles[shop] = forecast.quantile(level)
        return np.asarray(quantiles)

    def act(self, name: str) -> Array:
        """Return the best action of each shop's loss of this name (S,): its quantity or number."""
        indices = self.shops.best_actions(name, self.statistics)
        actions = self.shops.actions[name][np.arange(len(indices)), indices]
        for shop, forecast in self.alone.items():
            actions[shop] = forecast.act(name)
        return actions


class ManyOmnipredictors:
    """The forecasts of many shops, each for losses of its own.

    Parameters
    ----------
    losses : mapping of str to Loss
        By name a stack of losses, one for each shop, or a single one for all of them.
    scale : mapping of str to (low, high), optional
        As in ``OnlineOmnipredictor``; ``low`` and ``high`` are numbers, or arrays (S,).
    models : "panel" or mapping of str to model
        As in ``OnlineOmnipredictor``; descriptions only, as each shop has its own.
    shops : int, optional
        S, where no loss is a stack.
    seed : int
        Of the draws.

    Attributes
    ----------
    counts : dict of str to array (S,)
        Rounds ``learned``, ``missing`` and ``clipped``.
    given_up : array (S,)
        Which shops have an omnipredictor of their own.

    Examples
    --------
    >>> from regretless.agents.utilities import Newsvendor
    >>> orders = np.array([[100.0, 200.0], [10.0, 20.0]])
    >>> stores = Newsvendor(orders, underage=[4.0, 1.0], overage=[1.0, 4.0])
    >>> shops = ManyOmnipredictors({"store": stores}, scale={"sales": (0.0, [400.0, 40.0])})
    >>> for day in range(60):
    ...     shops.learn_many({"weekday": day % 7}, [150.0 + day % 7, 15.0])
    >>> shops.act_many("store", {"weekday": 5}).tolist()
    [200.0, 10.0]
    """

    def __init__(
        self,
        losses: Mapping[str, Loss],
        *,
        scale: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
        models: Any = "panel",
        shops: int | None = None,
        seed: int = 0,
    ) -> None:
        self.losses = validation.checked_table("losses", losses, "stacks of losses")
        self.models = _checked_models(models)
        self.seed = check_int("seed", seed, least=0)
        self.n_shops = _number_of_shops(self.losses, shops)
        self._scale = _scales(scale, self.n_shops)
        one_of_each = [self._new_omnipredictor(shop) for shop in range(self.n_shops)]
        first = one_of_each[0]
        self.names = first.names
        self.model_names = first._shared_models.made_of
        self._tasks = [one.tasks for one in one_of_each]
        self.actions: dict[str, Array] = {}  # (S, A): quantities or numbers, by loss
        for name in self.losses:
            self.actions[name] = np.array([list(tasks[name].actions) for tasks in self._tasks])
        self.counts = {
            name: np.zeros(self.n_shops, dtype=np.int64)
            for name in ("learned", "missing", "clipped")
        }
        self.given_up = np.zeros(self.n_shops, dtype=bool)
        self._own: dict[int, OnlineOmnipredictor] = {}
        self._ledgers: dict[str, Ledger] = {}  # of the shops that are in arrays
        self._bases = [one.basis for one in one_of_each]
        self._low = np.array([one.space.low[0] for one in one_of_each])
        self._side = np.array([one.space.high[0] - one.space.low[0] for one in one_of_each])
        self._many_models = self._models_in_arrays(first)
        if not self._many_models:
            self.given_up[:] = True
            self._own = dict(enumerate(one_of_each))
            return
        self._prepare_arrays(one_of_each)

    def _new_omnipredictor(self, shop: int) -> OnlineOmnipredictor:
        """Make a shop's own omnipredictor, which has learned nothing."""
        losses = {}
        for name, loss in self.losses.items():
            losses[name] = loss[shop] if loss.stack else loss
        return OnlineOmnipredictor(
            losses, scale=self._scale[shop], models=self.models, seed=self.seed
        )

    def _models_in_arrays(self, first: OnlineOmnipredictor) -> list[ManyModel]:
        """Make all models in arrays; none where a model, a basis or a loss has no such form."""
        for basis, tasks in zip(self._bases, self._tasks, strict=True):
            is_convex = all(isinstance(task.loss, Convex1D) for task in tasks.values())
            if type(basis) is not ReLUBasis or basis.outcomes != 1 or not is_convex:
                return []
        models = []
        for member in first._members.values():
            model = many_model(member, self.n_shops)
            if model is None:
                return []
            models.append(model)
        return models

    def _prepare_arrays(self, one_of_each: Sequence[OnlineOmnipredictor]) -> None:
        first = one_of_each[0]
        n_models = len(self.model_names)
        # The bases of all shops.
        self._sizes = np.array([basis.size for basis in self._bases])
        n_statistics = int(self._sizes.max())
        self._knots = np.ones((self.n_shops, n_statistics - 1))
        self._distances = np.ones((self.n_shops, n_statistics - 1))
        self._mean_of_lattice = np.zeros((self.n_shops, n_statistics))
        self._lattice = lattice(1)[:, 0]
        for shop, basis in enumerate(self._bases):
            assert isinstance(basis, ReLUBasis)  # noqa: S101 - or there were no models in arrays
            inner_knots = basis.knots[1:-1]
            self._knots[shop, : basis.size - 1] = inner_knots
            self._distances[shop, : basis.size - 1] = np.maximum(inner_knots, 1 - inner_knots)
            images = basis.transform(self._lattice[:, np.newaxis])
            self._mean_of_lattice[shop, : basis.size] = images.mean(0)
        # Losses over [0, 1], in groups with equal numbers of actions.
        self._unit_losses: dict[str, _UnitLosses] = {}
        for name in self.losses:
            losses_of_shops = [tasks[name].loss for tasks in self._tasks]
            self._unit_losses[name] = _UnitLosses.of(losses_of_shops)
        self._names_in_group = first._names_in_group
        groups = [one._groups for one in one_of_each]
        self._games = ManyGames(groups, n_statistics=n_statistics, models=n_models)
        # What was learned.
        self._rounds = LearnedRounds(self.n_shops)
        self._contexts = ManyContexts(self.n_shops)
        self._now = OpenRound(self._rounds, self._contexts)
        self._regret = np.zeros((self.n_shops, n_models))  # of ML-Poly's weights
        self._variation = np.zeros((self.n_shops, n_models))
        for name, unit_losses in self._unit_losses.items():
            n_actions = unit_losses.offset.shape[1]
            self._ledgers[name] = Ledger(self.n_shops, n_actions, measures=MEASURES)
        self._followed = np.zeros((self.n_shops, len(self.losses), n_models))
        # The open round: distributions of all models side by side, and their means.
        self._starts = np.cumsum([0, *(model.width for model in self._many_models)])
        self._outcomes = np.zeros((self.n_shops, self._starts[-1]))
        self._weights = np.zeros((self.n_shops, self._starts[-1]))
        self._points = np.zeros((self.n_shops, n_models, n_statistics))
        self._shares = np.zeros((self.n_shops, n_models))
        self._means = np.zeros((self.n_shops, n_statistics))
        self._statistics = np.zeros((self.n_shops, n_statistics))
        self._open_contexts: list[Context] | None = None

    # the verbs

    def predict_many(self, x: Mapping[str, Any] | None = None) -> ManyForecasts:
        """Forecast the outcomes of a context.

        ``x`` has by name a number or a date for all shops, or numbers (S,).
        """
        contexts = self._contexts_of(x)
        alone = {}
        for shop, omnipredictor in self._own.items():
            alone[shop] = omnipredictor.predict_one(contexts[shop])
        if self.given_up.all():
            nothing = np.zeros((self.n_shops, 1))
            return ManyForecasts(nothing, nothing, nothing, self, alone)
        self._ask(contexts)
        share_of_lattice = self._share_of_lattice()[:, np.newaxis]
        share_of_outcome = np.repeat(self._shares, np.diff(self._starts), axis=1)
        of_models = (1 - share_of_lattice) * share_of_outcome * self._weights
        n_even = len(self._lattice)
        of_lattice = np.broadcast_to(share_of_lattice / n_even, (self.n_shops, n_even))
        even = np.broadcast_to(self._lattice, (self.n_shops, n_even))
        outcomes = np.concatenate([self._outcomes, even], axis=1)
        return ManyForecasts(
            statistics=self._statistics.copy(),
            outcomes=self._low[:, np.newaxis] + self._side[:, np.newaxis] * outcomes,
            weights=np.concatenate([of_models, of_lattice], axis=1),
            shops=self,
            alone=alone,
        )

    def act_many(self, name: str, x: Mapping[str, Any] | None = None) -> Array:
        """Return the best action of each shop's loss of this name (S,) in a context."""
        check_name("loss", name, self.losses)
        contexts = self._contexts_of(x)
        indices = np.zeros(self.n_shops, dtype=np.intp)
        if not self.given_up.all():
            self._ask(contexts)
            indices = self.best_actions(name, self._statistics)
        actions = self.actions[name][np.arange(self.n_shops), indices]
        for shop, omnipredictor in self._own.items():
            actions[shop] = omnipredictor.predict_one(contexts[shop]).act(name)
        return actions

    def learn_many(self, x: Mapping[str, Any] | None, y: Any) -> None:
        """Learn the outcomes y (S,) of a context; NaN stands for one that is missing."""
        contexts = self._contexts_of(x)
        outcomes = self._checked_outcomes(y)
        is_known = np.isfinite(outcomes)
        for shop, omnipredictor in self._own.items():
            outcome = float(outcomes[shop]) if is_known[shop] else None
            omnipredictor.learn_one(contexts[shop], outcome)
        if self.given_up.all():
            self._count_own()
            return
        self._ask(contexts)
        is_learned = is_known & ~self.given_up
        is_missing = ~is_known & ~self.given_up
        scaled = (np.where(is_known, outcomes, self._low) - self._low) / self._side
        unit_outcomes = np.clip(scaled, 0.0, 1.0)
        is_clipped = is_learned & (unit_outcomes != scaled)
        if is_clipped.any() and not self.counts["clipped"].any():
            shop = int(is_clipped.argmax())
            fault = f"an outcome '{self.names[0]}' of shop {shop} lies beyond its scale"
            warnings.warn(f"{fault} and is clipped; widen scale", stacklevel=2)
        self.counts["clipped"] += is_clipped
        self.counts["learned"] += is_learned
        self.counts["missing"] += is_missing
        statistics = self._statistics_of(unit_outcomes)
        given_up = self._charge(unit_outcomes, statistics, is_learned)
        self._teach(unit_outcomes, statistics, is_learned=is_learned, is_missing=is_missing)
        self._open_contexts = None
        for shop in np.flatnonzero(given_up).tolist():
            self._own[shop] = self._own_omnipredictor(shop)
            self.given_up[shop] = True
        self._count_own()

    def omnipredictor(self, shop: int) -> OnlineOmnipredictor:
        """Return the omnipredictor of one shop, with all that it has learned.

        It can be saved, and goes on by itself; this object does not see what it learns, unless
        the shop's models were given up: then it is the shop's own.
        """
        index = check_int("shop", shop, least=0, below=self.n_shops)
        if index in self._own:
            return self._own[index]
        return self._own_omnipredictor(index, given_up=False)

    def regrets(self) -> pd.DataFrame:
        """Return how each loss of each shop has fared, per round that was learned, in its units.

        A row per shop and loss, with the columns of ``OnlineOmnipredictor.regrets`` that need no
        more than sums: ``mean_loss``, regrets, ``bound`` and ``best_model``. They are missing where
        a shop has learned nothing.
        """
        tables = []
        for name, ledger in self._ledgers.items():
            scale = self._unit_losses[name].unit_scale
            offset = self._unit_losses[name].unit_offset
            followed = self._followed[:, list(self.losses).index(name)]
            bias = ledger.bound_from_bias()
            assert bias is not None  # noqa: S101 - every round had an expectation
            errors = np.array([basis.error for basis in self._bases])
            columns: dict[str, Any] = {
                "shop": np.arange(self.n_shops),
                "loss": name,
                "rounds": self.counts["learned"],
                "mean_loss": offset + scale * ledger.mean_loss(),
            }
            for measure in MEASURES:
                columns[f"{measure}_regret"] = scale * np.asarray(ledger.regret(measure))
            columns["bound"] = scale * (bias + 2 * errors)
            columns["best_model"] = np.array(self.model_names)[followed.argmin(1)]
            table = pd.DataFrame(columns)
            table.loc[table["rounds"] == 0, list(COLUMNS_OF_SUMS)] = None
            if not self.given_up.all():
                tables.append(table[~self.given_up])
        rows_of_own = []
        for shop, omnipredictor in self._own.items():
            rows = omnipredictor.regrets().to_dict("records")
            rows_of_own += [{"shop": shop, **row} for row in rows]
        if rows_of_own:
            columns_of_own = ["shop", "loss", "rounds", *COLUMNS_OF_SUMS]
            tables.append(pd.DataFrame(rows_of_own, columns=columns_of_own))
        table_of_all = pd.concat(tables, ignore_index=True)
        return table_of_all.sort_values(["shop", "loss"], kind="stable", ignore_index=True)

    def __repr__(self) -> str:
        n_alone = int(self.given_up.sum())
        return f"<ManyOmnipredictors of {self.n_shops:,} shops, {n_alone:,} of them by themselves>"

    # contexts and outcomes

    def _contexts_of(self, x: Mapping[str, Any] | None) -> list[Context]:
        """Return the context of each shop (S,), in the order of the features' names."""
        if x is not None and not isinstance(x, Mapping):
            raise UserError(f"x = {brief(x)}: give numbers by name, for all shops or one for each")
        shared: dict[str, float] = {}
        columns: dict[str, Array] = {}
        values_by_name = validation.named_values(x)
        for name in sorted(values_by_name):
            value = values_by_name[name]
            if np.ndim(value) == 0:
                numbers = Contexts().numbers({name: value})
                if isinstance(value, str) and not numbers:
                    hint = "give a number or a date; number the words yourself"
                    raise UserError(f"'{name}' is {brief(value)}; {hint}")
                shared |= numbers
            else:
                columns[name] = self._column(f"x['{name}']", value)
        if not columns:
            return [shared] * self.n_shops
        contexts: list[Context] = []
        for shop in range(self.n_shops):
            context = dict(shared)
            for name, column in columns.items():
                if not np.isnan(column[shop]):
                    context[name] = float(column[shop])
            contexts.append(dict(sorted(context.items())))
        return contexts

    def _column(self, name: str, values: Any) -> Array:
        """Return numbers (S,); UserError if they are not as many, or one is infinite."""
        try:
            column = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise UserError(f"{name} = {brief(values)}: give {self.n_shops} numbers") from error
        if column.shape != (self.n_shops,):
            raise UserError(f"{name} has shape {column.shape}; give {self.n_shops} numbers")
        if np.isinf(column).any():
            raise UserError(f"{name} has an infinite number; give finite ones, NaN where missing")
        return column

    def _checked_outcomes(self, y: Any) -> Array:
        if isinstance(y, Mapping):
            if set(y) != set(self.names):
                raise UserError(f"y = {brief(y)}: give the outcomes of '{self.names[0]}'")
            y = y[self.names[0]]
        if isinstance(y, list | tuple):
            y = [np.nan if validation.is_missing(value) else value for value in y]
        outcomes = self._column("y", y)
        scaled = (outcomes - self._low) / self._side
        beyond = np.flatnonzero(np.abs(scaled) > 1)
        for shop in beyond:
            validation.check_not_absurd(scaled[[shop]], self.names, outcomes[[shop]])
        return outcomes

    # the open round

    def _share_of_lattice(self) -> Array:
        """Return how much of each shop's distribution is the lattice of all outcomes (S,)."""
        return np.maximum(1.0 - self._rounds.times / ROUNDS_TO_TAKE_OVER, 0.0)

    def _ask(self, contexts: list[Context]) -> None:
        """Open a round with these contexts: ask all models, unless it is open with them."""
        if self._open_contexts is not None and self._open_contexts == contexts:
            return
        self._contexts.open(contexts)
        for k, model in enumerate(self._many_models):
            of_model = slice(self._starts[k], self._starts[k + 1])
            model.write_distributions(
                self._now, self._outcomes[:, of_model], self._weights[:, of_model]
            )
        over_rows(
            _write_statistics,
            self.n_shops,
            self._outcomes,
            self._weights,
            self._starts,
            self._knots,
            self._distances,
            self._sizes,
            self._points,
        )
        # ML-Poly's weights (``models.aggregate``), without those of less than ``MIN_WEIGHT``
        shares = np.maximum(self._regret, 0.0) / (VARIATION_OFFSET + self._variation)
        total = shares.sum(1, keepdims=True)
        n_models = len(self._many_models)
        shares = np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1.0 / n_models)
        shares = np.where(shares < MIN_WEIGHT, 0.0, shares)
        self._shares = shares / shares.sum(1, keepdims=True)
        self._means = np.einsum("sm,smn->sn", self._shares, self._points)
        share_of_lattice = self._share_of_lattice()[:, np.newaxis]
        mixed = (1 - share_of_lattice) * self._means + share_of_lattice * self._mean_of_lattice
        self._statistics = np.clip(mixed, 0.0, 1.0)
        self._open_contexts = contexts

    def best_actions(self, name: str, statistics: Array) -> Indices:
        """Return the place of the best action of each shop (S,), by statistics (S, n)."""
        check_name("loss", name, self.losses)
        if self.given_up.all():
            return np.zeros(self.n_shops, dtype=np.intp)
        for names, losses in zip(self._names_in_group, self._games.losses, strict=True):
            if name in names:
                expected = losses.expected(statistics)
                return np.asarray(expected[:, names.index(name)].argmin(1))
        raise AssertionError(name)

    # learning

    def _statistics_of(self, unit_outcomes: Array) -> Array:
        """Return s(y) of each shop's outcome (S, n)."""
        statistics = np.zeros((self.n_shops, 1, self._statistics.shape[1]))
        over_rows(
            _write_statistics,
            self.n_shops,
            unit_outcomes[:, np.newaxis],
            np.ones((self.n_shops, 1)),
            np.array([0, 1]),
            self._knots,
            self._distances,
            self._sizes,
            statistics,
        )
        return statistics[:, 0]

    def _charge(self, unit_outcomes: Array, statistics: Array, is_learned: Mask) -> Mask:
        """Charge the round that is open; which shops give up their models (S,)."""
        every_shop = np.arange(self.n_shops)
        played = []
        suggested = []
        task_indices = {name: index for index, name in enumerate(self.losses)}
        for names, losses in zip(self._names_in_group, self._games.losses, strict=True):
            expected = losses.expected(self._statistics)
            of_models = losses.best_actions(self._points)
            played_of_group = expected.argmin(2)
            for k, name in enumerate(names):
                realised = self._unit_losses[name].at(unit_outcomes)
                choices = np.where(is_learned, played_of_group[:, k], -1)
                decision = Decision(
                    None,
                    choices,
                    predicted=np.ascontiguousarray(expected[:, k]),
                    present=is_learned,
                    choices=choices,
                )
                self._ledgers[name].add(decision, realised, NO_POLICIES)
                losses_of_models = realised[every_shop[:, np.newaxis], of_models[:, k]]
                self._followed[is_learned, task_indices[name]] += losses_of_models[is_learned]
            played.append(played_of_group)
            suggested.append(of_models)
        return self._games.charge(
            self._statistics,
            statistics,
            played=played,
            suggested=suggested,
            is_charged=is_learned,
        )

    def _teach(
        self, unit_outcomes: Array, statistics: Array, *, is_learned: Mask, is_missing: Mask
    ) -> None:
        """Teach the models the outcomes (S,), whose statistics are (S, n)."""
        errors = (self._means - statistics)[:, np.newaxis]
        gains = (errors * (self._means[:, np.newaxis] - self._points)).sum(2)
        gains /= self._sizes[:, np.newaxis]
        self._regret[is_learned] += gains[is_learned]
        self._variation[is_learned] += gains[is_learned] ** 2
        for model in self._many_models:
            model.skip(self._now, is_missing)
        self._contexts.learn(is_learned)
        for model in self._many_models:
            model.learn(self._now, unit_outcomes, is_learned)
        self._rounds.add(unit_outcomes, is_learned, self._contexts)

    def _count_own(self) -> None:
        """Take over the counts of shops that have an omnipredictor of their own."""
        for shop, omnipredictor in self._own.items():
            for name, counts in self.counts.items():
                counts[shop] = omnipredictor.counts[name]

    # a shop by itself

    def _own_omnipredictor(self, shop: int, *, given_up: bool = True) -> OnlineOmnipredictor:
        """Return an omnipredictor that has learned what a shop has; its models may be given up."""
        own = self._new_omnipredictor(shop)
        time = int(self._rounds.times[shop])
        own.counts |= {name: int(counts[shop]) for name, counts in self.counts.items()}
        own._brought = own.counts["learned"] + own.counts["missing"]
        if time:
            own._contexts.numbers(self._rounds.contexts[shop][-1], learn=True)
        for name, ledger in self._ledgers.items():
            own_ledger = own._ledgers[name]
            own_ledger.rounds = time
            for name_of_sum in ("count", "fixed", "surprise_fixed"):
                getattr(own_ledger, name_of_sum)[...] = getattr(ledger, name_of_sum)[[shop]]
        own._followed[...] = self._followed[shop]
        pool = own._shared_models
        pool.time = time
        pool._common._regret[:, 0] = self._regret[shop]
        pool._common._variation[:, 0] = self._variation[shop]
        for model, name in zip(self._many_models, self.model_names, strict=True):
            model.write_to(own._members[name], shop, self._now)
        slot = own._slots[0]
        slot.time = time
        assert isinstance(slot.events, GainEvents)  # noqa: S101 - those of every slot
        self._games.write_to(slot.events, shop)
        counts_of_rows = []
        for names in self._names_in_group:
            counts_of_rows += [self._ledgers[name].count[shop] for name in names]
        slot.events.views[0].occupancy[:] = np.concatenate(counts_of_rows)
        reference = slot.reference
        assert reference is not None  # noqa: S101 - every slot has one
        reference.time = time
        reference.unchanged_rounds = time
        reference.bets.wealth[0] = self._games.wealth[shop]
        if given_up:
            reference.disproved_at = time
        return own


@dataclass(frozen=True)
class _UnitLosses:
    """One loss of all shops, over [0, 1] and in [0, 1]; its form is that of ``Convex1D``."""

    offset: Array  # (S, A)
    slope: Array  # (S, A)
    kinks: Array  # (S, A, m)
    knots: Array  # (S, A, m)
    unit_scale: Array  # (S,)
    unit_offset: Array  # (S,)

    @classmethod
    def of(cls, losses: Sequence[Any]) -> "_UnitLosses":
        """Put single losses side by side."""
        shape = losses[0].offset.shape
        return cls(
            offset=np.array([loss.offset for loss in losses]),
            slope=np.array([np.broadcast_to(loss.slope, shape) for loss in losses]),
            kinks=np.array([loss.kinks for loss in losses]),
            knots=np.array([loss.knots for loss in losses]),
            unit_scale=np.array([float(loss.unit_scale) for loss in losses]),
            unit_offset=np.array([float(loss.unit_offset) for loss in losses]),
        )

    def at(self, outcomes: Array) -> Array:
        """Return every shop's losses (S, A) at its own outcome (S,)."""
        y = outcomes[:, np.newaxis]
        rises = self.kinks * np.maximum(y[:, :, np.newaxis] - self.knots, 0.0)
        return np.asarray(self.offset + self.slope * y + rises.sum(2))


def _checked_models(models: Any) -> Any:
    """Return descriptions of models; UserError for an object, which shops cannot share."""
    if isinstance(models, Mapping):
        for name, model in models.items():
            if not isinstance(model, str | Mapping):
                hint = "give a name or a table, of which each shop's own is made"
                raise UserError(f"models['{name}'] = {brief(model)}: {hint}")
    return models


def _number_of_shops(losses: Mapping[str, Loss], shops: int | None) -> int:
    """Return how many shops there are; UserError if the stacks do not agree."""
    for name, loss in losses.items():
        if not isinstance(loss, Loss) or len(loss.stack) > 1:
            raise UserError(f"losses['{name}'] is {brief(loss)}; give a loss, or a stack of them")
    sizes = {name: len(loss) for name, loss in losses.items() if loss.stack}
    if shops is not None:
        sizes["shops"] = check_int("shops", shops, least=1, below=MAX_SHOPS + 1)
    if not sizes:
        raise UserError("losses: none is a stack; give shops, how many there are")
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"'{name}' of {size}" for name, size in sizes.items())
        raise UserError(f"losses are of different numbers of shops: {listed}; give as many")
    return next(iter(sizes.values()))


def _scales(scale: Any, n_shops: int) -> list[dict[str, tuple[float, float]] | None]:
    """Return the scale of each shop (S,)."""
    if scale is None:
        return [None] * n_shops
    if not isinstance(scale, Mapping) or len(scale) != 1:
        raise UserError(f"scale = {brief(scale)}: give (low, high) by the name of the outcome")
    name, interval = next(iter(scale.items()))
    try:
        low, high = (np.broadcast_to(np.asarray(end, float), n_shops) for end in interval)
    except (TypeError, ValueError) as error:
        hint = f"give (low, high), numbers or {n_shops} numbers each"
        raise UserError(f"scale['{name}'] = {brief(interval)}: {hint}") from error
    return [{name: (float(low[s]), float(high[s]))} for s in range(n_shops)]
