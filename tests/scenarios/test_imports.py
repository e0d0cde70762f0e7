"""A user's modules are found in the working folder, and nothing there replaces a library."""

import math
import sys
from pathlib import Path

import pytest

from regretless.market.core.errors import UserError
from regretless.scenarios.executor.choice import collect
from regretless.scenarios.imports import import_modules

TRAP = "from pathlib import Path\n\nPath(__file__).with_suffix('.executed').touch()\n"


@pytest.fixture(autouse=True)
def folder(working_folder: Path) -> Path:
    """Work beside a module of one's own, and files named like libraries that workers import."""
    for name in ("socket", "tornado", "typer"):
        (working_folder / f"{name}.py").write_text(TRAP, encoding="utf-8")
    (working_folder / "mine.py").write_text("pass\n", encoding="utf-8")
    return working_folder


def test_the_folder_comes_last_on_the_path_once_a_module_is_imported(folder: Path) -> None:
    import_modules(["mine"])
    assert "mine" in sys.modules
    assert sys.path[-1] == str(folder)
    assert sys.path.count(str(folder)) == 1


def test_workers_import_nothing_from_the_folder_by_themselves(folder: Path) -> None:
    import_modules(["mine"])
    assert collect(math.isqrt, [49, 16], jobs=2) == [7, 4]
    assert list(folder.glob("*.executed")) == []


def test_a_folder_without_code_is_refused_in_place_of_a_module(folder: Path) -> None:
    (folder / "shops").mkdir()
    with pytest.raises(UserError, match=r"--import shops: a folder without __init__\.py"):
        import_modules(["shops"])


def test_a_module_in_a_folder_without_code_is_imported(folder: Path) -> None:
    (folder / "shops").mkdir()
    (folder / "shops" / "bakers.py").write_text("pass\n", encoding="utf-8")
    import_modules(["shops.bakers"])
    assert "shops.bakers" in sys.modules
