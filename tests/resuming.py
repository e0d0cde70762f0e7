"""A market that is restored from a checkpoint goes on as the one that was never stopped."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from regretless.market.core import checkpoint
from regretless.market.model import MarketModel

TABLES = (
    *("rounds", "forecasts", "regret", "accounts", "trades", "quotes", "windows", "states"),
    *("agents", "swaps", "models", "verdict", "scores", "biases"),
)


def check_resumes(build: Callable[[], MarketModel], at: int, folder: Path) -> MarketModel:
    """Play to the end, and again from a checkpoint file after so many rounds; return the first."""
    whole, again = build(), build()
    whole.run(at)
    checkpoint.save(folder / "state.npz", whole.state())
    whole.run()
    again.restore(checkpoint.load(folder / "state.npz"))
    again.run()
    for table in TABLES:
        ours, theirs = (getattr(model, f"{table}_frame")() for model in (again, whole))
        when = theirs.get("round", theirs.get("last"))  # what came before is in the journal's parts
        if when is not None:
            theirs = theirs[when >= at].reset_index(drop=True)
        if len(ours) or len(theirs):
            pd.testing.assert_frame_equal(ours, theirs, check_exact=True, obj=table)
    if whole.game.market is not None and again.game.market is not None:
        assert again.game.market.described() == whole.game.market.described()
        assert again.game.market.summary() == whole.game.market.summary()
    return whole
