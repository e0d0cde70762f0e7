"""Pages of the site that nobody writes: keys, names, commands and the Python reference.

Each function returns pages by file name, made from the schema, the registers, the command line and
the docstrings as they are when the site is built.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regretless.scenarios.cli.commands import app
from regretless.scenarios.listing import REGISTRIES, listing
from regretless.scenarios.schema import schema

HOME = Path(__file__).parent.parent.parent
ROOMS = ("market", "forecaster", "agents", "scenarios")
MOST_NAMES = 20  # of a key, beyond which its row points to the page of names
WIDTH = "96"  # columns of a command's help


def pages() -> dict[str, str]:
    """Return all pages, in the order in which the site shows them."""
    written = {
        "reference/keys.md": keys(),
        "reference/names.md": names(),
        "reference/commands.md": commands(),
    }
    return written | dict(api())


def keys() -> str:
    """Every key of scenario and study files: type, default, meaning."""
    parts = [
        "# Keys of scenario and study files",
        "",
        "Made from the schema that reads the files: `regretless schema scenario`, `schema study`.",
        "A key without a default may be left out. Names in quotes come with the package; a name",
        "of your own is as good.",
    ]
    for file in ("scenario", "study"):
        whole = schema(file)
        parts += ["", f"## A {file} file", "", *_table(whole)]
        for name, table in whole.get("$defs", {}).items():
            parts += ["", f"## {_title(name)}", "", str(table.get("description", ""))]
            parts += ["", *_table(table)]
            if table.get("additionalProperties") is True:
                parts += ["", "Other keys are parameters of what `kind` names."]
    return "\n".join(parts) + "\n"


def _title(model: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", model.removesuffix("Spec")).lower().capitalize()


def _table(model: dict[str, Any]) -> list[str]:
    """Rows of a table of keys, in a box that the style sheet knows."""
    needed = set(model.get("required", ()))
    rows = [
        '<div class="keys" markdown="block">',
        "",
        "| key | what it may be | default | meaning |",
        "|---|---|---|---|",
    ]
    for key, what in model.get("properties", {}).items():
        default = "**needed**" if key in needed else _value(_default(what))
        said = str(what.get("description", "")).replace("|", "\\|")
        rows.append(f"| `{key}` | {_form(what)} | {default} | {said} |")
    rows += ["", "</div>"]
    return rows


def _default(what: dict[str, Any]) -> Any:
    """Return the default of a key or of one of its forms; None without any."""
    inside = [what, *what.get("anyOf", ()), *what.get("oneOf", ())]
    return next((form["default"] for form in inside if "default" in form), None)


def _value(value: Any) -> str:
    """Write a default as TOML has it."""
    if value is None or isinstance(value, dict):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return "`" + repr(value).replace("'", '"') + "`"


def _form(what: dict[str, Any]) -> str:
    """Say what a key may be."""
    several = what.get("anyOf") or what.get("oneOf")
    if several:
        return " or ".join(dict.fromkeys(filter(None, map(_form, several))))
    if "$ref" in what:
        title = _title(what["$ref"].rpartition("/")[2])
        return f"table [{title}](#{title.lower().replace(' ', '-')})"
    options = what.get("enum", [what["const"]] if "const" in what else [])
    if options:
        many = len(options) > MOST_NAMES
        return "[a name](names.md)" if many else ", ".join(map(_value, options))
    return _type(what)


def _type(what: dict[str, Any]) -> str:
    """Say of what type a key is, and within which limits."""
    kind, inner = what.get("type", ""), what.get("additionalProperties")
    if kind == "array":
        return f"list of {_form(what.get('items', {})) or 'values'}"
    if kind == "object":
        return f"tables of {_form(inner)}" if isinstance(inner, dict) else "table"
    return {"string": "text", "boolean": "true or false"}.get(kind, kind) + _limits(what)


def _limits(what: dict[str, Any]) -> str:
    words = {
        "minimum": "at least", "maximum": "at most",
        "exclusiveMinimum": "above", "exclusiveMaximum": "below",
    }  # fmt: skip
    said = [f"{word} {what[limit]:g}" for limit, word in words.items() if limit in what]
    return f" ({', '.join(said)})" if said else ""


def names() -> str:
    """Every name that a file may use, as ``regretless list`` prints them."""
    parts = [
        "# Names that files may use",
        "",
        "What `regretless list KIND` prints: the first sentence of each thing's own description.",
    ]
    for kind in ("scenarios", "studies", *REGISTRIES):
        parts += ["", f"## {kind.capitalize()}", "", "| name | |", "|---|---|"]
        for line in listing(kind):
            name, _, said = line.partition("  ")
            escaped = said.strip().replace("|", "\\|").replace("``", "`")
            parts.append(f"| `{name}` | {escaped} |")
    return "\n".join(parts) + "\n"


def commands() -> str:
    """Every command with its options, as ``--help`` prints them."""
    parts = ["# Commands", "", "What `regretless COMMAND --help` prints.", "", *_help()]
    for command in app.registered_commands:
        callback = command.callback
        name = command.name or (callback.__name__ if callback else "")
        parts += ["", f"## {name}", "", *_help(name)]
    return "\n".join(parts) + "\n"


def _help(*command: str) -> Iterator[str]:
    """Print the help of a command into a block."""
    printed = io.StringIO()
    columns_before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = WIDTH
    try:
        with contextlib.redirect_stdout(printed):
            # The name is given, since the process that builds the site is another program.
            app([*command, "--help"], prog_name="regretless", standalone_mode=False)
    finally:
        if columns_before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = columns_before
    yield from ("```text", printed.getvalue().strip(), "```")


def api() -> Iterator[tuple[str, str]]:
    """Yield a page for the front door and for every package, of its modules' public things."""
    yield "reference/api/regretless.md", "# regretless\n\n::: regretless\n"
    house = next(home for home in (HOME / "regretless", HOME) if (home / "market").is_dir())
    for room in ROOMS:
        for package in sorted(path.parent for path in (house / room).rglob("__init__.py")):
            name = ".".join(package.relative_to(house).parts)
            modules = sorted(path.stem for path in package.glob("[!_]*.py"))
            lines = [f"# {name}", "", f"::: regretless.{name}", "    options:"]
            lines += ["      members: false", "      show_root_heading: false"]
            for module in modules:
                lines += ["", f"::: regretless.{name}.{module}"]
            yield f"reference/api/{name}.md", "\n".join(lines) + "\n"
