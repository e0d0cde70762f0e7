"""Reads a page from top to bottom, as a new user would.

Every block of code runs, in the order of the page, in the folder in which this is started:

    python    runs, and prints something; a block that opens with a file name (``# name.py``) is
              saved under it instead, before anything runs
    toml      a block that opens with ``# name.toml`` is saved, and a command of the page names it;
              any other is a scenario of its own, which runs for 20 rounds
    sh        commands, of which those of regretless run; a line ``regretless ...`` with four
              spaces before it is one too. One that holds a word in capitals, such as ADDRESS, is a
              template, whose options must exist; so is one of ``dashboard``, which serves until it
              is ended. One that ends in ``# refused`` ends with one line on standard error and exit
              status 2
    text      right after a block or command that ran: exactly what that printed

``pseudocode`` and ``mermaid`` do not run, and there are no other languages.
"""

import io
import re
import runpy
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from separate_process import run_in_separate_process

from regretless.scenarios.cli.commands import main
from regretless.scenarios.executor import Executor
from regretless.scenarios.studies import conduct

sys.path.append(str(Path(__file__).resolve().parents[1]))  # pages import ``paper`` in a checkout

PIECE = re.compile(
    r"^```(\w*)[^\n]*\n(.*?)^```$|^ {4}((?:regretless|make) [^\n]*)$", re.MULTILINE | re.DOTALL
)
NAMED = re.compile(r"# (\S+\.(?:py|toml))\n")
TEMPLATE = re.compile(r"\b[A-Z]{3,}\b|^regretless dashboard")
SILENT = {"pseudocode", "mermaid"}
ROUNDS = "20"


class Step(NamedTuple):
    """A piece of a page: its language (``command`` for a line), its text, its file, its place."""

    language: str
    text: str
    file: str | None
    start: int
    end: int


def steps(page: str) -> Iterator[Step]:
    for found in PIECE.finditer(page):
        language, text, command = found.groups()
        named = NAMED.match(text) if language in {"python", "toml"} else None
        piece = ("command", command) if command is not None else (language, text)
        yield Step(*piece, named[1] if named else None, *found.span())


def command(line: str) -> str:
    """Run a command line; return what it printed."""
    typed, _, remark = line.partition("#")
    sys.argv = shlex.split(typed)
    printed, complaint, status = io.StringIO(), io.StringIO(), 0
    try:
        with redirect_stdout(printed), redirect_stderr(complaint):
            main()
    except SystemExit as done:
        status = int(done.code or 0)
    refused, said = remark.strip() == "refused", complaint.getvalue()
    assert (status, said.count("\n")) == ((2, 1) if refused else (0, 0)), (line, status, said)
    return said if refused else printed.getvalue()


def typed(line: str) -> str:
    """Run a command line; return what it printed, nothing for a template and other programs."""
    if not line.startswith("regretless "):
        return ""
    if not TEMPLATE.search(line):
        return command(line)
    words = shlex.split(line.partition("#")[0])
    known = command(f"regretless {words[1]} --help")
    assert [word for word in words[2:] if word.startswith("--") and word not in known] == [], line
    return ""


def play(step: Step) -> str:
    """Run a piece; return what it printed, nothing where nothing ran."""
    if step.language == "command":
        return typed(step.text)
    if step.language == "sh":
        return "".join(map(typed, step.text.replace("\\\n", " ").splitlines()))
    if step.file is not None or step.language in SILENT:
        return ""
    if step.language == "python":
        Path("block.py").write_text(step.text, encoding="utf-8")
        printed = io.StringIO()
        with redirect_stdout(printed):
            runpy.run_path("block.py", run_name="__main__")
        assert printed.getvalue().strip(), f"prints nothing:\n{step.text}"
        return printed.getvalue()
    assert step.language == "toml", f"'{step.language}' is no language of a page"
    Path("page.toml").write_text(step.text, encoding="utf-8")
    table = command(f"regretless run page.toml --rounds {ROUNDS}")
    assert tomllib.loads(step.text)["name"] in table
    return table


def read(page: str) -> None:
    pieces = list(steps(page))
    rest = " ".join(piece.text for piece in pieces if piece.file is None)
    for piece in pieces:
        if piece.file is not None:
            Path(piece.file).write_text(piece.text, encoding="utf-8")
            assert piece.file.removesuffix(".py") in rest, f"{piece.file} is never used"
    printed, end = "", 0
    for piece in pieces:
        if piece.language != "text":
            printed = play(piece)
        elif printed and not page[end : piece.start].strip():
            shown, said = ([own.rstrip() for own in t.splitlines()] for t in (piece.text, printed))
            assert shown == said, printed
        end = piece.end


def read_here(page: str) -> None:
    """Follow a page, its studies in this process: a cluster for each takes seconds."""
    conduct.executor = lambda *_: closing(Executor())  # type: ignore[assignment]
    read(page)


def follow(page: Path, folder: Path, how: Callable[[str], None] = read) -> None:
    """Follow a page in a folder, in a process of its own; warnings are errors."""
    assert run_in_separate_process(folder, how, page.read_text(encoding="utf-8"))[1] == ""
