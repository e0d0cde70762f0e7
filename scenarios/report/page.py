"""Pages: one self-contained HTML file per run, study or training, without a network.

A page is a template of ``templates/`` and a dictionary. Its policy allows its own scripts, by their
hashes, and no other; no request leaves it (W3C, *Content Security Policy Level 3*). The same logs
give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError
from regretless.scenarios.logs.ownership import GENERATOR, our_page, there
from regretless.scenarios.report import theme

HERE = Path(__file__).parent
CSS = (HERE / "page.css").read_text(encoding="utf-8")
LIVE = HERE.parent / "live"


@cache
def _templates() -> Environment:
    loader = FileSystemLoader([HERE / "templates", LIVE])
    return Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip


def page(template: str, programs: Sequence[str] = (), *, style: str = "", **told: Any) -> str:
    """Fill a template.

    Parameters
    ----------
    programs : sequence of str
        Scripts to run after those of all pages.
    style : str
        What is added to the style of all pages.
    **told
        What the template names.
    """
    scripts = (*theme.scripts(), *programs)
    own = {"css": CSS + style, "policy": _policy(scripts), "generator": GENERATOR}
    whole: dict[str, Any] = {name: Markup(text) for name, text in own.items()}  # noqa: S704
    whole["scripts"] = [Markup(script) for script in scripts]  # noqa: S704 - of our own
    return _templates().get_template(template).render(**whole, **told)


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
