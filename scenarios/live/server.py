"""The live page's server: on loopback, one page, three questions, a session for every viewer.

    GET  /TOKEN/        the page
    POST /TOKEN/open    a new session, or one that the page had before it was loaded again
    POST /TOKEN/state   the state of a session (``live.state``)
    POST /TOKEN/do      what a control asks for (``live.questions``), and the state after it

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
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Self

import uvicorn
from pydantic import ValidationError
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
from regretless.scenarios.config.files import format_value
from regretless.scenarios.live.connections import TimedProtocol
from regretless.scenarios.live.live_page import live_page
from regretless.scenarios.live.questions import ACTIONS, Question
from regretless.scenarios.live.saving import Saving
from regretless.scenarios.live.session import Session
from regretless.scenarios.live.source import Source
from regretless.scenarios.live.state import describe_session

HOST = "127.0.0.1"
LOOPBACK_NAMES = (HOST, "localhost")  # at any port: a tunnel has its own
MAX_SESSIONS = 8  # whoever asked for nothing for longest goes first
MAX_REQUEST_BYTES = 16_000  # of a question, and of the head of a request
BODY_TIMEOUT_SECONDS = 20.0  # that a client may take to send the body of a request
SHUTDOWN_GRACE_SECONDS = 2  # from Ctrl-C until requests that are being answered are given up
UNKNOWN_ADDRESS = "this address lacks the server's token; open the address that the command printed"
HEADERS = {  # of every response
    "Cache-Control": "no-store",
    "Connection": "close",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Refused(HTTPException):
    """A request that is not answered; its text is one line that says why, with the cure."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(status, reason)

    def __str__(self) -> str:
        return self.detail


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
            refusal = UNKNOWN_ADDRESS
        if refusal:
            response = PlainTextResponse(f"{refusal}\n", HTTPStatus.FORBIDDEN)
            await response(scope, receive, send)
            return
        scope_below_token = dict(scope, path=f"/{path_after_token}")
        await self._app(scope_below_token, receive, send)


async def _body_of(request: Request) -> bytes:
    """Return the body of a request; Refused if it is too long, or takes too long to come."""
    reason = f"the body is above {MAX_REQUEST_BYTES:,} bytes; send less"
    too_long = Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, reason)
    announced_length = int(request.headers.get("content-length", 0))  # h11 lets only digits pass
    if announced_length > MAX_REQUEST_BYTES:
        raise too_long
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > MAX_REQUEST_BYTES:
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
        first_fault = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first_fault["loc"])) or "the body"
        message = first_fault["msg"]
        reason = f"{field}: {message[0].lower()}{message[1:]}; send another"
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


def _unread_response(_request: Request, _error: Exception) -> Response:
    """Return what nobody reads: the client went away before it had sent its question."""
    return Response(status_code=HTTPStatus.BAD_REQUEST)


class Live:
    """The server of the live page; UserError if it cannot have the port (0 for any).

    Each session begins with the scenario ``first`` and saves into ``folder``, where runs import
    the user's ``modules``. ``sessions`` are by their secret names.
    """

    def __init__(
        self, first: Source, folder: Path, port: int, modules: tuple[str, ...] = ()
    ) -> None:
        self._first = first
        self._folder = folder
        self._modules = modules
        self._lock = threading.Lock()
        self.sessions: dict[str, Session] = {}
        self.page = live_page()
        self.token = secrets.token_urlsafe(32)
        try:
            self._listener = socket.create_server((HOST, port))
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise UserError(f"--port {port}: {reason}; give another one") from error
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
            h11_max_incomplete_event_size=MAX_REQUEST_BYTES,
            timeout_graceful_shutdown=SHUTDOWN_GRACE_SECONDS,
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
                ClientDisconnect: _unread_response,
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
            text = await _in_thread(lambda: self.answer(path, question))
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
            session = Session(self._first, Saving(self._folder, self._modules))
            while len(self.sessions) >= MAX_SESSIONS:
                longest_idle = min(self.sessions, key=lambda other: self.sessions[other].last_asked)
                self.sessions.pop(longest_idle).end()
            new_name = secrets.token_urlsafe(16)
            self.sessions[new_name] = session
            return new_name

    def find(self, name: str) -> Session:
        """Return a session; UserError if it was ended."""
        if name not in self.sessions:
            raise UserError(
                f"this page's market was ended, since {MAX_SESSIONS} others were opened after it; "
                "reload the page for a new one"
            )
        session = self.sessions[name]
        session.last_asked = time.monotonic()
        return session

    def answer(self, path: str, question: Question) -> str:
        """Answer a question in JSON; Refused where nothing answers to it."""
        if path == "open":
            return json.dumps({"session": self.open(question.session)})
        if path not in {"state", "do"}:
            raise Refused(HTTPStatus.NOT_FOUND, "no such question; ask open, state or do")
        session = self.find(question.session)
        if path == "do":
            if question.action not in ACTIONS:
                reason = (
                    f"action {format_value(question.action)}: choose one of {', '.join(ACTIONS)}"
                )
                raise Refused(HTTPStatus.BAD_REQUEST, reason)
            act = ACTIONS[question.action]
            act(session, question)
        return describe_session(
            session, question.figures, agent=question.agent, builds=question.builds
        )
