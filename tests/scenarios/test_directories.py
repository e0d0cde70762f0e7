"""What is in a directory stays as it is, but for the files that an earlier run's manifest lists."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from desk import Call, Refused
from faults import SWEEP
from written import files, manifest, status

from regretless.market.core import checkpoint
from regretless.market.logs import journal

CHECKPOINT = ".partial/checkpoint.npz"
TINY = """\
name = "tiny"
rounds = 20
adversary = { kind = "switching", outcomes = 2 }
forecaster = { kind = "decision-swap" }
cohort = [
  { name = "farmers", utility = "linear", count = 2, actions = 2 },
  { name = "learners", utility = "linear", count = 2, actions = 2, response = "hedge" },
]
"""
CRAFTED = 40  # of several hundred places in a checkpoint


@pytest.fixture(autouse=True)
def folder(desk: Path) -> None:
    Path("tiny.toml").write_text(TINY, encoding="utf-8")
    Path("sweep.toml").write_text(SWEEP, encoding="utf-8")


@pytest.fixture
def refused(refused: Refused) -> Refused:
    def told(*words: str) -> str:
        before, line = files(), refused(*words)
        assert files() == before
        return line

    return told


RUN = ("run", "tiny.toml", "--out", "logs", "--quiet")
STUDY = ("study", "sweep.toml", "--out", "logs", "--quiet", "--jobs", "1")


@pytest.mark.parametrize("words", [RUN, STUDY], ids=["run", "study"])
def test_what_is_there_is_replaced_only_if_asked(
    call: Call, refused: Refused, words: tuple[str, ...]
) -> None:
    assert call(*words)[0] == 0
    line = refused(*words)
    assert "--resume" in line
    assert "--overwrite" in line
    assert "give one" in refused(*words, "--resume", "--overwrite")
    Path("logs/notes.txt").write_text("mine")
    assert call("report", "logs")[0] == 0
    assert call(*words, "--overwrite", "--rounds", "7")[0] == 0
    assert Path("logs/notes.txt").read_text() == "mine"
    assert not Path("logs/report.html").exists()  # it told of the run before
    assert call(*words, "--overwrite", "--rounds", "7")[0] == 0


def test_the_manifest_lists_the_tables(call: Call) -> None:
    assert call(*RUN, "--format", "csv")[0] == 0
    listed = manifest("logs")["files"]
    assert sorted([*listed, "manifest.json"]) == sorted(p.name for p in Path("logs").iterdir())
    assert call(*RUN, "--overwrite")[0] == 0
    assert {path.suffix for path in Path("logs").iterdir()} == {".json", ".parquet"}


def test_runs_without_a_directory_are_numbered(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("run", "tiny.toml")
    assert "taken" not in call(*words)[1]
    code, out, err = call(*words)
    assert (code, err) == (0, "")
    assert out.startswith("runs/tiny is taken; this run is written to runs/tiny-2.\n")
    assert "runs/tiny-3" in call(*words)[1]
    assert "complete" in call(*words, "--resume")[2]
    assert call(*words, "--overwrite", "--quiet", "--rounds", "9")[0] == 0
    assert manifest("runs/tiny")["rounds"] == 9
    file = Path("runs/tiny-2/manifest.json")
    file.write_text(file.read_text().replace('"complete"', '"interrupted"'))
    assert call(*words, "--resume", "--quiet")[0] == 0
    assert status("runs/tiny-2") == "complete"
    assert not Path("runs/tiny-4").exists()


def test_a_file_of_the_users_is_never_touched(call: Call, refused: Refused) -> None:
    """Nor is one in the way replaced."""
    assert call(*RUN)[0] == 0
    names = ("rounds.csv", "models.csv", "report.html", ".rounds.tmp")
    for name in names:
        Path("logs", name).write_text("mine")
    assert call(*RUN, "--overwrite")[0] == 0
    assert {Path("logs", name).read_text() for name in names} == {"mine"}
    assert "report.html" in refused("report", "logs")
    Path("logs/models.parquet").write_text("mine")
    assert "models.parquet" in refused(*RUN, "--overwrite")


@pytest.mark.parametrize("name", [".partial", "rounds.parquet", ".rounds.parquet.tmp", ".lock"])
def test_links_are_not_followed(call: Call, refused: Refused, name: str) -> None:
    assert call(*RUN)[0] == 0
    Path("mine").mkdir()
    Path("mine/run").write_text("mine")
    Path("logs", name).unlink(missing_ok=True)
    Path("logs", name).symlink_to(Path("mine").absolute() / ("" if name == ".partial" else "run"))
    assert name in refused(*RUN, "--overwrite")
    assert name in refused(*RUN, "--resume")


def test_a_study_with_what_is_a_strangers_is_not_replaced(call: Call, refused: Refused) -> None:
    """Neither a file among its own, nor a link in the place of one."""
    assert call(*STUDY)[0] == 0
    for name in ("runs/run=0000/notes.txt", ".drafts/notes.txt", "runs/mine/a"):
        place = Path("logs", name)
        made = not place.parent.exists()
        place.parent.mkdir(exist_ok=True)
        place.write_text("mine")
        assert place.parent.name in refused(*STUDY, "--overwrite")
        place.unlink()
        if made:
            place.parent.rmdir()
    for name in ("runs", ".drafts", "runs/run=0000", "value.parquet"):
        place, elsewhere = Path("logs", name), Path("elsewhere")
        there = place.exists()
        place.rename(elsewhere) if there else elsewhere.mkdir()
        place.symlink_to(elsewhere.absolute())
        assert place.name in refused(*STUDY, "--overwrite")
        place.unlink()
        elsewhere.rename(place) if there else elsewhere.rmdir()


# Strange files.


@pytest.fixture
def stopped(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a run as a kill leaves it, after its second checkpoint."""
    monkeypatch.setattr(journal, "CHUNK_ROUNDS", 4)
    kept = checkpoint.save

    def save(path: Path, tree: dict[str, Any]) -> None:
        kept(path, tree)
        if tree["chunks"] == 2:
            shutil.copytree("logs", "killed")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", save)
        assert call(*RUN)[0] == 0
    shutil.move("logs", "whole")
    shutil.move("killed", "logs")
    Path("logs/.lock").unlink(missing_ok=True)


@pytest.mark.usefixtures("stopped")
@pytest.mark.parametrize("name", ["photo.jpg", "rounds-x.arrow", "a/b", "rounds-000000.arrow/b"])
def test_a_strange_file_among_the_parts_is_refused(refused: Refused, name: str) -> None:
    place = Path("logs/.partial", name)
    if place.parent.is_file():
        place.parent.unlink()
    place.parent.mkdir(exist_ok=True)
    place.write_text("mine")
    first = name.partition("/")[0]
    assert first in refused(*RUN, "--resume")
    assert first in refused(*RUN, "--overwrite")


MANIFESTS = ["[" * 100_000, "", "[]", "{}", '{"config": 1, "status": [], "scenario": {}}', "\xff"]


@pytest.mark.usefixtures("stopped")
def test_a_strange_manifest_is_refused(refused: Refused) -> None:
    for text in MANIFESTS:
        Path("logs/manifest.json").write_text(text, encoding="latin-1")
        refused(*RUN)
        for words in ((*RUN, "--resume"), ("report", "logs")):
            assert "manifest.json" in refused(*words), text


def test_a_strange_record_of_a_study_is_refused(refused: Refused) -> None:
    Path("logs").mkdir()
    for text in MANIFESTS:
        Path("logs/study.json").write_text(text, encoding="latin-1")
        refused(*STUDY)
        refused(*STUDY, "--overwrite")
        refused("report", "logs")


def places(tree: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in tree.items():
        yield (*above, key)
        if isinstance(value, dict):
            yield from places(value, (*above, key))


def changes(value: Any) -> Iterator[Any]:
    """Yield what may stand in a value's place: other types, shapes and kinds of number."""
    yield from (None, "text", [], {}, [[1], "a"], float("nan"), -1, 10**30)
    yield from (np.zeros((0, 0)), np.full(7, np.nan), np.array(["a"]))
    if isinstance(value, np.ndarray):
        yield from (value[:-1] if value.ndim else value.reshape(1), value[None], value[..., None])
        yield from (value.astype(str), value.astype(complex), value.ravel())
        yield np.zeros(value.shape, np.int8)


def test_any_checkpoint_is_resumed_or_refused(stopped: None, call: Call) -> None:
    """Whatever is changed in it, the run goes on to its end, or there is one line."""
    file = Path("logs", CHECKPOINT)
    kept, rng = Path("kept"), np.random.default_rng(1)
    shutil.copytree("logs", kept)
    wrong: list[str] = []
    found = list(places(checkpoint.load(file)))
    for chosen in rng.choice(len(found), CRAFTED, replace=False):
        tree = checkpoint.load(kept / CHECKPOINT)
        *above, last = found[chosen]
        table = tree
        for key in above:
            table = table[key]
        crafted = list(changes(table[last]))
        table[last] = crafted[rng.integers(len(crafted))]
        what = f"{found[chosen]} = {table[last]!r:.40}"
        shutil.rmtree("logs")
        shutil.copytree(kept, "logs")
        checkpoint.save(file, tree)
        try:
            code, _, err = call(*RUN, "--resume")
        except Exception as error:  # noqa: BLE001 - which the command would show
            wrong.append(f"{what}: {error!r:.80}")
            continue
        if (code, err.count("\n")) not in {(0, 0), (2, 1)}:
            wrong.append(f"{what}: {code} {err:.80}")
    assert wrong == []
