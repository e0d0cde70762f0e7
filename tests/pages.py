"""A report page taken apart: what must hold of each, and what tests look for in it."""

from html.parser import HTMLParser

from browser import addresses

from regretless.scenarios.report import theme

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(HTMLParser):
    """Collects table rows, ids, text, charts and programs, and whatever is not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.stack, self.faults, self.ids = list[str](), list[str](), list[str]()
        self.tags, self.rows, self.programs = list[str](), list[list[str]](), list[str]()
        self.text = self.charts = ""
        self.feed(text)
        self.close()
        self.faults += self.stack

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.stack.append(tag)
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
        if not self.stack or self.stack.pop() != tag:
            self.faults.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        """Keep text, programs and the data of charts apart."""
        if self.stack and self.stack[-1] == "script":
            if self.programs:  # all data come before them
                self.programs[-1] += data
            else:
                self.charts += data
            return
        self.text += data
        if {"td", "th"} & set(self.stack):
            self.rows[-1][-1] += data


def panels(page: Page) -> set[str]:
    return {name.removeprefix("chart-") for name in page.ids if name.startswith("chart-")}


def check(text: str) -> Page:
    page = Page(text)
    assert page.faults == []
    assert len(page.ids) == len(set(page.ids))
    assert tuple(page.programs) == theme.scripts()
    assert addresses(text) == []
    return page
