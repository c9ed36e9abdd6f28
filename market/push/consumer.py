"""/ws/ingest: ticks over one socket, each message answered before the next one is read."""

import asyncio
import contextlib
import logging
from collections import defaultdict
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Raw, UnsetType

from accounts.limits import MemoryWindow
from core import clock
from core.addresses import address_of
from core.contract.errors import ApiError, HttpsRequired, InternalError, Overloaded
from core.database import TRANSIENT
from core.logs import log_refusal
from core.plain_json import encode
from core.request_headers import came_plain, header, is_our_host
from market import runtime
from market.streams.protocol.messages import RESTARTING, Error, ErrorDetails
from market.streams.protocol.subscriptions import Notice
from serving.http.connections import note_known
from serving.websocket.bounds import TOO_BIG
from serving.websocket.connection import WebSocketConnection
from serving.websocket.consumer import Consumer

from .intake import PushVerdict, read, take
from .keys import (
    MAX_BYTES,
    AuthTimeout,
    Flood,
    InvalidIngestKey,
    InvalidMessage,
    MissingIngestKey,
    PushSource,
    identify,
    ingest_key_cache,
    sent_key,
)

MAX_ID_LENGTH = 64
Echo = int | str | UnsetType
"""The client's own id of the message that is answered."""

# Statuses of refusals after which the same key may succeed later.
CURED_BY_WAITING = {408, 429, 500, 503}


class IngestAuthenticated(msgspec.Struct, tag="authenticated", kw_only=True):
    name: str
    symbols: list[str]
    id: Echo = UNSET
    time: int


class IngestResult(PushVerdict, tag="result", kw_only=True):
    id: Echo = UNSET
    time: int


def error_frame(refusal: ApiError, echo: Echo = UNSET, *, is_fatal: bool) -> bytes:
    wait_s = refusal.headers.get("Retry-After")
    details = ErrorDetails(
        code=cast(Any, refusal.code),
        message=refusal.message,
        status=refusal.status_code,
        max=refusal.max,
        retry_after=UNSET if wait_s is None else int(wait_s),
    )
    can_retry = refusal.status_code in CURED_BY_WAITING
    return encode(Error(error=details, fatal=is_fatal, retry=can_retry, id=echo, time=clock.now_ms()))


def decoded(value: Raw) -> Any:
    """None for a value that cannot be read: a number out of range, or bytes that are not UTF-8."""
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def take_id(message: list[Raw] | dict[str, Raw]) -> Echo:
    """Removes the id from the message."""
    if isinstance(message, list) or "id" not in message:
        return UNSET
    sent = message.pop("id")
    if bytes(sent) == b"null":
        return UNSET
    sent = decoded(sent)
    if type(sent) is int or (isinstance(sent, str) and len(sent) <= MAX_ID_LENGTH):
        return sent
    raise InvalidMessage(f"id is a whole number or a text of {MAX_ID_LENGTH} characters at most.")


def read_auth(message: dict[str, Raw]) -> str:
    if decoded(message["action"]) != "auth":
        raise InvalidMessage('The only action is "auth"; ticks are sent without one.')
    key = decoded(message.get("key", Raw(b"null")))
    if not isinstance(key, str):
        raise InvalidMessage("Send your ingest key as key.")
    return key


logger = logging.getLogger(__name__)

# The close codes of refusals that end a socket, by their status.
CLOSES = {401: 4401, 403: 4403, 408: 4408, 429: 4429, 500: 4500}
TOO_MANY_INVALID = 4400
MAX_INVALID_A_MINUTE = 9

# When the service restarts, a socket ends once nothing has come for so long. After so long no further message
# is answered, and so long after that it ends, though its client reads nothing.
QUIET_S, LAST_ANSWERS_S, UNREAD_S = 0.5, 3.0, 2.0
LOOK_EVERY_S = 0.05


class IngestConsumer(Consumer):
    _key: str | None = None
    key_id, name = 0, ""
    account_id: int | None = None
    _echo: Echo = UNSET
    _ending: asyncio.Task[None] | None = None
    _restarting: asyncio.Task[None] | None = None
    _over_at = 0.0
    _is_working, _answered = False, 0

    def join(self, connection: WebSocketConnection) -> None:
        self._invalid, self._connection = MemoryWindow(), connection
        connection.flooded = flooded
        connection.at_restart = self.restart

    def is_welcome(self) -> bool:
        """Programs and our own pages are welcome. A browser sends the origin of its page."""
        origin = header(self.scope, b"origin")
        try:
            return super().is_welcome() and (origin is None or is_our_host(urlsplit(origin).netloc))
        except ValueError:
            return False

    async def connect(self) -> None:
        await super().connect()
        if self.is_open and (key := sent_key(self.scope)):
            await self.authenticate(key)

    async def handle(self, message: dict[str, Any]) -> None:
        self._is_working = True
        try:
            await super().handle(message)
        finally:
            self._is_working = False
            self._answered += 1

    async def take_data(self, data: bytes, *, is_text: bool) -> None:
        self._echo = UNSET
        if len(data) > MAX_BYTES:
            await self._close(TOO_BIG)
            return
        if self._restarting is not None and asyncio.get_running_loop().time() >= self._over_at:
            # What is not answered was not taken: its sender keeps it for the next server.
            await self._close(RESTARTING)
            return
        if not is_text:
            raise InvalidMessage("Send JSON as text, not as binary.")
        message = read(data)
        self._echo = take_id(message)
        if isinstance(message, dict) and "action" in message:
            await self.authenticate(read_auth(message))
        else:
            await self._take(message)

    async def answer_fault(self, error: Exception) -> None:
        if isinstance(error, ApiError):
            await self._refuse(error)
        elif isinstance(error, TRANSIENT):
            await self._refuse(Overloaded(retry_after=1))
        elif isinstance(error, OSError):
            logger.info("A source of ticks went away before it was answered")
        else:
            logger.error("A message to /ws/ingest could not be answered", exc_info=error)
            await self._refuse(InternalError("Something failed on our side. Connect again."))

    def leave(self) -> None:
        super().leave()
        open_sockets[self.key_id].discard(self)

    async def disconnect(self, code: int) -> None:
        for task in (self._ending, self._restarting):
            if task is not None:
                task.cancel()
        await super().disconnect(code)

    def first_is_late(self) -> None:
        self.end(AuthTimeout())

    def end(self, refusal: ApiError) -> None:
        """Runs as its own task, because a client that does not read must not hold up others."""
        self._ending = asyncio.create_task(self._refuse(refusal), name="ingest socket ends")

    def restart(self) -> None:
        """What was sent is answered before the socket ends."""
        self._over_at = asyncio.get_running_loop().time() + LAST_ANSWERS_S
        self._restarting = asyncio.create_task(self._finish(), name="ingest socket ends with its server")

    async def _finish(self) -> None:
        try:
            async with asyncio.timeout_at(self._over_at + UNREAD_S):
                await self._answer_last()
        except TimeoutError:
            self.leave()
            self._connection.close(RESTARTING)

    async def _answer_last(self) -> None:
        loop = asyncio.get_running_loop()
        await self._send(encode(Notice(code="restarting", time=clock.now_ms())))
        answered, quiet_at = self._answered, loop.time() + QUIET_S
        while self._is_working or loop.time() < min(quiet_at, self._over_at):
            await asyncio.sleep(LOOK_EVERY_S)
            if self._answered != answered:
                answered, quiet_at = self._answered, loop.time() + QUIET_S
        await self._close(RESTARTING)

    async def authenticate(self, key: str) -> None:
        if self._key is not None and key != self._key:
            raise InvalidMessage("This socket has another key already.")
        if came_plain(self.scope):
            raise HttpsRequired
        source = await identify(key, address_of(self.scope))
        if not self.is_open or self._ending is not None:
            # Its time ran out meanwhile, and the closing frame is on its way.
            return
        self._key, self.key_id, self.name = key, source.key_id, source.name
        self.account_id = source.account_id
        note_known(self.scope)
        open_sockets[source.key_id].add(self)
        self.stay()
        symbols = sorted(source.symbols) or ["*"]
        answer = IngestAuthenticated(name=source.name, symbols=symbols, id=self._echo, time=clock.now_ms())
        await self._send(encode(answer))

    async def _take(self, message: list[Raw] | dict[str, Raw]) -> None:
        if self._key is None:
            raise MissingIngestKey
        # The key is looked up each time: while the database is away, no revocation reaches this process.
        source: PushSource | None = await ingest_key_cache.find(self._key)
        if source is None:
            raise InvalidIngestKey
        verdict = await take(source, message, runtime.push)
        answer = IngestResult(verdict.accepted, verdict.rejected, id=self._echo, time=clock.now_ms())
        await self._send(encode(answer))

    async def _refuse(self, refusal: ApiError) -> None:
        code = CLOSES.get(refusal.status_code)
        if isinstance(refusal, InvalidMessage):
            standing = self._invalid.count("invalid", MAX_INVALID_A_MINUTE, cost=1)
            code = None if standing.admitted else TOO_MANY_INVALID
        text = error_frame(refusal, self._echo, is_fatal=code is not None)
        if code is None:
            await self._send(text)
        else:
            log_refusal(
                f"{code} {refusal.code}",
                address_of(self.scope),
                f"/ws/ingest closed with {code} {refusal.code}",
                route="/ws/ingest",
                **({"source": self.name} if self.name else {}),
            )
            await self._close(code, text)

    async def _send(self, text: bytes) -> None:
        if self.is_open:
            with contextlib.suppress(OSError):
                await self.send(text_data=text.decode())

    async def _close(self, code: int, last: bytes = b"") -> None:
        if self.is_open:
            self.leave()
            with contextlib.suppress(OSError):
                if last:
                    await self.send(text_data=last.decode())
                await self.close(code)


def flooded() -> bytes:
    return error_frame(Flood(), is_fatal=True)


open_sockets: defaultdict[int, set[IngestConsumer]] = defaultdict(set)


def end_sockets(facts: dict[str, Any]) -> None:
    for socket in tuple(open_sockets[facts["key"]]):
        socket.end(InvalidIngestKey())


def end_sockets_of(facts: dict[str, Any]) -> None:
    """Of an account that was locked or deleted."""
    if facts.get("active") is False:
        for socket in [each for some in open_sockets.values() for each in some]:
            if socket.account_id == facts["account"]:
                socket.end(InvalidIngestKey())
