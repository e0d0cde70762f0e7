"""The site builds from the pages, strictly, and asks nothing of any other host.

Strict is: no page outside the index, no link or anchor that leads nowhere, no reference to a thing
that is not there. It needs the extra ``docs``, which ``test`` includes.
"""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import browser
import pytest

pytestmark = pytest.mark.pages

pytest.importorskip("mkdocs", reason="the extra docs is not installed")
pytest.importorskip("material", reason="the extra docs is not installed")
pytest.importorskip("mkdocstrings", reason="the extra docs is not installed")

HOME = Path(__file__).parent.parent
# Hosts that links may lead to; the project has no address of its own.
REAL = {
    "arxiv.org", "distributed.dask.org", "doi.org", "gymnasium.farama.org", "pettingzoo.farama.org",
    "skops.readthedocs.io",
}  # fmt: skip
FORMULAS = ("deviations", "glossary", "guarantee", "measures")  # pages with formulas
LOADED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}


class Addresses(HTMLParser):
    """Collects what a page loads by itself, and where its links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.loaded += [found.get(LOADED[tag]) or ""] if tag in LOADED else []
        self.links += [found.get("href") or ""] if tag == "a" else []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=HOME,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(HOME)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_it_has_every_page_and_the_reference(site: Path) -> None:
    pages = {path.relative_to(site).with_suffix("").as_posix() for path in site.rglob("*.html")}
    written = {path.stem for path in (HOME / "docs").glob("*.md")} - {"README"}
    assert written | {"index"} <= pages
    keys = (site / "reference/keys.html").read_text(encoding="utf-8")
    assert "How many agents there are" in keys
    columns = (site / "columns.html").read_text(encoding="utf-8")
    assert "bound_from_variation" in columns
    python = (site / "reference/api/market.regret.html").read_text(encoding="utf-8")
    assert 'id="regretless.market.regret.definitions.swap_regret"' in python
    assert "describe" in (site / "reference/commands.html").read_text(encoding="utf-8")
    assert "stackelberg-committer" in (site / "reference/names.html").read_text(encoding="utf-8")


def test_it_asks_for_nothing_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        page = Addresses(path.read_text(encoding="utf-8"))
        outside = [a for a in page.loaded if re.match(r"\w+:|//", a) and not a.startswith("data:")]
        assert outside == [], path.name
        for link in page.links:
            away = re.match(r"(?:\w+:)?//([^/]+)|\w+:", link)
            assert away is None or away[1] in REAL, f"{path.name}: {link}"
    for path in site.rglob("*.css"):
        loose = path.read_text(encoding="utf-8")
        assert not re.search(r"url\([\"']?(?:https?:)?//|@import", loose), path.name


def test_formulas_are_set_in_a_folder(site: Path, tmp_path: Path) -> None:
    """KaTeX lies beside the pages: no server, no network, no formula that it cannot read."""
    for name in FORMULAS:
        seen = browser.visit(site / f"{name}.html", tmp_path / name)
        written = (site / f"{name}.html").read_text(encoding="utf-8").count('class="arithmatex"')
        assert written > 0
        assert seen.document.count('class="katex"') >= written
        assert "katex-error" not in seen.document
        assert seen.console == ()


def test_search_works_in_a_folder(site: Path, tmp_path: Path) -> None:
    """Without a server, without a network, and without complaint."""
    found = browser.visit(site / "index.html", tmp_path / "profile", query="q=exploitability")
    assert re.search(r"md-search-result__meta\">\s*\d+ matching documents", found.document)
    assert found.console == ()
