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

import pytest
from browser import visit_page

pytestmark = pytest.mark.pages

for needed in ("mkdocs", "material", "mkdocstrings"):
    pytest.importorskip(needed, reason="the extra docs is not installed")

HOME = Path(__file__).parent.parent
# Hosts that links may lead to; the project has no address of its own.
REAL = {"arxiv.org", "distributed.dask.org", "doi.org", "skops.readthedocs.io"}
REAL |= {"gymnasium.farama.org", "pettingzoo.farama.org"}
FORMULAS = ("deviations", "glossary", "guarantee", "measures")  # pages with formulas
LOADED = dict.fromkeys(("script", "img", "iframe", "source"), "src") | {"link": "href", "a": "href"}
NAMED = {  # what a page of the reference shows
    "reference/keys": "How many agents there are",
    "columns": "bound_from_variation",
    "reference/api/market.regret": 'id="regretless.market.regret.definitions.swap_regret"',
    "reference/commands": "Usage: regretless describe [OPTIONS]",
    "reference/names": "stackelberg-committer",
}


class Addresses(HTMLParser):
    """Collects what a page loads by itself, and where its links lead."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: dict[str, list[str]] = {}
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in LOADED:
            self.found.setdefault(tag, []).append(dict(attrs).get(LOADED[tag]) or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(HOME)}
    done = subprocess.run(build, cwd=HOME, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_it_has_every_page_and_the_reference(site: Path) -> None:
    pages = {path.relative_to(site).with_suffix("").as_posix() for path in site.rglob("*.html")}
    assert {path.stem for path in (HOME / "docs").glob("*.md")} - {"README"} | {"index"} <= pages
    for page, words in NAMED.items():
        assert words in (site / f"{page}.html").read_text(encoding="utf-8"), page


def test_it_asks_for_nothing_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        addresses_of_tags = Addresses(path).found
        for link in addresses_of_tags.pop("a", []):
            away = re.match(r"(?:\w+:)?//([^/]+)|\w+:", link)
            assert away is None or away[1] in REAL, f"{path.name}: {link}"
        for address in [addresses for tag in addresses_of_tags.values() for addresses in tag]:
            assert not re.match(r"(?!data:)\w+:|//", address), f"{path.name}: {address}"
    for path in site.rglob("*.css"):
        loose = path.read_text(encoding="utf-8")
        assert not re.search(r"url\([\"']?(?:https?:)?//|@import", loose), path.name


def test_formulas_are_set_in_a_folder(site: Path, tmp_path: Path) -> None:
    """KaTeX lies beside the pages: no server, no network, no formula that it cannot read."""
    for name in FORMULAS:
        seen = visit_page(site / f"{name}.html", tmp_path / name)
        written = (site / f"{name}.html").read_text(encoding="utf-8").count('class="arithmatex"')
        assert written > 0
        assert seen.document.count('class="katex"') >= written
        assert "katex-error" not in seen.document
        assert seen.console == ()


def test_search_works_in_a_folder(site: Path, tmp_path: Path) -> None:
    visit = visit_page(site / "index.html", tmp_path / "profile", query="q=exploitability")
    assert re.search(r"md-search-result__meta\">\s*\d+ matching documents", visit.document)
    assert visit.console == ()
