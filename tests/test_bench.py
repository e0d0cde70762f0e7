"""The benchmark: answers are compared, rows are complete, missing peers are named. No timings."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from scenarios.bench import clock, results, works
from scenarios.bench.clock import DisagreementError, Duel
from scenarios.cli import app

WORKS = {"agent-steps", "blum_mansour", "stackelberg", "swap_regret", "forecaster-round"}
RIVALS = {"mesa", "openspiel", "noregret", "numpy", "bandwidth"}
PEERS = ["pyspiel", "open_spiel", "cvxpy", "noregret"]


def without(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """Make packages as good as not installed."""
    loaded = [name for name in sys.modules if name.split(".")[0] in packages]
    for name in {*loaded, *packages}:
        monkeypatch.setitem(sys.modules, name, None)


def answering(*answers: list[float]) -> Callable[[], NDArray[np.float64]]:
    """Give one answer per call, the last one for ever."""
    left = list(answers)
    return lambda: np.array(left.pop(0) if len(left) > 1 else left[0])


def test_quick_run_writes_rows_and_machine(tmp_path: Path) -> None:
    """With whatever peers are installed here; every other package has its line."""
    target = tmp_path / "bench.json"
    done = CliRunner().invoke(app, ["bench", "--quick", "--json", str(target)])
    assert done.exit_code == 0, done.output
    content = json.loads(target.read_text(encoding="utf-8"))
    assert set(content) == {"rows", "machine"}
    assert content["machine"]["processor"]
    assert content["machine"]["cores"] >= 1
    for row in content["rows"]:
        assert set(row) == {"work", "size", "rival", "seconds", "rival_seconds", "ratio"}
        assert row["work"] in WORKS
        assert row["rival"] in RIVALS
        assert row["seconds"] > 0
        assert row["ratio"] == pytest.approx(row["rival_seconds"] / row["seconds"])
        assert row["work"] in done.stdout
    lines = [line for line in done.stderr.splitlines() if "omnimarket[peers]" in line]
    named = [work for line in lines for work in line.split("skipped: ")[1].split(";")[0].split(",")]
    assert len(content["rows"]) + len(named) == len(works.WORKS)
    assert [path.name for path in tmp_path.iterdir()] == ["bench.json"]


def test_peers_that_are_missing_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, *PEERS)
    measured = results.measure(1)
    assert {row.rival for row in measured.rows} == {"numpy"}
    lines = results.skipped(measured)
    assert [line.split()[0] for line in lines] == ["open_spiel", "noregret"]
    assert all("pip install 'omnimarket[peers]'" in line for line in lines)
    assert sum(len(skipped) for skipped in measured.missing.values()) == len(works.WORKS) - 1


def test_only_a_missing_peer_is_skipped() -> None:
    with pytest.raises(ModuleNotFoundError) as caught:
        works.peer("no_such_module_of_ours")
    assert not isinstance(caught.value, works.MissingPeerError)


@pytest.mark.parametrize("theirs", [[1.0, 2.0 + 3e-6], [1.0], [1.0, float("nan")]])
def test_different_answers_are_no_benchmark(theirs: list[float]) -> None:
    with pytest.raises(DisagreementError, match="numpy"):
        clock.timed(Duel("w", "s", "numpy", answering([1.0, 2.0]), answering(theirs)), 1)


def test_every_repeat_is_compared() -> None:
    """Equal when warming up, different in the second repeat."""
    same, other = [1.0], [1.1]
    duel = Duel("w", "s", "numpy", answering(same), answering(same, same, other))
    assert clock.timed(duel, 1).ratio > 0
    duel = Duel("w", "s", "numpy", answering(same), answering(same, same, other))
    with pytest.raises(DisagreementError):
        clock.timed(duel, 2)


def test_turns_alternate() -> None:
    order: list[str] = []

    def way(name: str) -> Callable[[], NDArray[np.float64]]:
        def play() -> NDArray[np.float64]:
            order.append(name)
            return np.zeros(1)

        return play

    clock.timed(Duel("w", "s", "numpy", way("a"), way("b")), 3)
    assert "".join(order) == "ab" + "ab" + "ba" + "ab"


@pytest.mark.parametrize("name", [".", "nowhere/bench.json"])
def test_a_bad_target_is_refused_before_the_clock_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(results, "measure", lambda *_, **__: pytest.fail("it measured"))
    done = CliRunner().invoke(app, ["bench", "--json", str(tmp_path / name)])
    assert done.exit_code != 0
    assert str(done.exception).startswith("--json ")
