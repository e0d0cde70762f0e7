"""What every page of ours is made of: its style, tables, cells and figures, as HTML text."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

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
.note { margin: .4rem 0; max-width: 46rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .85rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .5rem; text-align: right; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--faint); vertical-align: bottom; line-height: 1.25; }
td { white-space: nowrap; }
td.t { white-space: normal; min-width: 6rem; }
th:first-child, td:first-child { padding-left: 0; }
th:last-child, td:last-child { padding-right: 0; }
.t { text-align: left; }
figure { margin: 0 0 1.8rem; }
.card { overflow-x: auto; padding: .6rem; background: #fff; border: 1px solid var(--line);
  border-radius: 6px; }
.card svg { display: block; width: 100%; min-width: 32rem; height: auto; }
figcaption { margin-top: .5rem; max-width: 46rem; }
pre { overflow-x: auto; padding: .8rem 1rem; border-radius: 6px; background: var(--code);
  font-size: .85rem; }
footer { margin-top: 2.5rem; padding-top: .8rem; border-top: 1px solid var(--line); }
"""


def page(title: str, body: str) -> str:
    """Put a body, already HTML, into a page."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{CSS}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def table(head: Sequence[str], rows: Sequence[str], *, left: int = 1) -> str:
    """Lay out rows, already HTML, under a head; the first ``left`` columns are text."""
    cells = (cell(text, tag="th", left=i < left) for i, text in enumerate(head))
    body = "\n".join(rows)
    return (
        f'<div class="wide"><table>\n<thead><tr>{"".join(cells)}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def cell(text: object, *, tag: str = "td", left: bool = False, span: int = 1) -> str:
    """Write one escaped table cell."""
    side = ' class="t"' if left else ""
    rows = f' rowspan="{span}"' if span > 1 else ""
    return f"<{tag}{side}{rows}>{escape(str(text))}</{tag}>"


def card(svg: str, caption: str) -> str:
    """Put a drawing and its caption into a card."""
    label = escape(caption.partition(":")[0])
    image = svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    return (
        f'<figure>\n<div class="card">{image}</div>\n'
        f"<figcaption>{escape(caption)}</figcaption>\n</figure>"
    )
