"""The short path of a GET that memory alone can answer: in the protocol, before a scope, a task or an event
exists. Everything else takes the ordinary path, and both give the same answers."""

from __future__ import annotations

import asyncio
import logging
import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

from core.contract.answers import AlreadyDone, Body
from core.fault_log import unexpected
from serving.draining import draining

from . import bounds
from .deadlines import ANSWERING, HEAD, IDLE, OVER, ClosingProtocol

Headers = Sequence[tuple[bytes, bytes]]
Give = Callable[["ShortPathProtocol"], bool]
"""Answers a head, now or later. False where its request must take the ordinary path."""

# Clients send the same head again and again. Of the latest heads, between this many and twice as many are
# known, and none that is longer.
KNOWN = 8192
LONGEST_KNOWN = 1024

# Where the application hands it to the server: in the state of its lifespan.
STATE_NAME = "tickwire.short_path"


class ShortPath:
    """What a server can answer so. Heads are known by a keyed digest, because they hold keys."""

    def __init__(self, find: Callable[[bytes, Headers], Give | None]) -> None:
        """`find` is called for a GET in HTTP/1.1 without a body, on a connection that goes on."""
        self.find = find
        self._empty = blake2b(key=os.urandom(32), digest_size=16)
        self._known: dict[bytes, Give] = {}
        self._older: dict[bytes, Give] = {}

    def recall(self, head: bytes) -> Give | None:
        if len(head) > LONGEST_KNOWN:
            return None
        state = self._empty.copy()
        state.update(head)
        digest = state.digest()
        known = self._known.get(digest)
        if known is None and (known := self._older.get(digest)) is not None:
            self._keep(digest, known)
        return known

    def remember(self, head: bytes, give: Give) -> None:
        if len(head) <= LONGEST_KNOWN:
            state = self._empty.copy()
            state.update(head)
            self._keep(state.digest(), give)

    def _keep(self, digest: bytes, give: Give) -> None:
        if len(self._known) >= KNOWN:
            self._known, self._older = {}, self._known
        self._known[digest] = give


NO_SHORT_PATH = ShortPath(lambda target, headers: None)


# A connection of HTTP whose requests may be answered on the short path.
logger = logging.getLogger(__name__)

# Beyond this, the protocol checks whether the client reads.
MOST_GATHERED = 64 * 1024


class Waiting:
    """Stands for the exchange while an answer of the short path is on its way."""

    __slots__ = ("disconnected", "keep_alive", "response_complete")
    response_started = False
    message_event = asyncio.Event()
    """Never set: required by uvicorn's cycle."""

    def __init__(self) -> None:
        self.keep_alive, self.response_complete = True, False

    def give_up(self) -> None:
        """What is answered goes nowhere: the connection is over."""


class FirstLines:
    """The status line and the server's own headers, encoded once: they change once a second."""

    _headers: Headers | None = None
    _text = b""

    def of(self, headers: Headers) -> bytes:
        if self._headers is not headers:
            lines = [b"%b: %b\r\n" % header for header in headers]
            self._headers, self._text = headers, b"".join([b"HTTP/1.1 200 OK\r\n", *lines])
        return self._text


_first_lines = FirstLines()


class ShortPathProtocol(ClosingProtocol):
    already_done: AlreadyDone | None
    """What the ordinary path does not do again."""
    _whole = b""
    """The head that is being parsed, where it came in one piece."""
    _last = b""
    """The known head that came last on this connection, which most send again and again."""
    _last_answer: Give | None = None
    _is_short = False
    """The request that is being parsed is answered, or will be."""
    _gathered: bytearray | None
    """Answers to requests that came together, which are written together."""
    _waited = False
    """What is being parsed came while an earlier answer was due, or together with the request to it."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._short_path: ShortPath = self.app_state.get(STATE_NAME, NO_SHORT_PATH)
        # Read with each request, and faster on the instance than on the class.
        self.already_done = self._gathered = None
        self._is_last = False

    @abstractmethod
    def repeat(self, head: bytes) -> None:
        """Read the head as any other."""

    @abstractmethod
    def await_next(self) -> None: ...

    def knows(self, head: bytes) -> bool:
        """Whether it was met before, and is answered, or will be."""
        if head == self._last:
            known = self._last_answer
        elif known := self._short_path.recall(head):
            self._last, self._last_answer = head, known
        if known is None or not self._may_be_short():
            return False
        self._whole = head
        return known(self)

    def answer_known(self, data: bytes) -> bytes:
        """Answer the known heads that it begins with, many in one write. Returns the rest."""
        self._gathered = bytearray()
        while self.state == IDLE and (head := bounds.first_head(data)) and self.knows(head):
            data = data[len(head) :]
            self._waited = True
            if len(self._gathered) >= MOST_GATHERED:
                self.write(self._gathered)
                self._gathered = bytearray()
        if self._gathered:
            self.write(self._gathered)
        self._gathered = None
        return data

    def learns(self, target: bytes, headers: Headers) -> bool:
        """The same for a head that is not known yet."""
        if not self._whole or not self._may_be_short():
            return False
        found = self._find(target, headers)
        self._is_short = found is not None and found(self)
        if found is not None and self._is_short:
            self._short_path.remember(self._whole, found)
        return self._is_short

    def _find(self, target: bytes, headers: Headers) -> Give | None:
        try:
            return self._short_path.find(target, headers)
        except Exception as error:  # noqa: BLE001 - whatever it is, the ordinary path answers
            if unexpected.left_out(error) is not None:
                logger.exception("A target could not be looked up; the ordinary path answers it.")
            return None

    def _may_be_short(self) -> bool:
        return not (
            self._is_last or self.flow.write_paused or draining.is_on or self.already_done is not None
        )

    def end_short(self) -> None:
        """The request that was being parsed ended with its head."""
        self._is_short, self._waited = False, True
        if self.state != ANSWERING:
            self.state = IDLE
            self.watch.idle.start(self, self.watch.now)

    # What `Give` calls

    def wait(self) -> None:
        """It is answered later."""
        self.watch.idle.stop(self)
        self.state = ANSWERING
        self.cycle = Waiting()  # type: ignore[assignment]

    def give_back(self) -> None:
        """Later it takes the ordinary path after all."""
        if self.state != OVER:
            self.state = HEAD
            self.repeat(self._whole)

    def answer(self, ready: bytes, head: bytes, content: Body) -> None:
        """With a head in two parts, which goes on after the lines of the server itself."""
        if self.state == OVER:
            return
        if self._is_last:
            # The last header, as the ordinary path puts it.
            head = head.removesuffix(b"\r\n") + b"connection: close\r\n\r\n"
        first_lines = _first_lines.of(self.server_state.default_headers)
        # What is small is joined: each piece costs more than its bytes do.
        if isinstance(content, bytes):
            whole = b"".join((first_lines, ready, head, content))
            if self._gathered is None:
                self.write(whole)
            else:
                self._gathered += whole
        elif self._gathered is None:
            # One write, without copying long content.
            first, *others = content
            self.transport.writelines((b"".join((first_lines, ready, head, first)), *others))
        else:
            self._gathered += b"".join((first_lines, ready, head, *content))
        self.server_state.total_requests += 1
        self.connection.is_known = True
        if self.state == IDLE:
            self.watch.idle.start(self, self.watch.now)
        elif self.state == ANSWERING:
            self.cycle.response_complete = True
            if self._is_last:
                self.close()
            elif not self.transport.is_closing():
                self.await_next()
