"""A report page taken apart: what must hold of every page, and what tests look for in one."""

from html.parser import HTMLParser

from browser import network_addresses

from regretless.scenarios.report import theme

NEVER_CLOSED = {"meta", "br", "hr", "img", "link", "input"}


class ReportPage(HTMLParser):
    """The parts of a page, as it is parsed.

    Attributes
    ----------
    text
        What a reader sees, without tags.
    rows
        The cells' texts of every table row.
    tags, ids
        All tags and ids, in order.
    charts
        The data of all charts, as the page holds them.
    programs
        The page's scripts.
    faults
        Tags that are not closed, or not in order.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open_tags: list[str] = []
        self.faults: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.rows: list[list[str]] = []
        self.programs: list[str] = []
        self.text = ""
        self.charts = ""
        self.feed(text)
        self.close()
        self.faults += self.open_tags

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in NEVER_CLOSED:
            self.open_tags.append(tag)
        if tag == "script" and ("type", "application/json") not in attrs:
            self.programs.append("")
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value for key, value in attrs if key == "id" and value]

    def handle_endtag(self, tag: str) -> None:
        if not self.open_tags or self.open_tags.pop() != tag:
            self.faults.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        """Keep text, programs and the data of charts apart."""
        if self.open_tags and self.open_tags[-1] == "script":
            if self.programs:  # all data come before them
                self.programs[-1] += data
            else:
                self.charts += data
            return
        self.text += data
        if {"td", "th"} & set(self.open_tags):
            self.rows[-1][-1] += data


def chart_names(page: ReportPage) -> set[str]:
    """Return the names of the charts for which a page has a box."""
    return {name.removeprefix("chart-") for name in page.ids if name.startswith("chart-")}


def parse_page(text: str) -> ReportPage:
    """Take a page apart, and assert what holds of every page.

    Tags are closed in order, an id is there once, no script is there but the theme's own, and
    nothing is loaded from the network.
    """
    page = ReportPage(text)
    assert page.faults == []
    assert len(page.ids) == len(set(page.ids))
    assert tuple(page.programs) == theme.scripts()
    assert network_addresses(text) == []
    return page
