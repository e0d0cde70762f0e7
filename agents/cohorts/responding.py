"""Many agents of one kind held as arrays: the fast path, and the only one.

Agents with equal losses who hear the same forecast choose alike, so a cohort of N agents keeps K
rows, one per distinct loss, and ``row_of`` says which row an agent belongs to. Every round costs
a handful of passes over ``(K, A)`` and ``(K, A, n)``. A crowd that is counted keeps ``heads`` in
place of a list of agents: how many each row stands for. Where its agents draw, one action is thrown
for each row, the agent of the tables, and those of the others by one multinomial law.
"""

import math
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np

from regretless.agents.cohorts.hearing import Party, expected, parted
from regretless.agents.responses import Response, is_pure
from regretless.market.core.arrays import Array, Indices, Mask, draw_rows
from regretless.market.core.checkpoint import Remembering
from regretless.market.game.delay import Relay
from regretless.market.game.protocols import Cohort
from regretless.market.kernels.layout import narrowed
from regretless.market.losses import Loss
from regretless.market.records import Context, Decision, Forecast, Mixture
from regretless.market.regret.ledger import Ledger
from regretless.market.response import best_response


@dataclass(eq=False)
class RespondingCohort(Cohort, Remembering):
    """Agents of one loss form, one number of actions and one response rule.

    Parameters
    ----------
    utility : str
        The registered name of their utility, for the logs.
    block : int
        Which block of the broadcast they hear.
    loss : stack of K losses
        The distinct losses, normalised into [0, 1].
    row_of : int array (N,)
        The row of each agent.
    coefficients : arrays (K, A), (K, A, n)
        Offset and weights of each loss in the block's basis, or of each representative.
    ledger : Ledger
        Scores the K rows.
    rng : numpy Generator
        Draws the actions of agents who randomise.
    policies : tuple of callables
        Benchmark policies, each from a context to an action index.
    served : int array (K,) or None
        Row of ``coefficients`` through which each loss is served: agents play the best response
        of that representative. None where every loss has its own.
    by_proxy : bool array (K,) or None
        Rows that respond to their line of ``coefficients`` at the prediction, whatever their rule
        hears: agents who joined late and are served through a loss that is protected.
    distance : int array (K,) or None
        Of each row from the forecaster (``market.game.network``); None where all hear at once.
    relay : Relay or None
        What those who do not hear at once go by; needed with ``distance``.
    acts_on : stack of K losses or None
        Those by which the rows respond, if not ``loss``: what they reported in its place.
    heads : int array (K,) or None
        How many agents each row stands for, at least 1; ``row_of`` then lists the rows. None where
        ``row_of`` lists the agents.

    Raises
    ------
    ValueError
        If ``heads`` do not fit the rows.
    """

    REMEMBERED = ("ledger", "rng")
    foreseeable = True

    name: str
    utility: str
    block: int
    loss: Loss
    row_of: Indices
    coefficients: tuple[Array, Array]
    response: Response
    ledger: Ledger
    rng: np.random.Generator
    policies: tuple[Any, ...] = ()
    served: Indices | None = None
    by_proxy: Mask | None = None
    distance: Indices | None = None
    relay: Relay | None = None
    acts_on: Loss | None = None
    heads: Indices | None = None
    parties: tuple[Party, ...] = field(default=(), init=False)
    kind: str = field(default="trader", init=False)

    def __post_init__(self) -> None:
        if self.heads is not None:
            rows = np.arange(len(self.ledger.count))
            if not np.array_equal(self.row_of, rows) or self.heads.shape != rows.shape:
                raise ValueError("heads count the agents of each row; let row_of list the rows")
            self.heads.flags.writeable = False  # adversaries are shown them
        own = self.loss if self.acts_on is None else self.acts_on
        offset, weights = self.coefficients
        read = offset, narrowed(weights)
        whole = Party(0, slice(None), own, read, self.served, self.by_proxy)
        self.parties = (whole,) if self.distance is None else parted(whole, self.distance)

    @property
    def rule(self) -> str:
        """Name of the response rule, for the logs."""
        return self.response.name

    def fixed_parts(self) -> tuple[object, ...]:
        """Return what playing never changes: a copy that plays on shares it."""
        own = self.loss, self.ledger, self.row_of, self.policies, self.coefficients
        return (*own, self.served, self.by_proxy, self.parties, self.heads)

    def decide(self, forecast: Forecast, context: Context) -> Decision:
        """Respond to the forecast, all rows at once."""
        return self._decision(self._predicted(forecast))

    def _decision(self, predicted: Array) -> Decision:
        if is_pure(self.response):
            choices = best_response(predicted)
            return Decision(None, choices[self.row_of], predicted, choices=choices)
        play = self.response.play(predicted)
        actions = self._draw(play)
        if self.heads is None:
            return Decision(play, actions, predicted)
        seed = self.rng.bit_generator.random_raw()  # whether or not anybody asks for counts
        counts = cache(partial(self._counts, play, actions, seed))
        return Decision(play, actions, predicted, counts=counts)

    def law(self, mixture: Mixture, context: Context) -> Array:
        """Return the law of play (K, A) in expectation over the draw from a mixture."""
        plays = (
            weight * self.response.play(self._predicted(Forecast(mixture, atom)))
            for atom, weight in enumerate(mixture.weights)
        )
        return sum(plays, np.zeros(self.loss.offset.shape))

    def _predicted(self, forecast: Forecast) -> Array:
        """Losses (K, A) that the rows expect."""
        if self.relay is None:
            return expected(self.response, self.parties[0], forecast)
        table = np.empty(self.ledger.count.shape)
        for party in self.parties:
            heard = forecast if party.distance == 0 else self.relay.heard(party.distance)
            if heard is None:
                table[party.rows] = party.from_mean(self.relay.mean)
            else:
                table[party.rows] = expected(self.response, party, heard)
        return table

    def gap(self) -> float:
        """Excess of the response rule over a best response to what it predicts."""
        return self.response.gap(self.loss.actions)

    def _draw(self, play: Array) -> Indices:
        """Draw one action per agent; a hard rule's pure play needs no draw.

        A smooth rule's does: whether others are as sure is not known where agents are shared out.
        """
        if not math.isfinite(self.response.lipschitz) and (play == 1.0).any(1).all():
            return np.asarray(play.argmax(1)[self.row_of])
        return draw_rows(play, self.rng.random(len(self.row_of)), self.row_of)

    def _counts(self, play: Array, actions: Indices, seed: int) -> Array:
        """Draw how many of each row play each action (K, A), given what one of them plays."""
        drawn = np.random.default_rng(seed).multinomial(np.asarray(self.heads) - 1, play)
        counts = drawn.astype(np.float64)
        counts.ravel()[np.arange(0, counts.size, counts.shape[1]) + actions] += 1
        return counts
