"""One model of the outcome for all blocks of a broadcast, each in a basis of its own.

The blocks hear of the same outcomes in the same contexts. What a ``DistributionModel`` makes of
these is a distribution of the outcome, whatever the basis: for all blocks it is asked once a round,
and learns once (``SharedDistribution``). A block's own model of it (``DistributionInBasis``)
predicts the mean of the block's statistics.

Nobody counts who shares. Every block counts the rounds that it has learned, and the shared model
those that it was taught, so that it takes each round from the block that comes first. A copy of one
block, as an adversary that looks ahead makes it, holds a copy of the shared model and plays on by
itself.
"""

from typing import Any, ClassVar

from regretless.forecaster.models.outcomes import DistributionModel
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.own_code import is_ours
from regretless.market.game.protocols import Forecaster
from regretless.market.losses.basis import Basis
from regretless.market.records import Context, Ensemble


def is_shareable(model: Forecaster) -> bool:
    """Whether what a model learns, and the distribution that it predicts, are of no basis.

    That is so of our own distributions that predict and learn as ``DistributionModel`` says.
    """
    kind = type(model)
    if not isinstance(model, DistributionModel) or not is_ours(kind):
        return False
    return all(
        getattr(kind, name) is getattr(DistributionModel, name)
        for name in ("_predicted", "_learn", "observe", "update", "learn_checked")
    )


class SharedDistribution(Checkpointable):
    """A model of the outcome that several blocks ask and teach, each round once.

    Attributes
    ----------
    model : DistributionModel
        Of any basis over the outcome, which plays no part (``is_shareable``).
    rounds : int
        Those that it has learned or let pass.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("model", "rounds")

    def __init__(self, model: DistributionModel) -> None:
        self.model = model
        self.rounds = 0
        # What it was last asked, and its answer, as long as that would be the same again.
        self._context: object = None
        self._distribution: Ensemble | None = None

    def distribution(self, x: object, *, ahead: int, newer: int) -> Ensemble:
        """Return the distribution of the outcome in the open round, whose context is x.

        ``ahead`` and ``newer`` are as in ``Model``. A ``Context``, which does not change, is asked
        for once.
        """
        is_same_round = isinstance(x, Context) and x is self._context
        if self._distribution is not None and is_same_round and ahead == self.model.ahead:
            return self._distribution
        self.model.ahead = ahead
        self.model.newer = newer
        distribution = self.model.distribution(x)
        self._context = x
        self._distribution = distribution
        return distribution

    def learn(self, outcome: Array, *, round_index: int, newer: int) -> None:
        """Learn the outcome (d,) of a round, unless it is learned already."""
        if round_index < self.rounds:
            return
        self.model.newer = newer
        self.model.learn_checked(outcome, outcome)  # no statistics of the outcome are needed
        self._end_round(round_index)

    def skip_round(self, x: object, *, round_index: int, ahead: int, newer: int) -> None:
        """Let a round pass whose outcome is missing, unless it has passed already."""
        if round_index < self.rounds:
            return
        self.model.ahead = ahead
        self.model.newer = newer
        self.model.skip_round(x)
        self._end_round(round_index)

    def reopen(self, x: object, opened: Any, *, round_index: int, ahead: int, newer: int) -> None:
        """Go back to a round as the model ``opened`` it, unless it is learned already."""
        if round_index < self.rounds:
            return
        self.model.ahead = ahead
        self.model.newer = newer
        self.model.reopen(x, opened)
        self._distribution = None

    def _end_round(self, round_index: int) -> None:
        self.rounds = round_index + 1
        self._distribution = None

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._distribution = None


class DistributionInBasis(DistributionModel):
    """Predicts the mean of a basis's statistics by a distribution that others may share.

    Parameters
    ----------
    shared : SharedDistribution
        Of an outcome of as many coordinates as the basis has.
    basis : Basis
        Of the statistics s(y) that are predicted.

    Examples
    --------
    >>> from regretless.forecaster.bases import PowerBasis
    >>> from regretless.forecaster.models import LastValue, WithErrors
    >>> bases = PowerBasis([2.0], 1), PowerBasis([3.0], 1)
    >>> shared = SharedDistribution(WithErrors(LastValue(1), bases[0], window=8))
    >>> squares, cubes = (DistributionInBasis(shared, basis) for basis in bases)
    >>> for outcome in [0.5, 0.7] * 8:
    ...     for model in (squares, cubes):
    ...         _ = model.predict()
    ...     for model in (squares, cubes):
    ...         model.learn_outcome([outcome])
    >>> shared.rounds
    16
    >>> cubes.distribution().outcomes[:2].round(3).tolist()  # the last value is 0.7
    [[0.5], [0.9]]
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("shared", "_rounds")

    def __init__(self, shared: SharedDistribution, basis: Basis) -> None:
        super().__init__(basis)
        self.shared = shared
        self._rounds = shared.rounds  # those that it has learned or let pass

    def distribution(self, x: object = None) -> Ensemble:
        return self.shared.distribution(x, ahead=self.ahead, newer=self.newer)

    def opened(self) -> Any:
        return self.shared.model.opened()

    def reopen(self, x: object, opened: Any) -> None:
        self.shared.reopen(x, opened, round_index=self._rounds, ahead=self.ahead, newer=self.newer)

    def skip_round(self, x: object = None) -> None:
        self.shared.skip_round(x, round_index=self._rounds, ahead=self.ahead, newer=self.newer)
        self._rounds += 1

    def _learn_outcome(self, outcome: Array) -> None:
        self.shared.learn(outcome, round_index=self._rounds, newer=self.newer)
        self._rounds += 1
