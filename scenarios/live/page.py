"""The live page as HTML: controls, which are native ones, and a place for every figure.

Native controls have names, take the keyboard and work on a phone without anything being added.
They stand in ``page.html`` beside this file, what fills them in ``page.js``, their style in
``page.css``. The page's policy lets it talk to the server that it came from, and to nobody else.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from regretless.scenarios.live.session import SPEEDS
from regretless.scenarios.live.view import FIGURES
from regretless.scenarios.report.charts import scripts
from regretless.scenarios.report.html import page
from regretless.scenarios.spec.files import catalogue

STILL = "Scripts are off: this page is nothing without them."
PLACE = (
    '<section class="place" data-name="{0}"><h2>{1}</h2><figure><div class="card">'
    '<div id="chart-{0}" role="img" aria-label="{1}"></div></div>'
    "<figcaption>{2}</figcaption></figure></section>"
)


def live_page() -> str:
    """Return the page, for all viewers alike."""
    here = Path(__file__).resolve()
    body, program, style = (
        here.with_suffix(ending).read_text(encoding="utf-8") for ending in (".html", ".js", ".css")
    )
    filled = {
        "speeds": "".join(_option(str(speed), _speed(speed)) for speed in SPEEDS),
        "scenarios": "".join(_option(name, name) for name in catalogue()),
        "figures": "\n".join(PLACE.format(name, *words) for name, words in FIGURES.items()),
    }
    return page(
        "regretless", body.format(**filled), (*scripts(), program), style=style, still=STILL
    )


def _speed(speed: int) -> str:
    return f"{speed} round{'s' * (speed != 1)} a second" if speed else "as fast as it goes"


def _option(value: str, text: str) -> str:
    return f'<option value="{escape(value)}">{escape(text)}</option>'
