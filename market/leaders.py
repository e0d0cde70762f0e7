r"""What a leader earns: commitment value, surplus over it, and its cap by swap regret.

An adversary is a leader with payoff u(a, y), an agent a follower with loss l(a, y). Over a finite
set of outcomes y, with the law mu committed to and the joint law phi of a log,

    value    V = max_a max_mu { u_a . mu : l_a . mu <= l_b . mu for all b },
    surplus  u_bar - V,   u_bar = sum phi(a, y) u(a, y),
    cap      kappa = max_a max_{nu >= 0} { nu . (u_a - V) : nu . (l_a - l_b) <= 1 for all b },

and on every log surplus <= kappa * swap regret per round: with r_a the regret of action a,
phi_a / r_a is feasible in the program of kappa, and where r_a = 0, phi_a / |phi_a| is in that of
V. Programs: Conitzer and Sandholm 2006, one per action; the cap is solved in its dual form
min { sum w : sum_b w_b (l_a - l_b) >= u_a - V, w >= 0 }, whose w prove the inequality.

Here payoffs and losses are arrays (m, A): outcomes, actions. A joint law is (A, m).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from market.programs import Program, UnsolvedError, solver

Array = NDArray[np.float64]

EQUAL = 1e-12  # losses that differ by less are rounding of equal ones


@dataclass(frozen=True, eq=False)
class Commitment:
    """The best law to commit to.

    Parameters
    ----------
    value : float
    mixture : array (m,)
        Over outcomes.
    action : int
        The best response that it induces; of several the leader's favourite.
    """

    value: float
    mixture: Array
    action: int


def stackelberg(leader_payoff: ArrayLike, follower_loss: ArrayLike) -> Commitment:
    """Best outcome law to commit to, when the follower best-responds (ties favour the leader).

    Parameters
    ----------
    leader_payoff, follower_loss : arrays (m, A)

    Returns
    -------
    Commitment

    Raises
    ------
    ValueError
        If the shapes differ or a number is not finite.
    """
    payoff, loss = game_arrays(leader_payoff, follower_loss)
    best = _pure(payoff, loss)
    highest = payoff.max(0)
    for a in np.argsort(-highest, kind="stable"):
        if highest[a] <= best.value:
            break
        found = _inducing(int(a), payoff[:, a], loss)
        if found is not None and found.value > best.value:
            best = found
    return best


def surplus_cap(leader_payoff: ArrayLike, follower_loss: ArrayLike) -> float:
    """Return kappa: leader surplus per unit of the follower's swap regret, at most.

    Parameters
    ----------
    leader_payoff, follower_loss : arrays (m, A)

    Returns
    -------
    float
        At least 0 and finite.
    """
    payoff, loss = game_arrays(leader_payoff, follower_loss)
    value = stackelberg(payoff, loss).value
    return max(_cap(a, payoff[:, a] - value, loss) for a in range(loss.shape[1]))


def leader_surplus(joint: ArrayLike, leader_payoff: ArrayLike, follower_loss: ArrayLike) -> float:
    """Leader's average payoff on a log above its commitment value.

    Parameters
    ----------
    joint : array (A, m)
        Share of the rounds with each action and outcome.
    leader_payoff, follower_loss : arrays (m, A)

    Returns
    -------
    float
        Negative where the leader earned less than it could have secured.
    """
    payoff, loss = game_arrays(leader_payoff, follower_loss)
    law = joint_law(joint, loss)
    return float((law.T * payoff).sum() - stackelberg(payoff, loss).value)


def swap_regret_of(joint: ArrayLike, follower_loss: ArrayLike) -> float:
    """Swap regret per round of a joint law.

    Parameters
    ----------
    joint : array (A, m)
    follower_loss : array (m, A)
    """
    loss = game_arrays(follower_loss, follower_loss)[1]
    sums = joint_law(joint, loss) @ loss
    return float((np.diag(sums) - sums.min(1)).sum())


def response_margins(follower_loss: ArrayLike) -> Array:
    """By how much each action can at most be the unique best response.

    Parameters
    ----------
    follower_loss : array (m, A)

    Returns
    -------
    array (A,)
        max over outcome laws of min_b l_b - l_a, over the other actions b; negative where a is
        never a best response, infinite where it is the only action.
    """
    loss = game_arrays(follower_loss, follower_loss)[1]
    return np.array([_margin(a, loss) for a in range(loss.shape[1])])


def game_arrays(leader_payoff: ArrayLike, follower_loss: ArrayLike) -> tuple[Array, Array]:
    """Both as finite arrays (m, A), or ValueError."""
    payoff = np.asarray(leader_payoff, dtype=np.float64)
    loss = np.asarray(follower_loss, dtype=np.float64)
    if loss.ndim != 2 or 0 in loss.shape:
        raise ValueError(f"follower_loss has shape {loss.shape}; give (outcomes, actions)")
    if payoff.shape != loss.shape:
        raise ValueError(f"leader_payoff has shape {payoff.shape}, follower_loss {loss.shape}")
    if not (np.isfinite(loss).all() and np.isfinite(payoff).all()):
        raise ValueError("leader_payoff or follower_loss holds a number that is not finite")
    return payoff, loss


def joint_law(joint: ArrayLike, loss: Array) -> Array:
    """Return the joint law as an array (A, m), or ValueError."""
    law = np.asarray(joint, dtype=np.float64)
    if law.shape != loss.T.shape:
        raise ValueError(f"joint has shape {law.shape}; give (actions, outcomes) {loss.T.shape}")
    if not (law >= 0).all() or abs(law.sum() - 1) > 1e-9:
        raise ValueError("the joint law must be at least 0 and sum to 1")
    return law


def excess(a: int, loss: Array) -> tuple[Array, Array]:
    """Rows l_a - l_b of the actions b that differ from a, largest entry 1, and their scales.

    Scaled rows keep a worse duplicate apart from a tie, however small its disadvantage.
    """
    rows = (loss[:, [a]] - loss).T
    scale = np.abs(rows).max(1)
    differ = scale > EQUAL
    return rows[differ] / scale[differ, None], scale[differ]


def _pure(payoff: Array, loss: Array) -> Commitment:
    """Best single outcome to commit to: a first lower bound, often the answer."""
    tied = np.where(loss <= loss.min(1, keepdims=True), payoff, -np.inf)
    y, a = np.unravel_index(int(tied.argmax()), tied.shape)
    return Commitment(float(tied[y, a]), np.eye(len(loss))[y], int(a))


def _inducing(a: int, payoff: Array, loss: Array) -> Commitment | None:
    """Best law under which action a is a best response; None if there is no such law."""
    rows, _ = excess(a, loss)
    if (rows > 0).all(1).any():  # another action is better whatever happens
        return None
    matrix = np.vstack([rows, np.ones(len(loss))])
    zeros = np.zeros(len(rows))
    bounds = np.append(zeros - np.inf, 1.0), np.append(zeros, 1.0)
    try:
        x = solver().solve(Program(-payoff, matrix, *bounds)).x
    except UnsolvedError as error:
        if error.infeasible:
            return None
        raise
    mixture = np.maximum(x, 0.0)
    mixture /= mixture.sum()
    return Commitment(float(payoff @ mixture), mixture, a)


def _cap(a: int, gain: Array, loss: Array) -> float:
    """Most that playing a can yield the leader above V per unit of a's regret."""
    rows, scale = excess(a, loss)
    if gain.max() <= 0.0:
        return 0.0
    return solver().solve(Program(1.0 / scale, rows.T, gain)).value


def _margin(a: int, loss: Array) -> float:
    if loss.shape[1] == 1:
        return float("inf")
    rows = (np.delete(loss, a, axis=1) - loss[:, [a]]).T  # over laws, max t: rows . mu - t >= 0
    matrix = np.vstack([np.hstack([rows, -np.ones((len(rows), 1))]), np.ones(len(loss) + 1)])
    matrix[-1, -1] = 0.0
    low, high = np.zeros(len(rows) + 1), np.full(len(rows) + 1, np.inf)
    low[-1] = high[-1] = 1.0
    lower = np.append(np.zeros(len(loss)), -np.inf)
    return -solver().solve(Program(-np.eye(len(loss) + 1)[-1], matrix, low, high, lower)).value
