"""Pages: one self-contained HTML file per run, study or training, the same for the same logs.

Its policy allows its own scripts, by their hashes, and no other; no request leaves it (W3C,
*Content Security Policy Level 3*).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from regretless.market.core.errors import UserError
from regretless.scenarios.logs.ownership import GENERATOR
from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import Figure

HERE = Path(__file__).parent
FOLDED = {"64rem": "9", "40rem": "6"}  # below a width, tables of so many columns or more
HEAD, FOLD, TAIL = (HERE / "page.css").read_text(encoding="utf-8").split("/* fold */\n")
FOLDS = (FOLD.replace("WIDTH", width).replace("COLUMNS", n) for width, n in FOLDED.items())
CSS = "".join([HEAD, *FOLDS, TAIL])
POLICY = (
    "default-src 'none'; script-src {}; style-src 'unsafe-inline'; img-src data: blob:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'"
)
TEMPLATES = Environment(
    loader=FileSystemLoader([HERE / "templates", HERE.parent / "live"]), autoescape=True,
    undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
)  # fmt: skip


def page(template: str, programs: Sequence[str] = (), *, style: str = "", **values: Any) -> str:
    """Fill a template; ``programs`` are run after the scripts of all pages."""
    scripts = (*theme.scripts(), *programs)
    hashes = (hashlib.sha256(script.encode()).digest() for script in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in hashes)
    own = {"css": CSS + style, "policy": POLICY.format(allowed), "generator": GENERATOR}
    whole: dict[str, Any] = {name: Markup(text) for name, text in own.items()}  # noqa: S704
    whole["scripts"] = [Markup(script) for script in scripts]  # noqa: S704 - of our own
    return TEMPLATES.get_template(template).render(**whole, **values)


Part = tuple[Any, ...]  # of a page: a macro of ``templates/parts.html``, and what it is given


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
    return [("chart", one) for one in figures.values() if one.section == section]


def notes(lines: Iterable[str], kind: str = "note") -> list[Part]:
    """Return lines that are not empty, a paragraph each."""
    return [(kind, line) for line in lines if line]


def written_by(record: Mapping[str, Any]) -> str:
    """Say which version wrote what a manifest or record is of."""
    version = record.get("versions", {}).get("regretless", "")
    return f"Written by regretless {version}".strip() + "."
