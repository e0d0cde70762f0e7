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

BROWSER_NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=10000",
)
PATIENCE_SECONDS = 120


class Visit(NamedTuple):
    """What a browser made of a page: its document, and the lines of its console."""

    document: str
    console: tuple[str, ...]

    def count_traces(self, chart: str) -> int:
        """Count the traces that Plotly has drawn into a chart's box."""
        start = self.document.index(f'id="chart-{chart}"')
        drawn = self.document[start : self.document.index(f'data-box="chart-{chart}"')]
        assert "main-svg" in drawn
        return len(re.findall(r'class="trace (?:scatter|bars)', drawn))


def find_browser() -> str:
    """Return a browser; skip the test where there is none, fail it where one must be."""
    for name in BROWSER_NAMES:
        browser = shutil.which(name)
        if browser is not None:
            return browser
    end = pytest.fail if os.environ.get("CI") else pytest.skip
    end(f"no browser: none of {', '.join(BROWSER_NAMES)} is installed")
    raise AssertionError


def visit_page(page: Path, profile: Path, query: str = "", flags: Sequence[str] = ()) -> Visit:
    """Open a page of the disk in a browser with a profile of its own, and return what it shows."""
    address = page.resolve().as_uri()
    if query:
        address += f"?{query}"
    command = [
        find_browser(),
        *BROWSER_FLAGS,
        *flags,
        f"--user-data-dir={profile}",
        "--dump-dom",
        address,
    ]
    process = subprocess.run(
        command, check=True, capture_output=True, encoding="utf-8", timeout=PATIENCE_SECONDS
    )
    assert process.stdout.strip(), process.stderr
    console = [line for line in process.stderr.splitlines() if "CONSOLE" in line]
    return Visit(process.stdout, tuple(console))


def network_addresses(text: str) -> list[str]:
    """Return network addresses in a page, but for Plotly's own script and names of standards."""
    plotly_script, _ = theme.scripts()
    page = text.replace(plotly_script, "")
    page = re.sub(r' xmlns(:\w+)?="[^"]*"', "", page)
    return re.findall(r"https?://|wss?://|@import|<link|src=", page)
