"""Who is better off with what: the broadcast against every model, every policy, every fixed action.

All losses are per round and in [0, 1], those of the agents' own records; **worth** is the mean
utility per round in the utility's own units, averaged over the agents of a cohort.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array, Mask
from regretless.market.game.presence import mean_over, number_of
from regretless.market.game.protocols import Cohort
from regretless.market.game.round import Game
from regretless.market.regret.followed import Followed

ROUNDING = 1e-12  # what is closer than this is as good
BROADCAST, MODEL, POLICY, ACTION = "broadcast", "model", "policy", "action"


def models_table(game: Game) -> pd.DataFrame:
    """One row per agent and model: the loss of following it, and the regret of not having done so.

    Empty where nobody is compared with models. Agents who never came have no row.
    """
    parts, first = [], 1
    for cohort, followed in zip(game.cohorts, game.followed, strict=True):
        if followed is not None:
            parts.append(_followers(cohort, followed, first))
        first += len(cohort.row_of)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _followers(cohort: Cohort, followed: Followed, first: int) -> pd.DataFrame:
    ledger, models = cohort.ledger, len(followed.names)
    agents = np.flatnonzero(_who_came(cohort))
    rows = cohort.row_of[agents]
    lost = followed.mean_loss(ledger.rounds)[rows]
    return pd.DataFrame(
        {
            "agent": np.repeat(agents + first, models),
            "cohort": cohort.name,
            "model": np.tile(np.array(followed.names, dtype=object), len(agents)),
            "mean_loss": lost.ravel(),
            "regret_to_model": (ledger.mean_loss()[rows, None] - lost).ravel(),
        }
    )


def regret_to_models(cohort: Cohort, followed: Followed | None) -> Array:
    """Regret of each row to the model that would have served it best (K,); NaN without any."""
    ledger = cohort.ledger
    if followed is None:
        return np.full(len(ledger.count), np.nan)
    return np.asarray(ledger.mean_loss() - followed.mean_loss(ledger.rounds).min(1))


def verdict_table(game: Game) -> pd.DataFrame:
    """One row per cohort and alternative, the broadcast first, then models, policies, actions.

    ``kind`` is "broadcast", "model", "policy" or "action" (every agent's own best fixed action).
    ``mean_loss`` and ``worth`` are means over the agents, ``better_off`` is how many of them would
    have lost less with it. ``gain`` is by how much listening was worth more per round, with
    ``gain_half``, half the length of its interval at 95 %, where that is known (models).
    """
    rows: list[dict[str, Any]] = []
    for cohort, followed in zip(game.cohorts, game.followed, strict=True):
        if np.any(cohort.ledger.rounds):
            rows += _alternatives(cohort, followed)
    return pd.DataFrame(rows)


def _alternatives(cohort: Cohort, followed: Followed | None) -> Iterator[dict[str, Any]]:
    ledger = cohort.ledger
    rounds = np.broadcast_to(np.maximum(ledger.rounds, 1), len(ledger.count))
    yield _row(cohort, BROADCAST, "", ledger.mean_loss())
    if followed is not None:
        lost, (means, halves) = followed.mean_loss(ledger.rounds), followed.gaps()
        for m, name in enumerate(followed.names):
            known = {"gain": 0.0 - means[m], "gain_half": halves[m]}
            yield _row(cohort, MODEL, name, lost[:, m]) | known
    for j, policy in enumerate(cohort.policies):
        name = str(getattr(policy, "name", f"policy {j}"))
        yield _row(cohort, POLICY, name, ledger.followed[:, :, j].sum(1) / rounds)
    yield _row(cohort, ACTION, "best of each", ledger.fixed.sum(1).min(1) / rounds)


def _row(cohort: Cohort, kind: str, name: str, losses: Array) -> dict[str, Any]:
    """Say what it was for a cohort whose rows lost so much (K,) a round."""
    who, own = _who_came(cohort), cohort.ledger.mean_loss()
    scale, offset = cohort.loss.unit_scale, cohort.loss.unit_offset
    better = (own - losses > ROUNDING)[cohort.row_of]
    return {
        "cohort": cohort.name,
        "kind": kind,
        "name": name,
        "agents": number_of(cohort, who),
        "mean_loss": mean_over(cohort, losses, who),
        "worth": -mean_over(cohort, offset + scale * losses, who),
        "better_off": number_of(cohort, who & better),
        "gain": mean_over(cohort, scale * (losses - own), who),
        "gain_half": np.nan,
    }


def _who_came(cohort: Cohort) -> Mask:
    """Say which agents of a cohort have played (N,)."""
    played = np.broadcast_to(np.asarray(cohort.ledger.rounds) > 0, len(cohort.ledger.count))
    return np.asarray(played[cohort.row_of])
