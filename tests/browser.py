"""A page in a real browser without a window: what it shows after its scripts, what it complains of.

Chromium writes the document to standard output and messages of the page's console to standard
error. Refused requests and scripts are among these, since a page of ours has a policy against all
requests (``scenarios.report.page``).
"""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from regretless.scenarios.report import theme

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--enable-logging=stderr", "--virtual-time-budget=10000"),
)


class Visit(NamedTuple):
    """What a browser made of a page: its document, and the lines of its console."""

    document: str
    console: tuple[str, ...]

    def traces(self, name: str) -> int:
        """Count the traces that Plotly has drawn into a chart's box."""
        start = self.document.index(f'id="chart-{name}"')
        drawn = self.document[start : self.document.index(f'data-box="chart-{name}"')]
        assert "main-svg" in drawn
        return len(re.findall(r'class="trace (?:scatter|bars)', drawn))


def find() -> str:
    """Return a browser; skip the test where there is none, fail it where one must be."""
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        end = pytest.fail if os.environ.get("CI") else pytest.skip
        end(f"no browser: none of {', '.join(NAMES)} is installed")
    return browser


def visit(page: Path, profile: Path, query: str = "", flags: Sequence[str] = ()) -> Visit:
    address = page.resolve().as_uri() + (f"?{query}" if query else "")
    words = [find(), *FLAGS, *flags, f"--user-data-dir={profile}", "--dump-dom", address]
    told = {"capture_output": True, "encoding": "utf-8", "timeout": 120}
    done = subprocess.run(words, check=True, **told)
    assert done.stdout.strip(), done.stderr
    return Visit(done.stdout, tuple(line for line in done.stderr.splitlines() if "CONSOLE" in line))


def addresses(text: str) -> list[str]:
    """Return network addresses in a page, but for Plotly's own script and names of standards."""
    script, _ = theme.scripts()
    loose = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text.replace(script, ""))
    return re.findall(r"https?://|wss?://|@import|<link|src=", loose)
