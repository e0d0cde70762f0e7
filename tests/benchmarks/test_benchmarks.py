"""The benchmark: answers are compared, rows are complete, missing peers are named. No timings."""

import json
from pathlib import Path

import mesa
import numpy as np
import pytest

from benchmarks import duels, rounds, works
from benchmarks.__main__ import main
from benchmarks.crowds import FAMILIES, Crowd, CurvedCrowd, PlainCrowd
from benchmarks.duels import DisagreementError, Duel
from regretless import load

WORKS = {"agent-steps", "blum_mansour", "stackelberg", "swap_regret", "forecaster-round"}
WORKS |= {"order-book", "book-losses", "repeated-game", "serving", "small-market"}
RIVALS = {"mesa", "openspiel", "noregret", "numpy", "bandwidth", "bourse", "python", "numba"}
SMALL = {  # constants of ``works``
    "QUICK_CROWD": 60,
    "QUICK_LARGE_CROWD": 600,
    "COPIED": 1 << 16,
    "LEARNER_ROUNDS": 20,
    "GAMES": 1,
    "LOGGED_ROUNDS": 400,
}


def test_quick_run_writes_rows_and_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With whatever peers are installed here; every other package has its line."""
    for name, value in SMALL.items():
        monkeypatch.setattr(works, name, value)
    main(["--quick", "--json", str(tmp_path / "bench.json")])
    done = capsys.readouterr()
    (written,) = tmp_path.iterdir()
    content = json.loads(written.read_text(encoding="utf-8"))
    assert set(content) == {"rows", "memory", "machine"}
    assert content["memory"]["bytes"] > 0
    assert content["machine"]["processor"]
    assert content["machine"]["cores"] >= 1
    for row in content["rows"]:
        assert set(row) == {"work", "size", "rival", "seconds", "rival_seconds", "ratio"}
        assert row["work"] in WORKS
        assert row["rival"] in RIVALS
        assert row["seconds"] > 0
        assert row["ratio"] == pytest.approx(row["rival_seconds"] / row["seconds"])
        assert row["work"] in done.out
    lines = [line for line in done.err.splitlines() if "regretless[peers]" in line]
    named = [work for line in lines for work in line.split("skipped: ")[1].split(";")[0].split(",")]
    assert len(content["rows"]) + len(named) == len(works.works(quick=True))
    assert {row["work"] for row in content["rows"]} >= {"agent-steps", "forecaster-round"}


def test_served_forecasts_can_be_timed_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["serving", "--quick", "--json", str(tmp_path / "serving.json")])
    content = json.loads((tmp_path / "serving.json").read_text(encoding="utf-8"))
    assert set(content) == {"rows", "machine"}
    assert [row["work"] for row in content["rows"]] == ["serving"] * 7
    assert "1 shops" not in capsys.readouterr().out


@pytest.mark.parametrize("theirs", [[1.0, 2.0 + 3e-6], [1.0], [1.0, float("nan")]])
def test_different_answers_are_no_benchmark(theirs: list[float]) -> None:
    duel = Duel("w", "s", "numpy", lambda: np.array([1.0, 2.0]), lambda: np.array(theirs))
    with pytest.raises(DisagreementError, match="numpy"):
        duels.time_duel(duel, 1)


CROWDS = [Crowd(50), Crowd(50, 7), *(CurvedCrowd(40, family) for family in FAMILIES)]


@pytest.mark.parametrize("crowd", CROWDS)
def test_a_crowd_is_the_same_in_every_model(crowd: Crowd) -> None:
    """Actions of every agent in every round, and the swap ledger at the end."""
    ours = crowd.model()
    mesas = crowd.in_mesa(mesa)
    plain = [] if isinstance(crowd, CurvedCrowd) else [PlainCrowd(crowd)]
    for _ in range(20):
        ours.step()
        mesas.step()
        actions = ours.last_actions(0).tolist()
        assert [agent.action for agent in mesas.agents] == actions
        assert [one.step().tolist() for one in plain] == [actions] * len(plain)
    (cohort,) = ours.game.cohorts
    sums = np.array([agent.sums for agent in mesas.agents])
    np.testing.assert_allclose(cohort.ledger.fixed[cohort.row_of], sums, atol=1e-12)
    for one in plain:
        np.testing.assert_allclose(one.fixed, cohort.ledger.fixed, atol=1e-12)
        np.testing.assert_allclose(one.surprise, cohort.ledger.surprise_fixed, atol=1e-12)


@pytest.mark.parametrize("name", [".", "nowhere/bench.json"])
def test_a_bad_target_is_refused_before_the_clock_starts(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for work in ("works", "peak_memory"):
        monkeypatch.setattr(works, work, lambda **_: pytest.fail("it measured"))
    with pytest.raises(SystemExit) as stopped:
        main(["--json", str(tmp_path / name)])
    complaint = capsys.readouterr().err
    assert (stopped.value.code, complaint.count("\n")) == (2, 1)
    assert complaint.startswith("python -m benchmarks: --json ")


def test_a_round_is_timed_and_its_shares_add_up_to_no_more_than_all() -> None:
    row = rounds.row("insider", 3)
    assert row["scenario"] == "insider"
    assert row["milliseconds"] > 0
    shares = [row[part] for part in rounds.PARTS]
    assert all(share > 0 for share in shares)
    assert sum(shares) <= 1


def test_clocks_are_taken_out_again_and_change_nothing() -> None:
    model = load("umbrellas", rounds=6).build(seed=3)
    undisturbed = load("umbrellas", rounds=6).build(seed=3)
    undisturbed.run()
    with rounds.clocks(model) as stopwatch:
        model.run(3)
    seconds = dict(stopwatch.seconds)
    model.run()
    assert stopwatch.seconds == seconds
    assert model.regret_frame().equals(undisturbed.regret_frame())
