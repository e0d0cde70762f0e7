"""Save files of an OnlineOmnipredictor: written whole, and read only as they were written."""

import shutil
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from archives import members_of, mutate, with_right_digest, write_members

from regretless import OnlineOmnipredictor, UserError
from regretless.agents.utilities import Newsvendor
from regretless.forecaster.online import saved
from regretless.market.core import archive, checkpoint
from regretless.market.core.randomness import stream

ORDERS = np.linspace(0.0, 400.0, 9)
MUTATIONS = 500
FILE_OF_FORMAT_5 = Path(__file__).parent / "server-of-format-5.bin"  # waits for monday's outcome


def server_after(rounds: int, **arguments: Any) -> OnlineOmnipredictor:
    """Return a shop's server that has learned some days, and waits for one late outcome."""
    shop = Newsvendor(ORDERS, underage=4.0, overage=1.0)
    scale = {"demand": (0.0, 400.0)}
    server = OnlineOmnipredictor({"shop": shop}, scale=scale, **arguments)
    demands = stream(0, "demands of the shop").uniform(50.0, 350.0, rounds)
    for day, demand in enumerate(demands):
        server.learn_one({"weekday": day % 7, "weather": "rain"}, demand)
    server.predict_one({"weekday": 3}, key="late")
    return server


@pytest.fixture(scope="module")
def saved_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file that a server wrote after forty rounds."""
    file = tmp_path_factory.mktemp("saved") / "server.bin"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server_after(40).save(file)
    return file


@pytest.fixture
def copied_file(saved_file: Path, tmp_path: Path) -> Path:
    """Return a copy of the saved file that a test may damage."""
    return Path(shutil.copy(saved_file, tmp_path / "copy.bin"))


def content_of(path: Path) -> list[tuple[str, bytes]]:
    return list(members_of(path).items())


def test_no_mutated_file_loads_with_another_content(saved_file: Path, copied_file: Path) -> None:
    """A file that is damaged outside its members' content may still be read: it says the same."""
    rng = stream(7, "mutations of a save file")
    original = content_of(saved_file)
    refused = 0
    wrong: list[str] = []
    for number in range(MUTATIONS):
        shutil.copy(saved_file, copied_file)
        kind = mutate(copied_file, rng)
        try:
            saved.read(copied_file)
        except UserError as error:
            refused += 1
            line = str(error)
            if "\n" in line or str(copied_file) not in line or ";" not in line:
                wrong.append(f"{number}, {kind}: {line}")
        else:
            if content_of(copied_file) != original:
                wrong.append(f"{number}, {kind}: another content was read")
    assert wrong == []
    assert refused > 0.8 * MUTATIONS


def test_a_file_of_the_format_before_goes_on_as_it_would_have_then() -> None:
    """Expected is what the version that wrote the file forecast, before and after monday."""
    server = OnlineOmnipredictor.load(FILE_OF_FORMAT_5)
    forecast = server.predict_one()
    assert forecast.mean == pytest.approx(84.54625671592711)
    assert forecast.quantile(0.8) == pytest.approx(98.4375)
    server.learn_late("monday", 120.0)
    forecast = server.predict_one()
    assert forecast.mean == pytest.approx(91.33706374302531)
    assert forecast.quantile(0.8) == pytest.approx(120.0)
    assert server.regrets()["mean_loss"].item() == pytest.approx(76.25)


def test_a_file_of_the_format_before_is_saved_in_the_present_one(tmp_path: Path) -> None:
    server = OnlineOmnipredictor.load(FILE_OF_FORMAT_5)
    server.save(tmp_path / "server")
    again = OnlineOmnipredictor.load(tmp_path / "server")
    assert checkpoint.load(tmp_path / "server")["format"] == saved.FORMAT
    for one in (server, again):
        one.learn_late("monday", 120.0)
    assert again.predict_one().quantile(0.8) == server.predict_one().quantile(0.8)


def test_a_format_that_is_not_read_is_refused_with_what_to_do(tmp_path: Path) -> None:
    tree = checkpoint.load(FILE_OF_FORMAT_5)
    checkpoint.save(tmp_path / "server", tree | {"format": 4})
    reason = "it is of format 4; this version reads 5 and 6; learn again from the table"
    with pytest.raises(UserError, match=reason):
        OnlineOmnipredictor.load(tmp_path / "server")


def older_format(path: Path) -> None:
    members = members_of(path)
    del members[archive.HEADER]
    write_members(path, members)


def newer_format(path: Path) -> None:
    members = members_of(path)
    with_right_digest(members, file_format=99)
    write_members(path, members)


def foreign_text(path: Path) -> None:
    path.write_text("date,demand\n2026-03-01,120\n", encoding="utf-8")


def foreign_archive(path: Path) -> None:
    write_members(path, {"xl/workbook.xml": b"<workbook/>"})


def checkpoint_of_something_else(path: Path) -> None:
    checkpoint.save(path, {"state": {"time": 3}, "chunks": 2})


def torn(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def edited(path: Path) -> None:
    """Claim ten rounds more than were learned, as somebody with a ZIP editor could."""
    members = members_of(path)
    plain = f"{checkpoint.PLAIN_MEMBER}{archive.SUFFIX}"
    members[plain] = members[plain].replace(b'"learned": 40', b'"learned": 50')
    write_members(path, members)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


REFUSED: list[tuple[Callable[[Path], None], str]] = [
    (older_format, "of format 1, an older one"),
    (newer_format, "of format 99; this version reads 3"),
    (foreign_text, "torn, or something else wrote it"),
    (foreign_archive, "something else wrote it"),
    (checkpoint_of_something_else, "it holds something else"),
    (torn, "torn, or something else wrote it"),
    (edited, "its content was changed after it was written"),
    (emptied, "torn, or something else wrote it"),
]


@pytest.mark.parametrize(
    ("damage", "reason"), REFUSED, ids=[damage.__name__ for damage, _ in REFUSED]
)
def test_what_is_no_whole_file_of_ours_is_refused_in_one_line(
    damage: Callable[[Path], None], reason: str, copied_file: Path
) -> None:
    damage(copied_file)
    with pytest.raises(UserError, match=reason) as refusal:
        OnlineOmnipredictor.load(copied_file)
    line = str(refusal.value)
    assert line.startswith(f"'{copied_file}' is no saved OnlineOmnipredictor: ")
    assert line.endswith("; give a file that save wrote, or learn again")
    assert "\n" not in line


def with_state(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the state in a file, which then has the right digest again."""
    tree = checkpoint.load(path)
    change(tree["state"])
    checkpoint.save(path, tree)


def not_finite(state: dict[str, Any]) -> None:
    state["followed"][0, 0] = np.nan


def of_another_shape(state: dict[str, Any]) -> None:
    state["followed"] = state["followed"][:, :2]


def of_another_type(state: dict[str, Any]) -> None:
    state["followed"] = state["followed"].astype(np.float32)


def without_a_part(state: dict[str, Any]) -> None:
    del state["counts"]


def a_table_for_a_number(state: dict[str, Any]) -> None:
    state["counts"]["learned"] = {}


CHANGED_STATES = [
    (not_finite, "state.followed holds a number that is not finite"),
    (of_another_shape, "state.followed is no array of float64 and shape"),
    (of_another_type, "state.followed is no array of float64 and shape"),
    (without_a_part, "state is no table of"),
    (a_table_for_a_number, "state.counts.learned is dict, where int belongs"),
]


@pytest.mark.parametrize(("change", "reason"), CHANGED_STATES)
def test_a_state_of_another_form_is_refused_though_its_digest_is_right(
    change: Callable[[dict[str, Any]], None], reason: str, copied_file: Path
) -> None:
    with_state(copied_file, change)
    with pytest.raises(UserError, match=reason):
        OnlineOmnipredictor.load(copied_file)


PATHS: list[Any] = [None, 5, "", b"server.bin", "a\0b", [], {}]


@pytest.mark.parametrize("path", PATHS)
def test_what_is_no_path_is_refused(path: Any) -> None:
    with pytest.raises(UserError, match=r"path = .*: give the path of a file"):
        OnlineOmnipredictor.load(path)
    with pytest.raises(UserError, match=r"path = .*: give the path of a file"):
        server_after(0).save(path)


def test_a_path_that_cannot_be_read_or_written_is_named(tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere" / "server.bin"
    with pytest.raises(UserError, match=f"'{nowhere}' cannot be written: No such file"):
        server_after(0).save(nowhere)
    with pytest.raises(UserError, match=f"'{nowhere}' cannot be read: No such file"):
        OnlineOmnipredictor.load(nowhere)
    with pytest.raises(UserError, match=f"'{tmp_path}' cannot be read: Is a directory"):
        OnlineOmnipredictor.load(tmp_path)


@pytest.mark.filterwarnings("ignore:x lacks")
def test_writers_at_one_path_leave_one_whole_file(tmp_path: Path) -> None:
    file = tmp_path / "server.bin"
    servers = [server_after(rounds) for rounds in (1, 2, 3)]
    failures: list[BaseException] = []

    def write_often(server: OnlineOmnipredictor) -> None:
        try:
            for _ in range(15):
                server.save(file)
                OnlineOmnipredictor.load(file)
        except BaseException as error:  # noqa: BLE001 - the thread's failure is the test's
            failures.append(error)

    threads = [threading.Thread(target=write_often, args=(server,)) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [*tmp_path.iterdir()] == [file]
    assert OnlineOmnipredictor.load(file).counts["learned"] in {1, 2, 3}
