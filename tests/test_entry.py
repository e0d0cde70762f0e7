"""The front door: what ``import regretless`` offers, and the ways to start the command."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import regretless

COMMANDS = {
    "script": [str(Path(sys.executable).parent / "regretless")],
    "module": [sys.executable, "-m", "regretless"],
}


def run(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=folder, capture_output=True, text=True, check=False, env=os.environ
    )


@pytest.mark.parametrize("way", COMMANDS)
def test_the_command_starts_wherever_it_is_called(tmp_path: Path, way: str) -> None:
    """Folders and modules of generic names in the way do no harm."""
    (tmp_path / "market").mkdir()
    (tmp_path / "agents.py").write_text("raise RuntimeError('not ours')\n")
    done = run(*COMMANDS[way], "list", folder=tmp_path)
    assert done.returncode == 0
    assert "crop-choice" in done.stdout


def test_every_public_name_is_there_and_none_is_loaded_before_it_is_asked_for(
    tmp_path: Path,
) -> None:
    for name in regretless.__all__:
        assert getattr(regretless, name) is not None
        assert name in dir(regretless)
    with pytest.raises(AttributeError, match="no attribute 'profit'"):
        _ = regretless.profit
    code = "import regretless, sys; print('numpy' in sys.modules, regretless.__version__)"
    done = run(sys.executable, "-c", code, folder=tmp_path)
    assert done.stdout.split() == ["False", regretless.__version__]


def test_the_five_lines_of_the_docstring_run() -> None:
    doc = regretless.__doc__ or ""
    lines = [line[4:] for line in doc.splitlines() if line.startswith("    ")]
    scope: dict[str, object] = {}
    exec("\n".join(lines), scope)  # noqa: S102 - our own docstring
    model = scope["model"]
    assert isinstance(model, regretless.MarketModel)
    assert model.played == 100


def test_lists_tuples_and_arrays_are_the_same_parameter() -> None:
    """What a file says as a list, a script may say as a tuple or an array."""
    played = []
    for mean in ([0.1, 0.2, 0.3], (0.1, 0.2, 0.3), np.array([0.1, 0.2, 0.3])):
        adversary = {"kind": "iid", "outcomes": 3, "mean": mean}
        model = regretless.load("crowding", adversary=adversary, rounds=3).build(seed=1)
        model.run()
        played.append(model.rounds_frame())
    assert played[0].equals(played[1])
    assert played[0].equals(played[2])
