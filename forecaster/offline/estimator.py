"""One predictor learned from a table, for every loss of a list and those near it.

By default a conditional distribution P(y | x) is learned (``conditional``), everybody best-responds
to it, and its regret on fresh examples is certified on rows held out (``certificate``); then the
distribution in use is learned again from all rows. Or what is in use are fits on growing parts,
each certified on the next part (``growing_fits``). With ``base="none"`` it is the paper's offline
omnipredictor, a mixture of the online forecaster's prediction functions (``online_to_batch``).
"""

from collections.abc import Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from regretless.forecaster import persistence
from regretless.forecaster.offline import tables
from regretless.forecaster.offline.certificate import BatchBound, Certificate, Measure, certify
from regretless.forecaster.offline.conditional import MIXED, ConditionalDistribution
from regretless.forecaster.offline.continuous_actions import ContinuousLoss
from regretless.forecaster.offline.growing_fits import GrowingFits, learn_growing
from regretless.forecaster.offline.online_to_batch import (
    EVENTS,
    MEASURES,
    OnlineToBatch,
    sample_size,
)
from regretless.forecaster.offline.tables import AnyLoss, Listed, Rows, same, scaled
from regretless.forecaster.weights import rule_of
from regretless.market.core.arrays import Array, Indices, Mask, draw_rows
from regretless.market.core.errors import UserError, brief
from regretless.market.core.randomness import stream
from regretless.market.core.validation import (
    LARGEST,
    check_name,
    check_path,
    numbers,
    refused_in_one_line,
)
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis
from regretless.market.regret import decision_swap_regret, omniprediction_regret

ENOUGH = 1000  # rows from which some are held out; with fewer the distribution needs them more
HELD = 0.2
MIN_HELD_OUT = 300
MAX_HELD_OUT = 2000
LEVELS = (0.1, 0.5, 0.9)
PREQUENTIAL = "prequential"
FEATURES: Any = {"dtype": "float64", "ensure_min_features": 0}
COUNT, POSITIVE = (Interval(Integral, least, None, closed="left") for least in (0, 1))
MAX_TREES = 100_000
MAX_FOLDS = 10_000


class OfflineOmnipredictor(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A predictor of s(y), learned from examples, that serves many losses at once.

    Parameters
    ----------
    losses : sequence of Loss or of ContinuousLoss
        What is protected: single losses or stacks with values in [0, 1]; or losses of actions in
        [0, 1]^m, which are played on a net.
    policies : sequence
        Benchmarks c(x): objects whose ``predict`` gives an action index for every row, or callables
        from a row to one. With continuous actions they give points, which are rounded to the net.
    basis, delta : Basis, float, optional
        In which the losses are linear, or the wanted error of a default one that is not exact.
    theta : float, optional
        Radius of the net for continuous actions; the theorem's by default.
    gamma : float
        Without a base, a loss that was not listed acts as the nearest listed one if their linear
        forms are this close, and then has a bound; otherwise it plays its own best response.
    kappa : float
        Probability that the bounds fail.
    rounds_kept : int, optional
        How many rounds' predictors the online run's mixture holds; by default 10 sqrt(T), with
        which no term of the bound rises with the number of rows T.
    events : "coordinates" or "losses"
        What the online forecaster is unbiased on.
    weights : "adaptive" or "exponential"
    random_state : int or None
        Root seed of folds, orders and all draws; None counts as 0.
    base : "auto", "ridge" or "none"
        What the conditional distribution is mixed of: extremely randomised trees, boosting and
        ridge regression; ridge regression alone; or the online run without a distribution.
    trees : int
        Of the forest, and of each boosted model.
    cv : int, splitter or list of splits
        Folds of the cross-fitting; ``TimeSeriesSplit`` and the like for rows in an order.
    holdout : float, "auto" or "prequential"
        Share of the rows that nothing is learned from, for certificates. By default a fifth of
        them, 300 to 2,000, where there are 1,000 rows or more, and none with fewer. With
        "prequential" four fits learn from growing parts, from half of the rows on, and each is
        certified on the next part; what acts is the mean of their strategies.
    refit : bool
        Whether the distribution in use is learned again from all rows, once it is certified.
        Nothing is learned again with "prequential", where what is certified is in use.
    ends : sequence of (low, high), optional
        What becomes 0 and 1 of each outcome. By default the least and greatest one where an outcome
        leaves [0, 1].

    Attributes
    ----------
    basis_, net_ : Basis, array (N, m) or None
        The net is of continuous actions.
    n_features_in_ : int
    ends_ : array (d, 2)
    fitted_, certified_fit_ : ConditionalDistribution or OnlineToBatch
        What predicts, and what was learned without the held-out rows, the same without a refit.
        ``GrowingFits`` with a prequential holdout.
    certified_on_holdout_ : float or None
        The greatest certificate of a listed loss; None where no rows were held out.
    bound_ : float or None
        The greatest ``bound`` on decision swap regret of a listed loss; None where none holds.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "delta": [Interval(Real, 0, LARGEST, closed="neither"), None],
        "theta": [Interval(Real, 0, LARGEST, closed="neither"), None],
        "gamma": [Interval(Real, 0, LARGEST, closed="left")],
        "kappa": [Interval(Real, 0, 1, closed="neither")],
        "rounds_kept": [POSITIVE, None],
        "events": [StrOptions(set(EVENTS))],
        "random_state": [COUNT, None],
        "base": [StrOptions({*MIXED, "none"})],
        "trees": [Interval(Integral, 1, MAX_TREES, closed="both")],
        "cv": [Interval(Integral, 2, MAX_FOLDS, closed="both"), "cv_object"],
        "holdout": [Interval(Real, 0, 1, closed="left"), StrOptions({"auto", PREQUENTIAL})],
        "refit": ["boolean"],
    }

    def __init__(
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
        events: str = "coordinates",
        weights: str = "adaptive",
        random_state: int | None = None,
        base: str = "auto",
        trees: int = 100,
        cv: Any = 5,
        holdout: float | str = "auto",
        refit: bool = True,
        ends: Any = None,
    ) -> None:
        self.losses = losses
        self.policies = policies
        self.basis = basis
        self.delta = delta  # wanted error of a default basis
        self.theta = theta  # radius of the net of continuous actions
        self.gamma = gamma  # distance within which a loss acts as the nearest listed one
        self.kappa = kappa  # probability that the bounds fail
        self.rounds_kept = rounds_kept
        self.events = events
        self.weights = weights
        self.random_state = random_state
        self.base = base
        self.trees = trees
        self.cv = cv
        self.ends = ends  # of every outcome's range, which become 0 and 1
        self.holdout = holdout
        self.refit = refit

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags

    # fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Learn from features X (m, f), or None, and outcomes y (m, d) or (m,).

        ``sample_weight`` and ``groups`` (m,) say what rows count, and whose: rows of one group are
        in one fold. With either nothing is certified. UserError if a parameter, a row, a loss or a
        policy's suggestion is out of its range.
        """
        with refused_in_one_line():
            self._validate_params()
        rule_of(self.weights, 1)  # refused even where a distribution needs no weights
        has_no_features = X is None or (isinstance(X, list) and not X)
        table = X
        if has_no_features:
            table = np.empty((*np.shape(y)[:1], 0))
        with refused_in_one_line():
            features, y = validate_data(
                self,
                table,
                y,
                **FEATURES,
                multi_output=True,
                ensure_min_samples=1 if self.base == "none" else 2,
            )
            weights = _check_sample_weight(
                sample_weight, features, dtype=np.float64, ensure_non_negative=True
            )
            group_of_row = None
            if groups is not None:
                group_of_row = column_or_1d(groups)
            check_consistent_length(features, group_of_row)
        is_one_group = group_of_row is not None and (group_of_row == group_of_row[0]).all()
        if not weights.any() or is_one_group:
            raise UserError("all rows have weight 0 or are in one group; give others, or leave out")
        outcomes = tables.checked_outcomes(y)
        self.ends_ = tables.ends_of(self.ends, outcomes)
        outcomes = scaled(outcomes, self.ends_)
        listed = Listed(self, outcomes)
        self.basis_ = listed.basis
        self.net_ = listed.net
        inputs = listed.inputs(self.policies, table, features)
        rows = Rows(inputs, outcomes, weights, group_of_row)

        # learn without the rows that are held out, certify, and learn again from all
        learned: Any = OnlineToBatch if self.base == "none" else ConditionalDistribution
        self.held_ = None
        is_certified_in_use = self.holdout == PREQUENTIAL
        if is_certified_in_use:
            self._check_exchangeable(rows)
            if self.base == "none":
                fault = "holdout = 'prequential': base = 'none' has a bound of its own"
                raise UserError(f"{fault}; use base='auto', or a share")
            order = self._stream("holdout").permutation(len(outcomes))
            growing, self.held_ = learn_growing(
                lambda part: ConditionalDistribution(self, listed, part), rows, order
            )
            self.fitted_: Any = growing
        else:
            is_held_out = self._held_out(rows)
            self.fitted_ = learned(self, listed, rows[~is_held_out])
            if is_held_out.any():
                self.held_ = rows[is_held_out]
        self.certified_fit_ = self.fitted_
        certificates = self._certified(listed.single_losses, "decision_swap", self.kappa)
        self.certified_on_holdout_ = None
        if certificates:
            self.certified_on_holdout_ = max(certificate.total for certificate in certificates)
        self.bound_ = self.certified_on_holdout_
        if self.base == "none":
            self.bound_ = self.fitted_.worst()
        elif self.refit and self.held_ is not None and not is_certified_in_use:
            self.fitted_ = learned(self, listed, rows)
        return self

    def _held_out(self, rows: Rows) -> Mask:
        count = len(rows.seen)
        share = self.holdout
        n_held_out = 0
        if share != "auto":
            n_held_out = max(min(round(float(share) * count), count - 2), 0)
        elif self._is_exchangeable(rows) and self.base != "none" and count >= ENOUGH:
            n_held_out = int(np.clip(HELD * count, MIN_HELD_OUT, MAX_HELD_OUT))
        if n_held_out:
            self._check_exchangeable(rows)
        is_held_out = np.zeros(count, dtype=bool)
        is_held_out[self._stream("holdout").choice(count, n_held_out, replace=False)] = True
        return is_held_out

    def _is_exchangeable(self, rows: Rows) -> bool:
        """Whether neither rows nor their splits say that they are not alike."""
        return rows.exchangeable and isinstance(self.cv, Integral)

    def _check_exchangeable(self, rows: Rows) -> None:
        """Raise UserError where rows are not alike, so that no certificate holds."""
        if not self._is_exchangeable(rows):
            raise UserError(
                f"holdout = {self.holdout!r}: groups, sample_weight and time splits say that rows "
                "are not alike, and no certificate holds; leave one of them out"
            )

    def _stream(self, name: str) -> np.random.Generator:
        return stream(self.random_state or 0, "omniprediction", name)

    # predictions

    def _asked(self, X: Any) -> tuple[Any, Array]:
        """Return what predicts, and the rows (m, f + C) of a table as it sees them."""
        check_is_fitted(self)
        with refused_in_one_line():
            features = validate_data(self, X, reset=False, **FEATURES)
        return self.fitted_, self.fitted_.listed.inputs(self.policies, X, features)

    def predict(self, X: Any) -> Array:
        """Predict s(y) for every row of a table (m, f) by the mean of its mixture: (m, n)."""
        fit, inputs = self._asked(X)
        return np.asarray(fit.mean(inputs))

    def predict_outcome(self, X: Any) -> Array:
        """Forecast the outcome (m, d), in its own units, by its mean; not without a base."""
        fit, inputs = self._distribution(X)
        return self._in_units(fit.outcomes(inputs))

    def _distribution(self, X: Any) -> tuple[Any, Array]:
        fit, inputs = self._asked(X)
        if self.base == "none":
            raise UserError("base = 'none' has no distribution of outcomes; fit with base='auto'")
        return fit, inputs

    def _outcomes(self, y: Any, *, rows: int) -> Array:
        """Return outcomes (m, d) in [0, 1], one for each row; UserError where they do not fit."""
        outcomes = tables.checked_outcomes(y)
        if outcomes.shape != (rows, len(self.ends_)):
            fault = f"y has shape {outcomes.shape}, X has {rows} rows"
            raise UserError(f"{fault}; give {len(self.ends_)} outcomes for each row")
        return scaled(outcomes, self.ends_)

    def _in_units(self, values: Array) -> Array:
        low, high = self.ends_.T.reshape(2, -1, *[1] * (values.ndim - 2))
        return np.asarray(low + values * (high - low))

    def predict_quantiles(self, X: Any, levels: Sequence[float] = LEVELS) -> Array:
        """Return quantiles (m, d, levels) of outcomes in their own units; not without a base."""
        checked_levels = _checked_levels(levels)
        fit, inputs = self._distribution(X)
        return self._in_units(fit.quantiles(inputs, checked_levels))

    def act_proba(self, loss: AnyLoss, X: Any) -> Array:
        """Return the mixed strategy (m, A) of a single loss's best response, ties to the lowest.

        The loss need not be listed; without a base it must be in the span of the basis.
        """
        fit, inputs = self._asked(X)
        return np.asarray(fit.play(loss, inputs)[0])

    def act(self, loss: AnyLoss, X: Any) -> NDArray[Any]:
        """Draw an action for every row: indices (m,), or points (m, k) of the net.

        The draws depend on ``random_state`` and on the place of a row in the table alone.
        """
        return self._drawn(loss, self.act_proba(loss, X))

    def expected_loss(self, loss: AnyLoss, X: Any) -> Array:
        """Return what a loss expects of its own action: (m,)."""
        fit, inputs = self._asked(X)
        return np.asarray(fit.play(loss, inputs)[1])

    def predict_frame(self, X: Any, *, levels: Sequence[float] = LEVELS) -> pd.DataFrame:
        """Predict everything that people use, a row per row of X, with its index.

        Of each outcome ``y_0`` and so on the mean and its quantiles at ``levels``, such as
        ``y_0_q10``, in its own units (with a base); of each listed loss ``loss0``, and so on, or of
        each one ``loss0_0`` of a stack, ``_action``, drawn, and ``_expected_loss``.
        """
        checked_levels = _checked_levels(levels)
        fit, inputs = self._asked(X)  # the fitted predictor, and the checked rows as it sees them
        columns: dict[str, Any] = {}
        if self.base != "none":
            means = self._in_units(fit.outcomes(inputs))
            quantiles = self.predict_quantiles(X, checked_levels)
            for coordinate, mean in enumerate(means.T):
                columns[f"y_{coordinate}"] = mean
                for index, level in enumerate(checked_levels):
                    name = f"y_{coordinate}_q{100 * level:g}"
                    columns[name] = quantiles[:, coordinate, index]
        for position, loss in enumerate(tables.as_list(self.losses)):
            singles: dict[str, AnyLoss] = {f"loss{position}": loss}
            if isinstance(loss, Loss) and loss.stack:
                singles = {f"loss{position}_{row}": loss[row] for row in range(len(loss))}
            for name, single in singles.items():
                strategies, expected = fit.play(single, inputs)
                columns[f"{name}_action"] = list(self._drawn(single, strategies))
                columns[f"{name}_expected_loss"] = expected
        return pd.DataFrame(columns, index=getattr(X, "index", None))

    def _drawn(self, loss: AnyLoss, strategies: Array) -> NDArray[Any]:
        """Draw actions as people know them: indices, or points of the net."""
        drawn = draw_rows(strategies, self._stream("act").random(len(strategies)))
        net: Any = self.net_
        return np.asarray(net[drawn] if isinstance(loss, ContinuousLoss) else drawn)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return minus the mean loss, over rows and listed losses; higher is better."""
        fit, inputs = self._asked(X)
        outcomes = self._outcomes(y, rows=len(inputs))
        with refused_in_one_line():
            weights = _check_sample_weight(
                sample_weight, inputs, dtype=np.float64, ensure_non_negative=True
            )
        if not weights.any():
            raise UserError("sample_weight: all rows have weight 0; give others, or leave it out")
        losses_of_rows = []
        for loss in fit.listed.single_losses:
            strategies, _expected = fit.play(loss, inputs)
            losses_of_rows.append((strategies * loss.losses(outcomes)).sum(1))
        return -float(np.average(np.mean(losses_of_rows, axis=0), weights=weights))

    # regret and bounds

    def decision_swap_regret(self, loss: AnyLoss, X: Any, y: Any) -> float:
        """Measure decision swap regret per example on others, in expectation over the draws.

        Benchmarks are the constants, the policies and what each member of the distribution would
        do.
        """
        fit, inputs = self._asked(X)
        outcomes = self._outcomes(y, rows=len(inputs))
        return decision_swap_regret(*self._compared_all(fit, inputs, loss, outcomes))

    def omniprediction_regret(self, loss: AnyLoss, X: Any, y: Any) -> float:
        """Measure the loss above that of the best benchmark; the rest is as above."""
        fit, inputs = self._asked(X)
        outcomes = self._outcomes(y, rows=len(inputs))
        return omniprediction_regret(*self._compared_all(fit, inputs, loss, outcomes))

    def _compared_all(
        self, fit: Any, inputs: Array, loss: AnyLoss, outcomes: Array
    ) -> tuple[Array, Array, Indices]:
        """Return the same as ``_compared``, of growing fits all rows once for each fit."""
        if not isinstance(fit, GrowingFits):
            return self._compared(fit, inputs, loss, outcomes)
        logs = [self._compared(one, inputs, loss, outcomes, fit.names) for one in fit.fits]
        return _joined(logs)

    def _compared(
        self,
        fit: Any,
        inputs: Array,
        loss: AnyLoss,
        outcomes: Array,
        names: Sequence[str] | None = None,
    ) -> tuple[Array, Array, Indices]:
        """Losses (m, A), mixed strategies (m, A) and benchmarks' actions (A + C, m).

        Benchmarks are members of the fit with these ``names``, all by default.
        """
        finite = fit.listed.finite(loss)
        constants = np.tile(np.arange(finite.actions)[:, None], len(outcomes))
        # behind the features each row has what every policy suggests
        suggested = inputs[:, self.n_features_in_ :].T.astype(np.intp)
        comparators = [constants, suggested, fit.alternatives(finite, inputs, names)]
        strategies, _expected = fit.play(finite, inputs)
        return finite.losses(outcomes), strategies, np.concatenate(comparators)

    def _certified(
        self, losses: Sequence[AnyLoss], measure: Measure, kappa: float
    ) -> list[Certificate]:
        """Certify losses all at once; none where no rows were held out."""
        held_out = self.held_
        if held_out is None:
            return []
        certificates = []
        for loss in losses:
            losses_of_actions, play, comparators = self._tested(loss, held_out)
            certificate = certify(
                losses_of_actions,
                play,
                comparators,
                measure=measure,
                kappa=kappa / len(losses),  # so that all hold at once with 1 - kappa
            )
            certificates.append(certificate)
        return certificates

    def _tested(self, loss: AnyLoss, held_out: Rows) -> tuple[Array, Array, Indices]:
        """Return the arrays of ``_compared`` of held-out rows, each before a fit without it."""
        fit = self.certified_fit_
        if not isinstance(fit, GrowingFits):
            return self._compared(fit, held_out.seen, loss, held_out.outcomes)
        logs = []
        for one, part in fit.test_parts(held_out):
            logs.append(self._compared(one, part.seen, loss, part.outcomes, fit.names))
        return _joined(logs)

    def certificate(self, loss: AnyLoss, measure: Measure = "decision_swap") -> Certificate | None:
        """Certify a loss's regret on fresh examples from held-out rows; None where there are none.

        It is the regret of ``certified_fit_`` to the constants, the policies and what the
        distribution's members would do, with its mean loss on these rows beside it. Listed losses
        are certified all at once; any other by itself, if nobody chose it after a look at the rows.
        """
        check_is_fitted(self)
        check_name("measure", measure, MEASURES)
        finite = self.fitted_.listed.finite(loss)
        single_losses = self.fitted_.listed.single_losses
        is_listed = any(same(finite, listed_loss) for listed_loss in single_losses)
        # Listed losses share kappa, so that with 1 - kappa all their certificates hold at once.
        n_sharing_losses = len(single_losses) if is_listed else 1
        failure_probability = self.kappa / n_sharing_losses
        certificates = self._certified([finite], measure, failure_probability)
        return certificates[0] if certificates else None

    def bound(
        self, loss: AnyLoss, measure: Measure = "decision_swap"
    ) -> BatchBound | Certificate | None:
        """Bound a loss's regret on fresh examples (``total``), with probability 1 - kappa.

        With a base it is ``certificate``; without one the paper's, term by term, for all listed
        losses at once, and None for a loss that is neither listed nor within ``gamma`` of one that
        is.
        """
        if self.base != "none":
            return self.certificate(loss, measure)
        check_is_fitted(self)
        check_name("measure", measure, MEASURES)
        bound: BatchBound | None = self.fitted_.bound(loss, measure)
        return bound

    def sample_size(self, regret: float) -> int:
        """Return how many examples suffice for a decision swap regret in (0, 1), without a base.

        Examples
        --------
        >>> from regretless.market.losses import Linear
        >>> OfflineOmnipredictor([Linear(np.array([[1.0], [0.5]]))], base="none").sample_size(0.1)
        4341
        """
        with refused_in_one_line():
            self._validate_params()
        outcomes = tables.as_list(self.losses)[0].outcomes
        return sample_size(self, Listed(self, np.empty((1, outcomes))), regret)

    # files

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file with skops, no pickle.

        UserError if a policy, loss or basis is code and not data.
        """
        check_is_fitted(self)
        persistence.save(self, check_path("path", path))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model that ``save`` wrote; UserError if it is no such file."""
        model: Self = persistence.load(cls, check_path("path", path))
        return model


def _joined(logs: Sequence[tuple[Array, Array, Indices]]) -> tuple[Array, Array, Indices]:
    """Put the rows of several logs one below the other: losses, strategies, benchmarks."""
    losses, strategies, comparators = zip(*logs, strict=True)
    return np.concatenate(losses), np.concatenate(strategies), np.concatenate(comparators, axis=1)


def _checked_levels(levels: Any) -> list[float]:
    """Return levels of quantiles; UserError unless they are numbers between 0 and 1."""
    checked = numbers("levels", levels)
    if checked.ndim != 1 or not ((checked > 0) & (checked < 1)).all():
        raise UserError(f"levels = {brief(levels)}: give numbers between 0 and 1")
    return [float(level) for level in checked]
