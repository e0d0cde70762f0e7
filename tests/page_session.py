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

from separate_process import run_in_separate_process

from regretless.scenarios.cli.commands import main
from regretless.scenarios.executor.base import Executor
from regretless.scenarios.studies import conduct

sys.path.append(str(Path(__file__).resolve().parents[1]))  # pages import ``paper`` in a checkout

STEP = re.compile(
    r"^```(\w*)[^\n]*\n(.*?)^```$|^ {4}((?:regretless|make) [^\n]*)$", re.MULTILINE | re.DOTALL
)
FILE_NAME = re.compile(r"# (\S+\.(?:py|toml))\n")
TEMPLATE = re.compile(r"\b(?!EUR\b)[A-Z]{3,}\b|^regretless dashboard")
NOT_RUN = {"pseudocode", "mermaid"}
ROUNDS = 20


@dataclass(frozen=True)
class Step:
    """A piece of a page: its language (``command`` for a line), its text, its file, its place."""

    language: str
    text: str
    file: str | None
    start: int
    end: int


def steps(page: str) -> Iterator[Step]:
    """Yield the pieces of a page in order."""
    for match in STEP.finditer(page):
        language, text, line = match.groups()
        if line is not None:
            yield Step("command", line, None, match.start(), match.end())
            continue
        file_name = FILE_NAME.match(text) if language in {"python", "toml"} else None
        file = None if file_name is None else file_name[1]
        yield Step(language, text, file, match.start(), match.end())


def command(line: str) -> str:
    """Run a command line, and return what it printed.

    A line that ends in ``# refused`` must end with status 2 and one line on standard error, which
    is returned; any other with status 0 and nothing there.
    """
    arguments, _, remark = line.partition("#")
    sys.argv = shlex.split(arguments)
    printed = io.StringIO()
    complaint = io.StringIO()
    status = 0
    try:
        with redirect_stdout(printed), redirect_stderr(complaint):
            main()
    except SystemExit as ended:
        status = int(ended.code or 0)
    is_refused = remark.strip() == "refused"
    outcome = (status, complaint.getvalue().count("\n"))
    assert outcome == ((2, 1) if is_refused else (0, 0)), (line, status, complaint.getvalue())
    return complaint.getvalue() if is_refused else printed.getvalue()


def run_line(line: str) -> str:
    """Run a line of a shell; return what it printed, nothing for a template or another program."""
    if not line.startswith("regretless "):
        return ""
    if not TEMPLATE.search(line):
        return command(line)
    arguments = shlex.split(line.partition("#")[0])
    help_text = command(f"regretless {arguments[1]} --help")
    options = [argument for argument in arguments[2:] if argument.startswith("--")]
    assert [option for option in options if option not in help_text] == [], line
    return ""


def run_python(code: str) -> str:
    """Run a block of Python as a script, which must print something; return what it printed."""
    Path("block.py").write_text(code, encoding="utf-8")
    printed = io.StringIO()
    with redirect_stdout(printed):
        runpy.run_path("block.py", run_name="__main__")
    assert printed.getvalue().strip(), f"prints nothing:\n{code}"
    return printed.getvalue()


def run_scenario(text: str) -> str:
    """Run a scenario for a few rounds, and return what the command printed."""
    Path("page.toml").write_text(text, encoding="utf-8")
    printed = command(f"regretless run page.toml --rounds {ROUNDS}")
    assert tomllib.loads(text)["name"] in printed
    return printed


def run_step(step: Step) -> str:
    """Run a piece; return what it printed, nothing where nothing ran."""
    if step.language == "command":
        return run_line(step.text)
    if step.language == "sh":
        lines = step.text.replace("\\\n", " ").splitlines()
        return "".join(run_line(line) for line in lines)
    if step.file is not None or step.language in NOT_RUN:
        return ""
    if step.language == "python":
        return run_python(step.text)
    assert step.language == "toml", f"'{step.language}' is no language of a page"
    return run_scenario(step.text)


def save_files(pieces: list[Step]) -> None:
    """Save the pieces that are files; each must be named by another piece."""
    text_of_commands = " ".join(piece.text for piece in pieces if piece.file is None)
    for piece in pieces:
        if piece.file is not None:
            Path(piece.file).write_text(piece.text, encoding="utf-8")
            assert piece.file.removesuffix(".py") in text_of_commands, f"{piece.file} is never used"


def stripped_lines(text: str) -> list[str]:
    """Return the lines of a text without what is blank at their ends."""
    return [line.rstrip() for line in text.splitlines()]


def read(page: str) -> None:
    """Run what a page shows, and compare what it says is printed with what is printed."""
    pieces = list(steps(page))
    save_files(pieces)
    printed = ""
    end = 0
    for piece in pieces:
        if piece.language != "text":
            printed = run_step(piece)
        elif printed and not page[end : piece.start].strip():
            assert stripped_lines(piece.text) == stripped_lines(printed), printed
        end = piece.end


def read_here(page: str) -> None:
    """Follow a page, its studies in this process: a cluster for each takes seconds."""
    conduct.executor = lambda *_: closing(Executor())  # type: ignore[assignment]
    read(page)


def follow(page: Path, folder: Path, how: Callable[[str], None] = read) -> None:
    """Follow a page in a folder, in a process of its own; warnings are errors."""
    _, complaint = run_in_separate_process(folder, how, page.read_text(encoding="utf-8"))
    assert complaint == ""
