"""The live page's server refuses bad requests and whoever lacks its token, in one line each."""

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPResponse
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from desk import Call
from served import serving

from regretless.scenarios.live.server import Handler, Live
from regretless.scenarios.live.source import Source

DEEP = b"[" * 7000
LONG = b"x" * 5000
HUGE = b"1" + b"0" * 400
SIZES = ("cohort.growers.count=3", "rounds=40")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("saved")


@pytest.fixture(scope="module")
def live(folder: Path) -> Iterator[Live]:
    with serving(Source.of("crop-choice", SIZES), folder) as made:
        yield made


class Asker:
    """Sends requests, byte by byte as they are given, to the server at an address."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self.host, self.port, self.home = parts.hostname or "", parts.port or 80, parts.path

    def raw(self, request: bytes) -> tuple[int, str]:
        """Return the status and the text of the response to a whole request."""
        with socket.create_connection((self.host, self.port), timeout=30) as wire:
            wire.sendall(request)
            told = HTTPResponse(wire)
            told.begin()
            return told.status, told.read().decode()

    def post(self, path: str, body: bytes, **headers: str | None) -> tuple[int, str]:
        """Post to a whole path; a header that is None is left out."""
        given: dict[str, str | None] = {"Host": f"{self.host}:{self.port}"}
        given |= {"Content_Type": "application/json", "Content_Length": str(len(body))} | headers
        head = [f"{name.replace('_', '-')}: {told}" for name, told in given.items() if told]
        lines = "\r\n".join([f"POST {path} HTTP/1.1", *head, "", ""])
        return self.raw(lines.encode("latin-1") + body)

    def get(self, path: str, host: str | None = None) -> tuple[int, str]:
        name = host or f"{self.host}:{self.port}"
        return self.raw(f"GET {path} HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())

    def ask(self, path: str, **asked: Any) -> tuple[int, Any]:
        status, text = self.post(self.home + path, json.dumps(asked).encode())
        return status, json.loads(text) if status == 200 else text


@pytest.fixture
def asker(live: Live) -> Asker:
    return Asker(live.address)


BAD: dict[str, tuple[int, bytes, dict[str, str | None]]] = {
    "no length": (411, b"{}", {"Content_Length": None}),
    "a negative length": (400, b"{}", {"Content_Length": "-1"}),
    "a length of thousands of digits": (413, b"", {"Content_Length": "9" * 5000}),
    "a body that is too long": (413, b"", {"Content_Length": "16001"}),
    "a body in chunks": (411, b"", {"Content_Length": None, "Transfer_Encoding": "chunked"}),
    "a body that never comes": (408, b"{}", {"Content_Length": "9"}),
    "a form": (415, b"{}", {"Content_Type": "application/x-www-form-urlencoded"}),
    "nothing": (400, b"", {}),
    "a list": (400, b"[]", {}),
    "deep lists": (400, DEEP, {}),
    "no text": (400, b'{"session": "\xff"}', {}),
    "half a character": (400, b'{"session": "\\ud800"}', {}),
    "an unknown key": (400, b'{"file": "/etc/passwd"}', {}),
    "a long session": (400, b'{"session": "' + LONG + b'"}', {}),
    "a huge number": (400, b'{"action": "set", "name": "rounds", "value": ' + HUGE + b"}", {}),
    "an infinite number": (400, b'{"action": "set", "name": "rounds", "value": 1e999}', {}),
    "figures that are none": (400, b'{"figures": {"regret": 1}}', {}),
    "another host": (403, b"{}", {"Host": "evil.example"}),
    "a host that is none": (403, b"{}", {"Host": "[:"}),
    "no host": (403, b"{}", {"Host": None}),
    "a page of another site": (403, b"{}", {"Origin": "https://evil.example"}),
}


@pytest.mark.parametrize(
    ("bad", "path"), list(zip(BAD, cycle(["open", "state", "do"]), strict=False))
)
def test_a_bad_request_is_refused_in_a_line(
    asker: Asker, bad: str, path: str, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, body, headers = BAD[bad]
    if status == 408:
        monkeypatch.setattr(Handler, "timeout", 0.2)
    told, line = asker.post(asker.home + path, body, **headers)
    assert told == status, line
    assert line.count("\n") == 1
    assert len(line) < 300
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("start", ["/", "/TOKE/", "/\xff/"])
def test_whoever_lacks_the_token_gets_nothing(asker: Asker, live: Live, start: str) -> None:
    before = set(live.sessions)
    for path in ("", "open", "state", "do"):
        wrong = start.replace("TOKE", asker.home.strip("/")[:-1]) + path
        for status, line in (asker.post(wrong, b"{}"), asker.get(wrong)):
            assert status == 403
            assert line.count("\n") == 1
            assert asker.home.strip("/") not in line
    assert set(live.sessions) == before


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:80", "127.0.0.1:8642"])
def test_the_page_is_there_at_every_port(asker: Asker, host: str) -> None:
    """Browsers leave port 80 out of Host and Origin."""
    status, page = asker.get(asker.home, host)
    assert status == 200
    assert "connect-src 'self'" in page
    assert asker.home.strip("/") not in page
    assert asker.post(asker.home + "open", b"{}", Host=host, Origin=f"http://{host}")[0] == 200


def test_what_there_is_not_is_not_found(asker: Asker) -> None:
    assert asker.get(f"{asker.home}other")[0] == 404
    assert asker.ask("other")[0] == 404
    name = asker.ask("open")[1]["session"]
    assert asker.ask("do", session=name, action="nothing")[0] == 400
    assert asker.raw(b"PUT / HTTP/1.1\r\n\r\n")[0] == 501


def test_a_question_that_is_not_met_is_an_error_in_its_answer(asker: Asker, folder: Path) -> None:
    name = asker.ask("open")[1]["session"]
    (folder / "theirs.toml").write_text('name = "theirs"')
    for asked in (
        {"action": "speed", "value": 3},
        {"action": "set", "name": "rounds"},
        {"action": "set", "name": "rounds", "value": 1e300},
        {"action": "set", "name": "rounds", "value": 2.5},
        {"action": "set", "name": "seed", "value": -1},
        {"action": "set", "name": "x" * 900, "value": 1},
        {"action": "load", "name": "x" * 900},
        {"action": "load", "name": str(folder / "theirs.toml")},
        {"action": "replace", "role": "forecaster", "name": "x" * 900},
        {"action": "replace", "role": "x" * 900, "name": "anti-forecast"},
        {"action": "save", "way": "file", "name": "x" * 900},
        {"action": "save", "way": "file", "name": "../up"},
        {"action": "save", "way": "file", "name": "a\x00b"},
        {"action": "save", "way": "x" * 900, "name": "mine"},
    ):
        status, told = asker.ask("do", session=name, **asked)
        assert status == 200
        assert "\n" not in told["error"]
        assert len(told["error"]) < 1300
    assert [path.name for path in folder.iterdir()] == ["theirs.toml"]
    assert "was ended" in asker.ask("state", session="gone")[1]["error"]
    assert asker.ask("state", session=name, agent=-1, builds=-1, figures=["nothing"])[0] == 200


def test_the_page_is_told_who_plays(asker: Asker) -> None:
    """The menus offer who plays first, before a change and after it; the data have a name there."""
    state = asker.ask("open")[1]
    name = state["session"]
    trials = ("forecaster", "running-mean", "decision-swap"), ("adversary", "anti-forecast", "data")
    menus = {"forecaster": "forecasters", "adversary": "adversaries"}
    for role, other, own in trials:
        state = asker.ask("state", session=name)[1]
        assert state["named"][role] == state["build"][menus[role]][0] == own
        for player in (other, own):
            state = asker.ask("do", session=name, action="replace", role=role, name=player)[1]
            assert state["named"][role] == player
            assert asker.ask("do", session=name, action="step")[1]["fault"] == ""
    state = asker.ask("do", session=name, action="load", name="bait")[1]
    assert state["named"]["adversary"] in state["build"]["adversaries"]
    assert state["named"]["adversary"] != "data"


def test_numbers_that_stand_for_words_have_no_slider(tmp_path: Path, call: Call) -> None:
    days = ["Mon", "Tue", "Wed"]
    rows = [f"{days[i % 3]},{i * 0.37 % 1:.3f}" for i in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(["day,sold", *rows, ""]))
    assert call("describe", tmp_path / "a.csv", "--out", tmp_path / "own.toml").status == 0
    with Live(Source.of(str(tmp_path / "own.toml")), tmp_path, 0) as made:
        names = {key.name for key in made.find(made.open("")).keys}
    assert "cohort.planners.count" in names
    assert not any(name.startswith(("data.codes", "policy.rule")) for name in names)


def test_the_command_prints_the_address_with_a_token_of_its_own(tmp_path: Path, live: Live) -> None:
    words = [sys.executable, "-m", "regretless", "dashboard", "--no-browser", "--port", "0"]
    words += [word for size in SIZES for word in ("--set", size)]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as served:
        try:
            assert served.stdout is not None
            line = served.stdout.readline()
            found = re.search(r"http://127\.0\.0\.1:\d+/([\w-]{30,})/", line)
            assert found is not None
            assert b"regretless" in urlopen(found[0], timeout=60).read()  # noqa: S310 - http
            assert found[1] != live.token
        finally:
            served.terminate()
