"""The live page itself: its HTML with all scripts and styles in it, the same for every viewer."""

from pathlib import Path

from regretless.scenarios.config.files import catalogue
from regretless.scenarios.live.session import SPEEDS
from regretless.scenarios.report.figures import FIGURES
from regretless.scenarios.report.page import page

FOLDER = Path(__file__).parent
SCRIPTS = (  # of the folder ``page``, by what a viewer sees, in the order in which they are run
    "server.js",
    "status.js",
    "settings.js",
    "players.js",
    "figures.js",
    "agent.js",
    "main.js",
)
FIGURE_NAMES = (  # of a run, in the order of the page
    "regret",
    "loss",
    "alternatives",
    "forecast",
    "actions",
    "measures",
    "demand",
    "market",
    "owned",
    "agents",
    "network",
)


def live_page() -> str:
    """Return the page, with a place for every figure that can be drawn live."""
    return page(
        "live.html",
        [(FOLDER / "page" / name).read_text(encoding="utf-8") for name in SCRIPTS],
        style=(FOLDER / "page.css").read_text(encoding="utf-8"),
        figures=[FIGURES["run"][name] for name in FIGURE_NAMES],
        scenarios=list(catalogue()),
        speeds=SPEEDS,
    )
