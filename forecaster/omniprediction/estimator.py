"""One predictor learned from a table, good for every loss of a list and those near it.

The second half of the paper: the online forecaster is run over the rows in random order, and the
randomised predictor is the uniform law over its prediction functions (``predictors``). Whoever
best-responds to a draw has, on fresh examples, no more decision swap regret than ``bound`` says
(``batch_bounds``). Nobody's loss needs to be known when a prediction is made.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from regretless.forecaster.omniprediction import nets, storage
from regretless.forecaster.omniprediction.batch_bounds import BatchBound, Measure
from regretless.forecaster.omniprediction.choices import (
    AnyLoss,
    Position,
    choose,
    listing,
    steepest,
)
from regretless.forecaster.omniprediction.fitting import EventKind, Settings, run
from regretless.forecaster.omniprediction.nets import ContinuousLoss
from regretless.forecaster.omniprediction.parameters import check_numbers
from regretless.forecaster.omniprediction.prediction import RandomisedPredictor, readout
from regretless.forecaster.omniprediction.suggestions import (
    checked_features,
    checked_outcomes,
    suggested,
)
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError
from regretless.market.game.basis import Basis
from regretless.market.regret import reference


class OfflineOmnipredictor(RandomisedPredictor):
    """A randomised predictor of s(y), learned from examples, for many losses at once.

    Parameters
    ----------
    losses : sequence of Loss or of ContinuousLoss
        What is protected: single losses or stacks with values in [0, 1]; or losses of actions in
        [0, 1]^m, which are played on a net.
    policies : sequence
        Benchmarks c(x): fitted classifiers and other objects whose ``predict`` gives an action
        index for every row, or callables from a row to one. With continuous actions they give
        points of [0, 1]^m, which are snapped to the net.
    basis : Basis, optional
        In which the losses are linear. By default one that fits them (``spans``).
    delta : float, optional
        Wanted error of a default basis that is not exact.
    theta : float, optional
        Radius of the net for continuous actions; the theorem's by default.
    gamma : float
        A loss that was not listed acts as the nearest listed one if their linear forms are this
        close, and then has a bound; otherwise it plays its own best response, without one.
    kappa : float
        Probability that the bound fails.
    rounds_kept : int
        How many rounds' predictors the mixture holds.
    burn_in : float
        Share of the rounds, from the first, whose predictors are never kept; in [0, 1). The
        paper's is 0.
    events : "coordinates" or "losses"
        What the online forecaster is unbiased on; see ``forecaster.events.coordinate`` and
        ``forecaster.events.scalar``.
    weights : "adaptive" or "exponential"
    random_state : int or None
        Root seed of the order, the kept rounds and all draws; None counts as 0.

    Attributes
    ----------
    basis_ : Basis
    net_ : array (N, m) or None
        The net of continuous actions.
    n_features_in_ : int
    bound_ : float
        The greatest ``bound`` on decision swap regret of a listed loss.
    fitted_ : Fitted
        The online run: ``fitted_.rounds``, ``fitted_.predictors``, ``fitted_.bias``.
    readout_ : array (1 + n, d)
        The linear reading of an outcome off s(y) that fits the examples best.

    Notes
    -----
    scikit-learn is not needed; its ``clone``, pipelines and searches work with this class. Outcomes
    must be in [0, 1]: scale them first.
    """

    def __init__(  # noqa: PLR0913 - scikit-learn's convention: one keyword per parameter
        self,
        losses: Sequence[AnyLoss] | AnyLoss,
        policies: Sequence[Any] = (),
        *,
        basis: Basis | None = None,
        delta: float | None = None,
        theta: float | None = None,
        gamma: float = 0.0,
        kappa: float = 0.01,
        rounds_kept: int = 200,
        burn_in: float = 0.0,
        events: EventKind = "coordinates",
        weights: str = "adaptive",
        random_state: int | None = None,
    ) -> None:
        self.losses, self.policies = losses, policies
        self.basis, self.delta, self.theta, self.gamma = basis, delta, theta, gamma
        self.kappa, self.rounds_kept, self.burn_in = kappa, rounds_kept, burn_in
        self.events, self.weights, self.random_state = events, weights, random_state

    # fitting

    def fit(self, X: Any, Y: Any = None) -> Self:  # noqa: N803 - scikit-learn's names
        """Learn from a table.

        Parameters
        ----------
        X : array (m, f), DataFrame or None
            Features, seen by the policies only.
        Y : array (m, d) or (m,)
            Outcomes in [0, 1].

        Raises
        ------
        UserError
            If a parameter, a row, a loss or a policy's suggestion is out of its range.
        """
        check_numbers(self)
        outcomes = checked_outcomes(Y)
        features = checked_features(X, len(outcomes))
        if len(features) != len(outcomes):
            raise UserError(f"X has {len(features)} rows and Y {len(outcomes)}; give as many")
        listed, self.net_ = listing(self, outcomes)
        self.basis_, self.n_features_in_ = listed.basis, features.shape[1]
        suggestions = suggested(
            self.policies, X, len(outcomes), actions=listed.actions, net=self.net_
        )
        settings = Settings(
            self.events, self.weights, self.rounds_kept, self.burn_in, self.random_state or 0
        )
        self.fitted_ = run(listed, suggestions, outcomes, settings)
        self.readout_ = readout(listed.basis, outcomes)
        places = [Position(s, k) for s, o in enumerate(listed.offsets) for k in range(len(o))]
        self.bound_ = max(self._terms(place).total for place in places)
        self.notes_: dict[str, Any] = {}
        return self

    # regret and bounds

    def decision_swap_regret(
        self,
        loss: AnyLoss,
        policies: Sequence[Any] | None,
        X: Any,  # noqa: N803
        Y: Any,  # noqa: N803
    ) -> float:
        """Measure decision swap regret on other examples, in expectation over the predictor.

        Parameters
        ----------
        loss : single Loss or ContinuousLoss
        policies : sequence or None
            Benchmarks beside the constants; None for those of the fit.
        X : array (m, f)
        Y : array (m, d)

        Returns
        -------
        float
            Per example, against the best assignment of a constant or policy to each action.
        """
        return reference.decision_swap_regret(*self._against(loss, policies, X, Y))

    def omniprediction_regret(
        self,
        loss: AnyLoss,
        policies: Sequence[Any] | None,
        X: Any,  # noqa: N803
        Y: Any,  # noqa: N803
    ) -> float:
        """Measure the loss above that of the best constant or policy; the rest is as above."""
        return reference.omniprediction_regret(*self._against(loss, policies, X, Y))

    def _against(
        self,
        loss: AnyLoss,
        policies: Sequence[Any] | None,
        X: Any,  # noqa: N803
        Y: Any,  # noqa: N803
    ) -> tuple[Array, Array, Indices]:
        """Losses (m, A), laws of play (m, A) and comparators' actions (C, m)."""
        finite, outcomes = self._finite(loss), checked_outcomes(Y)
        rules = self.policies if policies is None else policies
        suggestions = suggested(rules, X, len(outcomes), actions=finite.actions, net=self.net_)
        constants = np.tile(np.arange(finite.actions), (len(outcomes), 1))
        comparators = np.concatenate([constants, suggestions], axis=1).T
        return finite.losses(outcomes), self.act_proba(loss, X), comparators

    def bound(self, loss: AnyLoss, measure: Measure = "decision_swap") -> BatchBound | None:
        """Bound a loss's regret on fresh examples, with probability 1 - kappa for all at once.

        Parameters
        ----------
        loss : single Loss or ContinuousLoss
        measure : "decision_swap" or "omniprediction"

        Returns
        -------
        BatchBound or None
            Term by term, ``total`` is the bound; None for a loss that is neither listed nor within
            ``gamma`` of one that is.
        """
        chosen = choose(self.fitted_.listed, self._finite(loss), gamma=self.gamma)
        if chosen.place is None:
            return None
        net = 0.0
        if isinstance(loss, ContinuousLoss) and self.net_ is not None:
            net = loss.constant * nets.radius(self.net_)
        return self._terms(chosen.place, measure, basis=2 * chosen.apart, net=net)

    def online_bound(self, loss: AnyLoss) -> float | None:
        """Bound a loss's online regret a priori, from certificates: what ``online`` stays below."""
        chosen = choose(self.fitted_.listed, self._finite(loss), gamma=self.gamma)
        if chosen.place is None:
            return None
        bounds = self.fitted_.online_bound(chosen.place.stack)
        return None if bounds is None else float(bounds[chosen.place.row])

    def _terms(
        self,
        place: Position,
        measure: Measure = "decision_swap",
        *,
        basis: float = 0.0,
        net: float | None = None,
    ) -> BatchBound:
        fitted = self.fitted_
        trial = fitted.trial(fitted.listed.offsets[place.stack].shape[1], self.kappa)
        online = float(fitted.online[place.stack].regret(measure)[place.row])
        if net is None:
            net = 0.0 if self.net_ is None else steepest(self.losses) * nets.radius(self.net_)
        return BatchBound(online, trial.sampling(measure), trial.keeping(measure), basis, net)

    # files

    def save(self, path: str | Path, *, notes: dict[str, Any] | None = None) -> None:
        """Write the fitted model to one file, without pickle.

        Parameters
        ----------
        notes : dict, optional
            Plain values to keep beside the model; a loaded model has them as ``notes_``.

        Raises
        ------
        UserError
            If a policy, loss or basis is code and not data.
        """
        self._size()  # fitted
        storage.save(self, Path(path), notes or {})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model that ``save`` wrote; UserError if it is no such file."""
        model: Self = storage.load(cls, Path(path))
        return model
