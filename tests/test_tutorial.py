"""The tutorial is so: its notebook runs from top to bottom and prints what it was saved with."""

import os
import re
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.pages

nbformat = pytest.importorskip("nbformat", reason="the group test is not installed")
nbclient = pytest.importorskip("nbclient", reason="the group test is not installed")
pytest.importorskip("ipykernel", reason="the group test is not installed")

NOTEBOOK = Path(__file__).parent.parent / "docs/tutorial.ipynb"
# The seconds of a run, what a run in a new installation says first, and what terminals are told.
VARIES = re.compile(r"(?<=, )\d+ s|^Compiling kernels.*$|\r|\x1b\[0m", re.MULTILINE)


def printed(notebook: nbformat.NotebookNode) -> list[str]:
    """Return what each cell prints, without blank lines and what varies from run to run."""
    texts = []
    for cell in notebook.cells:
        outputs = [output for output in cell.get("outputs", ()) if output.get("name") == "stdout"]
        text = VARIES.sub("", "".join(output["text"] for output in outputs))
        texts.append("\n".join(line.rstrip() for line in text.splitlines() if line.strip()))
    return texts


@pytest.mark.filterwarnings("default")  # of the client, which is no part of this project
def test_the_tutorial_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    saved, again = (nbformat.read(NOTEBOOK, as_version=4) for _ in range(2))
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(again, kernel_name="python3", resources=resources).execute()
    assert printed(again) == printed(saved)
    assert any("image/png" in output.get("data", {}) for output in again.cells[-2]["outputs"])
