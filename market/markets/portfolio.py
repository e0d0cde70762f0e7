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
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from regretless.market import register
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled
from regretless.market.game.accounts import Accounts
from regretless.market.game.market import Decisions, Market, columns_before_clearing
from regretless.market.game.protocols import Cohort
from regretless.market.numerics.pairwise_sum import pairwise_sum


@compiled(nogil=True)
def _write_gains(
    losses: Array,
    unit_offset: Array,
    unit_scale: Array,
    row_of: Indices,
    actions: Indices,
    first_agent: int,
    gains: Array,
) -> None:
    """Write what a cohort's agents gain by their actions, in units of their utility (compiled).

    The gain of an agent of row k with action a is -(unit_offset_k + unit_scale_k losses_ka).

    Parameters
    ----------
    losses : array (K, A)
        At the outcome, normalised.
    unit_offset, unit_scale : array (K,)
        Of these losses.
    row_of : int array (n,)
        The row of each agent.
    actions : int array (n,)
        Of each agent, -1 for one who is absent.
    first_agent : int
        The cohort's first agent among the N of all cohorts.
    gains : array (N,)
        Written at the agents who are there.
    """
    for agent in range(len(actions)):
        action = actions[agent]
        if action >= 0:
            row = row_of[agent]
            own_loss = unit_offset[row] + unit_scale[row] * losses[row, action]
            gains[first_agent + agent] = -own_loss


@compiled(nogil=True)
def _write_shares(wealth: Array, end_of_cohort: Indices, least_total: float, shares: Array) -> None:
    """Write each cohort's share of all wealth (compiled).

    share_c = sum of its members' wealth / max(sum of everybody's, least_total).

    Parameters
    ----------
    wealth : array (N + 1,)
        Of the agents, cohort after cohort, and of the world outside, which is not read.
    end_of_cohort : int array (C,)
        The agent after each cohort's last.
    least_total : float
        What shares are of where all have less.
    shares : array (C,)
        Written.
    """
    first_agent = 0
    for cohort in range(len(shares)):
        shares[cohort] = pairwise_sum(wealth[first_agent : end_of_cohort[cohort]])
        first_agent = end_of_cohort[cohort]
    total = max(pairwise_sum(shares), least_total)
    for cohort in range(len(shares)):
        shares[cohort] /= total


@dataclass(frozen=True, eq=False)
class _OwnUnits:
    """What maps a cohort's losses onto the utility's own units.

    Attributes
    ----------
    offset, scale : ndarray (K,)
        The loss in these units is ``offset + scale * loss``.
    first_agent : int
        The cohort's first agent among those of all cohorts.
    """

    offset: Array
    scale: Array
    first_agent: int


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
        self._no_goods = np.zeros((self.accounts.agents, 0))
        agent_spans = list(self.accounts.places.values())
        self._end_of_cohort = np.array([span.stop for span in agent_spans], dtype=np.intp)
        self._units = []
        for cohort, span in zip(cohorts, agent_spans, strict=True):
            offset = np.array(cohort.loss.unit_offset)
            scale = np.array(cohort.loss.unit_scale)
            self._units.append(_OwnUnits(offset, scale, first_agent=span.start))
        self.last = columns_before_clearing(share=len(self.cohorts))

    def clear(self, fundamental: Array, decisions: Decisions) -> Array:
        losses_by_cohort: list[Array | None] = []
        gains = np.zeros(self.accounts.agents)  # in each utility's own units; 0 for who is absent
        for cohort, units, decision in zip(self.cohorts, self._units, decisions, strict=True):
            if decision is None:
                losses_by_cohort.append(None)
                continue
            losses = decision.losses(cohort.loss, fundamental)
            losses_by_cohort.append(losses)
            _write_gains(
                losses,
                units.offset,
                units.scale,
                cohort.row_of,
                decision.actions,
                units.first_agent,
                gains,
            )
        self.losses_at_outcome = losses_by_cohort
        growth = np.exp(gains)
        wealth = self.accounts.cash[:-1]
        wealth_after = wealth * growth
        if self.fixed:
            wealth_after *= wealth.sum() / wealth_after.sum()
        self.accounts.move(wealth_after - wealth, self._no_goods)
        self.last = {"share": self.shares()}
        return fundamental

    def shares(self) -> Array:
        """Return each cohort's share of all wealth (cohorts,)."""
        accounts = self.accounts
        shares = np.empty(len(self.cohorts))
        _write_shares(accounts.cash, self._end_of_cohort, accounts.unit, shares)
        return shares

    def described(self) -> dict[str, Any]:
        names = [cohort.name for cohort in self.cohorts]
        return {"wealth_share": dict(zip(names, self.shares().tolist(), strict=True))}

    def summary(self) -> str:
        shares = zip(self.cohorts, self.shares(), strict=True)
        texts = [f"{cohort.name} own {100 * share:.1f} %" for cohort, share in shares]
        return f"Market: of all wealth {', '.join(texts)}"
