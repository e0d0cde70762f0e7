"""What a fitted randomised predictor answers: predictions, their law, and actions for a loss."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regretless.forecaster.omniprediction.choices import AnyLoss, choose, on_net
from regretless.forecaster.omniprediction.fitting import Fitted
from regretless.forecaster.omniprediction.nets import ContinuousLoss
from regretless.forecaster.omniprediction.parameters import Parameters, not_fitted
from regretless.forecaster.omniprediction.predictors import played
from regretless.forecaster.omniprediction.suggestions import checked_features, suggested
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.game.basis import Basis
from regretless.market.losses import Loss
from regretless.market.records import Mixture
from regretless.market.records.records import draw_index


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


class RandomisedPredictor(Parameters):
    """Predictions and actions of a fitted model; what it needs is set by ``fit``.

    Attributes
    ----------
    policies, gamma, random_state : as in ``OfflineOmnipredictor``
    basis_, net_, n_features_in_, fitted_, readout_ : as in ``OfflineOmnipredictor``
    """

    policies: Sequence[Any]
    gamma: float
    random_state: int | None
    basis_: Basis
    net_: Array | None
    n_features_in_: int
    fitted_: Fitted
    readout_: Array

    def _tuples(self, X: Any) -> Indices:  # noqa: N803
        """Suggestions of the fitted policies for a table."""
        if not hasattr(self, "fitted_"):
            raise not_fitted()
        features = checked_features(X)
        if features.shape[1] != self.n_features_in_:
            raise UserError(
                f"X has {features.shape[1]} features, but OfflineOmnipredictor is expecting "
                f"{self.n_features_in_} features as input"
            )
        actions = self.fitted_.listed.actions
        return suggested(self.policies, X, len(features), actions=actions, net=self.net_)

    def _laws(self, X: Any) -> Iterator[tuple[Indices, Mixture]]:  # noqa: N803
        yield from self.fitted_.predictors.by_tuple(self._tuples(X))

    def predict(self, X: Any, *, draw: bool = False) -> Array:  # noqa: N803
        """Predict s(y) for every row of a table: (m, n).

        Parameters
        ----------
        X : array (m, f)
            As in ``fit``; where there are no features, an array (m, 0).
        draw : bool
            A draw of the randomised predictor for each row, instead of its mean. Actions are to be
            taken on draws: the mean has no guarantee.
        """
        found = np.empty((len(checked_features(X)), self._size()))
        rng = stream(self.random_state or 0, "omniprediction", "draw")
        uniforms = rng.random(len(found))
        for rows, law in self._laws(X):
            if draw:
                steps = np.searchsorted(np.cumsum(law.weights), uniforms[rows], side="right")
                found[rows] = law.points[np.minimum(steps, len(law.weights) - 1)]
            else:
                found[rows] = law.mean
        return found

    def _size(self) -> int:
        if not hasattr(self, "fitted_"):
            raise not_fitted()
        return self.basis_.size

    def predict_outcome(self, X: Any) -> Array:  # noqa: N803
        """Read a forecast of the outcome (m, d) off the mean prediction, for people to look at.

        It is the mean outcome where the basis is linear; elsewhere what a prediction of s(y)
        suggests by ``readout_``. Nothing is promised of it, and no agent acts on it.
        """
        design = np.insert(self.predict(X), 0, 1.0, axis=1)
        return np.clip(design @ self.readout_, 0.0, 1.0)

    def predict_mixture(self, X: Any) -> tuple[Indices, list[Mixture]]:  # noqa: N803
        """Return the randomised predictor itself.

        Returns
        -------
        int array (m,), list of Mixture
            For each row the place of its law in the list; one law per distinct tuple of
            suggestions.
        """
        laws: list[Mixture] = []
        place = np.empty(len(checked_features(X)), dtype=np.intp)
        for rows, law in self._laws(X):
            place[rows] = len(laws)
            laws.append(law)
        return place, laws

    def act_proba(self, loss: AnyLoss, X: Any) -> Array:  # noqa: N803
        """Return the law (m, A) of a loss's best response to a draw, ties to the lowest.

        Parameters
        ----------
        loss : single Loss or ContinuousLoss
            It need not be listed, but must be in the span of the basis.
        X : array (m, f)
        """
        finite = self._finite(loss)
        chosen = choose(self.fitted_.listed, finite, gamma=self.gamma)
        found = np.empty((len(checked_features(X)), finite.actions))
        for rows, law in self._laws(X):
            found[rows] = played(chosen.offset, chosen.weights, law)
        return found

    def act(self, loss: AnyLoss, X: Any) -> NDArray[Any]:  # noqa: N803
        """Draw an action for every row: indices (m,), or points (m, k) of the net.

        The draws depend on ``random_state`` and on the place of a row in the table alone.
        """
        rng = stream(self.random_state or 0, "omniprediction", "act")
        laws = self.act_proba(loss, X)
        drawn = np.array([draw_index(law, rng) for law in laws], dtype=np.intp)
        if isinstance(loss, ContinuousLoss) and self.net_ is not None:
            return np.asarray(self.net_[drawn])
        return drawn

    def _finite(self, loss: AnyLoss) -> Loss:
        self._size()  # fitted
        return on_net(loss, self.net_)
