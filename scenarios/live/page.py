"""The live page as HTML: controls, which are native ones, and a place for every figure.

Native controls have names, take the keyboard and work on a phone without anything being added.
They stand in ``page.html`` beside this file, what fills them in ``page.js``, their style in
``page.css``. The page's policy lets it talk to the server that it came from, and to nobody else.
"""

from html import escape
from pathlib import Path

from regretless.scenarios.report.charts import scripts
from regretless.scenarios.report.html import page
from regretless.scenarios.spec.files import catalogue

STILL = "Scripts are off: this page is nothing without them."


def live_page() -> str:
    """Return the page, for all viewers alike."""
    file = Path(__file__).resolve()
    body, program, style = (
        file.with_suffix(ending).read_text(encoding="utf-8") for ending in (".html", ".js", ".css")
    )
    names = "".join(f"<option>{escape(name)}</option>" for name in catalogue())
    body = body.replace("{scenarios}", names)
    return page("regretless", body, (*scripts(), program), style=style, still=STILL)
