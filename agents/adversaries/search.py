r"""How an attacker learns: which plans to try next, given what those tried so far were paid.

A search proposes a generation of plans (``agents.adversaries.plans``), is told what each was paid
per round, and so on; ``best`` is the plan that it would play.

**Cross-entropy** (de Boer, Kroese, Mannor and Rubinstein 2005; with noise, Szita and Lorincz 2006).
Scores x of a plan, of which softmax makes laws, are drawn from N(mu, sigma^2), coordinate by
coordinate; mu and sigma move to mean and deviation of the best quarter.

**Evolution strategy** (separable natural evolution strategies, Schaul, Glasmachers and Schmidhuber
2011): of draws x = mu + sigma z, ranked by payoff with utilities u that sum to 0,

    mu <- mu + sigma sum_i u_i z_i,    sigma <- sigma exp(eta / 2 sum_i u_i (z_i^2 - 1)),

a step along the natural gradient of the expected utility; eta = (3 + ln n) / (5 sqrt n).

**EXP3** (``agents.learners.bandit``) over a finite list of plans, of which eight are drawn before
it is told anything; but for that delay its theorem bounds what it loses to the best of the list.

The two others start at scores drawn from N(0, 1), with sigma = 2: nowhere in particular.
"""

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from regretless.agents.adversaries.plans import listed_plans, softmax
from regretless.agents.learners.bandit import EXP3
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Remembering
from regretless.market.core.errors import UserError

Shape = tuple[int, int, int]  # phases, rows, outcomes of the support
WIDE = 2.0  # sigma at the start
KEPT, PACE, NOISE = 0.25, 0.7, 0.05  # of cross-entropy: the best share, the step, what is added
ROUNDING = 1e-9


class Search(Remembering):
    """What every search offers.

    Parameters
    ----------
    shape : (int, int, int)
        Phases, rows and outcomes of a plan.
    rng : numpy Generator
        Draws the proposals.
    paid : (float, float)
        The least and the most that a round can pay.

    Attributes
    ----------
    generation : int
        Plans in a proposal.
    """

    generation: ClassVar[int]
    REMEMBERED: ClassVar[tuple[str, ...]] = ("rng",)

    def __init__(
        self, shape: Shape, rng: np.random.Generator, *, paid: tuple[float, float]
    ) -> None:
        self.shape, self.rng, self.paid = shape, rng, paid
        self.begin()

    def begin(self) -> None:
        """Know nothing yet."""

    def propose(self) -> Array:
        """Return a generation of plans (G, P, S, m)."""
        raise NotImplementedError

    def told(self, payoffs: Array) -> None:
        """Be told what the plans of the last proposal were paid per round (G,)."""
        raise NotImplementedError

    def best(self) -> Array:
        """Return the plan (P, S, m) that it would play now."""
        raise NotImplementedError


class _Normal(Search):
    """Draws scores from a normal law with a centre and a spread for each."""

    generation = 32
    REMEMBERED = ("centre", "spread", "_draws")

    def begin(self) -> None:
        """Start somewhere."""
        self.centre, self.spread = self.rng.normal(size=self.shape), np.full(self.shape, WIDE)
        self._draws = np.zeros((self.generation, *self.shape))

    def propose(self) -> Array:
        """Draw plans around the centre."""
        self._draws = self.rng.normal(size=self._draws.shape)
        return softmax(self.centre + self.spread * self._draws)

    def best(self) -> Array:
        """Return the plan at the centre."""
        return softmax(self.centre)


class CrossEntropy(_Normal):
    """Moves to the best quarter of what was tried."""

    def told(self, payoffs: Array) -> None:
        """Move centre and spread."""
        count = int(KEPT * self.generation)
        kept = self._draws[np.argsort(-payoffs, kind="stable")[:count]]
        centre, spread = self.centre + self.spread * kept.mean(0), self.spread * kept.std(0)
        self.centre = (1 - PACE) * self.centre + PACE * centre
        self.spread = (1 - PACE) * self.spread + PACE * spread + NOISE


class EvolutionStrategy(_Normal):
    """Follows the natural gradient of what was tried."""

    generation = 16

    def told(self, payoffs: Array) -> None:
        """Move centre and spread."""
        ranks = np.arange(1, self.generation + 1)
        share = np.maximum(0.0, np.log(self.generation / 2 + 1) - np.log(ranks))
        utility = share / share.sum() - 1 / self.generation
        ranked = self._draws[np.argsort(-payoffs, kind="stable")]
        size = self.centre.size
        pace = (3 + np.log(size)) / (5 * np.sqrt(size))
        self.centre = self.centre + self.spread * np.tensordot(utility, ranked, 1)
        grown = np.tensordot(utility, ranked**2 - 1, 1)
        self.spread = self.spread * np.exp(pace / 2 * grown)


class Bandit(Search):
    """EXP3 over a list of plans that do not look at play; a generation is drawn from one law."""

    generation = 8
    REMEMBERED = ("learner", "_arms")

    def begin(self) -> None:
        """List the plans, and start from no preference."""
        listed = listed_plans(self.shape[0], self.shape[2])
        self.plans = np.broadcast_to(listed, (len(listed), *self.shape))
        self.learner, self._arms = EXP3(), np.zeros(0, dtype=np.intp)
        self.learner.start(1, len(self.plans))

    def propose(self) -> Array:
        """Draw plans of the list."""
        self._arms = self.rng.choice(len(self.plans), self.generation, p=self.learner.law[0])
        return self.plans[self._arms]

    def told(self, payoffs: Array) -> None:
        """Learn from the payoff of each plan; UserError if it is beyond the range."""
        (low, high), law = self.paid, self.learner.law
        for arm, paid in zip(self._arms, payoffs, strict=True):
            if not low - ROUNDING <= paid <= high + ROUNDING:
                beyond = f"exp3 was paid {paid:g}, beyond its payoff's range, {low:g} to {high:g}"
                raise UserError(f"{beyond}; choose cem or es")
            losses = np.zeros(law.shape)
            losses[0, arm] = np.clip((high - paid) / max(high - low, ROUNDING), 0.0, 1.0)
            self.learner.law = law  # that it was drawn from
            self.learner.learn(losses, np.array([arm]))

    def best(self) -> Array:
        """Return the plan that it draws most often."""
        return np.asarray(self.plans[int(self.learner.law[0].argmax())])


SEARCHES: dict[str, Callable[..., Search]] = {
    "cem": CrossEntropy,
    "es": EvolutionStrategy,
    "exp3": Bandit,
}
