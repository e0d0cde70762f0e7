"""Agent steps: rounds of a whole crowd against plain Mesa, plain NumPy and a plain copy.

The copy moves as many bytes as a round has to touch at the least: offsets and weights once, for the
response and the losses together, both tables of losses written and read, and the ledger rows of the
actions played, read and written. The ratio is the share of the machine's bandwidth reached.
"""

import resource
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import crowds
from benchmarks.clock import Array, Duel
from benchmarks.peers import peer
from regretless.market.kernels.threads import over_rows

CROWD, MULTITUDE, COUNTED, SHARED = 100_000, 1_000_000, 10**9, 500
FEW, SOME = 2_000, 50_000  # of a quick run
COPIED = 1 << 25  # numbers per copy, beyond every cache


def against_mesa(make: Callable[[], crowds.Crowd]) -> Duel:
    """Compare a round with the plain Mesa model's; the answer counts who played what."""
    crowd = make()
    plain = crowd.in_mesa(peer("mesa"))

    def theirs() -> Array:
        plain.step()
        return counted(np.fromiter((agent.action for agent in plain.agents), np.intp, crowd.agents))

    return Duel("agent-steps", crowd.size, "mesa", _ours(crowd), theirs)


def against_numpy(make: Callable[[], crowds.Crowd]) -> Duel:
    """Compare a round of agents who share losses; the answer is how often each action is played."""
    crowd = make()
    plain = crowds.PlainCrowd(crowd)

    def theirs() -> Array:
        return counted(plain.step(), crowd.heads)

    return Duel("agent-steps", crowd.size, "numpy", _ours(crowd), theirs)


def against_copy(agents: int) -> Duel:
    """Compare a round with a plain copy of as many bytes; there is no answer to compare."""
    crowd = crowds.Crowd(agents)
    model, touched = crowd.model(), bytes_of_a_round(agents)
    source, target = np.ones(COPIED), np.zeros(COPIED)
    copies, rest = divmod(touched // (2 * source.itemsize), COPIED)  # each is read and written

    def ours() -> Array:
        model.step()
        return target[:1]

    def copied(first: int, last: int) -> None:
        np.copyto(target[first:last], source[first:last])

    def theirs() -> Array:
        for count in (*[COPIED] * copies, rest):
            over_rows(copied, count)
        return target[:1]

    return Duel("agent-steps", crowd.size, "bandwidth", ours, theirs)


def counted(actions: NDArray[np.intp], heads: NDArray[np.intp] | None = None) -> Array:
    """Count who played which action."""
    return np.bincount(actions, heads, minlength=crowds.ACTIONS).astype(np.float64)


def bytes_of_a_round(rows: int) -> int:
    """Return how many bytes a round of distinct linear losses has to move (module docstring)."""
    coefficients = crowds.ACTIONS * (crowds.GOODS + 1)
    tables = 2 * 2 * crowds.ACTIONS
    ledger = 2 * (2 * crowds.ACTIONS + 1)
    return 8 * rows * (coefficients + tables + ledger)


def peak_memory(*, quick: bool) -> dict[str, Any]:
    """Measure the most memory that a process needs to build a large crowd and play two rounds.

    Returns
    -------
    dict
        ``size`` in words and ``bytes``.
    """
    agents = SOME if quick else MULTITUDE
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        size, peak = fresh.submit(_peak, agents).result()
    return {"size": size, "bytes": peak}


def _peak(agents: int) -> tuple[str, int]:
    crowd = crowds.Crowd(agents)
    model = crowd.model()
    model.run(2)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return crowd.size, most * (1 if sys.platform == "darwin" else 1024)


def _ours(crowd: crowds.Crowd) -> Callable[[], Array]:
    model = crowd.model()

    def step() -> Array:
        model.step()
        return counted(model.last_actions(0), crowd.heads)

    return step


def works(*, quick: bool) -> tuple[Callable[[], Duel], ...]:
    """List the works of this file; ``quick`` makes the crowds small."""
    crowd, multitude = (FEW, SOME) if quick else (CROWD, MULTITUDE)
    return (
        partial(against_mesa, partial(crowds.Crowd, crowd)),
        partial(against_mesa, partial(crowds.NarrowCrowd, crowd)),
        partial(against_mesa, partial(crowds.Crowd, crowd, SHARED)),
        *(
            partial(against_mesa, partial(crowds.CurvedCrowd, crowd, family))
            for family in crowds.FAMILIES
        ),
        partial(against_numpy, partial(crowds.Crowd, multitude, SHARED)),
        partial(against_numpy, partial(crowds.CountedCrowd, COUNTED, SHARED)),
        partial(against_copy, multitude),
    )
