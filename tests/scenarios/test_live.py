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
from regretless.scenarios.live import browser, connections, server
from regretless.scenarios.live import session as sessions
from regretless.scenarios.live.server import Live, answer
from regretless.scenarios.live.session import Session
from regretless.scenarios.live.source import Saving, Source, numeric_keys
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
SIZES = ("cohort.growers.count=3", "rounds=40")


@pytest.fixture
def source(tmp_path: Path) -> Source:
    (tmp_path / "small.toml").write_text(tomli_w.dumps(SMALL), encoding="utf-8")
    return Source.of(str(tmp_path / "small.toml"))


@pytest.fixture
def session(source: Source, tmp_path: Path) -> Session:
    return Session(source, Saving(tmp_path))


def until(done: Callable[[], bool]) -> None:
    ends = time.monotonic() + 60
    while not done():
        assert time.monotonic() < ends
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
        again = source.changed(key.name, key.value)
        same = resolved(validated(again.raw, origin=again.origin))
        assert same | {"description": spec.description} == resolved(spec)  # of the file as it stood


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


def test_a_watched_market_is_remembered_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times as many rounds take no more memory, and no decision is lost when points go."""
    monkeypatch.setattr(sessions, "POINTS", 10)
    monkeypatch.setattr(sessions, "WINDOW", 25)
    small = SMALL | {"rounds": 160, "forecaster": {"kind": "constant"}}
    model, held = Source("small", small, Path()).scenario().build(), []
    model.tracker, seen = None, sessions.Watched(model)
    tracemalloc.start()
    while model.played < 160:
        model.step()
        seen.note()
        if model.played in {40, 160}:
            seen.tables()
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert held[1] < held[0] + 50_000
    assert (len(seen.points), seen.stride) == (5, 32)
    tables = seen.tables()
    assert tables["actions"]["value"].sum() == 160 * 8
    assert len(tables["rounds"]) == 25
    curves, agents = tables["regret_curves"].loc["calm"], model.agents_frame()
    assert curves.index[-1] == 159  # the last round is there, whatever the stride
    calm = agents.loc[agents["cohort"] == "calm", "decision_swap_regret"]
    assert (curves["max"].iloc[-1], curves["mean"].iloc[-1]) == (calm.max(), calm.mean())


def test_what_is_shown_is_what_was_lost_in_the_reports_own_figures(session: Session) -> None:
    for _ in range(12):
        session.step()
    course = session.watched.tables()["course"]
    end = course[(course["round"] == 11) & (course["kind"] == "broadcast")]
    agents = session.model.agents_frame()
    mean = agents.groupby("cohort")["mean_loss"].mean().to_dict()
    mean["everybody"] = agents["mean_loss"].mean()
    assert dict(zip(end["cohort"], end["mean_loss"], strict=True)) == pytest.approx(mean)
    last = session.watched.path(3)["loss"].iloc[-1]
    assert last == pytest.approx(agents["mean_loss"].iloc[2], abs=1e-6)
    told = json.loads(answer(session, ["regret", "agents", "loss", "actions"], 2, 0))
    assert set(told["figures"]) == {"regret", "agents", "loss", "actions"}
    assert told["build"]["agents"] == 8
    assert told["verdict"].startswith("After 12 rounds: 4 crowd followed the forecast.")
    assert told["agent"]["lines"][0] == "cohort crowd"
    assert sum(int(row[1].replace(",", "")) for row in told["agent"]["swaps"]) == 12
    shown = load(session.source.name).build()
    shown.run(12)
    drawn = json.loads(shown.show("agents").to_json())["data"]
    assert [trace["y"] for trace in told["figures"]["agents"]["data"]] == [t["y"] for t in drawn]


def test_a_session_plays_what_a_model_plays_to_its_end(session: Session, source: Source) -> None:
    """Speed, pauses and looks change nothing of what is played."""
    session.speed = 0
    session.play()
    until(lambda: session.model.played > 40)
    answer(session, ["regret"], 1, 0)
    session.pause()
    played = session.model.played
    time.sleep(0.2)
    assert session.model.played == played
    alone = source.scenario().build()
    alone.run(played)
    ours = session.model.agents_frame()["decision_swap_regret"]
    np.testing.assert_array_equal(ours, alone.agents_frame()["decision_swap_regret"])
    session.set("rounds", 3)
    session.play()
    until(lambda: session.model.played == 3 and not session.playing)
    with pytest.raises(UserError, match="all 3 rounds are played"):
        session.play(once=True)


def test_every_player_that_is_offered_takes_over(session: Session) -> None:
    """A forecaster cuts the guarantee, an adversary only if it sees the draw."""
    promised = list(session.promises())
    own = {*built_in_names(register.adversary), *built_in_names(register.forecaster), *KINDS}
    for name in filter(own.__contains__, session.rivals):  # other test modules register, too
        session.step()
        session.replace("adversary", name)
        session.step()
        assert session.fault == ""
        if name == "anti-forecast":
            assert list(session.promises()) == promised
    for name in filter(own.__contains__, session.forecasters):
        session.replace("forecaster", name)
        session.step()
        assert session.fault == ""
        last = f"before round {session.replaced[-1][0]}"
        assert any(last in line or "drawn forecast" in line for line in session.promises())


def test_a_forecaster_that_takes_over_has_the_models_of_the_data(tmp_path: Path) -> None:
    """It plays as in a scenario that names it, if it takes over before the first round."""
    losses = []
    for kind in ("running-mean", "decision-swap"):
        source = Source.of("crop-choice", (*SIZES, f"forecaster.kind={kind}"))
        session = Session(source, Saving(tmp_path))
        assert {"decision-swap", "calibration"} <= set(session.forecasters)
        session.replace("forecaster", "decision-swap")
        session.model.run()
        losses.append(session.model.agents_frame()["mean_loss"].tolist())
    assert losses[0] == losses[1]


def test_data_keep_their_context_when_an_adversary_takes_over(tmp_path: Path) -> None:
    """And have a name, under which they come back."""
    session = Session(Source.of("crop-choice", SIZES), Saving(tmp_path))
    assert session.rivals[0] == session.named["adversary"] == "data"
    session.step()
    for name in ("switching", "data"):
        session.replace("adversary", name)
        session.step()
        assert (session.fault, session.named["adversary"]) == ("", name)
    session.model.journal.flush()
    assert session.watched.window["rounds"]["x_0"].tolist() == [1.0] * 3  # January goes on
    session.load("bait")
    assert "data" not in session.rivals


def test_a_scenario_is_saved_and_played_and_sent_to_a_study(
    session: Session, tmp_path: Path
) -> None:
    session.set("rounds", 6)
    session.set("seed", 5)
    saving, source = session.saving, session.source
    for name in ("../up", "", "a b", "x.toml", "a\x00b"):
        with pytest.raises(UserError, match="save as"):
            saving.file(source, name)
    saving.run(source, "mine")
    with pytest.raises(UserError, match="is being written"):
        saving.run(source, "other")
    until(lambda: "Playing" not in saving.summary())
    assert saving.summary().endswith("makes its page")
    told = read_manifest(tmp_path / "runs" / "mine")
    found = [told[key] for key in ("status", "rounds", "seed", "scenario")]
    assert found == ["complete", 6, 5, "mine"]
    saving.study(source, "more")
    assert saving.summary().endswith("--out runs/more-study")
    design = read_study(str(tmp_path / "more-study.toml"))
    kinds = [setting["forecaster.kind"] for setting in design.settings]
    assert kinds[0] == session.scenario.spec.forecaster.kind
    assert "running-mean" in kinds[1:]
    assert len(design.settings_to_check(())) == len(kinds)
    assert design.task(0).scenario().spec.rounds == 6
    for save, name in ((saving.file, "mine"), (saving.study, "more")):
        with pytest.raises(UserError, match="is there already"):
            save(source, name)


def test_a_saved_scenario_finds_its_data(tmp_path: Path) -> None:
    """Paths that counted from the file's folder count from the new one's."""
    home, away = tmp_path / "home", tmp_path / "away"
    home.mkdir()
    away.mkdir()
    (home / "days.csv").write_text("rain\n" + "0.2\n0.7\n" * 5)
    raw = {key: SMALL[key] for key in ("rounds", "cohort")} | {"name": "own"}
    raw["data"] = {"file": "days.csv", "outcomes": ["rain"]}
    (home / "own.toml").write_text(tomli_w.dumps(raw))
    saved = Saving(away).file(Source.of(str(home / "own.toml")), "copy")
    assert load(str(saved)).table is not None
    bundled = Saving(away).file(Source.of("crop-choice"), "weather")
    assert load(str(bundled)).spec.data == load("crop-choice").spec.data


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("saved")


@pytest.fixture(scope="module")
def live(folder: Path) -> Iterator[Live]:
    with live_server(Source.of("crop-choice", SIZES), folder) as made:
        yield made


def send(live: Live, request: str, body: bytes = b"") -> tuple[int, str]:
    """Return the status and the text of the response to a whole request."""
    with socket.create_connection(("127.0.0.1", live.server_address[1]), timeout=30) as wire:
        wire.sendall(request.encode("latin-1") + body)
        told = HTTPResponse(wire)
        told.begin()
        return told.status, told.read().decode()


def get(live: Live, path: str, host: str = "127.0.0.1") -> tuple[int, str]:
    return send(live, f"GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n")


def post(live: Live, path: str, body: bytes, **headers: str | None) -> tuple[int, str]:
    """Post to a path; a header that is None is left out."""
    given = {"Host": "127.0.0.1", "Content_Type": "application/json"}
    whole = given | {"Content_Length": str(len(body))} | headers
    head = [f"{key.replace('_', '-')}: {told}" for key, told in whole.items() if told is not None]
    return send(live, "\r\n".join([f"POST /{path} HTTP/1.1", *head, "", ""]), body)


def ask(live: Live, path: str, **asked: Any) -> tuple[int, Any]:
    status, text = post(live, f"{live.token}/{path}", json.dumps(asked).encode())
    return status, json.loads(text) if status == 200 else text


CHUNKED: dict[str, str | None] = {"Content_Length": None, "Transfer_Encoding": "chunked"}
BAD: dict[str, tuple[int, bytes, dict[str, str | None]]] = {
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


@pytest.mark.parametrize(
    ("bad", "path"), list(zip(BAD, cycle(["open", "state", "do"]), strict=False))
)
def test_a_bad_request_is_refused_in_a_line(
    live: Live, bad: str, path: str, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, body, headers = BAD[bad]
    if status == 408:
        monkeypatch.setattr(server, "PATIENCE", 0.2)
    told, line = post(live, f"{live.token}/{path}", body, **headers)
    assert told == status, line
    assert line.count("\n") <= 1  # refusals by Uvicorn and TrustedHost have no line's end
    assert len(line) < 300
    assert capfd.readouterr() == ("", "")


def test_whoever_lacks_the_token_gets_nothing(live: Live) -> None:
    before, starts = set(live.sessions), ("", f"{live.token[:-1]}/", "\xff/")
    for wrong in (start + path for start in starts for path in ("", "open", "state", "do")):
        for status, line in (post(live, wrong, b"{}"), get(live, wrong)):
            assert status == (400 if "\xff" in wrong else 403)  # 400: not a path of HTTP
            assert line.count("\n") <= 1
            assert live.token not in line
    assert set(live.sessions) == before


def test_the_page_is_there_at_every_port(live: Live) -> None:
    """Browsers leave port 80 out of Host and Origin, and write names in small letters."""
    for host in ("127.0.0.1", "localhost", "localhost:80", "127.0.0.1:8642"):
        status, page = get(live, f"{live.token}/", host)
        assert (status, live.token in page) == (200, False)
        assert "connect-src 'self'" in page
        own = {"Host": host, "Origin": f"http://{host}"}
        assert post(live, f"{live.token}/open", b"{}", **own)[0] == 200


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


def test_every_response_forbids_what_browsers_may_do_with_it(live: Live) -> None:
    for path in (f"{live.token}/", "wrong/"):
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
    name = ask(live, "open")[1]["session"]
    assert ask(live, "do", session=name, action="nothing")[0] == 400
    assert send(live, f"PUT /{live.token}/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")[0] == 405
    assert "was ended" in ask(live, "state", session="gone")[1]["error"]
    assert ask(live, "state", session=name, agent=-1, builds=-1, figures=["nothing"])[0] == 200


FAR = "x" * 900
UNMET: list[tuple[dict[str, Any], str]] = [
    ({"action": "speed", "value": 3}, "speed 3"),
    ({"action": "set", "name": "rounds"}, "no value; give"),
    ({"action": "set", "name": "rounds", "value": 1e300}, "rounds"),
    ({"action": "set", "name": "rounds", "value": 2.5}, "rounds = 2.5"),
    ({"action": "set", "name": "seed", "value": -1}, "seed = -1"),
    ({"action": "set", "name": FAR, "value": 1}, "no numeric key"),
    ({"action": "set", "name": "cohort.growers.count", "value": -1}, "cohort.growers.count"),
    ({"action": "set", "name": "cohort.growers.nope", "value": 3}, "cohort.growers.nope"),
    ({"action": "load", "name": FAR}, "unknown scenario"),
    ({"action": "load", "name": "THEIRS"}, "unknown scenario"),
    ({"action": "replace", "role": "adversary", "name": "nobody"}, "nobody"),
    ({"action": "replace", "role": "forecaster", "name": FAR}, "xxx"),
    ({"action": "replace", "role": FAR, "name": "anti-forecast"}, "choose forecaster or adversary"),
    ({"action": "save", "way": "file", "name": FAR}, "save as"),
    ({"action": "save", "way": "file", "name": "../up"}, "save as"),
    ({"action": "save", "way": FAR, "name": "mine"}, "choose one of file"),
]


def test_a_question_that_is_not_met_leaves_the_market_and_says_why(
    live: Live, folder: Path
) -> None:
    name = ask(live, "open")[1]["session"]
    session = live.find(name)
    session.step()
    model, theirs = session.model, folder / "theirs.toml"
    theirs.write_text('name = "theirs"')
    for asked, said in UNMET:
        if asked.get("name") == "THEIRS":
            asked["name"] = str(theirs)
        status, told = ask(live, "do", session=name, **asked)
        assert status == 200
        assert said in told["error"]
        assert "\n" not in told["error"]
        assert len(told["error"]) < 1300
    assert list(folder.iterdir()) == [theirs]
    assert (session.model is model, model.played) == (True, 1)
    ask(live, "do", session=name, action="set", name="cohort.growers.count", value=7)
    assert (len(session.model.agents), session.model.played) == (7, 0)


def test_the_command_prints_the_address_with_a_token_of_its_own(tmp_path: Path, live: Live) -> None:
    words = [sys.executable, "-m", "regretless", "dashboard", "--no-browser", "--port", "0"]
    words += [word for size in SIZES for word in ("--set", size)]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as served:
        try:
            found = re.search(r"http://127\.0\.0\.1:\d+/([\w-]{30,})/", served.stdout.readline())
            assert b"regretless" in urlopen(found[0], timeout=60).read()  # noqa: S310 - http
            assert found[1] != live.token
        finally:
            served.terminate()


def test_ctrl_c_ends_the_page_though_clients_are_slow_and_a_round_never_ends(
    tmp_path: Path,
) -> None:
    """The slow ones send half of a head or of a body; the round is one of a user's own agent."""
    (tmp_path / "mine.py").write_text(ENDLESS_AGENT)
    (tmp_path / "small.toml").write_text(
        tomli_w.dumps(SMALL | {"cohort": [{**SMALL["cohort"][0], "response": "endless"}]})
    )
    command = [sys.executable, "-m", "regretless", "dashboard", "small.toml", "--import", "mine"]
    command += ["--no-browser", "--port", "0"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, **pipes) as process, ExitStack() as connections:
        address = re.search(r"http://127\.0\.0\.1:(\d+)/([\w-]+)/", process.stdout.readline())
        port, token = int(address[1]), address[2]
        question = Request(f"{address[0]}open", b"{}", JSON)  # noqa: S310 - http
        answer = urlopen(question, timeout=60)  # noqa: S310 - http
        session = json.load(answer)["session"]
        step = json.dumps({"session": session, "action": "step"}).encode()
        head = f"POST /{token}/do HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        for sent in (
            b"GET /",
            head.encode() + b"Content-Length: 90\r\n\r\n{",
            head.encode() + b"Content-Length: %d\r\n\r\n%b" % (len(step), step),
        ):
            connection = socket.create_connection(("127.0.0.1", port), timeout=30)
            connections.enter_context(connection)
            connection.sendall(sent)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        output, complaint = process.communicate(timeout=30)
    assert (process.returncode, output, complaint) == (0, "Ended.\n", "")


JSON = {"Content-Type": "application/json"}
ENDLESS_AGENT = """
from regretless import ScriptedAgent, register


@register.agent("endless")
class Endless(ScriptedAgent):
    def act(self, forecast, context):
        while True:
            pass
"""


def test_a_run_that_is_saved_imports_no_module_of_the_folder(
    session: Session, tmp_path: Path
) -> None:
    (tmp_path / "typer.py").write_text("open('executed', 'w').close()")
    session.set("rounds", 3)
    session.saving.run(session.source, "mine")
    until(lambda: "Playing" not in session.saving.summary())
    assert read_manifest(tmp_path / "runs" / "mine")["status"] == "complete"
    assert not (tmp_path / "executed").exists()


def test_the_longest_idle_viewer_goes_first(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST", 2)
    first, second = live.open(""), live.open("")
    assert live.open(first) == first
    live.find(first).step()
    assert live.find(second).model.played == 0  # each has a market of its own
    live.find(first)
    third = live.open("")
    assert set(live.sessions) == {first, third}
    with pytest.raises(UserError, match="was ended"):
        live.find(second)


def test_a_port_that_is_taken_is_a_line(live: Live, refusal_of: RefusalOf) -> None:
    port = live.server_address[1]
    line = refusal_of("dashboard", "--no-browser", "--port", port)
    assert line == f"--port {port}: Address already in use; give another one"
