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
from dataclasses import dataclass
from pathlib import Path

from alone import alone

from regretless.scenarios.cli.commands import main
from regretless.scenarios.executor import Executor
from regretless.scenarios.studies import conduct

sys.path.append(str(Path(__file__).resolve().parents[1]))  # pages import ``paper`` in a checkout

PIECE = re.compile(
    r"^```(\w*)[^\n]*\n(.*?)^```$|^ {4}((?:regretless|make) [^\n]*)$", re.MULTILINE | re.DOTALL
)
NAMED = re.compile(r"# (\S+\.(?:py|toml))\n")
TEMPLATE = re.compile(r"\b[A-Z]{3,}\b")
SILENT = {"pseudocode", "mermaid"}
LONG = {"dashboard"}
ROUNDS = "20"


@dataclass(frozen=True)
class Step:
    """A piece of a page: its language (``command`` for a line), its text, and where it stands."""

    language: str
    text: str
    start: int
    end: int

    @property
    def file(self) -> str | None:
        found = NAMED.match(self.text) if self.language in {"python", "toml"} else None
        return found[1] if found else None


def steps(page: str) -> Iterator[Step]:
    for found in PIECE.finditer(page):
        language, text, command = found.groups()
        if command is not None:
            yield Step("command", command, found.start(), found.end())
        else:
            yield Step(language, text, found.start(), found.end())


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
    refused = remark.strip() == "refused"
    said = complaint.getvalue()
    assert status == (2 if refused else 0), f"{line}: exit status {status}, {said}"
    assert said.count("\n") == (1 if refused else 0), f"{line}: {said}"
    return said if refused else printed.getvalue()


def check_template(line: str) -> None:
    """Check the options of a command that cannot run as it stands."""
    words = shlex.split(line.partition("#")[0])
    known = command(f"regretless {words[1]} --help")
    for word in words[2:]:
        assert not word.startswith("--") or word in known, f"{line}: there is no {word}"


def typed(line: str) -> str | None:
    """Run a command line; return what it printed, None for a template and other programs."""
    if not line.startswith("regretless "):
        return None
    if TEMPLATE.search(line) or line.split()[1] in LONG:
        check_template(line)
        return None
    return command(line)


def play(step: Step) -> str | None:
    """Run a piece; return what it printed, None where nothing ran."""
    if step.language == "command":
        return typed(step.text)
    if step.language == "sh":
        said = [typed(line) for line in step.text.replace("\\\n", " ").splitlines() if line]
        return "".join(filter(None, said)) or None
    if step.file is not None or step.language in SILENT:
        return None
    if step.language == "python":
        block = Path("block.py")
        block.write_text(step.text, encoding="utf-8")
        printed = io.StringIO()
        with redirect_stdout(printed):
            runpy.run_path(str(block), run_name="__main__")
        assert printed.getvalue().strip(), f"prints nothing:\n{step.text}"
        return printed.getvalue()
    assert step.language == "toml", f"'{step.language}' is no language of a page"
    Path("page.toml").write_text(step.text, encoding="utf-8")
    printed_table = command(f"regretless run page.toml --rounds {ROUNDS}")
    assert tomllib.loads(step.text)["name"] in printed_table
    return printed_table


def read(page: str) -> None:
    pieces = list(steps(page))
    rest = " ".join(piece.text for piece in pieces if piece.file is None)
    for piece in pieces:
        if piece.file is not None:
            Path(piece.file).write_text(piece.text, encoding="utf-8")
            assert piece.file.removesuffix(".py") in rest, f"{piece.file} is never used"
    printed, end = None, 0
    for piece in pieces:
        if piece.language == "text":
            shown = [line.rstrip() for line in piece.text.splitlines()]
            if printed is not None and not page[end : piece.start].strip():
                assert shown == [line.rstrip() for line in printed.splitlines()], printed
        else:
            printed = play(piece)
        end = piece.end


def read_here(page: str) -> None:
    """Follow a page, its studies in this process: a cluster for each takes seconds."""
    conduct.executor = lambda *_: closing(Executor())  # type: ignore[assignment]
    read(page)


def follow(page: Path, folder: Path, how: Callable[[str], None] = read) -> None:
    """Follow a page in a folder, in a process of its own; warnings are errors."""
    assert alone(folder, how, page.read_text(encoding="utf-8"))[1] == ""
