"""What a fitted randomised predictor answers: predictions, their law, and actions for a loss."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from regretless.forecaster.omniprediction.choices import AnyLoss, as_list, choose, on_net
from regretless.forecaster.omniprediction.conditional import Conditional, Seen
from regretless.forecaster.omniprediction.fitting import Fitted
from regretless.forecaster.omniprediction.nets import ContinuousLoss
from regretless.forecaster.omniprediction.parameters import Parameters, not_fitted
from regretless.forecaster.omniprediction.predictors import played
from regretless.forecaster.omniprediction.suggestions import checked_features, named, suggested
from regretless.market.core.arrays import Array, Indices, draw_rows
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis
from regretless.market.records import Mixture, one_hot
from regretless.market.response import best_response


def readout(basis: Basis, outcomes: Array) -> Array:
    """Regress outcomes (m, d) on a constant and their own s(y): coefficients (1 + n, d).

    Predictions differ from means of s(y) by about 1 / sqrt(m), and where functions of the basis are
    nearly collinear least squares would multiply that. Hence ridge regression (Hoerl and Kennard
    1970) with that variance, which is least squares under noise of this size in s(y). The mean of
    s(y) is still mapped to the mean outcome.
    """
    table = basis.transform(outcomes)
    centre, mean = table.mean(0), outcomes.mean(0)
    spread = (table - centre).T @ (table - centre) / len(table)
    common = (table - centre).T @ (outcomes - mean) / len(table)
    weights = np.linalg.solve(spread + np.eye(len(centre)) / len(table), common)
    return np.vstack([mean - centre @ weights, weights])


LEVELS = (0.1, 0.5, 0.9)


class RandomisedPredictor(Parameters):
    """Predictions and actions of a fitted model; what it needs is set by ``fit``.

    Attributes
    ----------
    losses, policies, gamma, random_state : as in ``OfflineOmnipredictor``
    basis_, net_, ends_, n_features_in_, fitted_, readout_ : as in ``OfflineOmnipredictor``
    """

    losses: Any
    policies: Sequence[Any]
    gamma: float
    random_state: int | None
    basis_: Basis
    net_: Array | None
    ends_: Array
    n_features_in_: int
    fitted_: Fitted | Conditional
    readout_: Array

    def _seen(self, X: Any) -> Seen:
        """Features of a table and the fitted policies' suggestions."""
        self._size()  # fitted
        features = checked_features(X)
        if features.shape[1] != self.n_features_in_:
            raise UserError(
                f"X has {features.shape[1]} features, but OfflineOmnipredictor is expecting "
                f"{self.n_features_in_} features as input"
            )
        named(X, getattr(self, "feature_names_in_", None))
        actions = self.fitted_.listed.actions
        asked = suggested(self.policies, X, len(features), actions=actions, net=self.net_)
        return Seen(features, asked)

    @staticmethod
    def _laws(fitted: Fitted | Conditional, seen: Seen) -> Iterator[tuple[Indices, Mixture]]:
        """Yield places of rows and their law."""
        if isinstance(fitted, Fitted):
            yield from fitted.predictors.by_tuple(seen.suggestions)
            return
        for i, point in enumerate(fitted.mean(seen)):
            yield np.array([i]), Mixture(point[None], np.ones(1))

    def predict(self, X: Any, *, draw: bool = False) -> Array:
        """Predict s(y) for every row of a table: (m, n).

        Parameters
        ----------
        X : array (m, f)
            As in ``fit``; where there are no features, an array (m, 0).
        draw : bool
            A draw of the randomised predictor for each row, instead of its mean; without a base,
            actions are to be taken on draws, as the mean has no guarantee.
        """
        seen = self._seen(X)
        if isinstance(self.fitted_, Conditional):
            return self.fitted_.mean(seen)
        found = np.empty((len(seen), self._size()))
        rng = stream(self.random_state or 0, "omniprediction", "draw")
        uniforms = rng.random(len(found))
        for rows, law in self._laws(self.fitted_, seen):
            if draw:
                same = np.zeros(len(rows), dtype=np.intp)
                found[rows] = law.points[draw_rows(law.weights[None], uniforms[rows], same)]
            else:
                found[rows] = law.mean
        return found

    def _size(self) -> int:
        if not hasattr(self, "fitted_"):
            raise not_fitted()
        return self.basis_.size

    def predict_outcome(self, X: Any) -> Array:
        """Forecast the outcome (m, d), in its own units.

        It is the mean of the conditional law. Without a base it is read off the mean prediction,
        for people to look at: the mean outcome where the basis is linear; elsewhere what a
        prediction of s(y) suggests by ``readout_``. Nothing is promised of that.
        """
        return self._in_units(self._unscaled(self._seen(X), X))

    def _unscaled(self, seen: Seen, X: Any) -> Array:
        if isinstance(self.fitted_, Conditional):
            return self.fitted_.law.expected(seen.joined, self.fitted_.law.outcomes)
        design = np.insert(self.predict(X), 0, 1.0, axis=1)
        return np.clip(design @ self.readout_, 0.0, 1.0)

    def _in_units(self, values: Array) -> Array:
        """Undo the scaling of values (m, d) or (m, d, k)."""
        low, high = self.ends_.T.reshape(2, -1, *[1] * (values.ndim - 2))
        return np.asarray(low + values * (high - low))

    def predict_quantiles(self, X: Any, levels: Sequence[float] = LEVELS) -> Array:
        """Return quantiles of the outcomes (m, d, levels) in their own units.

        Raises
        ------
        UserError
            If the model has no conditional law (``base="none"``), or a level is not in (0, 1).
        """
        seen = self._seen(X)
        if not isinstance(self.fitted_, Conditional):
            raise UserError("base = 'none' has no law of outcomes; fit with base='auto'")
        return self._in_units(self.fitted_.forecast([], seen, checked_levels(levels))[2])

    def predict_mixture(self, X: Any) -> tuple[Indices, list[Mixture]]:
        """Return the randomised predictor itself.

        Returns
        -------
        int array (m,), list of Mixture
            For each row the place of its law in the list; without a base one law per distinct tuple
            of suggestions, else one atom per row.
        """
        laws: list[Mixture] = []
        seen = self._seen(X)
        place = np.empty(len(seen), dtype=np.intp)
        for rows, law in self._laws(self.fitted_, seen):
            place[rows] = len(laws)
            laws.append(law)
        return place, laws

    def _play(
        self, fitted: Fitted | Conditional, losses: Sequence[AnyLoss], seen: Seen
    ) -> list[tuple[Array, Array]]:
        """Law of play (m, A) and expected loss (m,) of each loss."""
        finite = [self._finite(loss) for loss in losses]
        if isinstance(fitted, Conditional):
            return _certain(fitted.expected(finite, seen))
        found = []
        for loss in finite:
            chosen = choose(fitted.listed, loss, gamma=self.gamma)
            play, mean = np.empty((len(seen), loss.actions)), np.empty(len(seen))
            for rows, law in self._laws(fitted, seen):
                play[rows] = played(chosen.offset, chosen.weights, law)
                mean[rows] = law.weights @ (chosen.offset + law.points @ chosen.weights.T).min(1)
            found.append((play, mean))
        return found

    def act_proba(self, loss: AnyLoss, X: Any) -> Array:
        """Return the law (m, A) of a loss's best response, ties to the lowest.

        Parameters
        ----------
        loss : single Loss or ContinuousLoss
            It need not be listed; without a base it must be in the span of the basis.
        X : array (m, f)
        """
        seen = self._seen(X)
        return self._play(self.fitted_, [loss], seen)[0][0]

    def act(self, loss: AnyLoss, X: Any) -> NDArray[Any]:
        """Draw an action for every row: indices (m,), or points (m, k) of the net.

        The draws depend on ``random_state`` and on the place of a row in the table alone.
        """
        return self._points(loss, self._drawn(self.act_proba(loss, X)))

    def _drawn(self, laws: Array) -> Indices:
        if isinstance(self.fitted_, Conditional):
            return np.asarray(laws.argmax(1))
        rng = stream(self.random_state or 0, "omniprediction", "act")
        return draw_rows(laws, rng.random(len(laws)))

    def expected_loss(self, loss: AnyLoss, X: Any) -> Array:
        """Return what a loss expects of its own action: (m,)."""
        seen = self._seen(X)
        return self._play(self.fitted_, [loss], seen)[0][1]

    def predict_frame(
        self,
        X: Any,
        *,
        levels: Sequence[float] = LEVELS,
        laws: bool = False,
        names: Mapping[str, Sequence[str]] | None = None,
    ) -> pd.DataFrame:
        """Predict everything that people use, a row per row of X, with its index.

        Parameters
        ----------
        levels : sequence of float
            Of the outcomes' quantiles, in (0, 1).
        laws : bool
            Also the probability of every action.
        names : dict, optional
            ``outcomes``, and ``losses``: a name for each listed loss or stack of losses.

        Returns
        -------
        DataFrame
            Each outcome's mean and quantiles (``sales``, ``sales_q10``) in its own units; of each
            listed loss ``_action``, drawn, ``_expected_loss`` and with ``laws`` ``_p0`` and so on.
        """
        seen, given = self._seen(X), dict(names or {})
        outcomes = given.get("outcomes") or [f"y_{j}" for j in range(len(self.ends_))]
        stacks = as_list(self.losses)
        titles = given.get("losses") or [f"loss{s}" for s in range(len(stacks))]
        pairs = [pair for s, t in zip(stacks, titles, strict=True) for pair in _singles(s, t)]
        losses = [loss for _, loss in pairs]
        if isinstance(self.fitted_, Conditional):
            finite, own = [self._finite(loss) for loss in losses], checked_levels(levels)
            tables, means, quantiles = self.fitted_.forecast(finite, seen, own)
            plays = _certain(tables)
        else:
            means, plays = self._unscaled(seen, X), self._play(self.fitted_, losses, seen)
            own, quantiles = (), np.empty((len(seen), len(outcomes), 0))
        forecast, spread = self._in_units(means), self._in_units(quantiles)
        columns: dict[str, Any] = {}
        for j, name in enumerate(outcomes):
            columns[name] = forecast[:, j]
            columns |= {f"{name}_q{100 * q:g}": spread[:, j, k] for k, q in enumerate(own)}
        for (title, loss), (law, mean) in zip(pairs, plays, strict=True):
            columns[f"{title}_action"] = list(self._points(loss, self._drawn(law)))
            columns[f"{title}_expected_loss"] = mean
            if laws:
                columns |= {f"{title}_p{a}": law[:, a] for a in range(law.shape[1])}
        return pd.DataFrame(columns, index=getattr(X, "index", None))

    def _points(self, loss: AnyLoss, drawn: Indices) -> NDArray[Any]:
        """Actions as people know them: indices, or points of the net."""
        if not isinstance(loss, ContinuousLoss) or self.net_ is None:
            return drawn
        return np.asarray(self.net_[drawn])

    def _finite(self, loss: AnyLoss) -> Loss:
        self._size()  # fitted
        return on_net(loss, self.net_)


def _certain(tables: Sequence[Array]) -> list[tuple[Array, Array]]:
    """Best responses to expected losses (m, A): as a law, and what is expected."""
    return [(one_hot(best_response(t), t.shape[1]), t.min(1)) for t in tables]


def checked_levels(levels: Sequence[float]) -> Sequence[float]:
    """Return levels of quantiles; UserError where one is not in (0, 1)."""
    if not all(0 < level < 1 for level in levels):
        raise UserError(f"levels = {list(levels)}: give numbers between 0 and 1")
    return levels


def _singles(loss: AnyLoss, title: str) -> list[tuple[str, AnyLoss]]:
    """List a loss or the losses of a stack, each with a name."""
    if isinstance(loss, ContinuousLoss) or not loss.stack:
        return [(title, loss)]
    return [(f"{title}_{k}", loss[k]) for k in range(len(loss))]
