"""What many tests use, and settings of the suite: nothing depends on its speed or on the day."""

from __future__ import annotations

import sys

import pytest
from desk import Answer, Call, Refused
from hypothesis import settings

from regretless.market import register
from regretless.scenarios.assembly import scenario  # noqa: F401 - registers what is built in
from regretless.scenarios.cli import commands

settings.register_profile("house", deadline=None, derandomize=True)
settings.load_profile("house")


@pytest.fixture(autouse=True)
def registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what a test registers."""
    for registry in vars(register).values():
        if isinstance(registry, register.Registry):
            monkeypatch.setattr(registry, "_known", dict(registry._known))


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
