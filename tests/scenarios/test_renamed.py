"""Old keys and kinds are refused in one line that names the new one, and a page lists them all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from regretless.market.core.errors import UserError
from regretless.scenarios.config.scenario import validated
from regretless.scenarios.config.values import KEYS, VALUES, check_renamed

PAGE = Path(__file__).parents[2] / "docs" / "renamed.md"


def nested(dotted: str, value: Any) -> dict[str, Any]:
    """Build a file with one key; a cohort is one of a list."""
    table, _, key = dotted.rpartition(".")
    if table == "cohort":
        return {"cohort": [{"name": "own", key: value}]}
    return {table: {key: value}} if table else {key: value}


@pytest.mark.parametrize(("old", "new"), KEYS.items())
def test_an_old_key_is_refused_with_its_new_name(old: str, new: str) -> None:
    with pytest.raises(UserError, match=f"{old.rpartition('.')[2]} is called '{new}' now"):
        validated(nested(old, 1), origin=Path())
    check_renamed(nested(f"{old.rpartition('.')[0]}.{new}".lstrip("."), 1))


@pytest.mark.parametrize(
    ("key", "old", "new"), [(key, *pair) for key in VALUES for pair in VALUES[key].items()]
)
def test_an_old_kind_is_refused_with_its_new_name(key: str, old: str, new: str) -> None:
    with pytest.raises(UserError, match=f"{key} = '{old}' is called '{new}' now"):
        validated(nested(key, old), origin=Path())


def test_the_page_names_them_all() -> None:
    pairs = [(old.rpartition(".")[2], new) for old, new in KEYS.items()]
    rows = [line.split("|")[1:3] for line in PAGE.read_text().splitlines() if "|" in line]
    for old, new in [*pairs, *(pair for kinds in VALUES.values() for pair in kinds.items())]:
        assert any(f"`{old}`" in before and f"`{new}`" in after for before, after in rows)
