"""One predictor learned from a table, good for every loss of a list and those near it.

A conditional law P(y | x) is learned from the table, and everybody best-responds to it
(``conditional``); what a law regrets on fresh examples is certified on rows held out
(``certificates``), and the law in use is then learned again from all rows. With ``base="none"`` it
is the second half of the paper: the online forecaster is run over the rows in random order, and the
randomised predictor is the uniform law over its prediction functions (``predictors``). Whoever
best-responds to a draw has, on fresh examples, no more decision swap regret than ``bound`` says
(``batch_bounds``). Nobody's loss needs to be known when a prediction is made.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from regretless.forecaster.omniprediction import conditional, nets, storage
from regretless.forecaster.omniprediction.batch_bounds import BatchBound, Measure
from regretless.forecaster.omniprediction.certificates import Certificate, certify
from regretless.forecaster.omniprediction.choices import (
    AnyLoss,
    Position,
    choose,
    is_listed,
    listing,
    steepest,
)
from regretless.forecaster.omniprediction.fitting import EventKind, Fitted, Listed, Settings, run
from regretless.forecaster.omniprediction.nets import ContinuousLoss
from regretless.forecaster.omniprediction.parameters import check_numbers
from regretless.forecaster.omniprediction.prediction import RandomisedPredictor, readout
from regretless.forecaster.omniprediction.suggestions import (
    checked_outcomes,
    named,
    scaled,
    suggested,
)
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError
from regretless.market.losses.basis import Basis
from regretless.market.regret import definitions


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
        Probability that the bounds fail.
    rounds_kept : int, optional
        How many rounds' predictors the online run's mixture holds; by default 10 sqrt(T), with
        which no term of the bound rises with the number of rows T.
    burn_in : float
        Share of the rounds, from the first, whose predictors are never kept; in [0, 1). The
        paper's is 0.
    events : "coordinates" or "losses"
        What the online forecaster is unbiased on; see ``forecaster.events.coordinate`` and
        ``forecaster.events.scalar``.
    weights : "adaptive" or "exponential"
    random_state : int or None
        Root seed of folds, orders and all draws; None counts as 0.
    base : "auto", "ridge" or "none"
        What the conditional law is mixed of: forests and neighbours in forecasts (with
        scikit-learn), neighbours in a linear forecast alone, or the online run without one.
    trees : int
        Of each forest.
    cv : int, splitter or list of splits
        Folds of the cross-fitting; ``TimeSeriesSplit`` and the like for rows in an order.
    holdout : float or "auto"
        Share of the rows that nothing is learned from, for certificates. By default a fifth of
        them, 300 to 2,000, where there are 1,000 rows or more, and none with fewer.
    refit : bool
        Whether the law in use is learned again, from all rows, when the law learned without the
        held-out ones is certified. With False the certified law is the one in use.
    ends : sequence of (low, high), optional
        What becomes 0 and 1 of each outcome. By default the least and greatest one where an
        outcome leaves [0, 1].

    Attributes
    ----------
    basis_ : Basis
    net_ : array (N, m) or None
        The net of continuous actions.
    n_features_in_ : int
    ends_ : array (d, 2)
    bound_ : float or None
        The greatest ``bound`` on decision swap regret of a listed loss; None where none holds.
    certified_on_holdout_ : float or None
        The greatest of the listed losses' certificates, which are about ``certified_fit_``; None
        where no rows were held out.
    certified_fit_ : Conditional or Fitted
        What was learned without the held-out rows: ``fitted_`` itself if that was not refitted.
    fitted_ : Conditional or Fitted
        ``fitted_.law`` with its ``shares``; or the online run: ``fitted_.rounds``,
        ``fitted_.predictors``, ``fitted_.bias``.
    readout_ : array (1 + n, d)
        The linear reading of an outcome off s(y) that fits the examples best.

    Notes
    -----
    Losses are functions of outcomes in [0, 1]; ``ends`` says how the table's get there. ``clone``,
    pipelines and searches of scikit-learn work with this class.
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
        rounds_kept: int | None = None,
        burn_in: float = 0.0,
        events: EventKind = "coordinates",
        weights: str = "adaptive",
        random_state: int | None = None,
        base: str = "auto",
        trees: int = 100,
        cv: Any = 5,
        holdout: float | str = "auto",
        refit: bool = True,
        ends: Any = None,
    ) -> None:
        self.losses, self.policies = losses, policies
        self.basis, self.delta, self.theta, self.gamma = basis, delta, theta, gamma
        self.kappa, self.rounds_kept, self.burn_in = kappa, rounds_kept, burn_in
        self.events, self.weights, self.random_state = events, weights, random_state
        self.base, self.trees, self.cv, self.ends = base, trees, cv, ends
        self.holdout, self.refit = holdout, refit

    # fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Learn from a table.

        Parameters
        ----------
        X : array (m, f), DataFrame or None
            Features.
        y : array (m, d) or (m,)
            Outcomes.
        sample_weight : array (m,), optional
            What rows count; with weights that differ nothing is certified.
        groups : array (m,), optional
            Rows of one group are in one fold; with groups nothing is certified.

        Raises
        ------
        UserError
            If a parameter, a row, a loss or a policy's suggestion is out of its range.
        """
        check_numbers(self)
        rows, self.ends_ = conditional.examples(self.ends, X, y, sample_weight, groups)
        self.feature_names_in_ = named(X, None)
        if self.feature_names_in_ is None:
            del self.feature_names_in_  # scikit-learn's habit
        listed, self.net_ = listing(self, rows.outcomes)
        self.basis_, self.n_features_in_ = listed.basis, rows.seen.features.shape[1]
        asked = suggested(self.policies, X, len(rows.seen), actions=listed.actions, net=self.net_)
        rows = replace(rows, seen=conditional.Seen(rows.seen.features, asked))
        held = conditional.held_out(self, rows)
        self.held_: conditional.Examples | None = rows[held] if held.any() else None
        self.fitted_ = self.certified_fit_ = self._learned(listed, rows[~held])
        self.readout_ = readout(listed.basis, rows[~held].outcomes)
        places = [Position(s, k) for s, o in enumerate(listed.offsets) for k in range(len(o))]
        self.certified_on_holdout_ = None
        if self.held_ is not None:
            certified = self._certify(listed.singles, "decision_swap", self.kappa)
            self.certified_on_holdout_ = max(own.total for own in certified)
        self.bound_ = self.certified_on_holdout_
        if isinstance(self.fitted_, Fitted):
            self.bound_ = max(self._terms(place).total for place in places)
        elif self.refit and self.held_ is not None:
            self.fitted_ = self._learned(listed, rows)
        self.notes_: dict[str, Any] = {}
        return self

    def _learned(
        self, listed: Listed, rows: conditional.Examples
    ) -> conditional.Conditional | Fitted:
        if self.base != "none":
            return conditional.learn_law(self, listed, rows)
        if not rows.exchangeable:
            raise UserError("base = 'none' knows no sample_weight and groups; use base='auto'")
        settings = Settings.of(self, len(rows.outcomes))
        return run(listed, rows.seen.suggestions, rows.outcomes, settings)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return minus the mean loss, over rows and listed losses; higher is better."""
        seen = self._seen(X)
        losses, outcomes = self.fitted_.listed.singles, scaled(checked_outcomes(y), self.ends_)
        plays = zip(losses, self._play(self.fitted_, losses, seen), strict=True)
        means = [(law * loss.losses(outcomes)).sum(1) for loss, (law, _) in plays]
        return -float(np.average(np.mean(means, axis=0), weights=sample_weight))

    # regret and bounds

    def decision_swap_regret(
        self, loss: AnyLoss, policies: Sequence[Any] | None, X: Any, Y: Any
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
        return definitions.decision_swap_regret(*self._against(loss, policies, X, Y))

    def omniprediction_regret(
        self, loss: AnyLoss, policies: Sequence[Any] | None, X: Any, Y: Any
    ) -> float:
        """Measure the loss above that of the best constant or policy; the rest is as above."""
        return definitions.omniprediction_regret(*self._against(loss, policies, X, Y))

    def _against(
        self, loss: AnyLoss, policies: Sequence[Any] | None, X: Any, Y: Any
    ) -> tuple[Array, Array, Indices]:
        """Losses (m, A), laws of play (m, A) and comparators' actions (A + C, m)."""
        seen = self._seen(X)
        outcomes = scaled(checked_outcomes(Y), self.ends_)
        if policies is None:
            return self._compared(self.fitted_, loss, seen, outcomes)
        actions = self._finite(loss).actions
        asked = suggested(policies, X, len(outcomes), actions=actions, net=self.net_)
        return self._compared(self.fitted_, loss, seen, outcomes, asked.T)

    def _compared(
        self,
        fitted: conditional.Conditional | Fitted,
        loss: AnyLoss,
        seen: conditional.Seen,
        outcomes: Array,
        others: Indices | None = None,
    ) -> tuple[Array, Array, Indices]:
        """Compare with constants and others: by default with the policies and the law's members."""
        finite, (play, _) = self._finite(loss), self._play(fitted, [loss], seen)[0]
        if others is None:
            others = seen.suggestions.T
            if isinstance(fitted, conditional.Conditional):
                others = np.concatenate([others, fitted.instead(finite, seen)])
        constants = np.tile(np.arange(finite.actions)[:, None], len(outcomes))
        return finite.losses(outcomes), play, np.concatenate([constants, others])

    def _certify(
        self, losses: Sequence[AnyLoss], measure: Measure, kappa: float
    ) -> list[Certificate]:
        held: Any = self.held_
        fit = self.certified_fit_
        parts = (self._compared(fit, loss, held.seen, held.outcomes) for loss in losses)
        own = kappa / len(losses)
        return [certify(*part, measure=measure, kappa=own) for part in parts]

    def certificate(self, loss: AnyLoss, measure: Measure = "decision_swap") -> Certificate | None:
        """Certify a loss's regret on fresh examples from the rows that were held out.

        It is the regret of ``certified_fit_``, which has not seen these rows. With ``refit`` the
        law in use is another one, learned from them too, and no theorem speaks of it.

        Parameters
        ----------
        loss : single Loss or ContinuousLoss
            Listed ones are certified with probability 1 - ``kappa`` all at once; any other with
            1 - ``kappa`` by itself, if nobody chose it after a look at the held-out rows.
        measure : "decision_swap" or "omniprediction"
            Against the constants, the policies and what the law's members would do.

        Returns
        -------
        Certificate or None
            None where no rows were held out.
        """
        finite, listed = self._finite(loss), self.fitted_.listed
        if self.held_ is None:
            return None
        kappa = self.kappa / (listed.count if is_listed(listed, finite) else 1)
        return self._certify([finite], measure, kappa)[0]

    def bound(
        self, loss: AnyLoss, measure: Measure = "decision_swap"
    ) -> BatchBound | Certificate | None:
        """Bound a loss's regret on fresh examples, with probability 1 - kappa.

        Parameters
        ----------
        loss : single Loss or ContinuousLoss
        measure : "decision_swap" or "omniprediction"

        Returns
        -------
        Certificate, BatchBound or None
            ``total`` is the bound. With a base it is ``certificate``; without one it is the
            paper's, term by term, for all listed losses at once, and None for a loss that is
            neither listed nor within ``gamma`` of one that is.
        """
        self._size()
        if isinstance(self.fitted_, conditional.Conditional):
            return self.certificate(loss, measure)
        chosen = choose(self.fitted_.listed, self._finite(loss), gamma=self.gamma)
        if chosen.place is None:
            return None
        net = 0.0
        if isinstance(loss, ContinuousLoss) and self.net_ is not None:
            net = loss.constant * nets.radius(self.net_)
        return self._terms(chosen.place, measure, basis=2 * chosen.apart, net=net)

    def online_bound(self, loss: AnyLoss) -> float | None:
        """Bound a loss's online regret a priori, from certificates: what ``online`` stays below.

        None with a base, and for a loss that is neither listed nor near one that is.
        """
        if isinstance(self.fitted_, conditional.Conditional):
            return None
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
        fitted: Any = self.fitted_
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
