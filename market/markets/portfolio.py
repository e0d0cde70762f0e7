r"""Wealth that compounds: what an agent's choice gains is the growth of what it owns.

Scenario files choose this market by the kind ``portfolio``. Outcomes are the adversary's as they
are; only accounts move.
    wealth_i(t+1) = wealth_i(t) exp(gain_i(t)),        gain = minus the loss in its own units, at y,

which with utility ``growth`` is wealth times 1 + its portfolio's return. Outcomes are returns and
nobody moves them, so that every promise stands. The share of all wealth that a cohort has after t
rounds,

    share_c = sum of its members' wealth / sum of everybody's,

tends to 1 for who grows fastest on average: the market selects for the growth rate (Kelly 1956).

Where assets are in fixed supply, ``fixed``, what one wins another loses. If an action bets a share
q_s of wealth on every state s, its gain is ln q_s, and prices clear at the mean bet by wealth,

    price_s = sum_i share_i q_is,        wealth_i(t+1) = wealth_i(t) q_is / price_s,

which is Bayes' rule with wealth for prior and posterior: among bettors of equal patience who loses
least by the logarithmic score, and regrets least, is left with everything (Blume and Easley 1992).
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.game.accounts import Accounts
from regretless.market.game.market import Decisions, Market, columns_before_clearing
from regretless.market.game.protocols import Cohort


@register.market("portfolio")
class Portfolio(Market):
    """Wealth, ``cash`` at first, that compounds at the returns of what each agent holds."""

    answers_at_once = False
    column_labels: ClassVar[Mapping[str, str]] = {"share": "share of all wealth"}
    by_cohort = True

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        rng: np.random.Generator,
        *,
        cash: float | dict[str, float] = 1000.0,
        fixed: bool = False,
    ) -> None:
        super().__init__(cohorts, rng)
        self.fixed = fixed
        self.accounts: Accounts = Accounts(cohorts, cash)
        self.last = columns_before_clearing(share=len(self.cohorts))

    def clear(self, fundamental: Array, decisions: Decisions) -> Array:
        gains = []  # of each cohort's actions in the utility's own units (K, A)
        for cohort in self.cohorts:
            loss = cohort.loss
            scaled_losses = loss.unit_scale[:, None] * loss.losses(fundamental)
            gains.append(-(loss.unit_offset[:, None] + scaled_losses))
        growth = np.exp(self.chosen(gains, decisions))
        wealth = self.accounts.cash[:-1]
        wealth_after = wealth * growth
        if self.fixed:
            wealth_after *= wealth.sum() / wealth_after.sum()
        self.accounts.move(wealth_after - wealth)
        self.last = {"share": self.shares()}
        return fundamental

    def shares(self) -> Array:
        """Return each cohort's share of all wealth (cohorts,)."""
        agent_spans = self.accounts.places.values()
        cash = self.accounts.cash
        wealth = np.array([np.add.reduce(cash[span]) for span in agent_spans])
        return np.asarray(wealth / max(np.add.reduce(wealth), self.accounts.unit))

    def described(self) -> dict[str, Any]:
        names = [cohort.name for cohort in self.cohorts]
        return {"wealth_share": dict(zip(names, self.shares().tolist(), strict=True))}

    def summary(self) -> str:
        shares = zip(self.cohorts, self.shares(), strict=True)
        texts = [f"{cohort.name} own {100 * share:.1f} %" for cohort, share in shares]
        return f"Market: of all wealth {', '.join(texts)}"
