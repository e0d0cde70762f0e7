r"""A forecaster that runs on one's own data, round by round, with the verbs of River.

    forecast = o.predict_one(x)     before the round
    o.learn_one(x, y)               after it; y is None where the outcome is missing
    o.learn_late(key, y)            for predict_one(x, key=...), whenever the outcome comes, in any
                                    order
    o.learn_one(x, y, censored=True)    the outcome is known to be at least y (``online.censoring``)

Losses and outcomes are in the user's units: ``scale`` says which values of an outcome become 0 and
1, and losses are functions of the outcome as it is measured. Inside, it is unbiased prediction
(``forecaster.unbiased``) on the losses' scalar events, with models for its reference: nobody who
acts on the forecast regrets much, neither a swap of actions nor not to have followed a model.

**A distribution first.** Every model forecasts a distribution of the outcome; the reference is
their mixture D, with one weight each (``models.pool``), and what is broadcast are the means of s
over D. So quantiles and actions agree: where the losses are exactly linear in s, ``act`` takes the
best action under the distribution that the forecast shows. Once the models are corrected,
predictions stay in conv s(Y), and D is reweighted until it has them (``outcome_distribution``).

The **bound** on a swap regret is read off the run itself: what the loss expected when it chose and
the realised outcomes differ by as much as the forecast is biased on the rounds of each action, and
no swap can gain more than these biases and twice the error of the basis
(``market.regret.ledger``). It holds for outcomes of any kind, late and missing ones included:
of rounds that were learned.

**Open forecasts.** A forecast whose outcome has not come is open. It keeps its context, what it
said, and what the models and its game need to learn the outcome as if nothing had happened since.
It takes the lowest free slot (``online.slots``): each slot has a game and a switch test of its own,
and what the theorem promises is the sum over the slots. The models are shared, and a forecast is
made of every outcome that is known.

**Steps ahead.** The outcomes that ``learn_one`` brings are counted 0, 1, 2, ..., missing ones
included. After n of them ``predict_one`` without a key forecasts outcome n + h - 1, h being
``steps_ahead``: with h = 1 the next one, as without the parameter. The context is that of the
outcome that is forecast, in ``predict_one`` and in ``learn_one``. With h > 1 an outcome is charged
to the last forecast that was asked for it. One for which nobody asked is forecast when it comes, by
models that are taught h - 1 outcomes late until the next ``predict_one``, so that they learn what
it takes to forecast h steps ahead.
"""

import inspect
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypedDict

import numpy as np
import pandas as pd

from regretless.forecaster.bases.indicators import WithIndicators
from regretless.forecaster.bases.polynomial import LinearBasis
from regretless.forecaster.coverage import AnnouncedQuantiles, CoverageRecord
from regretless.forecaster.events.coverage_events import deviation_of_draws
from regretless.forecaster.events.loss_table import ProtectedLosses
from regretless.forecaster.events.quantile_grid import (
    DEFAULT_STEPS,
    MAX_STEPS,
    QuantileGrid,
    checked_levels,
)
from regretless.forecaster.guarantees.draws import swap_draws
from regretless.forecaster.models import WithErrors, adapted
from regretless.forecaster.models.aggregate import PANEL_OF_DISTRIBUTIONS
from regretless.forecaster.models.base import Features
from regretless.forecaster.models.outcomes import ColumnForecast, DistributionModel
from regretless.forecaster.models.pool import DistributionPool
from regretless.forecaster.online import censoring, saved, validation
from regretless.forecaster.online.inputs import Contexts, Inputs, errors_about, maker_of, policy_of
from regretless.forecaster.online.outcome_distribution import OnlineForecast, Task
from regretless.forecaster.online.serving_basis import serving_basis, support_of
from regretless.forecaster.online.slots import MAX_SLOTS, Slot, serving_solver
from regretless.forecaster.unbiased import protected_groups
from regretless.market import losses as forms
from regretless.market import register
from regretless.market.best_response import best_response
from regretless.market.core import checkpoint
from regretless.market.core.arrays import Array, Mask
from regretless.market.core.checkpoint import Checkpointable, remembers
from regretless.market.core.errors import UserError, brief, closest
from regretless.market.core.randomness import stream
from regretless.market.core.validation import check_int, check_range, check_whole
from regretless.market.losses import Convex1D, Loss
from regretless.market.losses.outcome_spaces import Box
from regretless.market.records import Decision, Ensemble, Forecast, RoundFeedback
from regretless.market.regret.ledger import Ledger

MAX_WAITING = 10_000  # forecasts whose outcomes may come late
MAX_STEPS_AHEAD = 1_000
COUNTS = ("learned", "missing", "clipped", "late", "forgotten", "censored")
MEASURES = ("external", "swap", "decision_swap")
NOT_NEEDED = "the file needs none of this name; leave it out"


class OpenForecast(TypedDict):
    """A forecast whose outcome is not learned yet, in arrays and plain values."""

    number: int  # rounds before it that are learned or open; missing ones do not count
    slot: int
    context: dict[str, float]  # in the user's units
    statistics: Array  # (n,), as they were broadcast
    points: Array  # (M, n), what the models predicted
    models: Any  # what they need to learn the outcome (``DistributionPool.opened``)
    game: dict[str, Any]  # that of its slot
    outcome: Array | None  # (d,) of the unit cube, once it is known; the models are taught later
    limits: (
        Array | None
    )  # (d,) what it is known to exceed, if it is an estimate (``online.censoring``)
    exploring: dict[str, int]  # the order of each loss in a round that explores; empty in others


class Peek(NamedTuple):
    """The last forecast that was made, as long as nothing has changed since."""

    context: dict[str, float]
    lead: int  # rounds between the last outcome that is known and the one that is forecast
    forecast: OpenForecast


class OnlineOmnipredictor(Checkpointable):
    """One forecast for many losses, learned round by round.

    Parameters
    ----------
    losses : mapping of str to Loss
        Single losses, functions of the outcome in its own units.
    scale : mapping of str to (float, float), optional
        By the name of each outcome what becomes 0 and 1; a pair alone is that of one outcome,
        ``y``. Without it orders of a newsvendor above 1 say it, from 0 to the largest; else
        outcomes are in [0, 1], called ``y``, or ``y_0`` and so on. Values beyond are clipped,
        counted and warned of once; what lies 1,000 scales away is refused.
    models : "panel" or mapping of str to model
        Models of the outcome by name: the name of a registered one, a table ``{"kind": ..., ...}``
        of one with its parameters, or an untrained object of River's, sktime's, statsforecast's or
        scikit-learn's kind. One that is no distribution carries its past errors (``WithErrors``).
        "panel" are the ten of ``models.aggregate.PANEL_OF_DISTRIBUTIONS``.
    forecasts : mapping of str to str or sequence of str, optional
        Forecasts of the user's own, which become models: by name the columns of the context that
        hold them, one for each outcome, in its units.
    policies : mapping of str to mapping, optional
        By the name of a loss, rules that its owner could have followed, by name: functions from the
        numbers of a context to an action's own name or quantity, or tables ``{"kind": "steps",
        ...}`` of registered ones, in which actions are places from 0.
    actions : mapping of str to sequence, optional
        What the actions of a loss are called. By default orders of a newsvendor are quantities,
        and other actions have numbers from 0.
    quantiles : sequence of float
        Levels whose quantiles every forecast announces, such as ``[0.05, 0.95]``, with a promise on
        how many outcomes lie below them: ``forecast.quantiles`` and ``coverage``.
    quantile_steps : int
        Steps of the grid of values that an announced quantile has, from end to end of the scale of
        each outcome.
    steps_ahead : int
        h, at least 1: after n outcomes ``predict_one`` forecasts outcome n + h - 1, counted from 0.
    exploring : float
        The share of rounds, drawn at random, in which ``act`` returns an order that probably is
        not sold out, so that demand is seen: where outcomes are ``censored``.
    seed : int
        Of the draws.

    Attributes
    ----------
    counts : dict of str to int
        Rounds ``learned``, ``missing``, ``clipped``, ``late``, and late ones ``forgotten``, beyond
        the last 10,000 that wait; and outcomes that were ``censored``.

    Examples
    --------
    >>> from regretless.agents.utilities import Newsvendor
    >>> store = Newsvendor(orders=[100.0, 250.0, 400.0], underage=4.0, overage=1.0)
    >>> o = OnlineOmnipredictor({"store": store}, scale={"demand": (0.0, 400.0)})
    >>> for day in range(60):
    ...     o.learn_one({"weekday": day % 7}, 120.0 + 100.0 * (day % 7 == 5))
    >>> forecast = o.predict_one({"weekday": 5})
    >>> forecast.act("store"), round(forecast.quantile(0.5)), forecast.loss("store") < 100
    (250.0, 220, True)
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = (
        *("counts", "_contexts", "_ledgers", "_followed", "_shared_models", "_slots", "_brought"),
        *("_slots_were_shared", "_censored_in_a_row"),
    )

    def __init__(
        self,
        losses: Mapping[str, Loss],
        *,
        scale: Mapping[str, tuple[float, float]] | None = None,
        models: Any = "panel",
        forecasts: Mapping[str, str | Sequence[str]] | None = None,
        policies: Mapping[str, Mapping[str, Any]] | None = None,
        actions: Mapping[str, Sequence[Any]] | None = None,
        quantiles: Sequence[float] = (),
        quantile_steps: int = DEFAULT_STEPS,
        steps_ahead: int = 1,
        exploring: float = 0.0,
        seed: int = 0,
    ) -> None:
        # What the user gave.
        self.losses = validation.checked_losses(losses)
        self.models = models
        self.seed = check_int("seed", seed, least=0)
        self.scale = validation.checked_scale(scale, self.losses)
        self.forecasts = validation.checked_forecasts(forecasts)
        self.actions = validation.checked_actions(actions)
        self.policies = validation.checked_policies(policies)
        self.quantiles = checked_levels("quantiles", quantiles)
        self.quantile_steps = check_whole("quantile_steps", quantile_steps, least=2, most=MAX_STEPS)
        self.steps_ahead = check_int("steps_ahead", steps_ahead, least=1, below=MAX_STEPS_AHEAD + 1)
        self.exploring = check_range("exploring", exploring, 0.0, 1.0)
        censoring.check_orders(self.exploring, self.losses)
        for name in {*self.actions, *self.policies} - set(self.losses):
            raise UserError(f"actions, policies: no loss '{name}'; {closest(name, self.losses)}")
        # The losses over the unit cube, and the basis in which they are linear.
        self.names, self.space = _names_and_box_of_outcomes(self.losses, self.scale)
        unit_losses = {}  # the losses over the unit cube, in [0, 1]
        for name, loss in self.losses.items():
            with errors_about(f"losses['{name}']"):
                loss_of_unit = self.space.pulled_back(loss) if self.scale else loss
                unit_losses[name] = loss_of_unit.normalised()
        self.basis = serving_basis(list(unit_losses.values()))
        self._announced: AnnouncedQuantiles | None = None
        self._coverage: CoverageRecord | None = None
        if self.quantiles:
            grid = QuantileGrid(self.quantiles, len(self.names), self.quantile_steps)
            basis_with_indicators = WithIndicators(self.basis, steps=self.quantile_steps)
            self.basis = basis_with_indicators
            self._announced = AnnouncedQuantiles(grid, basis_with_indicators, self.space)
            self._coverage = CoverageRecord(self._announced)
        self.tasks = {name: self._task(name, loss) for name, loss in unit_losses.items()}
        # The models, which all slots share: a slot reads what they predict, and never teaches them.
        self._scale_of_column: dict[str, tuple[float, float]] = {}  # of columns with forecasts
        self._members = self._make_models()
        self._shared_models = DistributionPool(self._members, self.basis, recalibrated=True)

        # Losses with equal numbers of actions form a group; one with policies is alone.
        names_by_group: dict[Any, list[str]] = {}
        for name, task in self.tasks.items():
            group_key = name if task.policies else len(task.offset)
            names_by_group.setdefault(group_key, []).append(name)
        self._groups: list[ProtectedLosses] = []
        self._names_in_group = list(names_by_group.values())
        for names in self._names_in_group:
            coefficients = [(self.tasks[name].offset, self.tasks[name].weights) for name in names]
            self._groups += protected_groups(coefficients, self.tasks[names[0]].policies)

        # Slots: an instance of unbiased prediction for each forecast that is open at the same time.
        self._support = support_of(self.basis)
        self._slots: list[Slot] = []
        self._add_slot()
        self._slots_were_shared = False  # whether more forecasts were open than there are slots

        # What was learned: counts of rounds, codes of words, each loss's regrets, past errors.
        self.counts = dict.fromkeys(COUNTS, 0)
        self._censored_in_a_row = 0  # of the last outcomes
        self._contexts = Contexts()
        self._ledgers = {}
        for name, task in self.tasks.items():
            n_policies = len(task.policies)
            self._ledgers[name] = Ledger(
                rows=1,  # one agent with this loss
                actions=len(task.actions),
                policies=n_policies,
                measures=MEASURES,
            )
        # sums of each task's losses of following each model
        self._followed = np.zeros((len(self.tasks), len(self._members)))

        # Open forecasts: their outcomes are to come, or to be taught.
        self._waiting: dict[str, OpenForecast] = {}  # by the key of ``learn_late``
        # With steps_ahead > 1: forecasts by the number of their outcome, and forecasts whose
        # outcomes are known but not taught yet, in the order of the outcomes.
        self._planned: dict[str, OpenForecast] = {}
        self._untaught: list[OpenForecast] = []
        self._brought = 0  # outcomes that learn_one has brought, missing ones included

        # The last forecast. A file holds neither of the two: it would be made again, and the same.
        self._peek: Peek | None = None  # returned once more if the same context is asked for
        # The forecast whose round the models have open; any other is reopened to be taught.
        self._asked: OpenForecast | None = None
        # The outcomes of which the game made that round's statistics; None where they are the
        # models' own.
        self._correction: Ensemble | None = None
        self._is_unchanged = True

    def _task(self, name: str, unit_loss: Loss) -> Task:
        """Return what a forecast needs to serve a loss: action names, coefficients, policies.

        ``unit_loss`` is the loss of this name, scaled to [0, 1].
        """
        original_loss = self.losses[name]
        actions = self.actions.get(name)
        if actions is not None and len(actions) != unit_loss.actions:
            raise UserError(f"actions['{name}'] has {len(actions)} names; give {unit_loss.actions}")
        if actions is None and isinstance(original_loss, Convex1D):
            has_one_kink = original_loss.kinks.shape[-1] == 1
            if has_one_kink:  # as that of an order or a point forecast, whose name is the knot
                actions = original_loss.knots[:, 0].tolist()
        action_names: Sequence[Any] = range(unit_loss.actions) if actions is None else actions
        rules = self.policies.get(name, {})
        policies = [policy_of(policy, rule, action_names) for policy, rule in rules.items()]
        offset, weights = self.basis.coefficients(unit_loss)
        return Task(unit_loss, action_names, offset, weights, policies)

    def _make_models(self) -> dict[str, Any]:
        """Make all models, by name: those of ``models``, then one of each entry of ``forecasts``.

        UserError if ``models`` is no mapping from names, or there are none in all.
        """
        descriptions = PANEL_OF_DISTRIBUTIONS if self._has_panel else self.models
        if not isinstance(descriptions, Mapping) or not all_names(descriptions):
            raise UserError(f"models = {brief(descriptions)}: give 'panel', or models by name")
        models: dict[str, Any] = {}
        for name, description in descriptions.items():
            models[name] = self._make_model(name, description)
        for name, columns in self.forecasts.items():
            if len(columns) != len(self.names) or name in models:
                hint = f"give a name of its own and a column for each of {', '.join(self.names)}"
                raise UserError(f"forecasts['{name}'] = {brief(columns)}: {hint}")
            self._note_scales(name, columns)
            models[name] = ColumnForecast(self.basis, columns=columns)
        if not models:
            raise UserError("models: there are none; give one, or 'panel'")
        return models

    def _note_scales(self, name: str, columns: Sequence[str]) -> None:
        """Note the scales of a forecast's columns; UserError if one column has two of them."""
        for j, column in enumerate(columns):
            scale = (float(self.space.low[j]), float(self.space.high[j]))
            if self._scale_of_column.setdefault(column, scale) != scale:
                hint = "give each its own column"
                fault = f"'{column}' is of outcomes with different scales"
                raise UserError(f"forecasts['{name}']: {fault}; {hint}")

    @property
    def _has_panel(self) -> bool:
        """Whether the models are those of the panel."""
        return isinstance(self.models, str) and self.models == "panel"

    def _make_model(self, name: str, description: Any) -> DistributionModel:
        """Make a model of a kind's name, a table or an object of the user's own.

        It forecasts the outcome. One that is no distribution carries its past errors.
        """
        n_outcomes = len(self.names)
        with errors_about(f"models['{name}']"):
            model = description
            if isinstance(description, str | Mapping):
                make = maker_of(description, register.forecaster, n_given=1)
                if "basis" in inspect.signature(make).parameters:
                    model = make(self.basis.size, basis=self.basis)
                    if not isinstance(model, DistributionModel):
                        model = make(n_outcomes, basis=LinearBasis(n_outcomes))
                else:
                    model = make(n_outcomes)
            if isinstance(model, DistributionModel):
                return model
            model = adapted(model, n_outcomes, self.basis)
            if isinstance(model, DistributionModel):
                return model
            return WithErrors(model, self.basis)

    # the verbs

    def predict_one(self, x: Inputs = None, *, key: Hashable = None) -> OnlineForecast:
        """Forecast the outcome of a context: numbers, words and dates, by name or in a row.

        ``key`` (str or int) is what ``learn_late`` will give the outcome under; a forecast that
        waits under the same key is dropped, as if nobody had asked for it. Without a key it is of
        the outcome that ``learn_one`` brings after ``steps_ahead`` - 1 others.
        """
        waiting_key = None if key is None else validation.check_key(key)
        context = self._context(x)
        self._teach_known_outcomes()
        lead = self.steps_ahead - 1
        if waiting_key is not None:
            forecast = self._forecast_for_key(waiting_key, context, lead)
        elif lead:
            forecast = self._forecast_for_outcome(str(self._brought + lead), context, lead)
        else:
            forecast = self._forecast(context, lead)
        if waiting_key is not None or lead:
            self._contexts.numbers(x, learn=True)
        return self._distribution(forecast)

    def learn_one(self, x: Inputs, y: Any, *, censored: Any = False) -> None:
        """Learn the outcome of a context: a number, a dict, a row, or None where it is missing.

        ``censored`` is True where the outcome is known to be at least y, as sales are when all is
        sold; of several outcomes it may be a mapping by their names. Then nothing is guaranteed.
        """
        is_censored = censoring.checked_censored(censored, self.names)
        context = self._context(x)
        outcome = self._vector(y)
        number = str(self._brought)
        forecast = self._planned.get(number)
        if outcome is None:
            self._teach_known_outcomes()
            rounds_before = self._shared_models.time + len(self._waiting)
            if forecast is not None:
                del self._planned[number]
                rounds_before = forecast["number"]
            self._skip_round(context, rounds_before)
        else:
            if forecast is None:
                forecast = self._forecast(context, lead=len(self._untaught))
            self._charge(forecast, outcome, is_censored)
            self._planned.pop(number, None)
            self._untaught.append(forecast)
            self._peek = None
            while len(self._untaught) >= self.steps_ahead:
                self._teach(self._untaught.pop(0))
            self._contexts.numbers(x, learn=True)
        self._brought += 1

    def learn_late(self, key: Hashable, y: Any, *, censored: Any = False) -> None:
        """Learn the outcome of an earlier ``predict_one(x, key=...)``; None closes it as missing.

        Outcomes come in any order, ``censored`` or not, as in ``learn_one``. UserError if no
        forecast waits under the key.
        """
        is_censored = censoring.checked_censored(censored, self.names)
        waiting_key = validation.check_key(key)
        outcome = self._vector(y)  # what is refused leaves the forecast open
        forecast = self._waiting.get(waiting_key)
        if forecast is None:
            raise UserError(f"no forecast waits under {key!r}; predict_one(x, key=...) opens one")
        if outcome is None:
            del self._waiting[waiting_key]
            self._skip_round(forecast["context"], forecast["number"])
        else:
            self._charge(forecast, outcome, is_censored)
            self.counts["late"] += 1
            del self._waiting[waiting_key]
            self._teach(forecast)

    def waits_for(self, key: Hashable) -> bool:
        """Whether a forecast waits under a key for its outcome."""
        return validation.check_key(key) in self._waiting

    def _context(self, x: Inputs) -> dict[str, float]:
        """Return the numbers of a context, which policies read; UserError if a forecast is none."""
        values_by_name = self._contexts.numbers(x)
        for column in self._scale_of_column:
            if column not in values_by_name:
                raise UserError(f"no forecast '{column}' in the context; give a number")
        return values_by_name

    def _context_of_models(self, context: Mapping[str, float]) -> Features:
        """Return a context with the forecasts in it scaled as outcomes are, which models read."""
        scaled = Features(context)
        for column, (low, high) in self._scale_of_column.items():
            scaled[column] = (context[column] - low) / (high - low)
        return scaled

    # open forecasts

    @property
    def _open_forecasts(self) -> list[OpenForecast]:
        return [*self._waiting.values(), *self._planned.values(), *self._untaught]

    def _forecast_for_key(self, key: str, context: dict[str, float], lead: int) -> OpenForecast:
        """Make a forecast that waits until its outcome comes late."""
        if key in self._waiting:
            self._drop(self._waiting.pop(key)["number"])
        forecast = self._forecast(context, lead)
        self._waiting[key] = forecast
        self._peek = None  # its slot is taken
        while len(self._waiting) > MAX_WAITING:
            oldest_key = next(iter(self._waiting))
            self._drop(self._waiting.pop(oldest_key)["number"])
            self.counts["forgotten"] += 1
        return forecast

    def _forecast_for_outcome(
        self, number: str, context: dict[str, float], lead: int
    ) -> OpenForecast:
        """Make the forecast that outcome ``number`` is charged to, or return it as it is."""
        planned = self._planned.get(number)
        if planned is not None:
            if planned is self._asked and planned["context"] == context:
                return planned
            self._drop(self._planned.pop(number)["number"])
        forecast = self._forecast(context, lead)
        self._planned[number] = forecast
        self._peek = None  # its slot is taken
        return forecast

    def _forecast(self, context: dict[str, float], lead: int) -> OpenForecast:
        """Forecast the outcome that ``lead`` others separate from those that the models know.

        It is that of the lowest free slot, or what was said of this context just before.
        """
        peek = self._peek
        if peek is not None and peek.lead == lead and peek.context == context:
            return peek.forecast
        slot_index = self._lowest_free_slot()
        slot = self._slots[slot_index]
        self._shared_models.ahead = lead + len(self._waiting)
        self._shared_models.newer = 0
        mixture = slot.mixture(context)
        stream_name = ["online", str(self.counts["learned"])]
        if slot_index:
            stream_name.append(str(slot_index))
        if len(mixture.weights) == 1:  # the stream is of this forecast alone, and need not be made
            drawn = Forecast(mixture, 0)
        else:
            drawn = mixture.draw(stream(self.seed, *stream_name))
        forecast: OpenForecast = {
            "number": self._shared_models.time + self._shared_models.ahead,
            "slot": slot_index,
            "context": context,
            "statistics": np.array(drawn.statistics),
            "points": np.array(self._shared_models.points),
            "models": self._shared_models.opened(),
            "game": slot.open_game(),
            "outcome": None,
            "limits": None,
            "exploring": {},
        }
        self._peek = Peek(context, lead, forecast)
        self._asked = forecast
        self._correction = slot.correction(drawn.index)
        self._is_unchanged = slot.is_unchanged
        if self._explores("/".join([*stream_name, str(self.counts["missing"])])):
            forecast["exploring"] = self._exploring_orders(forecast)
        return forecast

    def _explores(self, round_name: str) -> bool:
        """Whether a round, which has a random stream of this name, explores."""
        if not self.exploring:
            return False
        return stream(self.seed, "exploring", round_name).random() < self.exploring

    def _exploring_orders(self, forecast: OpenForecast) -> dict[str, int]:
        """Return an order of each loss, by its place, that probably is not sold out."""
        high_quantile = self._distribution(forecast).quantile(censoring.COVERED)
        places = {}
        for name, task in self.tasks.items():
            loss = self.losses[name]
            assert isinstance(loss, Convex1D)  # noqa: S101 - ``check_orders`` saw it
            best_order = int(best_response(task.expected(forecast["statistics"])))
            of_good = high_quantile
            if len(self.names) > 1:
                of_good = high_quantile[self.names[loss.coordinate]]
            places[name] = censoring.exploring_order(loss.knots[:, 0], best_order, of_good)
        return places

    def _lowest_free_slot(self) -> int:
        """Return the slot's index; of more than ``MAX_SLOTS`` the last one is shared."""
        taken = {forecast["slot"] for forecast in self._open_forecasts}
        slot_index = 0
        while slot_index in taken and slot_index < MAX_SLOTS - 1:
            slot_index += 1
        if slot_index in taken:
            self._slots_were_shared = True
        if slot_index == len(self._slots):
            self._add_slot()
        return slot_index

    def _add_slot(self) -> None:
        solver = serving_solver(self.basis, self._support, self._shared_models)
        slot = Slot(
            self._groups,
            solver,
            self._shared_models,
            context_of_models=self._context_of_models,
            slot_index=len(self._slots),
            announced=self._announced,
        )
        self._slots.append(slot)

    def _drop(self, number: int) -> None:
        """Go on as if the forecast of this number, open no more, had never been asked for."""
        for later in self._open_forecasts:
            if later["number"] > number:
                later["number"] -= 1
        self._peek = None
        self._asked = None

    def _distribution(self, forecast: OpenForecast) -> OnlineForecast:
        """Return the forecast, whose round the models have open, as a distribution of outcomes."""
        assert self._asked is forecast  # noqa: S101 - or the models had another round open
        return OnlineForecast(
            statistics=forecast["statistics"],
            models=self._shared_models.distribution(),
            correction=self._correction,
            names=self.names,
            space=self.space,
            basis=self.basis,
            tasks=self.tasks,
            is_unchanged=self._is_unchanged,
            exploring=forecast["exploring"],
            announced=self._announced,
        )

    # learning

    def _charge(self, forecast: OpenForecast, outcome: Array, is_censored: Mask) -> None:
        """Count a round whose outcome has come, and charge what was said of it.

        A censored outcome is charged as the one that is learned in its place.
        """
        suggestions = {}
        for name, task in self.tasks.items():
            suggested = [policy(forecast["context"]) for policy in task.policies]
            suggestions[name] = np.array(suggested, dtype=np.intp)
        scaled = self.space.to_unit(outcome)
        unit_outcome = np.clip(scaled, 0.0, 1.0)
        is_clipped = unit_outcome != scaled
        if is_clipped.any():
            if not self.counts["clipped"]:
                name = self.names[int(is_clipped.argmax())]
                warning = f"an outcome '{name}' lies beyond its scale and is clipped; widen scale"
                warnings.warn(warning, stacklevel=3)
            self.counts["clipped"] += 1
        if is_censored.any():
            forecast["limits"] = unit_outcome
            unit_outcome = self._mean_beyond(forecast, unit_outcome, is_censored)
        for task_index, (name, task) in enumerate(self.tasks.items()):
            losses = task.loss.losses(unit_outcome)
            expected = task.expected(forecast["statistics"])[None]
            choice = best_response(expected)
            if name in forecast["exploring"]:
                choice = np.array([forecast["exploring"][name]])
            decision = Decision(None, choice, predicted=expected, choices=choice)
            self._ledgers[name].add(decision, losses[None], suggestions[name])
            actions_of_models = best_response(task.offset + forecast["points"] @ task.weights.T)
            self._followed[task_index] += losses[actions_of_models]
        if self._coverage is not None:
            self._coverage.note(forecast["statistics"], unit_outcome)
        self.counts["learned"] += 1
        forecast["outcome"] = unit_outcome
        self._note_censoring(is_censored)

    def _mean_beyond(self, forecast: OpenForecast, unit_outcome: Array, is_censored: Mask) -> Array:
        """Return the mean (d,) of what is forecast of the round beyond a censored outcome.

        A round that the models have not open is forecast anew, by all that is known now.
        """
        if self._asked is not forecast:
            ahead = forecast["number"] - self._shared_models.time
            self._shared_models.ahead = max(ahead, 0)
            self._shared_models.newer = 0
            self._shared_models.point(self._context_of_models(forecast["context"]))
            self._peek = None
            self._asked = None
        distribution = self._shared_models.distribution()
        return censoring.mean_beyond(unit_outcome, is_censored, distribution)

    def _skip_round(self, context: Mapping[str, float], number: int) -> None:
        """Count a round without an outcome, which is open no more, and go on with the next.

        ``number`` is that of its forecast. Models that look back by a number of rounds put their
        forecast in its place, unless earlier rounds are open still: their outcomes, when they come,
        would pass for older ones than the last that is known, which they are not.
        """
        self.counts["missing"] += 1
        if all(other["number"] > number for other in self._open_forecasts):
            self._shared_models.ahead = 0
            self._shared_models.newer = 0
            self._shared_models.skip_round(self._context_of_models(context))
        self._drop(number)

    def _note_censoring(self, is_censored: Mask) -> None:
        """Count whether an outcome was censored; warn once where the last ones all were."""
        if not is_censored.any():
            self._censored_in_a_row = 0
            return
        self.counts["censored"] += 1
        self._censored_in_a_row += 1
        if self._censored_in_a_row == censoring.SOLD_OUT_ROUNDS:
            warnings.warn(censoring.sold_out_line(), censoring.CensoringWarning, stacklevel=4)

    def _teach(self, forecast: OpenForecast) -> None:
        """Teach its slot and the models an outcome, in the state of the forecast's own round.

        The forecast is open no more; its outcome has been charged.
        """
        outcome = np.asarray(forecast["outcome"])
        statistics = self.basis.transform(outcome)
        slot = self._slots[forecast["slot"]]
        slot.reopen_game(forecast["game"])
        slot.update(statistics)
        earlier_rounds_open = sum(
            other["number"] < forecast["number"] for other in self._open_forecasts
        )
        self._shared_models.ahead = forecast["number"] - self._shared_models.time
        self._shared_models.newer = max(earlier_rounds_open - self._shared_models.ahead, 0)
        if self._asked is not forecast:
            context = self._context_of_models(forecast["context"])
            self._shared_models.reopen(context, forecast["models"])
        feedback = RoundFeedback(statistics, outcome, limits=forecast["limits"])
        self._shared_models.observe(feedback)
        self._peek = None
        self._asked = None

    def _teach_known_outcomes(self) -> None:
        """Teach the models all outcomes that have come, before they forecast."""
        while self._untaught:
            self._teach(self._untaught.pop(0))

    def _vector(self, y: Any) -> Array | None:
        """Return an outcome as numbers (d,); None where one is missing."""
        vector = validation.outcome_vector(y, self.names)
        if vector is not None:
            validation.check_not_absurd(self.space.to_unit(vector), self.names, vector)
        return vector

    # its results

    def regrets(self) -> pd.DataFrame:
        """Return how each loss has fared so far, per round that was learned, in its own units.

        A row per loss: ``loss``, ``rounds``, ``mean_loss``, ``external_regret``, ``swap_regret``,
        ``decision_swap_regret`` (swaps for policies, too), ``bound`` on them from the biases of all
        rounds, ``bound_from_variation``, which is what the theorem promises, the sum over the
        ``slots``, ``best_model`` in hindsight and ``regret_to_model``. The sum is missing once more
        than 256 forecasts were open: there is no theorem for those that share a slot.

        ``guarantee`` is "decision-swap", or "none" once an outcome was censored, and where orders
        may explore: then there are no bounds, and losses are those of the outcomes that were
        learned in place of censored ones.
        """
        rows = []
        rounds = self.counts["learned"]
        promised = self._promised_regret()
        is_covered = self._is_covered
        for task_index, (name, task) in enumerate(self.tasks.items()):
            row: dict[str, Any] = {"loss": name, "rounds": rounds}
            if rounds:
                ledger = self._ledgers[name]
                scale = float(task.loss.unit_scale)
                mean_loss = float(ledger.mean_loss()[0])
                bias = ledger.bound_from_bias()
                assert bias is not None  # noqa: S101 - every round had an expectation
                row["mean_loss"] = task.in_units(mean_loss)
                for measure in MEASURES:
                    regret = ledger.regret(measure)
                    if regret is not None:
                        row[f"{measure}_regret"] = scale * float(regret[0])
                best_model = int(self._followed[task_index].argmin())
                row["bound"] = scale * (float(bias[0]) + 2 * self.basis.error)
                promised_per_round = promised[name] / rounds + 2 * self.basis.error
                row["bound_from_variation"] = scale * promised_per_round
                if not is_covered:
                    row["bound"] = row["bound_from_variation"] = np.nan
                row["guarantee"] = "decision-swap" if is_covered else "none"
                row["slots"] = len(self._slots)
                row["best_model"] = self._shared_models.made_of[best_model]
                mean_loss_of_model = float(self._followed[task_index, best_model]) / rounds
                row["regret_to_model"] = scale * (mean_loss - mean_loss_of_model)
            rows.append(row)
        return pd.DataFrame(rows)

    @property
    def _is_covered(self) -> bool:
        """Whether a theorem covers what was done: no outcome was censored, and orders explore not.

        Exploring moves orders alone, but it is there for outcomes that are censored.
        """
        return not self.counts["censored"] and not self.exploring

    def coverage(self, *, by_value: bool = False) -> pd.DataFrame:
        """Return how many outcomes were at most the announced quantiles, beside what is promised.

        A row per outcome and level; ``by_value`` one for each value that was ``announced``, too.
        Of the ``rounds`` learned ``coverage`` is the share of outcomes at most the announced value,
        and ``below`` that of outcomes at most the value before it on the grid. With probability
        0.99, in all rows and after all rounds at once, whatever the outcomes are, as long as
        neither they nor whether they are missing depend on what was drawn in their own round,

            coverage >= quantile - bound,    below <= quantile + bound_below,

        and coverage differs by at most ``bound`` from quantile + ``overshoot``, by which the
        forecasts' own probability of an outcome up to the value exceeded the level: at atoms of the
        outcome, and where the grid is coarse. A bound of 1 says nothing. ``mean_pinball_loss`` is
        in the outcome's units. Outcomes beyond the scale count as clipped.

        ``guarantee`` is "coverage", or "none" with empty bounds where an outcome was censored,
        orders explore, or more than 256 forecasts were open.
        """
        if self._coverage is None:
            raise UserError("no quantiles are announced; give quantiles=[0.05, 0.95]")
        deviations = self._coverage_deviations() if self._is_covered else None
        guarantee = "none" if deviations is None else "coverage"
        return self._coverage.table(self.names, deviations, by_value=by_value, guarantee=guarantee)

    def _coverage_deviations(self) -> Array | None:
        """Bound the sums of all biases of coverage (K, 2, m + 2); None if slots were shared."""
        if self._slots_were_shared:
            return None
        assert self._announced is not None  # noqa: S101 - or there is no coverage
        shape = self._announced.grid.events_shape
        deviations = np.zeros(shape)
        moments_of_draws = np.zeros((2, *shape))
        for slot in self._slots:
            assert slot.coverage_events is not None  # noqa: S101 - every slot watches it
            moments_of_draws += slot.coverage_events.moments_of_draws
            if slot.time:
                deviations += slot.coverage_deviations()
        # no slot knows of rounds that are not taught yet; each changes a sum by 1 at most
        return deviations + deviation_of_draws(moments_of_draws) + len(self._untaught)

    def _promised_regret(self) -> dict[str, float]:
        """Bound the sum of each loss's decision swap regret so far: the slots' bounds, added up.

        In [0, 1] a round, without the error of the basis; what the draws add is bounded once for
        all slots. NaN if forecasts had to share a slot.
        """
        promised: dict[str, float] = {}
        slots = [slot for slot in self._slots if slot.time]
        for group, names in zip(self._groups, self._names_in_group, strict=True):
            total = np.zeros(len(names))
            variance_and_range = np.zeros((2, len(names)))  # of the draws
            for slot in slots:
                total += slot.from_variation(group)
                variance_and_range += slot.draws.of(group, fixed=not group.policies)
            actions = group.offset.shape[1]
            total += swap_draws(
                variance_and_range,
                promises=len(self.tasks),
                actions=actions,
                comparators=actions + len(group.policies),
                width=1 + 2 * self.basis.error,
            )
            total += len(self._untaught)  # no slot knows of these rounds yet; each costs at most 1
            if self._slots_were_shared:
                total[:] = np.nan
            promised |= dict(zip(names, total.tolist(), strict=True))
        return promised

    def __repr__(self) -> str:
        counts = [f"{count:,} {name}" for name, count in self.counts.items() if count]
        learned = ", ".join(counts) or "nothing learned"
        return f"<OnlineOmnipredictor of {', '.join(self.tasks)}: {learned}>"

    # files

    def save(self, path: str | Path) -> None:
        """Write it to one file, whole or not at all, without pickle.

        UserError if a loss is code, or a model has no ``state`` and ``restore``.
        """
        for name, model in self._members.items():
            if not remembers(model):
                hint = "let it learn, give it state() and restore(state), or leave it out"
                raise UserError(f"models['{name}'] cannot be saved; {hint}")
        arguments = {
            "losses": {name: written_loss(name, loss) for name, loss in self.losses.items()},
            "scale": self.scale,
            "models": self.models if self.models == "panel" else plain_descriptions(self.models),
            "classes_of_models": {} if self._has_panel else _classes(self.models),
            "forecasts": self.forecasts,
            "policies": {loss: plain_descriptions(rules) for loss, rules in self.policies.items()},
            "actions": self.actions,
            "steps_ahead": self.steps_ahead,
            "exploring": self.exploring,
            "seed": self.seed,
        }
        if self.quantiles:
            arguments["quantiles"] = list(self.quantiles)
            arguments["quantile_steps"] = self.quantile_steps
        saved.write(path, arguments, self.state())

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        models: Mapping[str, Any] | None = None,
        policies: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Self:
        """Read what ``save`` wrote.

        ``models`` are new ones, untrained, in place of objects of the user's own, ``policies``
        those that were functions, by loss and name. UserError if it is no such file, or one of them
        is wanted.
        """
        given_models = validation.checked_table("models", models, "models")
        given_policies = validation.checked_policies(policies)
        arguments, state = saved.read(path)
        try:
            losses = {name: read_loss(**rules) for name, rules in arguments["losses"].items()}
            models_in_file = {} if arguments["models"] == "panel" else arguments["models"]
            models_of_file = filled(models_in_file, given_models, "models")
            _check_classes(arguments.pop("classes_of_models", {}), given_models)
            if arguments["models"] != "panel":
                arguments["models"] = models_of_file
            for loss in arguments["policies"] | given_policies:
                rules = arguments["policies"].get(loss, {})
                given_rules = given_policies.get(loss, {})
                arguments["policies"][loss] = filled(rules, given_rules, f"policies['{loss}']")
            omnipredictor = cls(**arguments | {"losses": losses})
            saved.check_state(state, omnipredictor.state())
            omnipredictor.restore(state)
        except UserError:
            raise
        except checkpoint.DAMAGED as error:
            raise saved.refused(path, error) from error
        return omnipredictor

    def state(self) -> dict[str, Any]:
        state = super().state() | {"open": self._open_state()}
        if self._coverage is not None:
            state["coverage"] = self._coverage.state()
        return state

    def _open_state(self) -> dict[str, Any]:
        """Return the open forecasts as arrays and plain values, for a file."""
        return {
            "waiting": {key: _arrays_last(forecast) for key, forecast in self._waiting.items()},
            "planned": {key: _arrays_last(forecast) for key, forecast in self._planned.items()},
            "untaught": {
                str(i): _arrays_last(forecast) for i, forecast in enumerate(self._untaught)
            },
        }

    def restore(self, state: dict[str, Any]) -> None:
        while len(self._slots) < len(state["slots"]):
            self._add_slot()
        super().restore(state)
        if self._coverage is not None:
            self._coverage.restore(state["coverage"])
        open_state = state["open"]
        self._waiting = dict(open_state["waiting"])
        self._planned = dict(open_state["planned"])
        untaught = open_state["untaught"]
        self._untaught = [untaught[str(i)] for i in range(len(untaught))]
        for forecast in self._open_forecasts:  # of older files, which lack it
            forecast.setdefault("limits", None)
        self._peek = None
        self._asked = None


def _arrays_last(tree: Any) -> Any:
    """Return a copy of a tree of tables in the order in which a file is read.

    A file that is saved again then has the same bytes. Plain values keep their order, which is that
    of a model's features.
    """
    if not isinstance(tree, dict):
        return tree
    plain = {key: _arrays_last(value) for key, value in tree.items() if not _is_array(value)}
    arrays = {key: value for key, value in tree.items() if _is_array(value)}
    return plain | arrays


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def all_names(table: Mapping[Any, Any]) -> bool:
    """Whether every key of a table is text."""
    return all(isinstance(name, str) for name in table)


def _names_and_box_of_outcomes(
    losses: Mapping[str, Loss], scale: Mapping[str, tuple[float, float]]
) -> tuple[list[str], Box]:
    """Return the names of the outcomes, and the box of their values in the user's units."""
    numbers_of_outcomes = {loss.outcomes for loss in losses.values()}
    n_outcomes = min(numbers_of_outcomes)  # the only one, or the next lines refuse the losses
    if len(numbers_of_outcomes) > 1 or (scale and len(scale) != n_outcomes):
        numbers = " and ".join(map(str, sorted(numbers_of_outcomes)))
        fault = f"losses are of {numbers} outcomes"
        raise UserError(f"{fault}, scale of {len(scale)}; give as many")
    if not scale:
        names = ["y"] if n_outcomes == 1 else [f"y_{j}" for j in range(n_outcomes)]
        return names, Box([0.0] * n_outcomes, [1.0] * n_outcomes)
    with errors_about("scale", "give (low, high) for each outcome"):
        lows_and_highs = zip(*scale.values(), strict=True)
        return list(scale), Box(*lows_and_highs)


def written_loss(name: str, loss: Loss) -> dict[str, Any]:
    """Return a loss as its kind and its fields; UserError if it is code."""
    kind = type(loss).__name__
    values = {field.name: getattr(loss, field.name) for field in fields(loss)}
    if kind not in forms.__all__ or not all(map(remembers, values.values())):
        raise UserError(f"losses['{name}'] is code of its own and cannot be saved")
    return {"kind": kind} | values


def read_loss(*, kind: str, **values: Any) -> Loss:
    """Make a loss of its kind and its fields; ValueError if there is no such kind."""
    if kind not in forms.__all__:
        raise ValueError(f"unknown loss '{kind}'")
    loss: Loss = getattr(forms, kind)(**values)
    return loss


def plain_descriptions(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return models or policies by name, None for those that are objects or functions."""
    plain: dict[str, Any] = {}
    for name, description in described.items():
        is_plain = isinstance(description, str | Mapping)
        plain[name] = description if is_plain else None
    return plain


def _classes(models: Mapping[str, Any]) -> dict[str, str]:
    """Return the names of the classes of models that are objects of the user's own."""
    objects = {
        name: model
        for name, model in models.items()
        if plain_descriptions({name: model})[name] is None
    }
    return {name: type(model).__name__ for name, model in objects.items()}


def _check_classes(classes: Mapping[str, str], given: Mapping[str, Any]) -> None:
    """Raise UserError if a model that is given is of another class than the one that was saved."""
    for name, model in given.items():
        class_name = type(model).__name__
        if classes.get(name, class_name) != class_name:
            fault = f"load: models['{name}'] is of type {class_name}, the file's of {classes[name]}"
            raise UserError(f"{fault}; give a {classes[name]}, as it was made")


def filled(described: Mapping[str, Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Put the user's own objects in, where None stands for one that a file cannot hold.

    UserError if one of these is not given, or another is.
    """
    for name in given:
        if name not in described or described[name] is not None:
            raise UserError(f"load: {where}['{name}']: {NOT_NEEDED}")
    for name, description in described.items():
        if description is None and name not in given:
            raise UserError(f"load: give {where}['{name}'], as it was made")
    return {name: given.get(name, description) for name, description in described.items()}
