"""Where a forecaster stands after a round: all that its bounds so far are worked out from.

``UnbiasedPrediction.standing`` says where it stands now. A bound that nobody reads before the end
of a run need not be worked out in the round after which it holds: ``Standing.excerpt`` copies what
later rounds change, and what it then says later is what it would have said at once, to the last
bit.
"""

from dataclasses import dataclass

from regretless.forecaster.events.base import EventSet
from regretless.forecaster.events.draws import Draws
from regretless.forecaster.guarantees.regret_bound import RegretBound
from regretless.forecaster.weights import BoundInputs
from regretless.market.losses.basis import Hull


@dataclass(frozen=True, eq=False)
class Standing:
    """What a forecaster's bounds are worked out from."""

    events: EventSet
    draws: Draws
    hull: Hull  # where predictions lie
    inputs: BoundInputs  # without what is known of variations
    # At the first game: the logarithm of the mean potential, None before it; and the mean logarithm
    # of 1 + the variations until then.
    log_potential_at_start: float | None
    log_variation_at_start: float

    @property
    def time(self) -> int:
        """Rounds learned."""
        return self.inputs.rounds

    def bias_bound(self, events: EventSet | None = None) -> RegretBound:
        """Bound every event's bias so far; of ``others`` among the events, theirs."""
        return (events or self.events).bound(self.inputs, self.hull)

    def known_bound(self, events: EventSet | None = None) -> RegretBound:
        """Bound every event's bias, with what is known of all variations so far."""
        bound = self.bias_bound(events)
        if self.log_potential_at_start is None:  # variations count from the first game on
            return bound
        mean_log_variation = (
            self.events.sum_of_log_variations() / self.inputs.experts - self.log_variation_at_start
        )
        return bound.with_inputs(
            log_start=self.log_potential_at_start, mean_log_variation=mean_log_variation
        )

    def excerpt(self) -> "Standing | None":
        """Return a copy that later rounds do not change; None of events that offer none."""
        games_have_begun = self.log_potential_at_start is not None
        events = self.events.excerpt(games_have_begun=games_have_begun)
        if events is None:
            return None
        return Standing(
            events,
            self.draws.excerpt(),
            self.hull,
            self.inputs,
            self.log_potential_at_start,
            self.log_variation_at_start,
        )
