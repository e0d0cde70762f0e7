"""The live page without a browser: its controls, its memory, its sessions and who it answers."""

import gc
import json
import re
import signal
import socket
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPResponse
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, url2pathname, urlopen

import numpy as np
import pytest
import tomli_w
from command_results import RefusalOf, RunCommand
from run_files import read_manifest
from servers import live_server
from small_scenarios import built_in_names

from regretless import load
from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.scenarios.config.files import catalogue
from regretless.scenarios.config.forecaster import KINDS
from regretless.scenarios.config.validation import resolved, validated
from regretless.scenarios.live import browser, connections, course, server
from regretless.scenarios.live.course import CourseRecorder
from regretless.scenarios.live.numeric_keys import numeric_keys
from regretless.scenarios.live.saving import Saving
from regretless.scenarios.live.server import Live
from regretless.scenarios.live.session import Session
from regretless.scenarios.live.source import Source
from regretless.scenarios.live.state import describe_session
from regretless.scenarios.studies.design import read_study

SMALL: dict[str, Any] = {
    "name": "small",
    "rounds": 5000,
    "forecaster": {"kind": "decision-swap"},
    "adversary": {"kind": "switching", "outcomes": 2},
    "cohort": [
        {"name": name, "utility": "linear", "actions": 3, "count": 4} for name in ("crowd", "calm")
    ],
}
CROP_CHOICE_KEYS = ("cohort.growers.count=3", "rounds=40")
PATIENCE_SECONDS = 60


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """Return the small scenario, as a file."""
    (tmp_path / "small.toml").write_text(tomli_w.dumps(SMALL), encoding="utf-8")
    return Source.of(str(tmp_path / "small.toml"))


@pytest.fixture
def session(source: Source, tmp_path: Path) -> Session:
    """Return a session of the small scenario, which saves to the test's folder."""
    return Session(source, Saving(tmp_path))


def wait_until(is_done: Callable[[], bool]) -> None:
    """Wait for what another thread does."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_done():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("name", list(catalogue())[::3])
def test_every_slider_says_what_it_is_and_sets_its_value_back(name: str) -> None:
    """The controls' names are keys: putting the value where it is changes nothing."""
    source = Source.of(name)
    spec = validated(source.raw, origin=source.origin)
    keys = numeric_keys(spec, source.raw)
    assert {"rounds"} <= {key.name for key in keys}
    for key in keys:
        assert key.low <= key.value <= key.high
        assert key.step > 0
        assert key.meaning
        changed = source.changed(key.name, key.value)
        config = resolved(validated(changed.raw, origin=changed.origin))
        # the description is that of the file as it stood
        assert config | {"description": spec.description} == resolved(spec)


def test_numbers_that_stand_for_words_have_no_slider(
    tmp_path: Path, run_command: RunCommand
) -> None:
    rows = [f"{('Mon', 'Tue', 'Wed')[i % 3]},{i * 0.37 % 1:.3f}" for i in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(["day,sold", *rows, ""]))
    assert run_command("describe", tmp_path / "a.csv", "--out", tmp_path / "own.toml").status == 0
    source = Source.of(str(tmp_path / "own.toml"))
    names = {key.name for key in numeric_keys(source.scenario().spec, source.raw)}
    assert "cohort.planners.count" in names
    assert not any(name.startswith(("data.codes", "policy.rule")) for name in names)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> CourseRecorder:
    """Record a market of 160 rounds, with at most 10 points of curves and 25 rounds of a window."""
    monkeypatch.setattr(course, "MAX_POINTS", 10)
    monkeypatch.setattr(course, "WINDOW_ROUNDS", 25)
    raw = SMALL | {"rounds": 160, "forecaster": {"kind": "constant"}}
    model = Source("small", raw, Path()).scenario().build()
    model.tracker = None
    return CourseRecorder(model)


def play_recorded(recorder: CourseRecorder, n_rounds: int) -> None:
    """Play rounds, and record each."""
    for _ in range(n_rounds):
        recorder.model.step()
        recorder.record_round()


def traced_bytes(recorder: CourseRecorder) -> int:
    """Return the memory that is in use after the tables of what was recorded were made."""
    recorder.tables()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def test_four_times_as_many_recorded_rounds_take_no_more_memory(recorder: CourseRecorder) -> None:
    tracemalloc.start()
    play_recorded(recorder, 40)
    bytes_after_40 = traced_bytes(recorder)
    play_recorded(recorder, 120)
    bytes_after_160 = traced_bytes(recorder)
    tracemalloc.stop()
    assert bytes_after_160 < bytes_after_40 + 50_000


def test_no_decision_and_no_last_round_is_lost_when_points_go(recorder: CourseRecorder) -> None:
    play_recorded(recorder, 160)
    assert len(recorder.points) == 5
    assert recorder.rounds_per_point == 32
    tables = recorder.tables()
    assert tables["actions"]["value"].sum() == 160 * 8
    assert len(tables["rounds"]) == 25
    curves = tables["regret_curves"].loc["calm"]
    assert curves.index[-1] == 159
    agents = recorder.model.agents_frame()
    calm = agents.loc[agents["cohort"] == "calm", "decision_swap_regret"]
    assert curves["max"].iloc[-1] == calm.max()
    assert curves["mean"].iloc[-1] == calm.mean()


@pytest.fixture
def session_of_twelve_rounds(session: Session) -> Session:
    """Return a session of the small scenario after twelve rounds."""
    for _ in range(12):
        session.step()
    return session


def test_curves_that_are_shown_end_at_the_mean_losses(session_of_twelve_rounds: Session) -> None:
    session = session_of_twelve_rounds
    course = session.recorder.tables()["course"]
    last = course[(course["round"] == 11) & (course["kind"] == "broadcast")]
    agents = session.model.agents_frame()
    mean_losses = agents.groupby("cohort")["mean_loss"].mean().to_dict()
    mean_losses["everybody"] = agents["mean_loss"].mean()
    shown_losses = dict(zip(last["cohort"], last["mean_loss"], strict=True))
    assert shown_losses == pytest.approx(mean_losses)
    path_of_agent_3 = session.recorder.path(3)["loss"]
    assert path_of_agent_3.iloc[-1] == pytest.approx(agents["mean_loss"].iloc[2], abs=1e-6)


def test_an_answer_has_the_figures_and_the_agent_that_were_asked_for(
    session_of_twelve_rounds: Session,
) -> None:
    names = ["regret", "agents", "loss", "actions"]
    content = json.loads(describe_session(session_of_twelve_rounds, names, agent=2, builds=0))
    assert set(content["figures"]) == set(names)
    assert content["build"]["agents"] == 8
    assert content["verdict"].startswith("After 12 rounds: 4 crowd followed the forecast.")
    assert content["agent"]["lines"][0] == "cohort crowd"
    n_actions = [int(row[1].replace(",", "")) for row in content["agent"]["swaps"]]
    assert sum(n_actions) == 12


def test_a_figure_of_the_page_is_that_of_the_model(session_of_twelve_rounds: Session) -> None:
    session = session_of_twelve_rounds
    content = json.loads(describe_session(session, ["agents"], agent=2, builds=0))
    model = load(session.source.name).build()
    model.run(12)
    expected = json.loads(model.show("agents").to_json())["data"]
    traces = content["figures"]["agents"]["data"]
    assert [trace["y"] for trace in traces] == [trace["y"] for trace in expected]


def test_speed_pauses_and_looks_change_nothing_of_what_is_played(
    session: Session, source: Source
) -> None:
    session.speed = 0
    session.play()
    wait_until(lambda: session.model.played > 40)
    describe_session(session, ["regret"], agent=1, builds=0)
    session.pause()
    n_played = session.model.played
    undisturbed = source.scenario().build()
    undisturbed.run(n_played)
    regret = session.model.agents_frame()["decision_swap_regret"]
    expected = undisturbed.agents_frame()["decision_swap_regret"]
    np.testing.assert_array_equal(regret, expected)


def test_a_paused_session_plays_nothing(session: Session) -> None:
    session.speed = 0
    session.play()
    wait_until(lambda: session.model.played > 0)
    session.pause()
    n_played = session.model.played
    time.sleep(0.2)
    assert session.model.played == n_played


def test_a_session_ends_with_the_last_round_and_says_so(session: Session) -> None:
    session.set("rounds", 3)
    session.play()
    wait_until(lambda: session.model.played == 3 and not session.playing)
    with pytest.raises(UserError, match="all 3 rounds are played"):
        session.play_one_round()


@pytest.fixture
def session_that_settles(tmp_path: Path) -> Session:
    """Return a session of two sellers whose prices settle long before the last of 400 rounds."""
    raw = {
        "name": "settling",
        "rounds": 400,
        "until": {"greedy_unchanged": 5},
        "forecaster": {"kind": "none"},
        "cohort": [
            {
                "name": "sellers",
                "count": 2,
                "utility": "linear",
                "actions": 3,
                "response": "q-learning",
            }
        ],
        "adversary": {"kind": "switching", "outcomes": 2},
    }
    return Session(Source("settling", raw, tmp_path), Saving(tmp_path))


def test_no_round_is_played_after_the_stopping_rule_has_ended_a_run(
    session_that_settles: Session,
) -> None:
    session = session_that_settles
    session.speed = 0
    session.play()
    wait_until(lambda: not session.playing)
    n_played = session.model.played
    assert n_played < 400
    reason = f"the stopping rule holds after {n_played} rounds; restart, or raise until"
    for go_on in (session.play_one_round, session.play):
        with pytest.raises(UserError, match=reason):
            go_on()
    assert session.model.played == n_played
    assert reason in json.loads(describe_session(session, [], agent=None, builds=0))["end"]


@pytest.mark.parametrize("name", list(catalogue()))
def test_every_bundled_scenario_is_played_and_shown(name: str, tmp_path: Path) -> None:
    """Also where nobody forecasts; fewer agents where bases are certified for each of them."""
    source = Source.of(name, ("rounds=4",))
    if name in {"consumers", "mixed-bazaar"}:
        for cohort in source.raw["cohort"]:
            source = source.changed(f"cohort.{cohort['name']}.count", 2)
    session = Session(source, Saving(tmp_path))
    for _ in range(3):
        session.step()
    content = json.loads(describe_session(session, ["forecast"], agent=1, builds=0))
    session.end()
    assert content["fault"] == ""
    assert content["verdict"].startswith("After 3 rounds: ")
    assert content["agent"]["number"] == 1


def test_a_market_goes_on_with_nobody_who_forecasts(
    session_that_settles: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last forecasts leave the window of the rounds that are remembered."""
    monkeypatch.setattr(course, "WINDOW_ROUNDS", 2)
    session = session_that_settles
    n_forecasts = []
    for forecaster in ("none", "running-mean", "none", "none"):
        session.replace("forecaster", forecaster)
        session.step()
        assert session.fault == ""
        n_forecasts.append(len(session.recorder.tables()["forecasts"]))
    assert n_forecasts == [0, 1, 1, 0]


def test_every_adversary_that_is_offered_takes_over(session: Session) -> None:
    """Of those of the project: other test modules register, too."""
    built_in = {*built_in_names(register.adversary)}
    for name in [name for name in session.adversaries if name in built_in]:
        session.step()
        session.replace("adversary", name)
        session.step()
        assert session.fault == "", name


def test_an_adversary_that_does_not_see_the_draw_leaves_the_guarantee(session: Session) -> None:
    promises = list(session.promises())
    session.step()
    session.replace("adversary", "anti-forecast")
    session.step()
    assert list(session.promises()) == promises


def test_every_forecaster_that_is_offered_takes_over_and_cuts_the_guarantee(
    session: Session,
) -> None:
    built_in = {*built_in_names(register.forecaster), *KINDS}
    for name in [name for name in session.forecasters if name in built_in]:
        session.replace("forecaster", name)
        session.step()
        assert session.fault == "", name
        round_of_change = session.replacements[-1][0]
        cut = f"before round {round_of_change}"
        assert any(cut in line or "drawn forecast" in line for line in session.promises()), name


def losses_after_a_takeover(kind: str, folder: Path) -> list[float]:
    """Return mean losses where decision swap takes over from this one before the first round."""
    source = Source.of("crop-choice", (*CROP_CHOICE_KEYS, f"forecaster.kind={kind}"))
    session = Session(source, Saving(folder))
    assert {"decision-swap", "calibration"} <= set(session.forecasters)
    session.replace("forecaster", "decision-swap")
    session.model.run()
    return list(session.model.agents_frame()["mean_loss"])


def test_a_forecaster_that_takes_over_has_the_models_of_the_data(tmp_path: Path) -> None:
    """Whoever was there before: also its like, which has them."""
    losses = losses_after_a_takeover("running-mean", tmp_path)
    assert losses == losses_after_a_takeover("decision-swap", tmp_path)


def test_data_keep_their_context_when_an_adversary_takes_over(tmp_path: Path) -> None:
    """And have a name, under which they come back."""
    session = Session(Source.of("crop-choice", CROP_CHOICE_KEYS), Saving(tmp_path))
    assert session.adversaries[0] == session.players["adversary"] == "data"
    session.step()
    for name in ("switching", "data"):
        session.replace("adversary", name)
        session.step()
        assert session.fault == ""
        assert session.players["adversary"] == name
    session.model.journal.flush()
    assert session.recorder.last_rounds["rounds"]["x_0"].tolist() == [1.0] * 3  # January goes on


def test_a_scenario_without_data_offers_none(tmp_path: Path) -> None:
    session = Session(Source.of("crop-choice", CROP_CHOICE_KEYS), Saving(tmp_path))
    session.load("bait")
    assert "data" not in session.adversaries


@pytest.mark.parametrize("name", ["../up", "", "a b", "x.toml", "a\x00b"])
def test_a_name_that_is_no_file_s_is_not_saved(session: Session, name: str) -> None:
    with pytest.raises(UserError, match="save as"):
        session.saving.file(session.source, name)


def test_a_scenario_is_saved_and_played_with_its_keys(session: Session, tmp_path: Path) -> None:
    session.set("rounds", 6)
    session.set("seed", 5)
    saving = session.saving
    saving.run(session.source, "mine")
    with pytest.raises(UserError, match="is being written"):
        saving.run(session.source, "other")
    wait_until(lambda: "Playing" not in saving.summary())
    assert saving.summary().endswith("makes its page")
    manifest = read_manifest(tmp_path / "runs" / "mine")
    assert manifest["status"] == "complete"
    assert manifest["rounds"] == 6
    assert manifest["seed"] == 5
    assert manifest["scenario"] == "mine"


def test_a_scenario_is_sent_to_a_study_of_forecasters(session: Session, tmp_path: Path) -> None:
    session.set("rounds", 6)
    session.saving.study(session.source, "more")
    assert session.saving.summary().endswith("--out runs/more-study")
    design = read_study(str(tmp_path / "more-study.toml"))
    kinds = [setting["forecaster.kind"] for setting in design.settings]
    assert kinds[0] == session.scenario.spec.forecaster.kind
    assert "running-mean" in kinds[1:]
    assert len(design.settings_to_check(())) == len(kinds)
    assert design.task(0).scenario().spec.rounds == 6


def test_what_is_saved_replaces_no_file(session: Session) -> None:
    session.saving.file(session.source, "mine")
    with pytest.raises(UserError, match="is there already"):
        session.saving.file(session.source, "mine")
    session.saving.study(session.source, "more")
    with pytest.raises(UserError, match="is there already"):
        session.saving.study(session.source, "more")


def test_a_saved_scenario_finds_the_data_of_its_folder(tmp_path: Path) -> None:
    """Paths that counted from the file's folder count from the new one's."""
    home = tmp_path / "home"
    away = tmp_path / "away"
    home.mkdir()
    away.mkdir()
    (home / "days.csv").write_text("rain\n" + "0.2\n0.7\n" * 5)
    raw = {
        "name": "own",
        "rounds": SMALL["rounds"],
        "cohort": SMALL["cohort"],
        "data": {"file": "days.csv", "outcomes": ["rain"]},
    }
    (home / "own.toml").write_text(tomli_w.dumps(raw))
    saved = Saving(away).file(Source.of(str(home / "own.toml")), "copy")
    assert load(str(saved)).table is not None


def test_a_saved_scenario_has_the_bundled_data_by_their_name(tmp_path: Path) -> None:
    saved = Saving(tmp_path).file(Source.of("crop-choice"), "weather")
    assert load(str(saved)).spec.data == load("crop-choice").spec.data


@pytest.fixture(scope="module")
def saved_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder to which the served page saves."""
    return tmp_path_factory.mktemp("saved")


@pytest.fixture(scope="module")
def live(saved_folder: Path) -> Iterator[Live]:
    """Serve the page of a small crop choice."""
    with live_server(Source.of("crop-choice", CROP_CHOICE_KEYS), saved_folder) as server:
        yield server


def send(live: Live, request: str, body: bytes = b"") -> tuple[int, str]:
    """Return the status and the text of the response to a whole request."""
    address = ("127.0.0.1", live.server_address[1])
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall(request.encode("latin-1") + body)
        response = HTTPResponse(connection)
        response.begin()
        return response.status, response.read().decode()


def get(live: Live, path: str, host: str = "127.0.0.1") -> tuple[int, str]:
    """Get a path, and return the status and the text."""
    return send(live, f"GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n")


def post(live: Live, path: str, body: bytes, **headers: str | None) -> tuple[int, str]:
    """Post to a path, and return the status and the text; a header that is None is left out."""
    all_headers: dict[str, str | None] = {
        "Host": "127.0.0.1",
        "Content_Type": "application/json",
        "Content_Length": str(len(body)),
    }
    all_headers |= headers
    lines = [f"POST /{path} HTTP/1.1"]
    for key, value in all_headers.items():
        if value is not None:
            lines.append(f"{key.replace('_', '-')}: {value}")
    return send(live, "\r\n".join([*lines, "", ""]), body)


def ask(live: Live, path: str, **question: Any) -> tuple[int, Any]:
    """Ask as the page does, and return the status and the answer, or the line of a refusal."""
    status, text = post(live, f"{live.token}/{path}", json.dumps(question).encode())
    return status, json.loads(text) if status == 200 else text


CHUNKED: dict[str, str | None] = {"Content_Length": None, "Transfer_Encoding": "chunked"}
BAD_REQUESTS: dict[str, tuple[int, bytes, dict[str, str | None]]] = {
    "no length": (400, b"{}", {"Content_Length": None}),
    "a negative length": (400, b"{}", {"Content_Length": "-1"}),
    "a length of thousands of digits": (400, b"", {"Content_Length": "9" * 5000}),
    "a body that is too long": (413, b"", {"Content_Length": "16001"}),
    "a body in torn chunks": (400, b"{}\r\n", CHUNKED),
    "a body in chunks that is too long": (413, b"3e81\r\n" + b"x" * 16001 + b"\r\n", CHUNKED),
    "a body that never comes": (408, b"{}", {"Content_Length": "9"}),
    "a form": (415, b"{}", {"Content_Type": "application/x-www-form-urlencoded"}),
    "nothing": (400, b"", {}),
    "a list": (400, b"[]", {}),
    "deep lists": (400, b"[" * 7000, {}),
    "no text": (400, b'{"session": "\xff"}', {}),
    "half a character": (400, b'{"session": "\\ud800"}', {}),
    "an unknown key": (400, b'{"file": "/etc/passwd"}', {}),
    "a long session": (400, b'{"session": "%b"}' % (b"x" * 5000), {}),
    "a huge number": (400, b'{"action": "set", "name": "rounds", "value": 1%b}' % (b"0" * 400), {}),
    "an infinite number": (400, b'{"action": "set", "name": "rounds", "value": 1e999}', {}),
    "figures that are none": (400, b'{"figures": {"regret": 1}}', {}),
    "another host": (400, b"{}", {"Host": "evil.example"}),
    "a host that is none": (400, b"{}", {"Host": "[:"}),
    "no host": (400, b"{}", {"Host": None}),
    "a page of another site": (403, b"{}", {"Origin": "https://evil.example"}),
}


PATHS = ["open", "state", "do"]
BAD_REQUESTS_IN_TURN = list(zip(BAD_REQUESTS, cycle(PATHS), strict=False))


@pytest.mark.parametrize(("name", "path"), BAD_REQUESTS_IN_TURN)
def test_a_bad_request_is_refused_in_a_line(
    live: Live,
    name: str,
    path: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected_status, body, headers = BAD_REQUESTS[name]
    if expected_status == 408:
        monkeypatch.setattr(server, "BODY_TIMEOUT_SECONDS", 0.2)
    status, line = post(live, f"{live.token}/{path}", body, **headers)
    assert status == expected_status, line
    assert line.count("\n") <= 1  # refusals by Uvicorn and TrustedHost have no line's end
    assert len(line) < 300
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("path", ["", *PATHS])
@pytest.mark.parametrize(
    ("prefix", "expected_status"),
    [("", 403), ("SHORTER_TOKEN/", 403), ("\xff/", 400)],  # 400: not a path of HTTP
)
def test_whoever_lacks_the_token_gets_nothing(
    live: Live, prefix: str, expected_status: int, path: str
) -> None:
    prefix = prefix.replace("SHORTER_TOKEN", live.token[:-1])
    sessions_before = set(live.sessions)
    for status, line in (post(live, prefix + path, b"{}"), get(live, prefix + path)):
        assert status == expected_status
        assert line.count("\n") <= 1
        assert live.token not in line
    assert set(live.sessions) == sessions_before


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "localhost:80", "127.0.0.1:8642"])
def test_the_page_is_there_at_every_port(live: Live, host: str) -> None:
    """Browsers leave port 80 out of Host and Origin, and write names in small letters."""
    status, page = get(live, f"{live.token}/", host)
    assert status == 200
    assert live.token not in page
    assert "connect-src 'self'" in page
    status, _ = post(live, f"{live.token}/open", b"{}", Host=host, Origin=f"http://{host}")
    assert status == 200


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        ("GET //{token}/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 403),
        ("GET /{token} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 403),
        ("GET /{token}/ HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: 127.0.0.1\r\n\r\n", 400),
        ("GET /{token}/ HTTP/1.0\r\n\r\n", 400),
        ("GET /{token}/\r\n\r\n", 400),
    ],
    ids=["two slashes", "no slash", "two hosts", "no host", "a bare request line"],
)
def test_a_request_that_no_browser_sends_is_refused(
    live: Live, request_head: str, status: int
) -> None:
    assert send(live, request_head.replace("{token}", live.token))[0] == status


@pytest.mark.parametrize("path", ["TOKEN/", "wrong/"])
def test_every_response_forbids_what_browsers_may_do_with_it(live: Live, path: str) -> None:
    path = path.replace("TOKEN", live.token)
    with socket.create_connection(live.server_address, timeout=30) as connection:
        connection.sendall(f"GET /{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        response = HTTPResponse(connection)
        response.begin()
        for name, value in server.HEADERS.items():
            assert response.getheader(name) == value


def test_a_client_that_sends_the_head_slowly_is_cut_off(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    connection = socket.create_connection(live.server_address, timeout=30)
    with connection, pytest.raises(OSError):  # noqa: PT011, PT012 - a broken pipe or a reset
        for letter in cycle(b"GET"):
            connection.sendall(bytes([letter]))
            time.sleep(0.02)


def test_a_client_that_does_not_read_the_page_is_cut_off(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "READING_SECONDS", 0.3)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(live.server_address)
        connection.sendall(f"GET /{live.token}/ HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        time.sleep(1.5)
        received = 0
        with suppress(ConnectionResetError):
            while part := connection.recv(65536):
                received += len(part)
    assert received < len(live.page)


def test_the_browser_is_given_a_file_of_this_user_and_not_the_address(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(browser.webbrowser, "open", opened.append)
    with browser.opened_in_browser(live.address):
        (address,) = opened
        file = Path(url2pathname(urlsplit(address).path))
        assert live.address in file.read_text(encoding="utf-8")
        assert file.stat().st_mode & 0o077 == 0
        assert file.parent.stat().st_mode & 0o077 == 0
    assert live.token not in address
    assert not file.parent.exists()


def test_without_the_extra_the_command_says_what_to_install(
    refusal_of: RefusalOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert refusal_of("dashboard").endswith("run pip install 'regretless[live]'")


def test_what_there_is_not_is_not_found(live: Live) -> None:
    assert get(live, f"{live.token}/other")[0] == 405
    assert ask(live, "other")[0] == 404
    assert send(live, f"PUT /{live.token}/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")[0] == 405


def test_an_unknown_action_is_refused(live: Live) -> None:
    name = ask(live, "open")[1]["session"]
    assert ask(live, "do", session=name, action="nothing")[0] == 400


def test_the_state_of_a_session_that_is_gone_says_that_it_was_ended(live: Live) -> None:
    assert "was ended" in ask(live, "state", session="gone")[1]["error"]


def test_figures_and_agents_that_are_not_there_are_left_out_of_the_state(live: Live) -> None:
    name = ask(live, "open")[1]["session"]
    status, _ = ask(live, "state", session=name, agent=-1, builds=-1, figures=["nothing"])
    assert status == 200


LONG = "x" * 900
FILE_OF_ANOTHER = "theirs.toml"  # in the folder to which the page saves
UNMET_QUESTIONS: list[tuple[dict[str, Any], str]] = [
    ({"action": "speed", "value": 3}, "speed 3"),
    ({"action": "set", "name": "rounds"}, "no value; give"),
    ({"action": "set", "name": "rounds", "value": 1e300}, "rounds"),
    ({"action": "set", "name": "rounds", "value": 2.5}, "rounds = 2.5"),
    ({"action": "set", "name": "seed", "value": -1}, "seed = -1"),
    ({"action": "set", "name": LONG, "value": 1}, "no numeric key"),
    ({"action": "set", "name": "cohort.growers.count", "value": -1}, "cohort.growers.count"),
    ({"action": "set", "name": "cohort.growers.nope", "value": 3}, "cohort.growers.nope"),
    ({"action": "load", "name": LONG}, "unknown scenario"),
    ({"action": "load", "name": FILE_OF_ANOTHER}, "unknown scenario"),
    ({"action": "replace", "role": "adversary", "name": "nobody"}, "nobody"),
    ({"action": "replace", "role": "forecaster", "name": LONG}, "xxx"),
    (
        {"action": "replace", "role": LONG, "name": "anti-forecast"},
        "choose forecaster or adversary",
    ),
    ({"action": "save", "way": "file", "name": LONG}, "save as"),
    ({"action": "save", "way": "file", "name": "../up"}, "save as"),
    ({"action": "save", "way": LONG, "name": "mine"}, "choose one of file"),
]


@pytest.mark.parametrize(("question", "words"), UNMET_QUESTIONS)
def test_a_question_that_is_not_met_leaves_the_market_and_says_why(
    live: Live, saved_folder: Path, question: dict[str, Any], words: str
) -> None:
    name = ask(live, "open")[1]["session"]
    session = live.find(name)
    session.step()
    model = session.model
    file = saved_folder / FILE_OF_ANOTHER
    file.write_text('name = "theirs"')
    if question.get("name") == FILE_OF_ANOTHER:
        question = question | {"name": str(file)}
    status, content = ask(live, "do", session=name, **question)
    assert status == 200
    assert words in content["error"]
    assert "\n" not in content["error"]
    assert len(content["error"]) < 1300
    assert list(saved_folder.iterdir()) == [file]
    assert session.model is model
    assert model.played == 1


def test_a_key_that_is_set_begins_a_new_market(live: Live) -> None:
    name = ask(live, "open")[1]["session"]
    session = live.find(name)
    session.step()
    ask(live, "do", session=name, action="set", name="cohort.growers.count", value=7)
    assert len(session.model.agents) == 7
    assert session.model.played == 0


def test_the_command_prints_the_address_with_a_token_of_its_own(tmp_path: Path, live: Live) -> None:
    command = [sys.executable, "-m", "regretless", "dashboard", "--no-browser", "--port", "0"]
    for assignment in CROP_CHOICE_KEYS:
        command += ["--set", assignment]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = re.search(r"http://127\.0\.0\.1:\d+/([\w-]{30,})/", process.stdout.readline())
            page = urlopen(address[0], timeout=60).read()  # noqa: S310 - http
            assert b"regretless" in page
            assert address[1] != live.token
        finally:
            process.terminate()


JSON = {"Content-Type": "application/json"}
ENDLESS_AGENT = """
from regretless import ScriptedAgent, register


@register.agent("endless")
class Endless(ScriptedAgent):
    def act(self, forecast, context):
        while True:
            pass
"""


def slow_and_endless_requests(address: str, token: str) -> list[bytes]:
    """Return half of a head, half of a body, and a whole request for a round that never ends."""
    question = Request(f"{address}open", b"{}", JSON)  # noqa: S310 - http
    session = json.load(urlopen(question, timeout=60))["session"]  # noqa: S310 - http
    step = json.dumps({"session": session, "action": "step"}).encode()
    head = (
        f"POST /{token}/do HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    ).encode()
    return [
        b"GET /",
        head + b"Content-Length: 90\r\n\r\n{",
        head + b"Content-Length: %d\r\n\r\n%b" % (len(step), step),
    ]


def test_ctrl_c_ends_the_page_though_clients_are_slow_and_a_round_never_ends(
    tmp_path: Path,
) -> None:
    """The slow ones send half of a head or of a body; the round is one of a user's own agent."""
    (tmp_path / "mine.py").write_text(ENDLESS_AGENT)
    endless_cohort = SMALL["cohort"][0] | {"response": "endless"}
    (tmp_path / "small.toml").write_text(tomli_w.dumps(SMALL | {"cohort": [endless_cohort]}))
    command = [sys.executable, "-m", "regretless", "dashboard", "small.toml", "--import", "mine"]
    command += ["--no-browser", "--port", "0"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, **pipes) as process, ExitStack() as connections:
        address = re.search(r"http://127\.0\.0\.1:(\d+)/([\w-]+)/", process.stdout.readline())
        for request in slow_and_endless_requests(address[0], address[2]):
            connection = socket.create_connection(("127.0.0.1", int(address[1])), timeout=30)
            connections.enter_context(connection)
            connection.sendall(request)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        output, complaint = process.communicate(timeout=30)
    assert (process.returncode, output, complaint) == (0, "Ended.\n", "")


def test_a_run_that_is_saved_imports_no_module_of_the_folder(
    session: Session, tmp_path: Path
) -> None:
    (tmp_path / "typer.py").write_text("open('executed', 'w').close()")
    session.set("rounds", 3)
    session.saving.run(session.source, "mine")
    wait_until(lambda: "Playing" not in session.saving.summary())
    assert read_manifest(tmp_path / "runs" / "mine")["status"] == "complete"
    assert not (tmp_path / "executed").exists()


def test_viewers_have_markets_of_their_own(live: Live) -> None:
    first = live.open("")
    second = live.open("")
    live.find(first).step()
    assert live.open(first) == first
    assert live.find(second).model.played == 0


def test_the_longest_idle_viewer_goes_first(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_SESSIONS", 2)
    first = live.open("")
    second = live.open("")
    live.find(first)
    third = live.open("")
    assert set(live.sessions) == {first, third}
    with pytest.raises(UserError, match="was ended"):
        live.find(second)


def test_a_port_that_is_taken_is_a_line(live: Live, refusal_of: RefusalOf) -> None:
    port = live.server_address[1]
    line = refusal_of("dashboard", "--no-browser", "--port", port)
    assert line == f"--port {port}: Address already in use; give another one"
