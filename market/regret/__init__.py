"""How an agent is scored: the ledger while a run goes on, and every regret from a raw log."""

from regretless.market.regret.definitions import (
    contextual_swap_regret,
    decision_swap_regret,
    external_regret,
    omniprediction_regret,
    swap_regret,
)

__all__ = [
    "contextual_swap_regret",
    "decision_swap_regret",
    "external_regret",
    "omniprediction_regret",
    "swap_regret",
]
