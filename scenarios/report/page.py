"""Pages: one self-contained HTML file per run, study or training, the same for the same logs.

Its policy allows its own scripts, by their hashes, and no other; no request leaves it (W3C,
*Content Security Policy Level 3*).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from regretless.market.core.errors import UserError
from regretless.scenarios.logs.ownership import GENERATOR
from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import Figure

FOLDER = Path(__file__).parent
CSS_MARK = "/* fold */\n"  # before and after the rules that fold wide tables on narrow screens
MIN_COLUMNS_TO_FOLD = {"64rem": "9", "40rem": "6"}  # by the width of the screen
POLICY = (
    "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data: blob:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'"
)
TEMPLATES = Environment(
    loader=FileSystemLoader([FOLDER / "templates", FOLDER.parent / "live"]),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def _css_of_all_pages() -> str:
    """Return the style sheet, with its rules for folded tables once for each width of screen."""
    template = (FOLDER / "page.css").read_text(encoding="utf-8")
    before, folding_rules, after = template.split(CSS_MARK)
    rules = []
    for width, n_columns in MIN_COLUMNS_TO_FOLD.items():
        rules.append(folding_rules.replace("WIDTH", width).replace("COLUMNS", n_columns))
    return "".join([before, *rules, after])


CSS = _css_of_all_pages()


def page(
    template: str,
    programs: Sequence[str] = (),
    *,
    style: str = "",
    sections: Mapping[str, Sequence[Part]] | None = None,
    **values: Any,
) -> str:
    """Fill a template.

    ``programs`` are scripts that are run after those of all pages, ``style`` is CSS that follows
    theirs, ``sections`` are the parts of each by its head, for a template that has sections, and
    ``values`` are what else the template names.
    """
    if sections is not None:
        values["sections"] = sections
    scripts = (*theme.scripts(), *programs)
    allowed = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    trusted_values: dict[str, Any] = {
        "css": Markup(CSS + style),  # noqa: S704 - of our own, as what follows
        "policy": Markup(POLICY.format(allowed)),  # noqa: S704
        "generator": Markup(GENERATOR),  # noqa: S704
        "scripts": [Markup(script) for script in scripts],  # noqa: S704
    }
    return TEMPLATES.get_template(template).render(**trusted_values, **values)


def _digest(script: str) -> str:
    """Return the hash of a script, as a policy names it."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@dataclass(frozen=True)
class Part:
    """A part of a page.

    Attributes
    ----------
    kind : str
        The macro of ``templates/parts.html`` that shows it: "note", "line", "head", "code",
        "bullets", "terms", "chart" or "table".
    content : object
        What is shown: a text, for bullets a list of texts, for terms their meanings by name, for a
        chart its ``Figure``, for a table a ``TextTable``.
    """

    kind: str
    content: Any


@dataclass(frozen=True)
class TextTable:
    """A table of texts.

    Its first ``n_text_columns`` are left-aligned. The first ``n_naming_columns`` of these name a
    row; others stand below their head where the table is folded.
    """

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_text_columns: int
    n_naming_columns: int
    is_sortable: bool


@contextmanager
def legible(path: Path, *, what: str, cure: str) -> Iterator[None]:
    """Raise UserError, with the first line of the fault, where logs cannot be read."""
    try:
        yield
    except UserError:
        raise
    except (OSError, ValueError, LookupError) as error:
        reason = f"{path}: {what} cannot be read: {error}".splitlines()[0]
        raise UserError(f"{reason}; {cure}") from error


def charts(figures: Mapping[str, Figure], section: str) -> list[Part]:
    """Return the figures of a section."""
    return [Part("chart", figure) for figure in figures.values() if figure.section == section]


def table_part(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    n_text_columns: int = 1,
    n_naming_columns: int | None = None,
    is_sortable: bool = False,
) -> Part:
    """Return a table, whose first columns are texts.

    The first ``n_naming_columns`` of these, by default all, name a row; others stand below their
    head where the table is folded. Readers can sort one that ``is_sortable``.
    """
    if n_naming_columns is None:
        n_naming_columns = n_text_columns
    table = TextTable(
        headers,
        rows,
        n_text_columns=n_text_columns,
        n_naming_columns=n_naming_columns,
        is_sortable=is_sortable,
    )
    return Part("table", table)


def notes(lines: Iterable[str], kind: str = "note") -> list[Part]:
    """Return lines that are not empty, a paragraph each."""
    return [Part(kind, line) for line in lines if line]


def written_by(record: Mapping[str, Any]) -> str:
    """Say which version wrote what a manifest or record is of."""
    version = record.get("versions", {}).get("regretless", "")
    return f"Written by regretless {version}".strip() + "."
