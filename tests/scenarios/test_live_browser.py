"""The live page in a real browser: what a viewer does, by mouse, keyboard and on a phone."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import tomli_w
from browser import BROWSER_FLAGS, find_browser
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright
from servers import live_server

from regretless.scenarios.live import server
from regretless.scenarios.live.server import Live
from regretless.scenarios.live.source import Source

pytestmark = pytest.mark.browser

PATIENCE = 240_000  # milliseconds; a busy machine takes long to open the first page
WIDTHS = (390, 820, 1440)
NAMED = {"button", "spinbutton", "slider", "combobox", "textbox", "DisclosureTriangle"}
SMALL: dict[str, Any] = {
    "name": "small",
    "rounds": 100_000,
    "forecaster": {"kind": "decision-swap"},
    "adversary": {"kind": "switching", "outcomes": 2},
    "market": {"impact": 0.3},
    "network": {"graph": "small-world", "neighbours": 2, "rewiring": 0.1},
    "cohort": [{"name": "crowd", "utility": "linear", "actions": ["hay", "oats"], "count": 12}],
}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    flags = [
        flag
        for flag in BROWSER_FLAGS
        if not flag.startswith(("--headless", "--virtual", "--enable"))
    ]
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as player:
        started = player.chromium.launch(executable_path=find_browser(), args=flags)
        yield started
        started.close()


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    (tmp_path / "small.toml").write_text(tomli_w.dumps(SMALL), encoding="utf-8")
    with live_server(Source.of(str(tmp_path / "small.toml")), tmp_path) as server:
        yield server


class Viewer:
    """A page of its own, and what it asked for and complained of."""

    def __init__(self, chromium: Browser, live: Live, width: int = 1440) -> None:
        context = chromium.new_context(viewport={"width": width, "height": 900})
        context.set_default_timeout(PATIENCE)
        self.page: Page = context.new_page()
        self.asked = list[str]()
        self.faults = list[str]()
        context.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", lambda said: self.faults.append(said.text))
        self.page.goto(live.address)
        expect(self.button("Restart")).to_be_enabled()

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def enter(self, label: str, value: str) -> Locator:
        """Type a value into the field of this label."""
        field = self.page.get_by_label(label, exact=True)
        field.fill(value)
        field.press("Enter")
        return field

    def shows(self, place: str, text: str) -> None:
        expect(self.page.locator(place)).to_have_text(re.compile(text))

    def drawn(self, name: str) -> Locator:
        """Scroll to a figure and wait until it is there."""
        place = self.page.locator(f"#chart-{name}")
        place.scroll_into_view_if_needed()
        expect(place.locator(".main-svg").first).to_be_visible()
        return place

    def click_on(self, dot: Locator) -> None:
        """Click on a dot of a figure, once it lies still on the screen.

        Figures above it that are drawn for the first time push it away.
        """
        before = None
        while (box := dot.bounding_box()) is None or box != before:
            dot.scroll_into_view_if_needed()
            before = dot.bounding_box()
            self.page.wait_for_timeout(1200)  # two of the page's questions
        self.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


@pytest.fixture
def viewer(chromium: Browser, live: Live) -> Iterator[Viewer]:
    """Open the page; it asks nobody else and has nothing to complain of."""
    new_viewer = Viewer(chromium, live)
    yield new_viewer
    own_addresses = (live.address, "data:", "blob:")
    assert (
        [url for url in new_viewer.asked if not url.startswith(own_addresses)]
        == new_viewer.faults
        == []
    )
    new_viewer.page.context.close()


def test_step_play_and_pause(viewer: Viewer, live: Live) -> None:
    """Until a round fails, which is a line; the market begins again where one asks for it."""
    viewer.shows("#verdict", "^Nothing has been played yet")
    viewer.button("Step").click()
    viewer.shows("#count", "^1 of 100,000 rounds$")
    viewer.page.select_option("#speed", "0")
    viewer.button("Play").click()
    viewer.shows("#count", r"^\d[\d,]+")
    viewer.shows("#verdict", r"^After [\d,]+ rounds: 12 crowd followed the forecast")
    viewer.button("Pause").click()
    expect(viewer.button("Play")).to_be_visible()
    stood = int(viewer.page.inner_text("#count").split(" ")[0].replace(",", ""))
    viewer.button("Step").click()
    viewer.shows("#count", f"^{stood + 1:,} of")
    # this market keeps no accounts: their place is gone before anybody scrolls there
    expect(viewer.page.locator("#chart-owned")).to_be_hidden()
    for name in ("regret", "loss", "forecast", "actions", "demand", "market", "agents", "network"):
        viewer.drawn(name)
    assert "oats" in viewer.page.inner_text("#chart-actions")
    (session,) = live.sessions.values()
    session.model.step = Mock(side_effect=ArithmeticError("no rain today"))  # type: ignore[method-assign]
    viewer.button("Play").click()
    viewer.shows("#fault", r"^round [\d,]+: ArithmeticError: no rain today$")
    expect(viewer.button("Play")).to_be_visible()
    viewer.button("Restart").click()
    viewer.shows("#fault", "^$")


def test_a_slider_is_moved_while_it_plays(viewer: Viewer, live: Live) -> None:
    """The market begins again with the new value, and goes on; one that does not fit is a line."""
    viewer.button("Play").click()
    viewer.shows("#count", r"^([2-9]|[1-9][0-9,]+) of")
    slider = viewer.page.get_by_role("slider", name="crowd count, slider")
    slider.focus()
    slider.press("ArrowRight")
    expect(viewer.page.get_by_label("crowd count", exact=True)).to_have_value("13")
    agent = viewer.page.locator("#agent")
    expect(agent).to_have_attribute("max", "13")
    (session,) = live.sessions.values()
    assert len(session.model.agents) == 13
    expect(slider).to_be_focused()
    expect(viewer.button("Pause")).to_be_visible()
    viewer.shows("#verdict", "worst of 13 agents")
    number = viewer.enter("market impact", "7")
    expect(number).to_have_accessible_description(re.compile("^How far demand moves outcomes"))
    viewer.shows("#fault", r"^market.impact = 7: must be less than or equal to 1")
    count = viewer.page.locator("#count")
    expect(count).not_to_have_text(count.inner_text())
    viewer.shows("#fault", "^market.impact = 7")  # while it plays
    viewer.button("Pause").click()
    viewer.shows("#fault", "^$")
    expect(agent).to_have_attribute("max", "13")  # as before


def test_players_are_replaced_while_it_plays(viewer: Viewer) -> None:
    """Menus name who plays; the guarantee's cut is said, and marked in the figures."""
    page = viewer.page
    chart = viewer.page.locator("#chart-regret")
    playing = {"adversary": "switching", "forecaster": "decision-swap"}
    for role, name in playing.items():
        expect(page.locator(f"#{role}")).to_have_value(name)
    viewer.shows("#promises", "crowd: decision-swap")
    content = "box => getComputedStyle(box, '::before').content"
    assert "Press Play" in chart.evaluate(content)
    viewer.button("Play").click()
    viewer.shows("#count", r"^([2-9]|[1-9][0-9,]+) of")
    for role, name in {"adversary": "anti-forecast", "forecaster": "running-mean"}.items():
        page.select_option(f"#{role}", name)
        viewer.button(f"Replace the {role}").click()
        viewer.shows("#replaced", rf"before round [\d,]+, {role}: {name}")
        expect(page.locator(f"#{role}")).to_have_value(name)
    viewer.shows("#promises", r"since the forecaster was replaced before round [\d,]+")
    expect(viewer.button("Pause")).to_be_visible()
    chart.scroll_into_view_if_needed()  # what is off it is not drawn
    expect(chart.locator(".shapelayer path")).to_have_count(2)
    viewer.button("Restart").click()
    for role, name in playing.items():
        expect(page.locator(f"#{role}")).to_have_value(name)


def test_an_agent_is_clicked(viewer: Viewer) -> None:
    """Its path, its swaps and what would have been better; by keyboard, too."""
    page = viewer.page
    page.select_option("#speed", "0")
    viewer.button("Play").click()
    viewer.shows("#count", r"^\d[\d,]+")
    viewer.button("Pause").click()
    expect(viewer.button("Play")).to_be_visible()
    dots = viewer.drawn("agents").locator(".point")
    expect(dots).to_have_count(12)
    viewer.click_on(dots.nth(4))
    viewer.shows("#facts", r"agent \d+, linear, best-response")
    viewer.shows("#replacements", "best replacement")
    expect(page.locator("#chart-path .trace.scatter")).to_have_count(2)
    viewer.enter("Agent", "2")
    viewer.shows("#facts", "agent 2, linear")
    first = "rows => rows.map(row => row.cells[0].textContent)"  # at once: they are written anew
    played = page.eval_on_selector_all("#replacements tbody tr", first)
    assert set(played) <= {"hay", "oats"}


def test_the_keyboard_is_enough(viewer: Viewer) -> None:
    """And every control has a name of its own, as a screen reader is told them."""
    page = viewer.page
    for key, focused in (("Tab", "Play"), ("Space", "Pause")):
        page.keyboard.press(key)
        expect(viewer.button(focused)).to_be_focused()
    viewer.shows("#count", r"^([2-9]|[1-9][0-9,]+) of")
    page.keyboard.press("Enter")
    expect(viewer.button("Play")).to_be_focused()
    page.get_by_label("Seed").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Tab")
    viewer.shows("#count", "^0 of")
    page.get_by_label("Scenario").focus()
    page.keyboard.type("bait")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    viewer.shows("#name", "^bait$")
    page.get_by_text("More", exact=True).click()
    accessibility_tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")
    parts = [
        (node["role"]["value"], node) for node in accessibility_tree["nodes"] if not node["ignored"]
    ]
    named = [(role, node["name"]["value"]) for role, node in parts if role in NAMED]
    assert len(named) == len(set(named)) > 20
    assert all(name.strip() for _, name in named)
    assert page.locator("html").get_attribute("lang") == "en"


def test_nothing_is_wider_than_the_screen(chromium: Browser, live: Live) -> None:
    """On a phone, on a phone that is turned, and on a desk."""
    viewer = Viewer(chromium, live, WIDTHS[0])
    page = viewer.page
    slider = viewer.page.get_by_role("slider", name="rounds, slider")
    for played in (1, 2, 3):
        viewer.button("Step").click()
        viewer.shows("#count", f"^{played} of")
    viewer.enter("Agent", "1")
    viewer.shows("#facts", "agent 1")
    expect(slider).to_be_hidden()
    page.get_by_text("Scenario, settings, players, save").click()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        expect(slider).to_be_visible()
        for name in ("regret", "loss", "forecast", "network", "path"):
            inside = viewer.drawn(name).bounding_box()
            assert 0 <= inside["x"] <= width - inside["width"]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.context.close()


def test_a_scenario_is_saved_from_the_page(
    viewer: Viewer, live: Live, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And the page keeps its market when it is loaded again, unless too many others came."""
    viewer.button("Step").click()
    viewer.shows("#count", "^1 of")
    viewer.page.reload()
    viewer.shows("#count", "^1 of")
    name = viewer.page.get_by_label("Name")
    name.fill("mine")
    viewer.button("Scenario file").click()
    viewer.shows("#saving", "^Saved: .*mine.toml$")
    assert Source.of(str(tmp_path / "mine.toml")).raw == SMALL | {"name": "mine"}
    viewer.button("Scenario file").click()
    viewer.shows("#fault", "mine.toml is there already; give another name")
    name.fill("more")
    viewer.button("Save and study").click()
    viewer.shows("#saving", "^Saved: .*more.toml and .*more-study.toml. Play it: ")
    monkeypatch.setattr(server, "MAX_SESSIONS", 1)
    live.open("")
    viewer.shows("#fault", "market was ended, since 1 others were opened after it; reload")
