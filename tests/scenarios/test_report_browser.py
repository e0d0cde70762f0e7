"""Pages in a real browser: every figure is drawn, and the console stays empty.

The page of a study is opened in ``test_study_comparisons``, which makes one.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import worlds
from browser import Visit, visit
from pages import check

from regretless.scenarios.report import theme
from regretless.scenarios.report.page import page
from regretless.scenarios.report.write import write_report
from regretless.scenarios.run import Options, run

pytestmark = pytest.mark.browser

NASTY = "</script><script>document.title = 'broken'</script><b>%{x} $y$ & \"q\""
COHORT = {"utility": "linear", "actions": 3, "count": 4}
BASE = {
    "name": "market <b>&amp;",
    "description": f"claim {NASTY}",
    "source": f"by {NASTY}",
    "rounds": 40,
    "windows": {"every": 20},
    "adversary": {"kind": "switching", "outcomes": 2},
    "cohort": [COHORT | {"name": f"crowd {NASTY}"}, COHORT | {"name": "calm"}],
}


def test_a_run_page_draws_its_figures_in_light_and_dark(tmp_path: Path) -> None:
    run(worlds.told(BASE, origin=tmp_path), Options(tmp_path / "run"))
    written = write_report(tmp_path / "run")
    text = written.read_text(encoding="utf-8")
    page, name = check(text), f"crowd {NASTY}"
    assert "b" not in page.tags
    assert all(told in page.text for told in (name, BASE["name"], f"claim {NASTY}", f"by {NASTY}"))
    assert len(text) < 8_000_000
    seen = visit(written, tmp_path / "profile")
    assert seen.console == ()
    drawn = {"loss", "regret", "windows", "spread", "agents", "exploitability", "forecast"}
    drawn |= {"certificates", "calibration", "reliability", "decision_calibration"}
    assert seen.document.count('class="js-plotly-plot"') == len(drawn)
    for name in drawn:
        assert seen.traces(name) >= 2, name
    assert seen.traces("regret") >= 4  # mean and worst agent of two cohorts, and bounds below 1
    assert seen.traces("agents") == 2
    assert 'class="card" hidden' not in seen.document  # as it is without scripts
    assert "<title>market &lt;b&gt;&amp;amp;</title>" in seen.document
    assert "crowd &lt;/script&gt;&lt;" in seen.document  # in the legend
    dark = visit(written, tmp_path / "profile", flags=("--blink-settings=preferredColorScheme=0",))
    for shown, ink in ((seen, theme.INK), (dark, theme.DARK[theme.INK])):
        red, green, blue = (int(ink[i : i + 2], 16) for i in (1, 3, 5))
        assert f"fill: rgb({red}, {green}, {blue})" in shown.document


def visited(
    folder: Path, *parts: Any, program: str = "", body: str = "", width: int = 1400
) -> Visit:
    """Visit a page of tables, with a body before its heading, in a window of a width."""
    sections: dict[str, Any] = {"Tables": parts}
    rest = {"name": "tables", "facts": "", "sentences": ()}
    text = page("report.html", (program,), sections=sections, **rest)
    written = folder / "page.html"
    written.write_bytes(text.replace("<h1>", f"{body}<h1>", 1).encode())
    return visit(written, folder / "profile", flags=(f"--window-size={width},900",))


def test_tables_are_sorted_by_a_click_and_wide_ones_say_that_they_scroll(tmp_path: Path) -> None:
    """Numbers by value, whatever follows them, and what is missing last, both ways."""
    rows = [[str(i), value] for i, value in enumerate(["10 ± 1", "9", "-", "1,000"])]
    table = ("table", ["run", "regret"], rows, 1, True)
    click = "const heads = document.querySelectorAll('th button'); heads[1].click();"
    wide = ("table", [f"column {i}" for i in range(60)], [["1"] * 60])
    program = f"{click} heads[3].click(); heads[3].click();"
    seen = visited(tmp_path, table, table, wide, program=program)
    phone = visited(tmp_path, wide, width=600)  # where a row is some lines
    assert seen.console == phone.console == ()
    found = re.findall(r"<td data-head=.regret.>([^<]*)</td></tr>", seen.document)
    assert found == ["9", "10 ± 1", "1,000", "-", "1,000", "10 ± 1", "9", "-"]
    boxes = re.findall(r'<div class="wide([^>]*)>', seen.document + phone.document)
    assert boxes == ['"', '"', ' more" tabindex="0"', '"']


def test_what_must_not_be_is_seen(tmp_path: Path) -> None:
    """The console tells of requests, foreign scripts and errors: an empty one means something."""
    foreign = "<script>document.title = 'broken'</script>"
    body = f'<img src="https://example.invalid/a.png">{foreign}'
    seen = visited(tmp_path, program="missing();", body=body)
    for complaint in ("Loading the image", "Executing inline script", "missing is not defined"):
        assert complaint in "\n".join(seen.console)
    assert "<title>tables</title>" in seen.document
