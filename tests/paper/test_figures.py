"""Figures of the paper's tables: how many pixels they have, how large labels are, and where."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imread

from paper.figures import LABEL_SCALE, PIXELS_PER_INCH, write_files
from paper.tables import two_sellers_figure

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


def test_labels_of_buyers_cover_neither_points_nor_each_other() -> None:
    utilities = {  # against the seller of free offers, and against the other
        "Hedge": (0.05, 0.4),
        "swap regret matching": (0.13, 0.39),
        "Decision-Swap": (0.39, 0.39),
        "Decision-Swap without models": (0.39, 0.37),
        "Hedge over models and offers": (0.39, 0.39),
        "a model alone": (0.4, -0.4),
        "buys nothing": (0.0, 0.0),
    }
    rows = [
        {"buyers": buyers, "seller": seller, "utility": utility + shift}
        for buyers, both in utilities.items()
        for seller, utility in zip(("opens free offers", "charges later"), both, strict=True)
        for shift in (-0.003, 0.003)
    ]
    half_interval = np.array([0.038, 0])  # of two runs that are 0.006 apart
    figure = two_sellers_figure(pd.DataFrame(rows))
    width, height = figure.get_size_inches()
    figure.set_size_inches(width / LABEL_SCALE, height / LABEL_SCALE)  # the sheet that is written
    FigureCanvasAgg(figure).draw()
    (axis,) = figure.axes
    labels = [text.get_window_extent() for text in axis.texts]
    means = np.array(list(utilities.values()))
    points = axis.transData.transform(
        np.concatenate([means, means - half_interval, means + half_interval])
    )
    assert len(labels) == 4
    for number, label in enumerate(labels):
        assert label.count_contains(points) == 0
        assert label.count_overlaps(labels) == 1, f"label {number} covers another one"
        assert label.x1 <= figure.bbox.x1


def height_of_ink(path: Path) -> int:
    """Count the rows of pixels that are not all white."""
    pixels = imread(path)[..., :3]
    return int((pixels < 0.5).any(axis=(1, 2)).sum())
