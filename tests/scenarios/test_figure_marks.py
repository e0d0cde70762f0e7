"""Long names above a panel stay whole."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli_w

from regretless import load

LONG = "growers of the northern valleys who sell at the spring market"
WORD = "a_name_of_one_word_that_is_far_longer_than_there_is_room_for_anywhere"


@pytest.mark.parametrize("name", [LONG, WORD])
def test_a_long_name_above_a_panel_is_whole(tmp_path: Path, name: str) -> None:
    cohort = {"name": name, "utility": "linear", "actions": 2, "count": 3}
    raw = {"name": "own", "rounds": 8, "adversary": {"kind": "switching", "outcomes": 2}}
    (tmp_path / "own.toml").write_text(tomli_w.dumps(raw | {"cohort": [cohort]}))
    model = load(str(tmp_path / "own.toml")).build()
    model.run()
    titles = [note.text.replace("<br>", " ") for note in model.show("loss").layout.annotations]
    assert name in {title.replace(" ", "" if name == WORD else " ") for title in titles}
