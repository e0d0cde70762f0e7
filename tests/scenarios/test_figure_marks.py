"""Axes hold the curves that are drawn, long names stay whole, and curves bear their names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tomli_w

from regretless import load

LONG = "growers of the northern valleys who sell at the spring market"
WORD = "a_name_of_one_word_that_is_far_longer_than_there_is_room_for_anywhere"


@pytest.mark.parametrize("rounds", [3, 25])
def test_the_axis_of_loss_over_time_holds_every_curve(rounds: int) -> None:
    model = load("crop-choice", rounds=rounds, **{"cohort.growers.count": 4}).build(seed=3)
    model.run()
    figure = model.show("loss")
    low, high = figure.layout.yaxis.range
    values = np.concatenate([curve.y for curve in figure.data])
    assert low < values.min() <= values.max() < high
    named = {note.text for note in figure.layout.annotations} | {
        curve.name for curve in figure.data if figure.layout.showlegend is not False
    }
    assert {curve.name for curve in figure.data} <= named


@pytest.mark.parametrize("name", [LONG, WORD])
def test_a_long_name_above_a_panel_is_whole(tmp_path: Path, name: str) -> None:
    cohort = {"name": name, "utility": "linear", "actions": 2, "count": 3}
    raw = {"name": "own", "rounds": 8, "adversary": {"kind": "switching", "outcomes": 2}}
    (tmp_path / "own.toml").write_text(tomli_w.dumps(raw | {"cohort": [cohort]}))
    model = load(str(tmp_path / "own.toml")).build()
    model.run()
    titles = [note.text.replace("<br>", " ") for note in model.show("loss").layout.annotations]
    assert name in {title.replace(" ", "" if name == WORD else " ") for title in titles}
