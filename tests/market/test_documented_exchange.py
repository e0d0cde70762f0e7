"""The exchange on the page on markets: its fee is in the losses, and keeps no seller out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from page_session import command, steps

from regretless import load  # noqa: F401 - so that bundled names are registered
from regretless.market import register

PAGE = Path(__file__).parent.parent.parent / "docs/markets.md"
VALUES = {"buyers": 0.75, "sellers": 0.03125}  # what a unit is worth to each, and costs each
WRITTEN = {"buyers": "value = [0.3, 1.0]", "sellers": "value = [0.0, 0.7]"}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, pd.DataFrame]]:
    """Run the page's exchange with sellers to whom a unit costs less than the fee."""
    home = tmp_path_factory.mktemp("exchange")
    for step in steps(PAGE.read_text(encoding="utf-8")):
        if step.file in {"my_auction.py", "my-exchange.toml"}:
            text = step.text.replace('"hedge"', '"follow-the-leader"')  # who plays pure actions
            for cohort, value in VALUES.items():
                text = text.replace(WRITTEN[cohort], f"value = {value}")
            (home / step.file).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setattr(sys, "path", list(sys.path))
        for kind in (register.market, register.utility):
            patch.setattr(kind, "_known", dict(kind._known))
        command(
            "regretless run my-exchange.toml --import my_auction --out out --quiet --log-every 1"
        )
        yield {path.stem: pd.read_parquet(path) for path in home.glob("out/*.parquet")}


def test_sellers_whose_cost_is_below_the_fee_sell(tables: dict[str, pd.DataFrame]) -> None:
    sold = _moves(tables).query("cohort == 'sellers' and traded < 0")
    assert sold["agent"].nunique() >= 15


def test_a_trade_costs_what_the_loss_says(tables: dict[str, pd.DataFrame]) -> None:
    """Loss in own units: what a unit is worth less what changed hands, the fee included."""
    moves = _moves(tables).query("round > 5 and traded != 0")
    gain = moves["traded"] * moves["cohort"].map(VALUES) + moves["paid"]
    loss = moves["loss_offset"] + moves["loss_scale"] * moves["loss"]
    assert len(moves) > 100
    np.testing.assert_allclose(loss, -gain, atol=1e-6)
    assert gain.min() > -1e-6


def _moves(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return what each agent traded and was paid in each round but the first."""
    accounts = tables["accounts"].sort_values(["agent", "round"])
    change = accounts.groupby("agent")[["cash", "goods_0"]].diff()
    moves = accounts[["round", "agent"]].assign(paid=change["cash"], traded=change["goods_0"])
    log = tables["regret_log"].sort_values(["agent", "round"])[["round", "agent", "loss"]]
    agents = log.groupby("agent")
    total = log["loss"] * (agents.cumcount() + 1)  # what is logged is the mean so far
    log["loss"] = total - total.groupby(log["agent"]).shift()
    return moves.dropna().merge(log, on=["round", "agent"]).merge(tables["agents"], on="agent")
