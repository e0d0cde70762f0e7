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
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from regretless.forecaster.bases.convex import ReLUBasis
from regretless.forecaster.events.loss_events import GainEvents
from regretless.forecaster.online import censoring, saved, validation
from regretless.forecaster.online.inputs import Contexts, ReadContext
from regretless.forecaster.online.many_bases import ManyBases
from regretless.forecaster.online.many_contexts import Context, ManyContexts
from regretless.forecaster.online.many_games import ManyGames
from regretless.forecaster.online.many_mixtures import ManyMixtures
from regretless.forecaster.online.many_models import LearnedRounds, ManyModel, OpenRound, many_model
from regretless.forecaster.online.omnipredictor import (
    COUNTS,
    MEASURES,
    OnlineOmnipredictor,
    filled,
    plain_descriptions,
    read_loss,
    written_loss,
)
from regretless.forecaster.online.outcome_distribution import ROUNDING, OnlineForecast
from regretless.market.core import checkpoint
from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.errors import UserError, brief, closest
from regretless.market.core.validation import check_int, check_name, check_probability
from regretless.market.losses import Convex1D, Loss
from regretless.market.records import Decision, Ensemble
from regretless.market.regret.ledger import Ledger

MAX_SHOPS = 1_000_000
# what every shop may have as an omnipredictor has it, and what no array here does
OPTIONS = {
    *("forecasts", "policies", "actions", "quantiles", "quantile_steps", "steps_ahead"),
    "exploring",
}
OPTIONS_ONE_BY_ONE = ("forecasts", "policies", "quantiles", "exploring")
COLUMNS_OF_SUMS = (
    "mean_loss",
    *(f"{one}_regret" for one in MEASURES),
    *("bound", "guarantee", "best_model"),
)
NO_POLICIES = np.zeros(0, dtype=np.intp)


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

    @property
    def quantiles(self) -> dict[float, Array]:
        """The announced quantiles of each shop (S,) by level; empty without any."""
        levels = next(iter(self.alone.values())).quantiles if self.alone else {}
        by_level = {}
        for level in levels:
            values = [self.alone[shop].quantiles[level] for shop in range(len(self.mean))]
            by_level[level] = np.array(values)
        return by_level

    def loss(self, name: str) -> Array:
        """Return what each shop's loss expects of its best action (S,), in its own units."""
        losses = self.shops.expected_losses(name, self.statistics)
        for shop, forecast in self.alone.items():
            losses[shop] = forecast.loss(name)
        return losses

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
    **options
        ``forecasts``, ``policies``, ``actions``, ``quantiles``, ``quantile_steps``,
        ``steps_ahead`` and ``exploring`` of every shop, as in ``OnlineOmnipredictor``.

    Attributes
    ----------
    counts : dict of str to array (S,)
        Rounds ``learned``, ``missing``, ``clipped``, ``late``, ``forgotten`` and ``censored``.
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
        **options: Any,
    ) -> None:
        self.losses = validation.checked_table("losses", losses, "stacks of losses")
        self.models = _checked_models(models)
        self.seed = check_int("seed", seed, least=0)
        self.options = _checked_options(options)
        self.n_shops = _number_of_shops(self.losses, shops)
        self._scale = _scales(scale, self.n_shops)
        one_of_each = [self._new_omnipredictor(shop) for shop in range(self.n_shops)]
        first = one_of_each[0]
        for name in self.options:  # as plain values, which a file can hold
            self.options[name] = getattr(first, name)
        self.names = first.names
        self._columns_of_forecasts = {name for names in first.forecasts.values() for name in names}
        self.model_names = first._shared_models.made_of
        self._tasks = [one.tasks for one in one_of_each]
        self.actions: dict[str, Array] = {}  # (S, A): quantities or numbers, by loss
        for name in self.losses:
            self.actions[name] = np.array([list(tasks[name].actions) for tasks in self._tasks])
        self.counts = {name: np.zeros(self.n_shops, dtype=np.int64) for name in COUNTS}
        self.given_up = np.zeros(self.n_shops, dtype=bool)
        self._features = Contexts()  # the names that contexts had, which all shops share
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
            losses, scale=self._scale[shop], models=self.models, seed=self.seed, **self.options
        )

    def _models_in_arrays(self, first: OnlineOmnipredictor) -> list[ManyModel]:
        """Make all models in arrays.

        There are none where a model, a basis or a loss has no such form, or an option wants what
        arrays do not do.
        """
        is_one_by_one = any(getattr(first, name) for name in OPTIONS_ONE_BY_ONE)
        if is_one_by_one or first.steps_ahead > 1:
            return []
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
        bases = ManyBases(self._bases)
        self._many_bases = bases
        # Losses over [0, 1], in groups with equal numbers of actions.
        self._unit_losses: dict[str, _UnitLosses] = {}
        for name in self.losses:
            losses_of_shops = [tasks[name].loss for tasks in self._tasks]
            self._unit_losses[name] = _UnitLosses.of(losses_of_shops)
        self._names_in_group = first._names_in_group
        groups = [one._groups for one in one_of_each]
        self._games = ManyGames(groups, n_statistics=bases.n_statistics, models=n_models)
        # What was learned.
        self._censored_in_a_row = np.zeros(self.n_shops, dtype=np.int64)
        self._rounds = LearnedRounds(self.n_shops)
        self._contexts = ManyContexts(self.n_shops)
        self._now = OpenRound(self._rounds, self._contexts)
        for name, unit_losses in self._unit_losses.items():
            n_actions = unit_losses.offset.shape[1]
            self._ledgers[name] = Ledger(self.n_shops, n_actions, measures=MEASURES)
        self._followed = np.zeros((self.n_shops, len(self.losses), n_models))
        self._starts = np.cumsum([0, *(model.width for model in self._many_models)])
        self._mixtures = ManyMixtures(bases, self._starts)  # of the open round
        self._open_contexts: list[Context] | None = None

    # the verbs

    def predict_many(
        self, x: Mapping[str, Any] | None = None, *, key: Hashable = None
    ) -> ManyForecasts:
        """Forecast the outcomes of a context.

        ``x`` has by name a number or a date for all shops, or numbers (S,). ``key`` is what
        ``learn_late_many`` will give the outcomes under; once there is one, every shop has an
        omnipredictor of its own.
        """
        contexts = self._contexts_of(x)
        features = list(validation.named_values(x))
        if key is not None:
            validation.check_key(key)
            self._serve_one_by_one()
        self._ask_policies(contexts, self._own)
        alone = {}
        for shop, omnipredictor in self._own.items():
            context = ReadContext(contexts[shop], features)
            alone[shop] = omnipredictor.predict_one(context, key=key)
        if key is not None or self.options.get("steps_ahead", 1) > 1:
            self._features.learn_features(features)
        if self.given_up.all():
            nothing = np.zeros((self.n_shops, 1))
            return ManyForecasts(nothing, nothing, nothing, self, alone)
        self._ask(contexts)
        outcomes = self._low[:, np.newaxis] + self._side[:, np.newaxis] * self._mixtures.outcomes
        return ManyForecasts(
            statistics=self._mixtures.statistics.copy(),
            outcomes=outcomes,
            weights=self._mixtures.weights.copy(),
            shops=self,
            alone=alone,
        )

    def act_many(self, name: str, x: Mapping[str, Any] | None = None) -> Array:
        """Return the best action of each shop's loss of this name (S,) in a context."""
        check_name("loss", name, self.losses)
        contexts = self._contexts_of(x)
        features = list(validation.named_values(x))
        indices = np.zeros(self.n_shops, dtype=np.intp)
        if not self.given_up.all():
            self._ask(contexts)
            indices = self.best_actions(name, self._mixtures.statistics)
        actions = self.actions[name][np.arange(self.n_shops), indices]
        for shop, omnipredictor in self._own.items():
            context = ReadContext(contexts[shop], features)
            actions[shop] = omnipredictor.predict_one(context).act(name)
        return actions

    def learn_many(
        self, x: Mapping[str, Any] | None, y: Any, *, censored: ArrayLike = False
    ) -> None:
        """Learn the outcomes y (S,) of a context; NaN stands for one that is missing.

        ``censored``, for all shops or (S,), is true where an outcome is known to be at least y, as
        sales are when all is sold. Then nothing is guaranteed of the shop.
        """
        contexts = self._contexts_of(x)
        features = list(validation.named_values(x))
        outcomes = self._checked_outcomes(y)
        is_censored = self._checked_censored(censored)
        is_known = np.isfinite(outcomes)
        # A round that was forecast with steps_ahead has asked them already, of its own context.
        self._ask_policies(
            contexts,
            [
                shop
                for shop, own in self._own.items()
                if is_known[shop] and str(own._brought) not in own._planned
            ],
        )
        for shop, omnipredictor in self._own.items():
            outcome = float(outcomes[shop]) if is_known[shop] else None
            context = ReadContext(contexts[shop], features)
            omnipredictor.learn_one(context, outcome, censored=bool(is_censored[shop]))
        if is_known.any():
            self._features.learn_features(features)
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
        self._note_censoring(is_censored, is_learned)
        limits = np.where(is_censored, unit_outcomes, np.nan)
        for shop in np.flatnonzero(is_learned & is_censored).tolist():
            unit_outcomes[shop] = self._mean_beyond(shop, unit_outcomes[shop])
        statistics = self._many_bases.statistics_of(unit_outcomes)
        given_up = self._charge(unit_outcomes, statistics, is_learned)
        self._mixtures.learn(unit_outcomes, statistics, is_learned, limits=limits)
        self._teach(unit_outcomes, is_learned=is_learned, is_missing=is_missing)
        self._open_contexts = None
        for shop in np.flatnonzero(given_up).tolist():
            self._own[shop] = self._own_omnipredictor(shop)
            self.given_up[shop] = True
        self._count_own()

    def learn_late_many(
        self,
        key: Hashable,
        y: Any,
        *,
        censored: ArrayLike = False,
        shops: Sequence[int] | None = None,
    ) -> None:
        """Learn the outcomes of an earlier ``predict_many(x, key=...)``, in any order.

        ``y`` and ``censored`` are as in ``learn_many``; NaN closes a forecast as missing. ``shops``
        are the places of those whose outcomes have come, all of them by default; the entries of
        others are not read. UserError if no forecast of one of them waits under the key; then none
        is learned.
        """
        outcomes = self._checked_outcomes(y)
        is_censored = self._checked_censored(censored)
        waiting_key = validation.check_key(key)
        chosen = self._chosen_shops(shops)
        for shop in chosen:
            if shop not in self._own or not self._own[shop].waits_for(waiting_key):
                hint = "predict_many(x, key=...) opens one"
                raise UserError(f"no forecast of shop {shop} waits under {key!r}; {hint}")
        for shop in chosen:
            outcome = None if np.isnan(outcomes[shop]) else float(outcomes[shop])
            censored_one = bool(is_censored[shop])
            self._own[shop].learn_late(waiting_key, outcome, censored=censored_one)
        self._count_own()

    def coverage(self, *, by_value: bool = False) -> pd.DataFrame:
        """Return how many outcomes were at most the announced quantiles, beside what is promised.

        It is the table of ``OnlineOmnipredictor.coverage`` for every shop, with its number.
        """
        if not self.options.get("quantiles"):
            raise UserError("no quantiles are announced; give quantiles=[0.05, 0.95]")
        tables = []
        for shop, omnipredictor in sorted(self._own.items()):
            table = omnipredictor.coverage(by_value=by_value)
            table.insert(0, "shop", shop)
            tables.append(table)
        return pd.concat(tables, ignore_index=True)

    def omnipredictor(self, shop: int) -> OnlineOmnipredictor:
        """Return the omnipredictor of one shop, with all that it has learned.

        It goes on by itself; this object does not see what it learns, unless
        the shop's models were given up: then it is the shop's own.
        """
        index = check_int("shop", shop, least=0, below=self.n_shops)
        if index in self._own:
            return self._own[index]
        return self._own_omnipredictor(index, given_up=False)

    def regrets(self) -> pd.DataFrame:
        """Return how each loss of each shop has fared, per round that was learned, in its units.

        A row per shop and loss, with the columns of ``OnlineOmnipredictor.regrets`` that need no
        more than sums: ``mean_loss``, regrets, ``bound``, ``guarantee`` and ``best_model``. They
        are missing where a shop has learned nothing.
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
            is_covered = self.counts["censored"] == 0
            columns["bound"] = np.where(is_covered, scale * (bias + 2 * errors), np.nan)
            columns["guarantee"] = np.where(is_covered, "decision-swap", "none")
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

    # files

    def save(self, path: str | Path) -> None:
        """Write all shops to one file, whole or not at all, without pickle.

        UserError if a loss is code.
        """
        arguments: dict[str, Any] = {
            "losses": {name: written_loss(name, loss) for name, loss in self.losses.items()},
            "scale": self._written_scale(),
            "models": self.models,
            "shops": self.n_shops,
            "seed": self.seed,
            "options": dict(self.options),
        }
        policies = self.options.get("policies") or {}
        if policies:
            plain = {loss: plain_descriptions(rules) for loss, rules in policies.items()}
            arguments["options"]["policies"] = plain
        saved.write(path, arguments, self.state(), kind=saved.KIND_OF_MANY)

    def _written_scale(self) -> dict[str, Any] | None:
        """Return the scale of all shops as ``load`` reads it."""
        if self._scale[0] is None:
            return None
        name = next(iter(self._scale[0]))
        ends = np.array([scale[name] for scale in self._scale if scale is not None])
        return {"name": name, "low": ends[:, 0].copy(), "high": ends[:, 1].copy()}

    @classmethod
    def load(
        cls, path: str | Path, *, policies: Mapping[str, Mapping[str, Any]] | None = None
    ) -> Self:
        """Read what ``save`` wrote.

        ``policies`` are those that were functions, by loss and name. UserError if it is no such
        file, or one of them is wanted.
        """
        given_policies = validation.checked_policies(policies)
        arguments, state = saved.read(path, kind=saved.KIND_OF_MANY)
        try:
            losses = {name: read_loss(**rules) for name, rules in arguments["losses"].items()}
            scale = arguments["scale"]
            if scale is not None:
                scale = {scale["name"]: (scale["low"], scale["high"])}
            options = dict(arguments["options"])
            rules_of_file = options.get("policies") or {}
            for loss in {**rules_of_file, **given_policies}:
                rules = rules_of_file.get(loss, {})
                given_rules = given_policies.get(loss, {})
                where = f"policies['{loss}']"
                options["policies"] = options.get("policies", {}) | {
                    loss: filled(rules, given_rules, where)
                }
            shops = cls(
                losses,
                scale=scale,
                models=arguments["models"],
                shops=arguments["shops"],
                seed=arguments["seed"],
                **options,
            )
            shops._restore_checked(state)
        except UserError:
            raise
        except checkpoint.DAMAGED as error:
            raise saved.refused(path, error, kind=saved.KIND_OF_MANY) from error
        return shops

    def state(self) -> dict[str, Any]:
        """Return what was learned, as arrays and plain values."""
        own = {str(shop): one.state() for shop, one in sorted(self._own.items())}
        state: dict[str, Any] = {"counts": {}, "given_up": self.given_up.copy(), "own": own}
        state["features"] = self._features.state()
        for name, counts in self.counts.items():
            state["counts"][name] = counts.copy()
        state["arrays"] = None if self.given_up.all() else self._state_of_arrays()
        return state

    def _state_of_arrays(self) -> dict[str, Any]:
        models = {}
        for name, model in zip(self.model_names, self._many_models, strict=True):
            models[name] = model.state()
        return {
            "rounds": self._rounds.state(),
            "contexts": self._contexts.state(),
            "models": models,
            "mixtures": self._mixtures.state(),
            "games": self._games.state(),
            "ledgers": {name: ledger.state() for name, ledger in self._ledgers.items()},
            "followed": self._followed.copy(),
            "censored_in_a_row": self._censored_in_a_row.copy(),
        }

    def _restore_checked(self, state: dict[str, Any]) -> None:
        """Continue from a state of a file; ValueError if it has not the form of a new object's."""
        if state["arrays"] is None:
            self._serve_one_by_one()
        state.setdefault("features", self._features.state())  # which older files lack
        saved.check_state(state, self.state() | {"own": {}})
        for shop in state["own"]:
            own = self._new_omnipredictor(int(shop))
            saved.check_state(state["own"][shop], own.state())
            own.restore(state["own"][shop])
            self._own[int(shop)] = own
        self.given_up = state["given_up"]
        self.counts = dict(state["counts"])
        self._features.restore(state["features"])
        arrays = state["arrays"]
        if arrays is None:
            return
        self._rounds.restore(arrays["rounds"])
        self._contexts.restore(arrays["contexts"])
        for name, model in zip(self.model_names, self._many_models, strict=True):
            model.restore(arrays["models"][name])
        self._mixtures.restore(arrays["mixtures"])
        self._games.restore(arrays["games"])
        for name, ledger in self._ledgers.items():
            ledger.restore(arrays["ledgers"][name])
        self._followed = arrays["followed"]
        self._censored_in_a_row = arrays["censored_in_a_row"]
        self._open_contexts = None

    # contexts and outcomes

    def _contexts_of(self, x: Mapping[str, Any] | None) -> list[Context]:
        """Return the context of each shop (S,), in the order of the features' names.

        FeatureWarning, once for each name and all shops, where earlier contexts had other names.
        """
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
        for name in self._columns_of_forecasts:  # before any shop learns
            if name not in shared and name not in columns:
                raise UserError(f"no forecast '{name}' in the context; give numbers")
            if name in columns and np.isnan(columns[name]).any():
                shop = int(np.isnan(columns[name]).argmax())
                raise UserError(
                    f"no forecast '{name}' of shop {shop} in the context; give a number"
                )
        # To whoever called a public method, from which this one is called.
        self._features.compare_features(values_by_name, stacklevel=4)
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

    def _ask_policies(self, contexts: list[Context], shops: Iterable[int]) -> None:
        """Ask the rules of shops for an action, so that UserError comes before any shop learns."""
        if not self.options.get("policies"):
            return
        for shop in shops:
            for task in self._tasks[shop].values():
                for policy in task.policies:
                    policy(contexts[shop])

    def _checked_censored(self, censored: ArrayLike) -> Mask:
        """Return of which shops (S,) only a lower limit is known."""
        fault = f"censored = {brief(censored)}"
        hint = f"give True or False, for all shops or for each of {self.n_shops}"
        try:
            is_censored = np.asarray(censored)
        except ValueError as error:  # lists of different lengths
            raise UserError(f"{fault}: {hint}") from error
        if is_censored.dtype != bool or is_censored.shape not in {(), (self.n_shops,)}:
            raise UserError(f"{fault}: {hint}")
        return np.broadcast_to(is_censored, self.n_shops)

    def _chosen_shops(self, shops: Any) -> list[int]:
        """Return the places of shops, each once; all of them by default."""
        if shops is None:
            return list(range(self.n_shops))
        hint = "give a list of the places of shops, from 0, each once"
        if isinstance(shops, str | Mapping) or np.ndim(shops) != 1:
            raise UserError(f"shops = {brief(shops)}: {hint}")
        chosen = [check_int("shops", shop, least=0, below=self.n_shops) for shop in shops]
        if len(set(chosen)) < len(chosen):
            raise UserError(f"shops = {brief(shops)}: {hint}")
        return chosen

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

    def _ask(self, contexts: list[Context]) -> None:
        """Open a round with these contexts: ask all models, unless it is open with them."""
        if self._open_contexts is not None and self._open_contexts == contexts:
            return
        self._contexts.open(contexts)
        mixtures = self._mixtures
        for k, model in enumerate(self._many_models):
            of_model = slice(self._starts[k], self._starts[k + 1])
            model.write_distributions(
                self._now, mixtures.outcomes[:, of_model], mixtures.weights_of_models[:, of_model]
            )
        mixtures.mix(self._rounds.times)
        self._open_contexts = contexts

    def best_actions(self, name: str, statistics: Array) -> Indices:
        """Return the place of the best action of each shop (S,), by statistics (S, n).

        Of equally good actions it is the first. Those of shops by themselves are not looked at.
        """
        check_name("loss", name, self.losses)
        if self.given_up.all():
            return np.zeros(self.n_shops, dtype=np.intp)
        return np.asarray(self._expected(name, statistics).argmin(1))

    def expected_losses(self, name: str, statistics: Array) -> Array:
        """Return what the best action of each shop is expected to lose (S,), in its units.

        Those of shops by themselves are 0.
        """
        check_name("loss", name, self.losses)
        if self.given_up.all():
            return np.zeros(self.n_shops)
        least = self._expected(name, statistics).min(1)
        of_loss = self._unit_losses[name]
        return np.where(self.given_up, 0.0, of_loss.unit_offset + of_loss.unit_scale * least)

    def _expected(self, name: str, statistics: Array) -> Array:
        """Return what each action of a loss (S, A) is expected to lose, in [0, 1]."""
        for names, losses in zip(self._names_in_group, self._games.losses, strict=True):
            if name in names:
                return losses.expected(statistics)[:, names.index(name)]
        raise AssertionError(name)

    # learning

    def _charge(self, unit_outcomes: Array, statistics: Array, is_learned: Mask) -> Mask:
        """Charge the round that is open; which shops give up their models (S,)."""
        every_shop = np.arange(self.n_shops)
        played = []
        suggested = []
        task_indices = {name: index for index, name in enumerate(self.losses)}
        for names, losses in zip(self._names_in_group, self._games.losses, strict=True):
            expected = losses.expected(self._mixtures.statistics)
            of_models = losses.best_actions(self._mixtures.points)
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
            self._mixtures.statistics,
            statistics,
            played=played,
            suggested=suggested,
            is_charged=is_learned,
        )

    def _teach(self, unit_outcomes: Array, *, is_learned: Mask, is_missing: Mask) -> None:
        """Teach the models the outcomes (S,)."""
        for model in self._many_models:
            model.skip(self._now, is_missing)
        self._contexts.learn(is_learned)
        for model in self._many_models:
            model.learn(self._now, unit_outcomes, is_learned)
        self._rounds.add(unit_outcomes, is_learned, self._contexts)

    def _mean_beyond(self, shop: int, limit: float) -> float:
        """Return what is learned of a shop in place of an outcome in [0, 1] known to reach a limit.

        It is the mean of what was forecast beyond it (``online.censoring``).
        """
        outcomes = self._mixtures.outcomes[shop, :, np.newaxis]
        distribution = Ensemble(outcomes, self._mixtures.weights[shop])
        beyond = censoring.mean_beyond(np.array([limit]), np.array([True]), distribution)
        return float(beyond[0])

    def _note_censoring(self, is_censored: Mask, is_learned: Mask) -> None:
        """Count the outcomes that were censored; warn where the last ones of a shop all were."""
        self.counts["censored"] += is_learned & is_censored
        grown = np.where(is_censored, self._censored_in_a_row + 1, 0)
        self._censored_in_a_row = np.where(is_learned, grown, self._censored_in_a_row)
        is_sold_out = is_learned & (self._censored_in_a_row == censoring.SOLD_OUT_ROUNDS)
        if is_sold_out.any():
            shop = int(is_sold_out.argmax())
            line = f"shop {shop}: {censoring.sold_out_line()}"
            warnings.warn(line, censoring.CensoringWarning, stacklevel=3)

    def _serve_one_by_one(self) -> None:
        """Let every shop go on with an omnipredictor of its own."""
        for shop in np.flatnonzero(~self.given_up).tolist():
            self._own[shop] = self._own_omnipredictor(shop, given_up=False)
        self.given_up[:] = True

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
        own._censored_in_a_row = int(self._censored_in_a_row[shop])
        if time:
            own._contexts.learn_features(self._features.features)
        for name, ledger in self._ledgers.items():
            own_ledger = own._ledgers[name]
            own_ledger.rounds = time
            for name_of_sum in ("count", "fixed", "surprise_fixed"):
                getattr(own_ledger, name_of_sum)[...] = getattr(ledger, name_of_sum)[[shop]]
        own._followed[...] = self._followed[shop]
        pool = own._shared_models
        pool.time = time
        self._mixtures.write_to(pool, shop)
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


def _checked_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of every shop; UserError for one that there is not."""
    for name in options:
        if name not in OPTIONS:
            raise UserError(f"no option '{name}'; {closest(name, OPTIONS)}")
    return dict(options)


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
