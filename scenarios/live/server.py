"""The page's server: on loopback, one page, three questions, a session for every viewer.

    GET  /        the page
    POST /open    a new session, or one that the page had before it was loaded again
    POST /state   what ``scenarios.live.view.answer`` says
    POST /do      what a control asks for: play, pause, step, restart, speed, set, load, swap, save

It answers who asks for this host by name, and asks in JSON, which no page of another site may do
without being allowed to. Everything that a page needs is in the page: native controls in
``page.html``, what fills them in ``page.js``, their style in ``page.css``. Its policy lets it talk
to the server that it came from, and to nobody else.
"""

import json
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from regretless.market.core.errors import UserError
from regretless.scenarios.live.session import SPEEDS, Session
from regretless.scenarios.live.source import Saving, Source
from regretless.scenarios.live.view import answer
from regretless.scenarios.report.charts import scripts
from regretless.scenarios.report.html import page
from regretless.scenarios.spec.files import catalogue

HOST = "127.0.0.1"
MOST = 8  # sessions; whoever asked for nothing for longest goes first
LONGEST = 100_000  # bytes of a question
STILL = "Scripts are off: this page is nothing without them."
Json = dict[str, Any]


class Viewers:
    """Sessions by their secret names, each of which begins with ``first`` and saves to a folder."""

    def __init__(self, first: Source, folder: Path, modules: tuple[str, ...] = ()) -> None:
        self._given = first, folder, modules
        self._lock = threading.Lock()
        self.sessions: dict[str, Session] = {}

    def open(self, name: str) -> str:
        """Return the name of a session: the one asked for if it is there, else of a new one."""
        with self._lock:
            if name in self.sessions:
                return name
            first, folder, modules = self._given
            session = Session(first, Saving(folder, modules))
            while len(self.sessions) >= MOST:
                idle = min(self.sessions, key=lambda other: self.sessions[other].seen)
                self.sessions.pop(idle).end()
            new = secrets.token_urlsafe(16)
            self.sessions[new] = session
            return new

    def find(self, name: str) -> Session:
        """Return a session; UserError if it was ended."""
        if name not in self.sessions:
            reason = f"this page's market was ended, since {MOST} others were opened after it"
            raise UserError(f"{reason}; reload the page for a new one")
        self.sessions[name].seen = time.monotonic()
        return self.sessions[name]

    def end(self) -> None:
        """End all sessions."""
        for session in self.sessions.values():
            session.end()


def _save(session: Session, given: Json) -> None:
    saving = session.saving
    ways = {"file": saving.file, "run": saving.run, "study": saving.study}
    if (way := given.get("way")) not in ways:
        raise UserError(f"save {way!r}: choose one of {', '.join(ways)}")
    ways[way](session.source, str(given.get("name", "")))


def _speed(session: Session, given: Json) -> None:
    if given.get("value") not in SPEEDS:
        raise UserError(
            f"speed {given.get('value')!r}: choose one of {', '.join(map(str, SPEEDS))}"
        )
    session.speed = given["value"]


ACTIONS: dict[str, Callable[[Session, Json], None]] = {
    "play": lambda session, _: session.play(),
    "pause": lambda session, _: session.pause(),
    "step": lambda session, _: session.step_once(),
    "restart": lambda session, _: session.restart(),
    "load": lambda session, given: session.load(str(given.get("name"))),
    "set": lambda session, given: session.set(str(given.get("name")), given.get("value", "")),
    "swap": lambda session, given: session.swap(str(given.get("role")), str(given.get("name"))),
    "speed": _speed,
    "save": _save,
}


def live_page() -> str:
    """Return the page, for all viewers alike."""
    file = Path(__file__).resolve().with_name("page")
    body, program, style = (
        file.with_suffix(ending).read_text(encoding="utf-8") for ending in (".html", ".js", ".css")
    )
    names = "".join(f"<option>{escape(name)}</option>" for name in catalogue())
    body = body.replace("{scenarios}", names)
    return page("regretless", body, (*scripts(), program), style=style, still=STILL)


class Handler(BaseHTTPRequestHandler):
    """Answers one question; ``server`` is a ``Live``."""

    server: "Live"

    def do_GET(self) -> None:
        """Send the page."""
        if not self._ours() or self.path != "/":
            self.send_error(404)
            return
        self._send(self.server.page, "text/html; charset=utf-8")

    def do_POST(self) -> None:
        """Answer in JSON; what the viewer can mend is in its ``error``."""
        length = int(self.headers.get("Content-Length") or 0)
        asked = self.headers.get("Content-Type") == "application/json" and length <= LONGEST
        if not self._ours() or not asked:
            self.send_error(403)
            return
        try:
            told = self.server.ask(self.path, json.loads(self.rfile.read(length)))
        except UserError as error:
            told = json.dumps({"error": str(error)})
        except (ValueError, TypeError, AttributeError, KeyError):
            self.send_error(400)
            return
        self._send(told.encode(), "application/json")

    def _ours(self) -> bool:
        """Whether it was asked for by this host's name, and not by a name that leads here."""
        name = (self.headers.get("Host") or "").rpartition(":")[0]
        return name in {HOST, "localhost"}

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Frame-Options", "DENY")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


class Live(ThreadingHTTPServer):
    """The server of the live page; UserError if it cannot have the port (0 for any)."""

    daemon_threads = True

    def __init__(self, viewers: Viewers, port: int) -> None:
        self.viewers, self.page = viewers, live_page().encode()
        try:
            super().__init__((HOST, port), Handler)
        except OSError as error:
            raise UserError(f"--port {port}: {error.strerror}; give another one") from error

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_address[1]}/"

    def ask(self, path: str, given: Json) -> str:
        """Answer a question in JSON."""
        if path == "/open":
            return json.dumps({"session": self.viewers.open(str(given.get("session")))})
        session = self.viewers.find(str(given["session"]))
        if path == "/do":
            ACTIONS[given["action"]](session, given)
        asked = given.get("figures", ()), given.get("agent"), given.get("builds", 0)
        return answer(session, *asked)

    def handle_error(
        self, request: socket.socket | tuple[bytes, socket.socket], address: Any
    ) -> None:
        """Let a page that went away before it was answered go; anything else is a fault of ours."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, address)
