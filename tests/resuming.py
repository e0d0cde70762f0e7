"""A market that is restored from a checkpoint goes on as the one that was never stopped."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from regretless.market.core import checkpoint
from regretless.market.model import MarketModel

TABLES = (
    "rounds",
    "forecasts",
    "regret",
    "accounts",
    "trades",
    "quotes",
    "sales",
    "windows",
    "states",
    "agents",
    "swaps",
    "models",
    "verdict",
    "scores",
    "biases",
)


def rows_from_round(table: pd.DataFrame, first: int) -> pd.DataFrame:
    """Return the rows of a round or later, by ``round`` or ``last``; all where there is neither."""
    round_of_row = table.get("round", table.get("last"))
    if round_of_row is None:
        return table
    return table[round_of_row >= first].reset_index(drop=True)


def check_resumes(
    build: Callable[[], MarketModel], checkpoint_round: int, folder: Path
) -> MarketModel:
    """Play to the end, and again from a checkpoint file after so many rounds; return the first.

    Every table of the second must have the bits of the first's, from the checkpoint on: what came
    before is in the journal's parts.
    """
    undisturbed = build()
    restored = build()
    undisturbed.run(checkpoint_round)
    checkpoint.save(folder / "state.npz", undisturbed.state())
    undisturbed.run()
    restored.restore(checkpoint.load(folder / "state.npz"))
    restored.run()
    for name in TABLES:
        table = getattr(restored, f"{name}_frame")()
        expected = rows_from_round(getattr(undisturbed, f"{name}_frame")(), checkpoint_round)
        if len(table) or len(expected):
            pd.testing.assert_frame_equal(table, expected, check_exact=True, obj=name)
    if undisturbed.game.market is not None and restored.game.market is not None:
        assert restored.game.market.described() == undisturbed.game.market.described()
        assert restored.game.market.summary() == undisturbed.game.market.summary()
    return undisturbed
