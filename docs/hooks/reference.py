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

PROJECT_ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("market", "forecaster", "agents", "scenarios")
MAX_LISTED_NAMES = 20  # of a key, beyond which its row points to the page of names
HELP_WIDTH = "96"  # columns of a command's help


def pages() -> dict[str, str]:
    """Return all pages, in the order in which the site shows them."""
    page_of_file = {
        "reference/keys.md": keys(),
        "reference/names.md": names(),
        "reference/commands.md": commands(),
    }
    return page_of_file | dict(api())


def keys() -> str:
    """Every key of scenario and study files: type, default, meaning."""
    parts = [
        "# Keys of scenario and study files",
        "",
        "Made from the schema that reads the files: `regretless schema scenario`, `schema study`.",
        "A key without a default may be left out. Names in quotes come with the package; a name",
        "of your own is as good.",
    ]
    for kind_of_file in ("scenario", "study"):
        file_schema = schema(kind_of_file)
        parts += ["", f"## A {kind_of_file} file", "", *_table(file_schema)]
        for name, table_schema in file_schema.get("$defs", {}).items():
            parts += ["", f"## {_title(name)}", "", str(table_schema.get("description", ""))]
            parts += ["", *_table(table_schema)]
            if table_schema.get("additionalProperties") is True:
                parts += ["", "Other keys are parameters of what `kind` names."]
    return "\n".join(parts) + "\n"


def _title(model: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", model.removesuffix("Spec")).lower().capitalize()


def _table(table_schema: dict[str, Any]) -> list[str]:
    """Rows of a table of keys, in a box that the style sheet knows."""
    required_keys = set(table_schema.get("required", ()))
    rows = [
        '<div class="keys" markdown="block">',
        "",
        "| key | what it may be | default | meaning |",
        "|---|---|---|---|",
    ]
    for key, key_schema in table_schema.get("properties", {}).items():
        default = "**needed**" if key in required_keys else _value(_default(key_schema))
        meaning = str(key_schema.get("description", "")).replace("|", "\\|")
        rows.append(f"| `{key}` | {_form(key_schema)} | {default} | {meaning} |")
    rows += ["", "</div>"]
    return rows


def _default(key_schema: dict[str, Any]) -> Any:
    """Return the default of a key or of one of its forms; None without any."""
    forms = [key_schema, *key_schema.get("anyOf", ()), *key_schema.get("oneOf", ())]
    return next((form["default"] for form in forms if "default" in form), None)


def _value(value: Any) -> str:
    """Write a default as TOML has it."""
    if value is None or isinstance(value, dict):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return "`" + repr(value).replace("'", '"') + "`"


def _form(key_schema: dict[str, Any]) -> str:
    """Say what a key may be."""
    forms = key_schema.get("anyOf") or key_schema.get("oneOf")
    if forms:
        return " or ".join(dict.fromkeys(filter(None, map(_form, forms))))
    if "$ref" in key_schema:
        title = _title(key_schema["$ref"].rpartition("/")[2])
        return f"table [{title}](#{title.lower().replace(' ', '-')})"
    options = key_schema.get("enum", [key_schema["const"]] if "const" in key_schema else [])
    if options:
        are_many = len(options) > MAX_LISTED_NAMES
        return "[a name](names.md)" if are_many else ", ".join(map(_value, options))
    return _type(key_schema)


def _type(key_schema: dict[str, Any]) -> str:
    """Say of what type a key is, and within which limits."""
    kind, inner = key_schema.get("type", ""), key_schema.get("additionalProperties")
    if kind == "array":
        return f"list of {_form(key_schema.get('items', {})) or 'values'}"
    if kind == "object":
        return f"tables of {_form(inner)}" if isinstance(inner, dict) else "table"
    return {"string": "text", "boolean": "true or false"}.get(kind, kind) + _limits(key_schema)


def _limits(key_schema: dict[str, Any]) -> str:
    word_of_limit = {
        "minimum": "at least", "maximum": "at most",
        "exclusiveMinimum": "above", "exclusiveMaximum": "below",
    }  # fmt: skip
    limits = [
        f"{word} {key_schema[limit]:g}"
        for limit, word in word_of_limit.items()
        if limit in key_schema
    ]
    return f" ({', '.join(limits)})" if limits else ""


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
            name, _, description = line.partition("  ")
            escaped = description.strip().replace("|", "\\|").replace("``", "`")
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
    os.environ["COLUMNS"] = HELP_WIDTH
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
    code_folder = next(
        folder
        for folder in (PROJECT_ROOT / "regretless", PROJECT_ROOT)
        if (folder / "market").is_dir()
    )
    for top_package in PACKAGES:
        for package in sorted(
            path.parent for path in (code_folder / top_package).rglob("__init__.py")
        ):
            name = ".".join(package.relative_to(code_folder).parts)
            modules = sorted(path.stem for path in package.glob("[!_]*.py"))
            lines = [f"# {name}", "", f"::: regretless.{name}", "    options:"]
            lines += ["      members: false", "      show_root_heading: false"]
            for module in modules:
                lines += ["", f"::: regretless.{name}.{module}"]
            yield f"reference/api/{name}.md", "\n".join(lines) + "\n"
