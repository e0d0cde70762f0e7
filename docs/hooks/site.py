"""What makes a site of the pages: their order, those that are written at build, and their links.

The parts of the site are those headings of ``docs/README.md`` that have a list of pages, so that a
page stands in one list and no second one. Links to files beside the pages, which a reader of the
source can open, lead to the reference of the module that they name, and are plain text where there
is none. Notebooks become pages, with the outputs that they were saved with.
"""

from __future__ import annotations

import base64
import json
import re
import runpy
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

HOME = Path(__file__).parent.parent.parent
ROOMS = ("market", "forecaster", "agents", "scenarios")
PART = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^- \[([^\]]+)\]\((\w[\w-]*)\.(?:md|ipynb)\)", re.MULTILINE)
OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([\w./-]+)\)")
TITLES = {
    "reference/keys.md": "Keys of files",
    "reference/names.md": "Names",
    "reference/commands.md": "Commands",
}


def on_config(config: Any) -> Any:
    """Write the pages that nobody writes, and order all as the index has them."""
    written: dict[str, str] = runpy.run_path(str(Path(__file__).with_name("reference.py")))[
        "pages"
    ]()
    index = (HOME / "docs" / "README.md").read_text(encoding="utf-8")
    nav: list[dict[str, Any]] = [{"Home": "README.md"}]
    parts = [(part, rows) for part, body in PART.findall(index) if (rows := ROW.findall(body))]
    for part, rows in parts:
        nav.append({part: [{title[0].upper() + title[1:]: f"{page}.md"} for title, page in rows]})
        if part == "Look up":
            nav[-1][part] += [{title: page} for page, title in TITLES.items()]
            api = [page for page in written if page.startswith("reference/api/")]
            nav[-1][part].append({"Python": [{Path(page).stem: page} for page in api]})
    config.written, config.nav = written, nav
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are written at build, those of notebooks included."""
    for notebook in (HOME / "docs").glob("*.ipynb"):
        config.written |= page_of(notebook)
    for path, content in config.written.items():
        files.append(File.generated(config, path, content=content))
    return files


def page_of(notebook: Path) -> dict[str, str | bytes]:
    """Return a notebook as a page and its pictures, by path."""
    name, pictures = notebook.stem, {}
    parts = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            if "data" not in output:
                parts.append("```text\n" + "".join(output["text"]).strip("\n") + "\n```")
            elif "image/png" in output["data"]:
                path = f"figures/{name}-{len(pictures)}.png"
                pictures[path] = base64.b64decode(output["data"]["image/png"])
                parts.append(f"![output of the lines above]({path})")
    return {f"{name}.md": "\n\n".join(parts), **pictures}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to source files to what the reference says of them."""
    if page.file.src_uri.startswith("reference/"):
        return markdown

    def target(found: re.Match[str]) -> str:
        words, path = found[1], Path(found[2])
        if path.parts[0] in ROOMS and path.suffix == ".py":
            return f"[{words}][regretless.{'.'.join(path.with_suffix('').parts)}]"
        return f"`{words}`"

    return OUTSIDE.sub(target, markdown.replace(".ipynb)", ".md)"))
