"""The live page as HTML: controls, which are native ones, and a place for every figure.

Native controls have names, take the keyboard and work on a phone without anything being added. What
fills them is ``page.js`` beside this file, with the style in ``page.css``. The page's policy lets
it talk to the server that it came from, and to nobody else.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from regretless.scenarios.live.session import SPEEDS
from regretless.scenarios.live.view import FIGURES
from regretless.scenarios.report.charts import scripts
from regretless.scenarios.report.html import page
from regretless.scenarios.spec.files import catalogue

HERE = Path(__file__).resolve().parent
STILL = "Scripts are off: this page is nothing without them."
BODY = """
<header>
<h1 id="name">regretless</h1>
<p class="claim" id="verdict" aria-live="polite">The market is being built ...</p>
<p class="note" id="claim"></p>
</header>
<section class="bar" aria-label="Play">
<button type="button" id="play" disabled>Play</button>
<button type="button" id="step" disabled>Step</button>
<button type="button" id="restart" disabled>Restart</button>
<label>Speed <select id="speed">{speeds}</select></label>
<label>Seed <input type="number" id="seed" min="0" step="1"></label>
<span id="count"></span>
</section>
<p id="fault" role="alert"></p>
<div class="columns">
<aside aria-label="Settings">
<details id="panel"><summary>Scenario, settings, swap, save</summary>
<form id="chooser">
<label for="scenario">Scenario</label>
<div class="pair"><select id="scenario">{scenarios}</select><button>Load</button></div>
</form>
<h2>Settings</h2>
<p class="note">A change begins again at round 0.</p>
<div id="keys"></div>
<details id="more"><summary>More</summary><div id="others"></div></details>
<h2>Swap while it runs</h2>
<form id="swap-forecaster"><label for="forecaster">Forecaster</label>
<div class="pair"><select id="forecaster"></select><button aria-label="Swap the forecaster">Swap
</button></div></form>
<form id="swap-adversary"><label for="adversary">Adversary</label>
<div class="pair"><select id="adversary"></select><button aria-label="Swap the adversary">Swap
</button></div></form>
<h3>Guarantee</h3>
<ul class="note" id="promises"></ul>
<ul class="note" id="swaps" aria-label="Swaps so far"></ul>
<h2>Save as</h2>
<form id="saver"><label for="as">Name</label><input id="as" required
 pattern="[A-Za-z0-9][A-Za-z0-9_\\-]*" maxlength="60" autocomplete="off">
<div class="pair"><button value="file">Scenario file</button>
<button value="run">File and run</button></div></form>
<p class="note" id="saving" role="status"></p>
</details>
</aside>
<main>
{figures}
<section id="one" class="whole"><h2>One agent</h2>
<p class="note"><label>Agent <input type="number" id="agent" min="1" step="1"></label>
or click a dot above.</p>
<div id="who"></div>
</section>
</main>
</div>
"""


def live_page(given: str = "") -> str:
    """Return the page, for all viewers alike.

    Parameters
    ----------
    given : str
        A scenario file to choose beside those of the catalogue.
    """
    names = [*catalogue(), *([given] if given and given not in catalogue() else [])]
    body = BODY.format(
        speeds="".join(_option(str(speed), _speed(speed)) for speed in SPEEDS),
        scenarios="".join(_option(name, name) for name in names),
        figures="\n".join(_place(name, *words) for name, words in FIGURES.items()),
    )
    program, style = ((HERE / f"page.{kind}").read_text(encoding="utf-8") for kind in ("js", "css"))
    return page("regretless", body, (*scripts(), program), style=style, still=STILL)


def _speed(speed: int) -> str:
    return f"{speed} round{'s' * (speed != 1)} a second" if speed else "as fast as it goes"


def _option(value: str, text: str) -> str:
    return f'<option value="{escape(value)}">{escape(text)}</option>'


def _place(name: str, title: str, caption: str) -> str:
    """Make room for a figure."""
    return (
        f'<section class="place" data-name="{name}"><h2>{title}</h2><figure><div class="card">'
        f'<div id="chart-{name}" role="img" aria-label="{title}"></div></div>'
        f"<figcaption>{caption}</figcaption></figure></section>"
    )
