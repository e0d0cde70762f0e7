"""What many tests use, and settings of the suite: nothing depends on its speed or on the day."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from desk import Answer, Call, Refused
from hypothesis import settings
from small_scenarios import TomlTable, read_scenario
from written import Reference

from regretless.market import register
from regretless.market.numerics import linear_program
from regretless.scenarios.assembly import scenario  # noqa: F401 - registers what is built in
from regretless.scenarios.cli import commands
from regretless.scenarios.executor import Executor, executor
from regretless.scenarios.run import Options, run
from regretless.scenarios.studies import conduct

settings.register_profile("house", deadline=None, derandomize=True)
settings.load_profile("house")
SLOW = set((Path(__file__).parent / "slow.txt").read_text(encoding="utf-8").split())


def workers(jobs: int | None, *more: Any) -> Any:
    """Play a study of one worker in this process, as without Dask: a cluster takes seconds."""
    return closing(Executor()) if jobs == 1 else executor(jobs, *more)


conduct.executor = workers  # type: ignore[assignment]


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
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """Play a scenario without a stop; a second call gives the same directory."""
    made: dict[str, Path] = {}

    def call(given: TomlTable | str, *assignments: str, log_every: int = 1) -> Path:
        key = json.dumps([given, assignments, log_every])
        if key not in made:
            made[key] = tmp_path_factory.mktemp("reference") / "logs"
            run(read_scenario(given, *assignments), Options(made[key], log_every=log_every))
        return made[key]

    return call


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in an empty folder, and forget the modules that are imported from it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    yield tmp_path
    for name, module in [*sys.modules.items()]:
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Return what calls the command in this process."""
    monkeypatch.setattr(sys, "path", sys.path[:])

    def called(*words: object) -> Answer:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["regretless", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            commands.main()
        said = capsys.readouterr()
        return Answer(int(left.value.code or 0), said.out, said.err)

    return called


@pytest.fixture
def refused(call: Call) -> Refused:
    """Return what calls the command, which must refuse in one line, and returns the line."""

    def told(*words: object) -> str:
        answer = call(*words)
        assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1), answer.err
        assert answer.err.startswith("regretless: ")
        return answer.err.removeprefix("regretless: ").rstrip("\n")

    return told


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return what takes away all pivots and steps: only what needs none is solved then."""

    def take() -> None:
        for limit in ("MIN_PIVOTS", "PIVOTS_PER_LINE", "MAX_INTERIOR_STEPS"):
            monkeypatch.setattr(linear_program, limit, 0)

    return take
