"""scikit-learn's conventions by hand, so that the estimator needs no scikit-learn."""

import inspect
from typing import Any, Self

import numpy as np

from regretless.forecaster.omniprediction.laws.learning import BASES
from regretless.market.core.errors import UserError


class Parameters:
    """What an estimator's parameters are: those of its constructor, each kept under its name."""

    @classmethod
    def parameter_names(cls) -> list[str]:
        """Return the names of the constructor's parameters, in order."""
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002
        """Return the parameters; none of them has parameters of its own, so ``deep`` is moot."""
        return {name: getattr(self, name) for name in self.parameter_names()}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters; UserError for a name that is none."""
        known = self.parameter_names()
        for name, value in parameters.items():
            if name not in known:
                kind = type(self).__name__
                raise UserError(
                    f"Invalid parameter {name!r} for estimator {kind}; it has {', '.join(known)}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        own = inspect.signature(type(self).__init__).parameters
        plain = (str, int, float, type(None))
        said = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if isinstance(value, plain) and value != own[name].default
        ]
        return f"{type(self).__name__}({', '.join(['...', *said])})"

    def __sklearn_tags__(self) -> Any:
        """Describe the estimator to scikit-learn."""
        from sklearn.utils import InputTags, Tags, TargetTags  # noqa: PLC0415 - an optional extra

        target = TargetTags(required=True, multi_output=True, single_output=False)
        return Tags(estimator_type=None, target_tags=target, input_tags=InputTags())

    def __sklearn_is_fitted__(self) -> bool:
        """Whether ``fit`` was called."""
        return hasattr(self, "fitted_")


def not_fitted() -> Exception:
    """Return the error for use before ``fit``: scikit-learn's where that is installed."""
    told = "this OfflineOmnipredictor is not fitted; call fit first"
    try:
        from sklearn.exceptions import NotFittedError  # noqa: PLC0415 - an optional extra
    except ImportError:
        return UserError(told)
    found: Exception = NotFittedError(told)
    return found


def check_numbers(estimator: Any) -> None:
    """Raise UserError for a numeric parameter that is out of its range."""
    if not 0 < estimator.kappa < 1:
        raise UserError(f"kappa = {estimator.kappa!r}: give a probability such as 0.01")
    kept = estimator.rounds_kept
    whole = isinstance(kept, int | np.integer) and not isinstance(kept, bool) and kept >= 1
    if kept is not None and not whole:
        raise UserError(f"rounds_kept = {kept!r}: give a whole number of at least 1, or None")
    if not 0 <= estimator.burn_in < 1:
        raise UserError(f"burn_in = {estimator.burn_in!r}: give a share from 0 to below 1")
    check_law(estimator)
    if not estimator.gamma >= 0:
        raise UserError(f"gamma = {estimator.gamma!r}: give a number of at least 0")
    if estimator.delta is not None and not estimator.delta > 0:
        raise UserError(f"delta = {estimator.delta!r}: give a positive number such as 0.05")
    seed = estimator.random_state
    if seed is not None and (not isinstance(seed, int | np.integer) or seed < 0):
        raise UserError(f"random_state = {seed!r}: give a whole number of at least 0 or None")


def check_law(estimator: Any) -> None:
    """Raise UserError for a parameter of the conditional law that is out of its range."""
    if estimator.base not in BASES:
        raise UserError(f"base = {estimator.base!r}: choose from {', '.join(BASES)}")
    trees, share = estimator.trees, estimator.holdout
    if not isinstance(trees, int | np.integer) or trees < 1:
        raise UserError(f"trees = {trees!r}: give a whole number of at least 1")
    if isinstance(estimator.cv, int | np.integer) and estimator.cv < 2:
        raise UserError(f"cv = {estimator.cv!r}: give at least 2 folds")
    if not isinstance(estimator.refit, bool | np.bool_):
        raise UserError(f"refit = {estimator.refit!r}: give True or False")
    if share != "auto" and not (isinstance(share, float | int) and 0 <= share < 1):
        raise UserError(f"holdout = {share!r}: give a share from 0 to below 1, or 'auto'")
