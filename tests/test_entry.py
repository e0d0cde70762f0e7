"""The front door: what ``import regretless`` offers, and the ways to start the command."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import regretless

SCRIPT = [str(Path(sys.executable).parent / "regretless")]


@pytest.mark.parametrize("way", [SCRIPT, [sys.executable, "-m", "regretless"]])
def test_the_command_starts_wherever_it_is_called(tmp_path: Path, way: list[str]) -> None:
    """Folders and modules of generic names in the way do no harm."""
    (tmp_path / "market").mkdir()
    (tmp_path / "agents.py").write_text("raise RuntimeError('not ours')\n")
    assert "crop-choice" in subprocess.check_output([*way, "list"], cwd=tmp_path, text=True)


def test_every_public_name_is_there_and_none_is_loaded_before_it_is_asked_for() -> None:
    for name in regretless.__all__:
        assert getattr(regretless, name) is not None
        assert name in dir(regretless)
    with pytest.raises(AttributeError, match="no attribute 'profit'"):
        _ = regretless.profit
    code = "import regretless, sys; print('numpy' in sys.modules, regretless.__version__)"
    printed = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert printed.split() == ["False", regretless.__version__]


def test_type_checkers_see_the_names_that_are_imported_when_asked_for() -> None:
    tree = ast.parse(Path(regretless.__file__).read_text(encoding="utf-8"))
    for_type_checkers = {
        (str(node.module), alias.asname)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname is not None
    }
    when_asked_for = {
        (f"regretless.{module}", name)
        for module, names in regretless._PUBLIC_NAMES.items()
        for name in names
    }
    assert for_type_checkers == when_asked_for


def test_the_five_lines_of_the_docstring_run() -> None:
    lines = [line[4:] for line in str(regretless.__doc__).splitlines() if line[:4] == " " * 4]
    scope: dict[str, object] = {}
    exec("\n".join(lines), scope)  # noqa: S102 - our own docstring
    assert isinstance(scope["model"], regretless.MarketModel)
    assert scope["model"].played == 100


def test_lists_tuples_and_arrays_are_the_same_parameter() -> None:
    """What a file says as a list, a script may say as a tuple or an array."""
    played = []
    for kind in (list, tuple, np.array):
        adversary = {"kind": "iid", "outcomes": 3, "mean": kind([0.1, 0.2, 0.3])}
        model = regretless.load("crowding", adversary=adversary, rounds=3).build(seed=1)
        model.run()
        played.append(model.rounds_frame())
    assert all(played[0].equals(other) for other in played[1:])
