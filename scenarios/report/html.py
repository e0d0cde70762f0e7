"""What every page of ours is made of: its style, its tables and cells, as HTML text."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError
from regretless.scenarios.logs.ownership import GENERATOR, our_page, there

if TYPE_CHECKING:
    from collections.abc import Sequence


def beside(name: str) -> str:
    """Read a style or a program of the pages, which lies beside this file."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


CSS, SORT = beside("page.css"), beside("sort.js")
STILL = (
    "Scripts are off: figures, which a script within this page draws, are missing, and tables are "
    "not sorted by a click. The tables themselves are complete."
)


def page(
    title: str, body: str, scripts: Sequence[str] = (), *, style: str = "", still: str = STILL
) -> str:
    """Put a body, already HTML, into a page whose tables can be sorted.

    Parameters
    ----------
    scripts : sequence of str
        Further programs to run after the body. The page's policy allows these, by their hashes,
        and no other: no further script, and no request to any address but that of the page itself
        (W3C, *Content Security Policy Level 3*).
    style : str
        What is added to the style of all pages.
    still : str
        What is said where scripts are off.
    """
    scripts = (SORT, *scripts)
    programs = "".join(f"<script>{script}</script>\n" for script in scripts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"{GENERATOR}\n"
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{CSS}{style}</style>\n</head>\n<body>\n"
        f'<noscript><p class="note">{still}</p></noscript>\n{body}\n{programs}</body>\n</html>\n'
    )


def _policy(scripts: Sequence[str]) -> str:
    hashes = (hashlib.sha256(script.encode()).digest() for script in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; "
        "style-src 'unsafe-inline'; img-src data: blob:; connect-src 'self'; "
        "form-action 'none'; base-uri 'none'"
    )


def save(text: str, path: Path) -> Path:
    """Write a page in one step; UserError if it cannot be, or would replace what is not ours."""
    if there(path) and not our_page(path):
        reason = f"{path} is there and regretless has not written it"
        raise UserError(f"{reason}; move it away or give it another name")
    try:
        with replacing(path) as draft:
            draft.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        reason = f"{path} cannot be written: {error.strerror}"
        raise UserError(f"{reason}; make room or give it another folder") from error
    return path


def table(
    head: Sequence[str], rows: Sequence[str], *, left: int = 1, sortable: bool = False
) -> str:
    """Lay out rows, already HTML, under a head; the first ``left`` columns are text."""
    kind = ' class="sortable"' if sortable else ""
    cells = (cell(text, tag="th", left=i < left) for i, text in enumerate(head))
    body = "\n".join(rows)
    return (
        f'<div class="wide"><table{kind}>\n<thead><tr>{"".join(cells)}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def cell(text: object, *, tag: str = "td", left: bool = False, span: int = 1) -> str:
    """Write one escaped table cell."""
    side = ' class="t"' if left else ""
    rows = f' rowspan="{span}"' if span > 1 else ""
    return f"<{tag}{side}{rows}>{escape(str(text))}</{tag}>"
