"""The market of a scenario: smoothed demand that moves prices, or a registered one by its name."""

from __future__ import annotations

from collections.abc import Sequence

from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.game.markets import Market
from regretless.market.game.protocols import Cohort
from regretless.scenarios.build.construct import construct, with_length
from regretless.scenarios.spec.market import MarketSpec
from regretless.scenarios.spec.scenario import ScenarioSpec


def make_market(spec: ScenarioSpec, cohorts: Sequence[Cohort], root: int) -> Market | None:
    """Make the market of a scenario, None without one.

    Raises
    ------
    UserError
        If its name is unknown or a parameter does not fit.
    """
    if spec.market is None:
        return None
    kind, given = "prices", spec.market.model_dump()
    if isinstance(spec.market, MarketSpec):
        kind, given = spec.market.kind, spec.market.parameters
    maker, where = register.market[kind], f"market '{kind}'"
    parameters = with_length(maker, given, spec.rounds)
    made = construct(where, maker, cohorts, stream(root, "market"), **parameters)
    if not isinstance(made, Market):
        raise UserError(f"{where} is no Market; let it subclass regretless.market.markets.Market")
    return made
