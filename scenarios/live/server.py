"""The page's server: on loopback, one page, three questions, a session for every viewer.

    GET  /TOKEN/        the page
    POST /TOKEN/open    a new session, or one that the page had before it was loaded again
    POST /TOKEN/state   what ``answer`` says
    POST /TOKEN/do      what a control asks for (``ACTIONS``)

TOKEN is random and new for every server: other users of this machine do not know it and are
refused, and so are requests that name another host or come from a page of another site. A refusal
is an HTTP status and one line of text. The page's policy lets it talk to this server alone.
"""

import hmac
import json
import re
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from plotly.io import to_json
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from regretless.market.core.errors import UserError
from regretless.scenarios.config.files import catalogue, shown
from regretless.scenarios.config.validation import resolved
from regretless.scenarios.live.session import SPEEDS, TURN, Session
from regretless.scenarios.live.source import Saving, Source
from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import FIGURES, Run, described, drawn
from regretless.scenarios.report.page import page
from regretless.scenarios.report.run_figures import path
from regretless.scenarios.report.run_page import LEAST, origin
from regretless.scenarios.verdict import records, sentences

TEXT = 1000  # characters of a name
DRAWN = 32  # figures in a question
MARKED = {"regret", "loss", "actions", "owned", "measures"}  # rounds below, replacements marked
PATH = (
    "Its average loss so far, and what that would be if, in hindsight, every action had been "
    "replaced by the best for it: the gap is its regret."
)


class Refused(Exception):  # noqa: N818 - no fault: the answer to a bad request
    """A request that is not answered; its text is one line that says why, with the cure."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Question(BaseModel):
    """What a page sends: its session, what it has, what it wants, and what a control asks for."""

    model_config = ConfigDict(extra="forbid", strict=True)

    session: str = Field("", max_length=TEXT)
    builds: int = 0
    figures: list[str] = Field([], max_length=DRAWN)
    agent: int | None = None
    action: str = Field("", max_length=TEXT)
    name: str = Field("", max_length=TEXT)
    role: str = Field("", max_length=TEXT)
    way: str = Field("", max_length=TEXT)
    value: FiniteFloat | None = None


HOST = "127.0.0.1"
OURS = re.compile(
    r"(127\.0\.0\.1|localhost)(:\d+)?", re.IGNORECASE
)  # any port: a tunnel has its own
MOST = 8  # sessions; whoever asked for nothing for longest goes first
LONGEST = 16_000  # bytes of a question
PATIENCE = 20.0  # seconds that a client may take to send a part of a request
UNKNOWN = "this address lacks the server's token; open the address that the command printed"
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
HERE = Path(__file__).parent
SHOWN = (  # of a run, in the order of the page
    *("regret", "loss", "alternatives", "forecast", "actions", "measures", "demand", "market"),
    *("owned", "agents", "network"),
)


def _save(session: Session, asked: Question) -> None:
    saving = session.saving
    ways = {"file": saving.file, "run": saving.run, "study": saving.study}
    if asked.way not in ways:
        raise UserError(f"save {shown(asked.way)}: choose one of {', '.join(ways)}")
    ways[asked.way](session.source, asked.name)


def _speed(session: Session, asked: Question) -> None:
    if asked.value not in SPEEDS:
        raise UserError(f"speed {asked.value}: choose one of {', '.join(map(str, SPEEDS))}")
    session.speed = int(asked.value)


ACTIONS: dict[str, Callable[[Session, Question], None]] = {
    "play": lambda session, _: session.play(),
    "pause": lambda session, _: session.pause(),
    "step": lambda session, _: session.play(once=True),
    "restart": lambda session, _: session.restart(session.source),
    "load": lambda session, asked: session.load(asked.name),
    "set": lambda session, asked: session.set(asked.name, asked.value),
    "replace": lambda session, asked: session.replace(asked.role, asked.name),
    "speed": _speed,
    "save": _save,
}


def live_page() -> str:
    """Return the page, for all viewers alike: a place for every figure that can be drawn live."""
    program, style = ((HERE / f"page.{kind}").read_text(encoding="utf-8") for kind in ("js", "css"))
    figures = [FIGURES["run"][name] for name in SHOWN]
    values = {"figures": figures, "scenarios": list(catalogue()), "speeds": SPEEDS}
    return page("live.html", (program,), style=style, **values)


class Handler(BaseHTTPRequestHandler):
    """Answers one question; ``server`` is a ``Live``."""

    server: "Live"
    timeout = PATIENCE

    def do_GET(self) -> None:
        """Send the page, or answer a question; what the viewer can mend is in its ``error``."""
        try:
            text = self._answered()
        except Refused as refusal:
            self.send_error(refusal.status, str(refusal))
        except Exception as error:  # of ours, or of a user's own class: the page is told, too
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, f"{type(error).__name__}: {error}")
            raise
        else:
            kind = "text/html; charset=utf-8" if self.command == "GET" else "application/json"
            self._send(text.encode(), kind)

    do_POST = do_GET  # noqa: N815 - the library's name

    def _answered(self) -> str:
        path = self._path()
        if self.command == "GET":
            if path:
                raise Refused(HTTPStatus.NOT_FOUND, "there is no such page")
            return self.server.page
        if self.headers.get_content_type() != "application/json":
            reason = "Content-Type is not application/json; send JSON"
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, reason)
        try:
            body = self.rfile.read(self._length())
        except TimeoutError as error:
            reason = "the body is shorter than Content-Length; send all of it"
            raise Refused(HTTPStatus.REQUEST_TIMEOUT, reason) from error
        try:
            return self.server.ask(path, Question.model_validate_json(body))
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, fault["loc"])) or "the body"
            reason = f"{place}: {fault['msg'][0].lower()}{fault['msg'][1:]}; send another"
            raise Refused(HTTPStatus.BAD_REQUEST, reason) from error
        except UserError as error:
            return json.dumps({"error": str(error)})

    def _path(self) -> str:
        """Return what was asked for below the token; Refused to whoever may not ask."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if not OURS.fullmatch(host):
            raise Refused(HTTPStatus.FORBIDDEN, "Host is not this machine; ask 127.0.0.1")
        if origin not in {None, f"http://{host}"}:
            raise Refused(HTTPStatus.FORBIDDEN, "Origin is another site; open the page itself")
        _, _, rest = self.path.partition("/")
        token, slash, path = rest.partition("/")
        if not slash or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            raise Refused(HTTPStatus.FORBIDDEN, UNKNOWN)
        return path

    def _length(self) -> int:
        """Return how many bytes the body has; Refused if that is unknown or too many."""
        given = self.headers.get_all("Content-Length", [])
        if not given:
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "Content-Length is missing; send it")
        if len(given) > 1 or not re.fullmatch("[0-9]+", given[0]):
            raise Refused(HTTPStatus.BAD_REQUEST, "Content-Length is no number; send bytes")
        if len(given[0]) > len(str(LONGEST)) or int(given[0]) > LONGEST:
            reason = f"Content-Length is above {LONGEST:,} bytes; send less"
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, reason)
        return int(given[0])

    def send_error(self, code: int, message: str | None = None, _: str | None = None) -> None:
        """Answer with a status and a line of text."""
        line = " ".join((message or HTTPStatus(code).phrase).split())
        self.close_connection = True
        self._send(f"{line}\n".encode(), "text/plain; charset=utf-8", code)

    def _send(self, body: bytes, kind: str, status: int = HTTPStatus.OK) -> None:
        self.send_response(status)
        for header in {"Content-Type": kind, "Content-Length": str(len(body)), **HEADERS}.items():
            self.send_header(*header)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


class Live(ThreadingHTTPServer):
    """The server of the live page; UserError if it cannot have the port (0 for any).

    ``sessions`` are by their secret names; each begins with ``first`` and saves into ``folder``.
    """

    daemon_threads = True

    def __init__(
        self, first: Source, folder: Path, port: int, modules: tuple[str, ...] = ()
    ) -> None:
        self._given = first, folder, modules
        self._lock, self.sessions = threading.Lock(), dict[str, Session]()
        self.page, self.token = live_page(), secrets.token_urlsafe(32)
        try:
            super().__init__((HOST, port), Handler)
        except OSError as error:
            raise UserError(f"--port {port}: {error.strerror}; give another one") from error

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_address[1]}/{self.token}/"

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

    def ask(self, path: str, asked: Question) -> str:
        """Answer a question in JSON; Refused where nothing answers to it."""
        if path == "open":
            return json.dumps({"session": self.open(asked.session)})
        if path not in {"state", "do"}:
            raise Refused(HTTPStatus.NOT_FOUND, "no such question; ask open, state or do")
        session = self.find(asked.session)
        if path == "do":
            if asked.action not in ACTIONS:
                reason = f"action {shown(asked.action)}: choose one of {', '.join(ACTIONS)}"
                raise Refused(HTTPStatus.BAD_REQUEST, reason)
            ACTIONS[asked.action](session, asked)
        return answer(session, asked.figures, asked.agent, asked.builds)

    def handle_error(
        self, request: socket.socket | tuple[bytes, socket.socket], address: Any
    ) -> None:
        """Let a page that went away before it was answered go; anything else is a fault of ours."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, address)

    def server_close(self) -> None:
        """End all sessions."""
        super().server_close()
        for session in self.sessions.values():
            session.end()


def answer(session: Session, wanted: Sequence[str], agent: int | None, builds: int) -> str:
    """Return the state of a session as JSON, with the figures that are wanted.

    ``agent`` is of whom the page wants to know more, ``builds`` the build whose controls it has.
    """
    with session.lock:
        state, replaced = _state(session, builds), list(session.replaced)
        if not (played := session.model.played):
            return json.dumps(state)
        with TURN:
            tables = session.watched.tables()
        said = sentences(tables["verdict"], tables["agents"])
        state["verdict"] = f"After {played:,} round{'s' * (played != 1)}: " + "\n".join(said)
        if agent is not None and 0 < agent <= len(tables["agents"]):
            state["agent"] = _agent(session, tables, agent)
        run = Run(resolved(session.scenario.spec), tables, session.model.called)
    figures = drawn("run", run, wanted, undated=MARKED)
    for name, one in figures.items():
        for at, _ in replaced if name in MARKED else ():  # where a player was replaced
            one.made.add_vline(at, line={"color": theme.FAINT, "width": 1, "dash": "dot"})
    state["figures"] = {name: json.loads(one.data) for name, one in figures.items()}
    return json.dumps(state)


def _state(session: Session, builds: int) -> dict[str, Any]:
    """Return what the controls show; what only a build changes if that is new to the page."""
    model, spec = session.model, session.scenario.spec
    same = ("version", "builds", "playing", "speed", "fault", "named")
    state: dict[str, Any] = {name: vars(session)[name] for name in same} | {
        "clock": time.monotonic(),
        "played": model.played,
        "rounds": model.rounds,
        "replaced": [f"before round {at}, {what}" for at, what in session.replaced],
        "promises": list(session.promises()),
        "verdict": "Nothing has been played yet.",
        "saving": session.saving.summary(),
    }
    if builds != session.builds:
        state["build"] = {
            "scenario": session.source.name,
            "name": spec.name,
            "description": spec.description,
            "seed": spec.seed,
            "keys": [asdict(key) for key in session.keys],
            "agents": sum(len(cohort.row_of) for cohort in model.game.cohorts),
            "forecasters": session.forecasters,
            "adversaries": session.rivals,
        }
    return state


def _agent(session: Session, tables: dict[str, Any], number: int) -> dict[str, Any]:
    """Return what is known of an agent: in lines, its swaps, and its path as a figure."""
    row = tables["agents"].iloc[number - 1]
    swaps = session.model.swaps_frame()
    rows = []
    for swap in records(swaps[swaps["agent"] == number] if len(swaps) else swaps):
        played, better, policy, count, gain = origin(swap)
        better, gain = (policy or better, gain) if swap["contribution"] >= LEAST else ("none", "")
        rows.append([played, count, better, gain])
    figure = path(session.watched.path(number))
    return {
        "number": number,
        "lines": [f"cohort {row['cohort']}", *described(row.to_dict()).split("<br>")],
        "swaps": rows,
        "figure": None if figure is None else json.loads(to_json(figure, engine="json")),
        "caption": PATH,
    }
