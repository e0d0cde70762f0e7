"""The rules of weights by the names that files have for them."""

from collections.abc import Callable

from regretless.forecaster.events.second_order import SecondOrderWeights
from regretless.forecaster.events.weights import AdaptiveWeights, ExponentialWeights, WeightRule

RULES: dict[str, Callable[[int | None], WeightRule]] = {
    AdaptiveWeights.name: lambda _: AdaptiveWeights(),
    SecondOrderWeights.name: lambda _: SecondOrderWeights(),
    ExponentialWeights.name: ExponentialWeights,
}


def rule_of(name: str, horizon: int | None = None) -> WeightRule:
    """Make the rule of a name; the exponential rate may use the horizon. ValueError if unknown."""
    if name not in RULES:
        raise ValueError(f"weights '{name}' are unknown; choose from {', '.join(RULES)}")
    return RULES[name](horizon)
