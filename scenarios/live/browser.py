"""Open the live page in a browser without telling its address to other users of the machine.

The address holds the server's token, and every user of a machine may read the words of every
command. So the browser is given a file that leads to the page. Only this user may read the file
(a new folder of mode 0700), and it is removed when the page ends.
"""

import html
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REDIRECT = """<!DOCTYPE html>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={address}">
<title>regretless</title>
<p><a href="{address}">Live page</a></p>
"""


@contextmanager
def opened_in_browser(address: str) -> Iterator[None]:
    """Open an address in the user's browser, by way of a file that is there within the block."""
    with tempfile.TemporaryDirectory(prefix="regretless-") as folder:
        file = Path(folder) / "live.html"
        file.touch(mode=0o600)
        file.write_text(REDIRECT.format(address=html.escape(address)), encoding="utf-8")
        webbrowser.open(file.as_uri())
        yield
