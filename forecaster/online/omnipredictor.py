r"""A forecaster that runs on one's own data, round by round, with the verbs of River.

    forecast = o.predict_one(x)     before the round
    o.learn_one(x, y)               after it; y is None where the outcome is missing
    o.learn_late(key, y)            for predict_one(x, key=...), whenever the outcome comes

Losses and outcomes are in the user's units: ``scale`` says which values of an outcome become 0 and
1, and losses are functions of the outcome as it is measured. Inside, it is unbiased prediction
(``forecaster.unbiased``) on the losses' scalar events, with models for its reference: nobody who
acts on the forecast regrets much, neither a swap of actions nor not to have followed a model.

The **bound** on a swap regret is read off the run itself: what the loss expected when it chose and
the realised outcomes differ by as much as the forecast is biased on the rounds of each action, and
no swap can gain more than these biases and twice the error of the basis
(``market.regret.ledger``). It holds for outcomes of any kind, late and missing ones included:
of rounds that were learned.
"""

import inspect
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Self, TypedDict

import numpy as np
import pandas as pd

from regretless.forecaster.bases.default import default_basis
from regretless.forecaster.bases.exact import DirectSumBasis
from regretless.forecaster.bases.polynomial import LinearBasis
from regretless.forecaster.events.loss_events import GainEvents
from regretless.forecaster.events.loss_table import ProtectedLosses
from regretless.forecaster.minimax.cube import cube
from regretless.forecaster.models import Aggregate, adapted
from regretless.forecaster.models.aggregate import PANEL
from regretless.forecaster.models.outcomes import ColumnForecast, lattice
from regretless.forecaster.online.inputs import Contexts, Inputs, maker_of, naming, policy_of
from regretless.forecaster.online.outcome_distribution import OnlineForecast, Task
from regretless.forecaster.reference import Reference
from regretless.forecaster.unbiased import UnbiasedPrediction, grouped
from regretless.market import losses as forms
from regretless.market import register
from regretless.market.best_response import best_response
from regretless.market.core import checkpoint
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable, remembers
from regretless.market.core.errors import UserError, brief, closest
from regretless.market.core.randomness import stream
from regretless.market.losses import Convex1D, Loss
from regretless.market.losses.outcome_spaces import Box
from regretless.market.records import Decision
from regretless.market.regret.ledger import Ledger

WINDOW = 512  # past forecast errors that a distribution is made of
EVEN = 2.0  # how many errors a lattice of all outcomes counts for
WAITING = 10_000  # forecasts whose outcomes may come late
COUNTS = ("learned", "missing", "clipped", "late", "forgotten")
MEASURES = ("external", "swap", "decision_swap")


class Open(TypedDict):
    """A forecast whose outcome is not learned yet."""

    context: dict[str, float]
    statistics: Array  # (n,), as they were broadcast
    points: Array  # (M, n), what the models predicted


class OnlineOmnipredictor(Checkpointable):
    """One forecast for many losses, learned round by round.

    Parameters
    ----------
    losses : mapping of str to Loss
        Single losses, functions of the outcome in its own units.
    scale : mapping of str to (float, float), optional
        By the name of each outcome what becomes 0 and 1; without it outcomes are in [0, 1], called
        ``y``, or ``y_0`` and so on. Values beyond are clipped, counted and warned of once.
    models : "panel" or mapping of str to model
        Models by name: the name of a registered one, a table ``{"kind": ..., ...}`` of one with its
        parameters, or an untrained object of River's, sktime's, statsforecast's or scikit-learn's
        kind. "panel" is the panel that scenarios with data have.
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
    seed : int
        Of the draws.

    Attributes
    ----------
    counts : dict of str to int
        Rounds ``learned``, ``missing``, ``clipped``, ``late``, and late ones ``forgotten``, beyond
        the last 10,000 that wait.

    Examples
    --------
    >>> from regretless.agents.utilities import Newsvendor
    >>> store = Newsvendor(orders=[100.0, 200.0, 300.0], underage=4.0, overage=1.0)
    >>> o = OnlineOmnipredictor({"store": store}, scale={"demand": (0.0, 400.0)})
    >>> for day in range(60):
    ...     o.learn_one({"weekday": day % 7}, 120.0 + 100.0 * (day % 7 == 5))
    >>> forecast = o.predict_one({"weekday": 5})
    >>> forecast.act("store"), round(forecast.quantile(0.5)), forecast.loss("store") < 100
    (200.0, 215, True)
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = (
        *("forecaster", "counts", "_contexts", "_ledgers", "_followed", "_errors", "_waiting"),
    )

    def __init__(  # noqa: PLR0913 - keyword-only from the second
        self,
        losses: Mapping[str, Loss],
        *,
        scale: Mapping[str, tuple[float, float]] | None = None,
        models: Any = "panel",
        forecasts: Mapping[str, str | Sequence[str]] | None = None,
        policies: Mapping[str, Mapping[str, Any]] | None = None,
        actions: Mapping[str, Sequence[Any]] | None = None,
        seed: int = 0,
    ) -> None:
        self.losses, self.models, self.seed = dict(losses), models, seed
        self.scale = dict(scale or {})
        columns = dict(forecasts or {}).items()
        self.forecasts = {name: [k] if isinstance(k, str) else list(k) for name, k in columns}
        self.actions = {name: list(told) for name, told in (actions or {}).items()}
        self.policies = {name: dict(told) for name, told in (policies or {}).items()}
        for name in {*self.actions, *self.policies} - set(self.losses):
            raise UserError(f"actions, policies: no loss '{name}'; {closest(name, self.losses)}")
        self.names, self.space = _outcomes(self.losses, self.scale)
        unit = {}  # the losses over the unit cube, in [0, 1]
        for name, own in self.losses.items():
            with naming(f"losses['{name}']"):
                unit[name] = (self.space.pulled_back(own) if self.scale else own).normalised()
        linear = LinearBasis(len(self.names))
        self.basis = DirectSumBasis([default_basis(list(unit.values())), linear])
        self.tasks = {name: self._task(name, own) for name, own in unit.items()}
        self._members = made = self._models()
        stacks: dict[Any, list[Task]] = {}  # by actions; who has policies is alone
        for name, task in self.tasks.items():
            stacks.setdefault(name if task.policies else len(task.offset), []).append(task)
        groups: list[ProtectedLosses] = []
        for same in stacks.values():
            groups += grouped([(task.offset, task.weights) for task in same], same[0].policies)
        events = GainEvents(groups, models=len(made))
        reference = Reference(Aggregate(made, self.basis.size))
        solver = cube(self.basis.size, self.basis.hull)
        self.forecaster = UnbiasedPrediction(events, solver, reference)
        self.counts = dict.fromkeys(COUNTS, 0)
        self._contexts = Contexts()
        self._ledgers = {
            name: Ledger(1, len(task.actions), policies=len(task.policies), measures=MEASURES)
            for name, task in self.tasks.items()
        }
        self._followed = np.zeros((len(self.tasks), len(made)))  # losses of following each model
        self._errors = np.zeros((0, len(self.names)))
        self._grid = lattice(len(self.names))
        self._waiting: dict[str, Open] = {}
        self._last: tuple[int, Open] | None = None  # not remembered: it is made again

    def _task(self, name: str, own: Loss) -> Task:
        loss, actions = self.losses[name], self.actions.get(name)
        if actions is not None and len(actions) != own.actions:
            raise UserError(f"actions['{name}'] has {len(actions)} names; give {own.actions}")
        if actions is None and isinstance(loss, Convex1D) and loss.kinks.shape[-1] == 1:
            actions = loss.knots[:, 0].tolist()
        called: Sequence[Any] = range(own.actions) if actions is None else actions
        told = self.policies.get(name, {})
        policies = [policy_of(rule, one, called) for rule, one in told.items()]
        return Task(own, called, *self.basis.coefficients(own), policies)

    def _models(self) -> dict[str, Any]:
        told = PANEL if self.models == "panel" else self.models
        if not isinstance(told, Mapping):
            raise UserError(f"models = {brief(told)}: give 'panel', or models by name")
        made = {name: self._model(name, model) for name, model in told.items()}
        for name, columns in self.forecasts.items():
            if len(columns) != len(self.names) or name in made:
                cure = f"give a name of its own and a column for each of {', '.join(self.names)}"
                raise UserError(f"forecasts['{name}'] = {brief(columns)}: {cure}")
            made[name] = ColumnForecast(self.basis, columns=columns)
        if not made:
            raise UserError("models: there are none; give one, or 'panel'")
        return made

    def _model(self, name: str, told: Any) -> Any:
        model, size = told, self.basis.size
        with naming(f"models['{name}']"):
            if isinstance(told, str | Mapping):
                maker = maker_of(told, register.forecaster)
                takes = "basis" in inspect.signature(maker).parameters
                model = maker(size, **({"basis": self.basis} if takes else {}))
            return adapted(model, size, self.basis)

    # the verbs

    def predict_one(self, x: Inputs = None, *, key: Hashable = None) -> OnlineForecast:
        """Forecast the outcome of a context: numbers, words and dates, by name or in a row.

        ``key`` (str or int) is what ``learn_late`` will give the outcome under.
        """
        open_ = self._opened(self._context(x))
        if key is not None:
            self._waiting[str(key)] = open_
            while len(self._waiting) > WAITING:
                del self._waiting[next(iter(self._waiting))]
                self.counts["forgotten"] += 1
            self._contexts.numbers(x, learn=True)
        about = open_["statistics"][-len(self.names) :]  # what it expects of the outcomes
        likely = np.concatenate([np.clip(about + self._errors, 0.0, 1.0), self._grid])
        counts = len(self._errors), len(self._grid)
        prior = np.repeat([1.0, EVEN / counts[1]], counts)
        told = self.names, self.space, self.basis, self.tasks
        return OnlineForecast(open_["statistics"], likely, prior, *told)

    def learn_one(self, x: Inputs, y: Any) -> None:
        """Learn the outcome of a context: a number, a dict, a row, or None where it is missing."""
        self._learn(self._opened(self._context(x)), y, x)

    def learn_late(self, key: Hashable, y: Any) -> None:
        """Learn the outcome of an earlier ``predict_one(x, key=...)``; None closes it as missing.

        UserError if no forecast waits under the key.
        """
        if (open_ := self._waiting.pop(str(key), None)) is None:
            raise UserError(f"no forecast waits under {key!r}; predict_one(x, key=...) opens one")
        learned = self.counts["learned"]
        self._learn(open_, y, None)
        self.counts["late"] += self.counts["learned"] - learned

    def _context(self, x: Inputs) -> dict[str, float]:
        named = self._contexts.numbers(x)
        for columns in self.forecasts.values():
            for j, column in enumerate(columns):
                if column not in named:
                    raise UserError(f"no forecast '{column}' in the context; give a number")
                low, high = self.space.low[j], self.space.high[j]
                named[column] = (named[column] - low) / (high - low)
        return named

    def _opened(self, context: dict[str, float]) -> Open:
        """Ask the forecaster, or return what it has said of this context in this round."""
        learned = self.counts["learned"]
        if self._last and self._last[0] == learned and self._last[1]["context"] == context:
            return self._last[1]
        mixture = self.forecaster.mixture(context)
        drawn = mixture.draw(stream(self.seed, "online", str(learned)))
        open_: Open = {
            "context": context,
            "statistics": np.array(drawn.statistics),
            "points": np.array(self.forecaster.points),
        }
        self._last = learned, open_
        return open_

    def _learn(self, open_: Open, y: Any, x: Inputs) -> None:
        if (vector := self._vector(y)) is None:
            self.counts["missing"] += 1
            return
        given = self.space.to_unit(vector)
        unit = np.clip(given, 0.0, 1.0)
        if (unit != given).any():
            if not self.counts["clipped"]:
                name = self.names[int((unit != given).argmax())]
                told = f"an outcome '{name}' lies beyond its scale and is clipped; widen scale"
                warnings.warn(told, stacklevel=3)
            self.counts["clipped"] += 1
        if self._last is None or self._last[1] is not open_:  # it was asked something else since
            self.forecaster.mixture(open_["context"])
        for place, (name, task) in enumerate(self.tasks.items()):
            expected, losses = task.expected(open_["statistics"]), task.loss.losses(unit)
            choice = best_response(expected[None])
            decision = Decision(None, choice, predicted=expected[None], choices=choice)
            rules = [policy(open_["context"]) for policy in task.policies]
            self._ledgers[name].add(decision, losses[None], np.array(rules, dtype=np.intp))
            followed = best_response(task.offset + open_["points"] @ task.weights.T)
            self._followed[place] += losses[followed]
        self.forecaster.observe_outcome(unit)
        self.forecaster.update(self.basis.transform(unit))
        error = unit - open_["statistics"][-len(unit) :]
        self._errors = np.concatenate([self._errors[1 - WINDOW :], error[None]])
        self._contexts.numbers(x, learn=True)
        self.counts["learned"] += 1

    def _vector(self, y: Any) -> Array | None:
        """Return an outcome as numbers (d,); None where one is missing."""
        if isinstance(y, Mapping):
            for name in y:
                if name not in self.names:
                    raise UserError(f"no outcome '{name}'; {closest(str(name), self.names)}")
            y = [y.get(name) for name in self.names]
        if y is None:
            return None
        values = [np.nan if v is None or v is pd.NA else v for v in (y if np.ndim(y) else [y])]
        try:
            vector = np.array(values, float).reshape(len(self.names))
        except (TypeError, ValueError) as error:
            raise UserError(f"y = {brief(y)}: give a number for each outcome, or None") from error
        return vector if np.isfinite(vector).all() else None

    # its results

    def regrets(self) -> pd.DataFrame:
        """Return how each loss has fared so far, per round that was learned, in its own units.

        A row per loss: ``loss``, ``rounds``, ``mean_loss``, ``external_regret``, ``swap_regret``,
        ``decision_swap_regret`` (swaps for policies, too), ``bound`` on them, ``best_model`` in
        hindsight and ``regret_to_model``.
        """
        table, rounds = [], self.counts["learned"]
        for place, (name, task) in enumerate(self.tasks.items()):
            row: dict[str, Any] = {"loss": name, "rounds": rounds}
            if rounds:
                ledger, scale = self._ledgers[name], float(task.loss.unit_scale)
                own, bias = float(ledger.mean_loss()[0]), ledger.bound_from_bias()
                assert bias is not None  # noqa: S101 - every round had an expectation
                row["mean_loss"] = task.in_units(own)
                for measure in MEASURES:
                    if (regret := ledger.regret(measure)) is not None:
                        row[f"{measure}_regret"] = scale * float(regret[0])
                best = int(self._followed[place].argmin())
                row["bound"] = scale * (float(bias[0]) + 2 * self.basis.error)
                row["best_model"] = self.forecaster.models[best]
                above = own - float(self._followed[place, best]) / rounds
                row["regret_to_model"] = scale * above
            table.append(row)
        return pd.DataFrame(table)

    def __repr__(self) -> str:
        told = ", ".join(f"{count:,} {what}" for what, count in self.counts.items() if count)
        return f"<OnlineOmnipredictor of {', '.join(self.tasks)}: {told or 'nothing learned'}>"

    # files

    def save(self, path: str | Path) -> None:
        """Write it to one file, whole or not at all, without pickle.

        UserError if a loss is code, or a model has no ``state`` and ``restore``.
        """
        for name, model in self._members.items():
            if not remembers(model):
                cure = "let it learn, give it state() and restore(state), or leave it out"
                raise UserError(f"models['{name}'] cannot be saved; {cure}")
        made = {
            "losses": {name: _written(name, loss) for name, loss in self.losses.items()},
            "scale": self.scale,
            "models": self.models if self.models == "panel" else _plain(self.models),
            "forecasts": self.forecasts,
            "policies": {loss: _plain(told) for loss, told in self.policies.items()},
            "actions": self.actions,
            "seed": self.seed,
        }
        checkpoint.save(Path(path), {"made": made, "state": self.state()})

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
        try:
            tree = checkpoint.load(Path(path))
            made = tree["made"]
            losses = {name: _read(**told) for name, told in made["losses"].items()}
            if made["models"] != "panel":
                made["models"] = _filled(made["models"], models or {}, "models")
            for loss, told in made["policies"].items():
                given = (policies or {}).get(loss, {})
                made["policies"][loss] = _filled(told, given, f"policies['{loss}']")
            own = cls(**made | {"losses": losses})
            own.restore(tree["state"])
        except UserError:
            raise
        except checkpoint.DAMAGED as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise UserError(f"'{path}' is no saved OnlineOmnipredictor: {reason}") from error
        return own

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._last = None


def _outcomes(
    losses: Mapping[str, Loss], scale: Mapping[str, tuple[float, float]]
) -> tuple[list[str], Box]:
    if not losses:
        raise UserError("losses: there are none; give one by name")
    for name, loss in losses.items():
        if not isinstance(loss, Loss) or loss.stack:
            raise UserError(f"losses['{name}'] is {brief(loss)}; give a single loss")
    size = {loss.outcomes for loss in losses.values()}
    many = min(size)
    if len(size) > 1 or (scale and len(scale) != many):
        told = f"losses are of {' and '.join(map(str, sorted(size)))} outcomes"
        raise UserError(f"{told}, scale of {len(scale)}; give as many")
    if not scale:
        names = ["y"] if many == 1 else [f"y_{j}" for j in range(many)]
        return names, Box([0.0] * many, [1.0] * many)
    with naming("scale", "give (low, high) for each outcome"):
        return list(scale), Box(*zip(*scale.values(), strict=True))


def _written(name: str, loss: Loss) -> dict[str, Any]:
    kind = type(loss).__name__
    tree = {field.name: getattr(loss, field.name) for field in fields(loss)}
    if kind not in forms.__all__ or not all(map(remembers, tree.values())):
        raise UserError(f"losses['{name}'] is code of its own and cannot be saved")
    return {"kind": kind} | tree


def _read(*, kind: str, **fields_of: Any) -> Loss:
    if kind not in forms.__all__:
        raise ValueError(f"unknown loss '{kind}'")
    loss: Loss = getattr(forms, kind)(**fields_of)
    return loss


def _plain(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return models or policies by name, None for those that are objects or functions."""
    return {name: one if isinstance(one, str | Mapping) else None for name, one in told.items()}


def _filled(told: Mapping[str, Any], own: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Put the user's own objects in; UserError if one that was plain None is wanted."""
    for name, one in told.items():
        if one is None and name not in own:
            raise UserError(f"load: give {where}['{name}'], as it was made")
    return {name: own.get(name, one) for name, one in told.items()}
