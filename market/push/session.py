"""/ws/ingest: ticks over one socket, each message answered before the next one is read."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict
from typing import Any
from urllib.parse import urlsplit

import msgspec
from channels.consumer import get_handler_name
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from msgspec import Raw

from accounts.limits.window import MemoryWindow
from core import clock
from core.addresses import address_of, came_plain, is_ours, note_known
from core.contract.errors import ApiError, HttpsRequired, Overloaded, RetryLater
from core.database import TRANSIENT
from core.plain_json import encode
from market import runtime
from serving.websocket.bounds import TOO_BIG
from serving.websocket.protocol import connection_of

from .intake import read, take
from .keys import PushSource, identify, ingest_key_cache, sent_key
from .refusals import (
    MAX_BYTES,
    AuthTimeout,
    Flood,
    InternalFault,
    InvalidIngestKey,
    InvalidMessage,
    MissingIngestKey,
)

MAX_ID_LENGTH = 64
Echo = dict[str, int | str]


def frame(kind: str, now_ms: int, echo: Echo, **fields: Any) -> str:
    return encode({"type": kind, **fields, **echo, "time": now_ms}).decode()


def error_frame(refusal: ApiError, now_ms: int, echo: Echo, *, is_fatal: bool) -> str:
    wait_s = refusal.headers.get("Retry-After")
    details = {
        "code": refusal.code,
        "message": refusal.message,
        "status": refusal.status_code,
        "max": refusal.max,
        "retry_after": None if wait_s is None else int(wait_s),
    }
    told = {name: value for name, value in details.items() if value is not None}
    can_retry = refusal.status_code == 500 or isinstance(refusal, RetryLater | AuthTimeout | Flood)
    return frame("error", now_ms, echo, error=told, fatal=is_fatal, retry=can_retry)


def decoded(value: Raw) -> Any:
    """None for what was let through unread: a number out of all range, or bytes that are no text."""
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def take_id(message: list[Raw] | dict[str, Raw]) -> Echo:
    """The client's own name for the message, to be sent back; taken out of it."""
    if isinstance(message, list) or "id" not in message:
        return {}
    sent = message.pop("id")
    if bytes(sent) == b"null":
        return {}
    sent = decoded(sent)
    if type(sent) is int or (isinstance(sent, str) and len(sent) <= MAX_ID_LENGTH):
        return {"id": sent}
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


class IngestConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    AUTH_WITHIN_S = 10.0

    def __init__(self) -> None:
        super().__init__()
        self._key: str | None = None
        self._key_id = 0
        self._echo: Echo = {}
        self._invalid = MemoryWindow()
        self._is_over = False
        self._timer: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Without Channels' tidying of database connections, for which all sockets would share a thread."""
        self._echo = {}
        try:
            await getattr(self, get_handler_name(message))(message)
        except StopConsumer:
            raise
        except ApiError as refusal:
            await self._refuse(refusal)
        except TRANSIENT:
            await self._refuse(Overloaded(retry_after=1))
        except OSError:
            logger.info("A source of ticks went away before it was answered")
        except Exception:  # noqa: BLE001 - the top of a socket: one message must not end it without a word
            logger.exception("A message to /ws/ingest could not be answered")
            await self._refuse(InternalFault())

    async def connect(self) -> None:
        if not is_welcome(self.scope):
            self._is_over = True
            await self.close()
            return
        connection_of(self.scope, self.base_send).flooded = flooded
        await self.accept()
        self._timer = asyncio.create_task(self._expect_key(), name="ingest key awaited")
        if key := sent_key(self.scope):
            await self._authenticate(key)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self._is_over:
            return
        text = bytes_data or b"" if text_data is None else text_data.encode()
        if len(text) > MAX_BYTES:
            await self._end(TOO_BIG)
            return
        if text_data is None:
            raise InvalidMessage("Send JSON as text, not as binary.")
        message = read(text)
        self._echo = take_id(message)
        if isinstance(message, dict) and "action" in message:
            await self._authenticate(read_auth(message))
        else:
            await self._take(message)

    async def websocket_disconnect(self, message: dict[str, Any]) -> None:
        self._is_over = True
        open_sockets[self._key_id].discard(self)
        for task in (self._timer, self._ending):
            if task is not None:
                task.cancel()
        raise StopConsumer

    def revoke(self) -> None:
        """The key has ended. In a task of its own: a client that does not read must not hold up others."""
        self._ending = asyncio.create_task(self._refuse(InvalidIngestKey()), name="ingest key revoked")

    async def _authenticate(self, key: str) -> None:
        if self._key is not None and key != self._key:
            raise InvalidMessage("This socket has another key already.")
        if came_plain(self.scope):
            raise HttpsRequired
        source = await identify(key, address_of(self.scope))
        if self._is_over:
            # Its time ran out meanwhile, and the timer is about to say so.
            return
        self._key, self._key_id = key, source.key_id
        note_known(self.scope)
        open_sockets[source.key_id].add(self)
        if self._timer is not None:
            self._timer.cancel()
        await self._say("authenticated", name=source.name, symbols=sorted(source.symbols) or ["*"])

    async def _take(self, message: list[Raw] | dict[str, Raw]) -> None:
        if self._key is None:
            raise MissingIngestKey
        # Asked each time: no event of a revocation gets here while the database is away.
        source: PushSource | None = await ingest_key_cache.find(self._key)
        if source is None:
            raise InvalidIngestKey
        verdict = await take(source, message, runtime.push)
        await self._say("result", accepted=verdict.accepted, rejected=verdict.rejected)

    async def _expect_key(self) -> None:
        await asyncio.sleep(self.AUTH_WITHIN_S)
        await self._refuse(AuthTimeout())

    async def _refuse(self, refusal: ApiError) -> None:
        code = CLOSES.get(refusal.status_code)
        if isinstance(refusal, InvalidMessage):
            standing = self._invalid.count("invalid", MAX_INVALID_A_MINUTE, cost=1)
            code = None if standing.admitted else TOO_MANY_INVALID
        told = error_frame(refusal, clock.now_ms(), self._echo, is_fatal=code is not None)
        if code is None:
            await self._send(told)
        else:
            await self._end(code, told)

    async def _say(self, kind: str, **fields: Any) -> None:
        await self._send(frame(kind, clock.now_ms(), self._echo, **fields))

    async def _send(self, text: str) -> None:
        if not self._is_over:
            with contextlib.suppress(OSError):
                await self.send(text_data=text)

    async def _end(self, code: int, told: str = "") -> None:
        if self._is_over:
            return
        self._is_over = True
        with contextlib.suppress(OSError):
            if told:
                await self.send(text_data=told)
            await self.close(code)


def flooded() -> bytes:
    return error_frame(Flood(), clock.now_ms(), {}, is_fatal=True).encode()


def is_welcome(scope: dict[str, Any]) -> bool:
    """A socket meant for us, of a program or of a page of our own: a browser names the page it serves."""
    headers = {name: str(value, "latin-1") for name, value in scope["headers"]}
    if not is_ours(headers.get(b"host", "")):
        return False
    try:
        return b"origin" not in headers or is_ours(urlsplit(headers[b"origin"]).netloc)
    except ValueError:
        return False


open_sockets: defaultdict[int, set[IngestConsumer]] = defaultdict(set)


def end_sockets(facts: dict[str, Any]) -> None:
    for socket in tuple(open_sockets[facts["key"]]):
        socket.revoke()
