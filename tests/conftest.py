"""Fixtures that many tests use, and the settings of the suite: nothing depends on its speed."""

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command_results import CommandResult, RefusalOf, RunCommand
from hypothesis import settings
from run_files import FinishedRun
from small_scenarios import TomlTable, read_scenario

from regretless.market import register
from regretless.market.numerics import linear_program
from regretless.scenarios.assembly import scenario  # noqa: F401 - registers what is built in
from regretless.scenarios.cli import commands
from regretless.scenarios.executor.base import Executor
from regretless.scenarios.executor.choice import executor
from regretless.scenarios.run import Options, run
from regretless.scenarios.studies import conduct

settings.register_profile("house", deadline=None, derandomize=True)
settings.load_profile("house")
SLOW = set((Path(__file__).parent / "slow.txt").read_text(encoding="utf-8").split())


def executor_of(jobs: int | None, *options: Any) -> Any:
    """Play a study of one worker in this process, as without Dask: a cluster takes seconds."""
    return closing(Executor()) if jobs == 1 else executor(jobs, *options)


conduct.executor = executor_of  # type: ignore[assignment]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what ``slow.txt`` names, a file or a function of one; put pages, the longest, first."""
    for item in items:
        file = item.nodeid.partition("::")[0]
        if SLOW & {file, item.nodeid.partition("[")[0]}:
            item.add_marker("slow")
    items.sort(key=lambda item: item.get_closest_marker("pages") is None)


@pytest.fixture(autouse=True)
def registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what a test registers."""
    for registry in vars(register).values():
        if isinstance(registry, register.Registry):
            monkeypatch.setattr(registry, "_registered", dict(registry._registered))


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    """Return a function that plays a scenario without a stop, and returns the run's folder.

    A scenario with the same keys is played once in a module.
    """
    folders: dict[str, Path] = {}

    def play(source: TomlTable | str, *assignments: str, log_every: int = 1) -> Path:
        key = json.dumps([source, assignments, log_every])
        if key not in folders:
            folders[key] = tmp_path_factory.mktemp("finished") / "logs"
            run(read_scenario(source, *assignments), Options(folders[key], log_every=log_every))
        return folders[key]

    return play


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in an empty folder, and forget the modules that are imported from it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    yield tmp_path
    for name, module in [*sys.modules.items()]:
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def run_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunCommand:
    """Return a function that runs ``regretless`` with these words in the test's process."""
    monkeypatch.setattr(sys, "path", sys.path[:])

    def run_arguments(*arguments: object) -> CommandResult:
        capsys.readouterr()  # what was printed before is not the command's
        monkeypatch.setattr(sys, "argv", ["regretless", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            commands.main()
        printed = capsys.readouterr()
        return CommandResult(int(ended.value.code or 0), printed.out, printed.err)

    return run_arguments


@pytest.fixture
def refusal_of(run_command: RunCommand) -> RefusalOf:
    """Return a function that runs a command, expects one line of refusal, and returns the line."""

    def refuse(*arguments: object) -> str:
        result = run_command(*arguments)
        assert result.status == 2, result.err
        assert result.out == ""
        assert result.err.count("\n") == 1, result.err
        assert result.err.startswith("regretless: ")
        return result.err.removeprefix("regretless: ").rstrip("\n")

    return refuse


@pytest.fixture
def interrupts_as_at_a_terminal() -> Iterator[None]:
    """Let Ctrl-C raise an error, as it does at a terminal."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.fixture
def forbid_solver_steps(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that takes all pivots and steps away from the solver of linear programs.

    From then on it solves only what needs none.
    """

    def forbid() -> None:
        for limit in ("MIN_PIVOTS", "PIVOTS_PER_LINE", "MAX_INTERIOR_STEPS"):
            monkeypatch.setattr(linear_program, limit, 0)

    return forbid
