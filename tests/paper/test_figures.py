"""Figures of the paper's tables: how many pixels they have, and how large their labels are."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.image import imread

from paper.figures import LABEL_SCALE, PIXELS_PER_INCH, write_files

WORD = "eight"
FONT_SIZE = 20  # points, of which an inch has 72


def figure_with_a_word() -> Figure:
    """Return an empty figure, 4 x 3 inches, with one word in the middle."""
    figure = Figure(figsize=(4, 3))
    figure.text(0.5, 0.5, WORD, fontsize=FONT_SIZE)
    return figure


def test_a_figure_has_the_pixels_that_its_size_says(tmp_path: Path) -> None:
    (path,) = write_files(tmp_path, {"word.png": figure_with_a_word()})
    assert imread(path).shape[:2] == (3 * PIXELS_PER_INCH, 4 * PIXELS_PER_INCH)


def test_labels_are_enlarged(tmp_path: Path) -> None:
    figure_with_a_word().savefig(tmp_path / "plain.png", dpi=PIXELS_PER_INCH)
    (path,) = write_files(tmp_path, {"word.png": figure_with_a_word()})
    assert height_of_ink(path) > 0.9 * LABEL_SCALE * height_of_ink(tmp_path / "plain.png")


def test_a_figure_that_was_written_keeps_its_size(tmp_path: Path) -> None:
    figure = figure_with_a_word()
    write_files(tmp_path, {"word.png": figure})
    np.testing.assert_allclose(figure.get_size_inches(), [4, 3])


def height_of_ink(path: Path) -> int:
    """Count the rows of pixels that are not all white."""
    pixels = imread(path)[..., :3]
    return int((pixels < 0.5).any(axis=(1, 2)).sum())
