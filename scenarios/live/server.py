"""The page's server: on loopback, one page, three questions, a session for every viewer.

    GET  /TOKEN/        the page
    POST /TOKEN/open    a new session, or one that the page had before it was loaded again
    POST /TOKEN/state   what ``answer`` says
    POST /TOKEN/do      what a control asks for (``ACTIONS``)

TOKEN is random and new for every server: other users of this machine do not know it and are
refused, and so are requests that name another host or come from a page of another site. A refusal
is an HTTP status and one line of text. The page's policy lets it talk to this server alone.

Starlette finds who answers a request, and Uvicorn reads it from the connection. Each question is
answered in a thread of its own that dies with the process, so that no market, and no slow client,
keeps the page from ending.
"""

import asyncio
import hmac
import json
import os
import secrets
import socket
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import uvicorn
from plotly.io import to_json
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from regretless.market.core.errors import UserError
from regretless.scenarios.config.files import catalogue, format_value
from regretless.scenarios.config.validation import resolved
from regretless.scenarios.live.connections import TimedProtocol
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


class Refused(HTTPException):
    """A request that is not answered; its text is one line that says why, with the cure."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(status, reason)

    def __str__(self) -> str:
        return self.detail


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
LOOPBACK_NAMES = (HOST, "localhost")  # at any port: a tunnel has its own
MOST = 8  # sessions; whoever asked for nothing for longest goes first
LONGEST = 16_000  # bytes of a question, and of the head of a request
PATIENCE = 20.0  # seconds that a client may take to send the body of a request
ENDING = 2  # seconds from Ctrl-C until requests that are being answered are given up
UNKNOWN = "this address lacks the server's token; open the address that the command printed"
HEADERS = {
    "Cache-Control": "no-store",
    "Connection": "close",
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
        raise UserError(f"save {format_value(asked.way)}: choose one of {', '.join(ways)}")
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


class TokenGuard:
    """Middleware that refuses requests without the token, and those of another site's page."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on with its path below the token, or refuse it."""
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        _, _, path_after_root = scope["path"].partition("/")
        token, slash, path_after_token = path_after_root.partition("/")
        refusal = ""
        if origin not in {None, f"http://{headers['host']}"}:
            refusal = "Origin is another site; open the page itself"
        elif not slash or not hmac.compare_digest(token.encode(), self._token):
            refusal = UNKNOWN
        if refusal:
            response = PlainTextResponse(f"{refusal}\n", HTTPStatus.FORBIDDEN)
            await response(scope, receive, send)
            return
        scope_below_token = dict(scope, path=f"/{path_after_token}")
        await self._app(scope_below_token, receive, send)


async def _body_of(request: Request) -> bytes:
    """Return the body of a request; Refused if it is too long, or takes too long to come."""
    too_long = Refused(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is above {LONGEST:,} bytes; send less"
    )
    announced_length = int(request.headers.get("content-length", 0))  # h11 lets only digits pass
    if announced_length > LONGEST:
        raise too_long
    body = bytearray()
    try:
        async with asyncio.timeout(PATIENCE):
            async for part in request.stream():
                body += part
                if len(body) > LONGEST:
                    raise too_long
    except TimeoutError as error:
        reason = "the body is shorter than Content-Length; send all of it"
        raise Refused(HTTPStatus.REQUEST_TIMEOUT, reason) from error
    return bytes(body)


def _question_in(body: bytes) -> Question:
    """Return the question in a body of JSON; Refused if it is none."""
    try:
        return Question.model_validate_json(body)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, fault["loc"])) or "the body"
        reason = f"{place}: {fault['msg'][0].lower()}{fault['msg'][1:]}; send another"
        raise Refused(HTTPStatus.BAD_REQUEST, reason) from error


async def _in_thread(work: Callable[[], str]) -> str:
    """Do work in a thread that does not keep the process from ending, as those of a pool do."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[str] = loop.create_future()

    def settle(answer: str | None, error: BaseException | None) -> None:
        if result.done():  # the server ends, and nobody waits any more
            return
        if error is not None:
            result.set_exception(error)
        elif answer is not None:
            result.set_result(answer)

    def run() -> None:
        answer: str | None = None
        failure: BaseException | None = None
        try:
            answer = work()
        except Exception as error:  # noqa: BLE001 - it is raised where the answer is awaited
            failure = error
        except BaseException as error:  # noqa: BLE001 - SystemExit of a user's class, as a fault
            failure = RuntimeError(f"{type(error).__name__}: {error}")
        with suppress(RuntimeError):  # the loop is closed: the server has ended
            loop.call_soon_threadsafe(settle, answer, failure)

    threading.Thread(target=run, name="question", daemon=True).start()
    return await result


def _refusal_response(_request: Request, refusal: Exception) -> Response:
    """Answer with a status and one line of text."""
    if not isinstance(refusal, HTTPException):
        raise refusal
    line = " ".join(refusal.detail.split())
    return PlainTextResponse(f"{line}\n", refusal.status_code, headers=refusal.headers)


def _fault_response(_request: Request, error: Exception) -> Response:
    """Tell the page of a fault of ours or of a user's own class; its traceback is printed."""
    traceback.print_exception(error)
    line = " ".join(f"{type(error).__name__}: {error}".split())
    return PlainTextResponse(f"{line}\n", HTTPStatus.INTERNAL_SERVER_ERROR)


def _nobody_response(_request: Request, _error: Exception) -> Response:
    """Return what nobody reads: the client went away before it had sent its question."""
    return Response(status_code=HTTPStatus.BAD_REQUEST)


class Live:
    """The server of the live page; UserError if it cannot have the port (0 for any).

    ``sessions`` are by their secret names; each begins with ``first`` and saves into ``folder``.
    """

    def __init__(
        self, first: Source, folder: Path, port: int, modules: tuple[str, ...] = ()
    ) -> None:
        self._given = first, folder, modules
        self._lock, self.sessions = threading.Lock(), dict[str, Session]()
        self.page, self.token = live_page(), secrets.token_urlsafe(32)
        try:
            self._listener = socket.create_server((HOST, port))
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise UserError(f"--port {port}: {why}; give another one") from error
        self.server_address: tuple[str, int] = self._listener.getsockname()
        config = uvicorn.Config(
            self.application(),
            loop="asyncio",
            http=TimedProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            headers=list(HEADERS.items()),
            h11_max_incomplete_event_size=LONGEST,
            timeout_graceful_shutdown=ENDING,
        )
        self._server = uvicorn.Server(config)

    def application(self) -> Starlette:
        """Return what answers requests, whoever reads them from a connection."""
        application = Starlette(
            routes=[
                Route("/", self._send_page, methods=["GET"]),
                Route("/{question}", self._send_answer, methods=["POST"]),
            ],
            middleware=[
                Middleware(TrustedHostMiddleware, allowed_hosts=LOOPBACK_NAMES, www_redirect=False),
                Middleware(TokenGuard, token=self.token),
            ],
            exception_handlers={
                HTTPException: _refusal_response,
                ClientDisconnect: _nobody_response,
                Exception: _fault_response,
            },
        )
        application.router.redirect_slashes = False
        return application

    async def _send_page(self, _request: Request) -> Response:
        return HTMLResponse(self.page)

    async def _send_answer(self, request: Request) -> Response:
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type != "application/json":
            reason = "Content-Type is not application/json; send JSON"
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, reason)
        question = _question_in(await _body_of(request))
        path = request.path_params["question"]
        try:
            text = await _in_thread(lambda: self.ask(path, question))
        except UserError as error:
            text = json.dumps({"error": str(error)})
        return Response(text, media_type="application/json")

    def serve_forever(self) -> None:
        """Answer requests until Ctrl-C, which is KeyboardInterrupt, or ``shutdown``."""
        self._server.run(sockets=[self._listener])

    def shutdown(self) -> None:
        """Let ``serve_forever`` return, from another thread."""
        self._server.should_exit = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the port back and end all sessions."""
        self._listener.close()
        for session in self.sessions.values():
            session.end()

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
                reason = f"action {format_value(asked.action)}: choose one of {', '.join(ACTIONS)}"
                raise Refused(HTTPStatus.BAD_REQUEST, reason)
            ACTIONS[asked.action](session, asked)
        return answer(session, asked.figures, asked.agent, asked.builds)


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
