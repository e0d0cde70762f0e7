"""What every page of ours is made of: its style, its tables and cells, as HTML text."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from typing import TYPE_CHECKING

from regretless.market.core.atomic import replacing
from regretless.market.core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CSS = """
:root { color-scheme: light dark; --ink: #1c1c1c; --faint: #626262; --line: #d9d9d9;
  --page: #fcfcfb; --code: #f1f1ef; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e4; --faint: #a3a3a0; --line: #3c3c3a;
  --page: #191918; --code: #262625; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1rem 3rem; max-width: 58rem; background: var(--page);
  color: var(--ink); font: 1rem/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { margin: 0 0 .5rem; font-size: 1.8rem; line-height: 1.2; overflow-wrap: anywhere; }
h2 { margin: 2.4rem 0 .6rem; font-size: 1.2rem; }
.claim { margin: 0 0 1rem; font-size: 1.1rem; max-width: 44rem; }
.note, figcaption, footer { color: var(--faint); font-size: .9rem; }
.note { margin: .4rem 0; max-width: 46rem; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
.wide.more::before { content: "scroll sideways \\2192"; display: block; position: sticky; left: 0;
  width: max-content; color: var(--faint); font-size: .75rem; }
.wide.more table:not(:has([rowspan])) :is(th, td):first-child { position: sticky; left: 0;
  background: var(--page); }
.wide:has(td.runs) { width: min(96vw, 84rem); margin-left: calc(50% - min(48vw, 42rem)); }
table { border-collapse: collapse; width: 100%; font-size: .85rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .5rem; text-align: right; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--faint); vertical-align: bottom; line-height: 1.25; }
td { white-space: nowrap; }
table:has(th:nth-child(10)) { font-size: .72rem; }
table:has(th:nth-child(10)) :is(th, td) { padding: .3rem .3rem; }
td.t { white-space: normal; min-width: 6rem; }
td.runs { min-width: 6rem; }
table:has(td.runs) { font-size: .78rem; }
table:has(td.runs) th:last-child { text-align: left; }
th:first-child, td:first-child { padding-left: 0; }
th:last-child, td:last-child { padding-right: 0; }
.t { text-align: left; }
figure { margin: 0 0 1.8rem; }
.card { padding: .5rem; background: #fff; border: 1px solid var(--line); border-radius: 6px; }
figcaption { margin-top: .5rem; max-width: 46rem; }
th button { padding: 0; border: 0; background: none; font: inherit; color: inherit;
  text-align: inherit; cursor: pointer; text-decoration: underline dotted; }
th[aria-sort="ascending"] button::after { content: " \\2191"; }
th[aria-sort="descending"] button::after { content: " \\2193"; }
a { color: inherit; }
@media (max-width: 56rem) { table { font-size: .75rem; } }
@media (max-width: 30rem) { table, table:has(th:nth-child(10)) { font-size: .66rem; }
  th, td { padding: .3rem .2rem; } td.t { min-width: 3rem; } .claim { font-size: 1rem; } }
@media print { :root { color-scheme: light; font-size: 13px; --ink: #1c1c1c;
  --faint: #626262; --line: #d9d9d9; --page: #fff; --code: #f1f1ef; }
  body { max-width: none; padding: 0; }
  .wide.more::before { display: none; }
  .wide, .wide:has(td.runs) { width: auto; margin: 0; overflow: visible; }
  table, table:has(td.runs) { font-size: .7rem; } th, td { padding: .2rem .3rem; }
  td.runs, table:has(td.runs) th:last-child { display: none; }
  h2 { break-after: avoid; } tr, figure { break-inside: avoid; }
  .card { padding: 0; border: 0; } .modebar, .updatemenu-container { display: none; } }
pre { white-space: pre-wrap; overflow-wrap: anywhere; padding: .8rem 1rem; border-radius: 6px;
  background: var(--code); font-size: .85rem; }
footer { margin-top: 2.5rem; padding-top: .8rem; border-top: 1px solid var(--line); }
"""

SORT = """
"use strict";
const hint = () => document.querySelectorAll(".wide").forEach((box) => {
  const more = box.classList.toggle("more", box.scrollWidth > box.clientWidth);
  more ? box.tabIndex = 0 : box.removeAttribute("tabindex");
});
hint();
addEventListener("resize", hint);
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
      const text = (row) => row.cells[column].textContent.trim();
      const number = (row) => parseFloat(text(row).replaceAll(",", ""));
      const rows = [...body.rows];
      const known = rows.filter((row) => text(row) !== "-");
      const numeric = known.every((row) => !Number.isNaN(number(row)));
      known.sort((a, b) => sign * (numeric ? number(a) - number(b)
        : text(a).localeCompare(text(b))));
      body.append(...known, ...rows.filter((row) => text(row) === "-"));
    });
  });
}
"""

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
    """Write a page in one step; UserError if it cannot be written."""
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
