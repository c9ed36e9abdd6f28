"""Takes pushed ticks from a web process to the engine's, and the answers back.

A request is popped off a list, so it is worked at most once, whatever dies, and never after its sender has
given up. Redis' clock decides that, so no machine's own has to be right."""

import asyncio
import itertools
import logging
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from core.background import BackgroundLoop
from core.contract.errors import Overloaded
from core.deadlines import patient
from core.fault_log import LastingFault
from core.redis.connections import connect_redis, key_of
from market.prices.records import Tick

logger = logging.getLogger(__name__)
not_sent = LastingFault(logger, "Pushed ticks do not reach the engine")
no_ticks = LastingFault(logger, "No pushed ticks are heard, trying again")
no_answers = LastingFault(logger, "No answers of the engine are heard, trying again")
Handler = Callable[[str, list[Tick], int, str], list[str | None]]
Settle = Callable[[], Awaitable[object]]
Answer = asyncio.Future[list[str | None] | None]
REQUESTS = "ingest"
MAX_WAITING = 256
PATIENCE_S = patient(2.0)

# The rest of the sender's patience is for the work and the way back.
BEGUN_WITHIN = 0.75
BLOCK_S = 1
AT_ONCE = 32
RETRY_S = 0.2
FORGOTTEN_AFTER_S = 10

# Each entry begins with the microsecond until which it may be begun. Expired ones make room first, so an
# engine that was away does not find a queue full of them.
APPEND = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
while true do
  local first = redis.call('LINDEX', KEYS[1], 0)
  if not first or tonumber(string.match(first, '^%d+')) >= now then break end
  redis.call('LPOP', KEYS[1])
end
if redis.call('LLEN', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
redis.call('RPUSH', KEYS[1], string.format('%.0f', now + ARGV[2]) .. ':' .. ARGV[1])
return 1
"""


class IngestUnavailable(Overloaded):
    """Whether the ticks were taken is not known."""

    message = "The market engine does not answer. Send the same again: what has a seq is never taken twice."

    def __init__(self) -> None:
        super().__init__(retry_after=1)


class PushRequest(msgspec.Struct, array_like=True):
    number: int
    reply_to: str
    origin: str
    ticks: list[Tick]
    sent_ms: int = 0
    key: str = ""
    """Has a default, because the version before does not send it."""


class PushReply(msgspec.Struct, array_like=True):
    number: int
    codes: list[str | None] | None
    """None: the engine failed at it."""


encode = msgspec.msgpack.Encoder().encode
read_request = msgspec.msgpack.Decoder(PushRequest).decode
read_reply = msgspec.msgpack.Decoder(PushReply).decode


class PushQueue:
    """`send` in a web process, `serve` in the engine's."""

    def __init__(self, url: str, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        longest_s = max(patience_s, PATIENCE_S)
        # Without retries: a request that was sent and not answered must not be sent again.
        self._redis: Any = connect_redis(
            url,
            socket_timeout=BLOCK_S + longest_s,
            socket_connect_timeout=longest_s,
            retry=Retry(NoBackoff(), 0),
        )
        self._append = self._redis.register_script(APPEND)
        self._requests = key_of(REQUESTS)
        self._replies = f"{self._requests}:replies:{uuid.uuid4().hex}"
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Answer] = {}
        self._listening = BackgroundLoop(
            "ingest replies",
            self._listen,
            fault=no_answers,
            broke="The answers of the engine are not read and are again",
            passing=(RedisError, OSError),
            again=RETRY_S,
        )

    async def start(self) -> None:
        """Before the first `send`; `serve` needs it not."""
        await self._listening.start()

    async def stop(self) -> None:
        await self._listening.stop()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_result(None)
        await self._redis.aclose()

    async def send(self, origin: str, ticks: list[Tick], sent_ms: int = 0, key: str = "") -> list[str | None]:
        """For each tick None, or the code of why it was not taken."""
        number = next(self._numbers)
        answer: Answer = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            async with asyncio.timeout(self._patience_s):
                await self._request(PushRequest(number, self._replies, origin, ticks, sent_ms, key))
                codes = await answer
        except (RedisError, OSError) as error:
            not_sent.tell(error)
            raise IngestUnavailable from None
        finally:
            del self._waiting[number]
        if codes is None:
            raise IngestUnavailable
        not_sent.over()
        return codes

    async def serve(self, handler: Handler, settle: Settle | None = None) -> None:
        """Until cancelled. No answer leaves before `settle` has returned."""
        while True:
            try:
                first = await self._redis.blpop([self._requests], timeout=BLOCK_S)
                no_ticks.over()
                if first is not None:
                    await self._work_off(first[1], handler, settle)
            except (RedisError, OSError) as error:
                no_ticks.tell(error)
                await asyncio.sleep(RETRY_S)

    async def _request(self, request: PushRequest) -> None:
        lasts_us = int(self._patience_s * BEGUN_WITHIN * 1_000_000)
        if not await self._append(keys=[self._requests], args=[encode(request), lasts_us, MAX_WAITING]):
            not_sent.tell("too many of them wait")
            raise IngestUnavailable

    async def _listen(self) -> None:
        found = await self._redis.blpop([self._replies], timeout=BLOCK_S)
        if found is None:
            return
        try:
            reply = read_reply(found[1])
        except msgspec.DecodeError as error:
            logger.warning("An answer that this version does not know was dropped: %s", error)
            return
        answer = self._waiting.get(reply.number)
        if answer is not None and not answer.done():
            answer.set_result(reply.codes)

    async def _work_off(self, first: bytes, handler: Handler, settle: Settle | None) -> None:
        """What was popped, with whatever waits behind it."""
        async with self._redis.pipeline(transaction=False) as both:
            both.lpop(self._requests, AT_ONCE - 1)
            both.time()
            more, (seconds, microseconds) = await both.execute()
        # Asked after the pop and carried on from here: this process may have been stopped in between.
        redis_us, here = seconds * 1_000_000 + microseconds, time.monotonic()
        async with self._redis.pipeline(transaction=False) as answers:
            for entry in [first, *(more or [])]:
                until_us, _, data = entry.partition(b":")
                if redis_us + (time.monotonic() - here) * 1_000_000 <= int(until_us):
                    work(data, handler, answers)
                    await asyncio.sleep(0)
            if settle is not None:
                await settle()
            await answers.execute()


def work(data: bytes, handler: Handler, answers: Any) -> None:
    try:
        request = read_request(data)
    except msgspec.DecodeError as error:
        logger.warning("A request that this version does not know was dropped: %s", error)
        return
    codes: list[str | None] | None = None
    try:
        codes = handler(request.origin, request.ticks, request.sent_ms, request.key)
    except NothingKept:
        # The writer logs why, once and not for each request.
        pass
    except Exception:  # noqa: BLE001 - the top of a task: one request must not end all
        logger.exception("The engine failed at pushed ticks of %s", request.origin)
    answers.rpush(request.reply_to, encode(PushReply(request.number, codes)))
    # A web process that is no more leaves nothing behind.
    answers.expire(request.reply_to, FORGOTTEN_AFTER_S)


class NothingKept(Overloaded):
    message = (
        "Neither the database nor the disk takes anything: ticks that are taken now could be lost. Send them "
        "again later; /readyz and the log say what is wrong."
    )

    def __init__(self) -> None:
        super().__init__(retry_after=2)
