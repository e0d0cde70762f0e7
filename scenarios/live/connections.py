"""Connections of the live page's server: HTTP/1.1 as Uvicorn reads it, with limits of time.

Uvicorn limits how long a connection may be idle between two requests, but not how long a client
may take to send the head of a request or to read a response. Every connection carries one request
here (the server closes it after the response), so that two timers are enough.
"""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 20.0  # from the connection to the end of the request's head
READING_SECONDS = 120.0  # from the end of the response until the client has read all of it


class TimedProtocol(H11Protocol):
    """Ends the connection of a client that is slow to send a request or to read its response."""

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the head of a request."""
        super().connection_made(transport)
        self._timer: asyncio.TimerHandle = self.loop.call_later(HEAD_SECONDS, self._end_if_no_head)

    def _end_if_no_head(self) -> None:
        if self.conn.their_state is h11.IDLE:
            self.transport.abort()

    def on_response_complete(self) -> None:
        """Begin to wait until the client has read the response."""
        super().on_response_complete()
        self._timer.cancel()
        self._timer = self.loop.call_later(READING_SECONDS, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._timer.cancel()
        super().connection_lost(exc)
