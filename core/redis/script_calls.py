"""Calls to Redis over one connection, without a task or a timer for each: a script that runs again and again,
and reads of streams."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import Context
from functools import partial
from hashlib import sha1
from typing import Any, NamedTuple

from hiredis import pack_command
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, RedisError

from core.background import SLICES, cancel_and_wait
from core.deadlines import patient

from .connections import FollowingConnection, connect_redis

Outcome = Any
"""What the script returned, or the error that came instead."""


def pack(*words: str | int) -> bytes:
    # Its type is written down for one word alone.
    packer: Any = pack_command
    packed: bytes = packer(words)
    return packed


class ScriptCall:
    __slots__ = ("is_repeated", "packed", "then", "until")

    def __init__(self, packed: bytes, then: Callable[[Outcome], object], until: int) -> None:
        self.packed, self.then, self.until = packed, then, until
        self.is_repeated = False
        """Redis did not have the script, and it was sent again."""


class ScriptCalls:
    """Each call gets its outcome once, from the loop, in order. Connects at the first call, and again after
    each fault."""

    def __init__(self, url: str, script: str, patience_s: Callable[[], float]) -> None:
        """No call waits longer than `patience_s`, connecting included; what it is called with has been
        answered by then, even during a standstill of this process, which uses up only a slice of it."""
        self._redis = connect_redis(url)
        self._script, self._patience_s = script, patience_s
        self._name = sha1(script.encode(), usedforsecurity=False).hexdigest()
        self._under_way: deque[ScriptCall] = deque()
        # Calls that reached a Redis without the script. They are sent again, in order, when all have
        # returned.
        self._unknown: list[ScriptCall] = []
        self._connection: FollowingConnection | None = None
        self._serving: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._slices = 0
        # Otherwise everything that follows runs in the context of the first caller.
        self.context = Context()

    def has_room(self, most: int) -> bool:
        """Whether fewer calls than `most` are under way, and none has to be repeated before the next one."""
        return len(self._under_way) < most and not self._unknown

    def call(self, keys: list[str], numbers: Iterable[int], then: Callable[[Outcome], object]) -> None:
        packed = pack("EVALSHA", self._name, len(keys), *keys, *numbers)
        self._under_way.append(ScriptCall(packed, then, self._slices + SLICES))
        if self._connection is not None:
            self._connection.send_now(packed)
        elif self._serving is None:
            loop = asyncio.get_running_loop()
            self._serving = loop.create_task(self._serve(), name="calls of a script", context=self.context)
        if self._timer is None:
            self._start_slice()

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._hang_up(RedisConnectionError("The connection was closed"))
        await cancel_and_wait(*self._ending)
        await self._redis.aclose()

    async def _serve(self) -> None:
        """As long as a connection lasts."""
        me, pool = asyncio.current_task(), self._redis.connection_pool
        connection: FollowingConnection | None = None
        fault: Exception = RedisConnectionError("The connection was lost")
        try:
            connection = await pool.get_connection()  # type: ignore[no-untyped-call]
            # A cancellation can get lost while it connects.
            if self._serving is me:
                self._connection = connection
                end = connection.pass_replies_to(partial(self._take_from, connection))
                connection.send_now(b"".join(call.packed for call in self._under_way))
                await end
        except (RedisError, OSError) as error:
            fault = error
        finally:
            if self._serving is me:
                self._serving = self._connection = None
                self._fail(fault)
            if connection is not None:
                await connection.hang_up()
                await pool.release(connection)

    def _take_from(self, connection: FollowingConnection, outcome: Outcome) -> None:
        # Replies of an earlier connection belong to calls that have failed already.
        if connection is self._connection:
            self._take(outcome)

    def _take(self, outcome: Outcome) -> None:
        call = self._under_way.popleft()
        if isinstance(outcome, NoScriptError) and not call.is_repeated:
            self._unknown.append(call)
        else:
            call.then(outcome)
        if self._unknown and not self._under_way:
            self._repeat()

    def _repeat(self) -> None:
        """Sends the script before the calls. Its reply needs no look, because the replies to the calls show
        the same."""
        repeated, self._unknown = self._unknown, []
        telling = ScriptCall(pack("SCRIPT", "LOAD", self._script), lambda outcome: None, repeated[0].until)
        for call in repeated:
            call.is_repeated = True
        self._under_way.extend([telling, *repeated])
        if self._connection is not None:
            self._connection.send_now(b"".join(call.packed for call in self._under_way))

    def _start_slice(self) -> None:
        slice_s = self._patience_s() / SLICES
        self._timer = asyncio.get_running_loop().call_later(slice_s, self._pass_slice, context=self.context)

    def _pass_slice(self) -> None:
        self._slices += 1
        self._timer = None
        if not (self._unknown or self._under_way):
            return
        oldest = self._unknown[0] if self._unknown else self._under_way[0]
        if oldest.until > self._slices:
            self._start_slice()
        else:
            self._hang_up(TimeoutError("It did not answer in time"))

    def _hang_up(self, fault: Exception) -> None:
        serving, self._serving, self._connection = self._serving, None, None
        if serving is not None:
            serving.cancel()
            self._ending.add(serving)
            serving.add_done_callback(self._ending.discard)
        self._fail(fault)

    def _fail(self, fault: Exception) -> None:
        """For all that are under way. Redis may have counted some of them."""
        failed = [*self._unknown, *self._under_way]
        self._unknown.clear()
        self._under_way.clear()
        for call in failed:
            call.then(fault)


# The entries of a Redis Stream, and a value, over one connection that costs little for each answer.
PATIENCE_S = patient(2.0)
"""For connecting, and for an answer beyond the time for which it was asked to wait."""


class StreamEntry(NamedTuple):
    id: bytes
    fields: list[bytes]
    """Names and values in turn."""


class StreamReads:
    """Connects when it is first asked, and again after each fault."""

    def __init__(self, url: str, stream: str, count: int, block_ms: int) -> None:
        self._redis = connect_redis(url, socket_connect_timeout=PATIENCE_S)
        self._words = "XREAD", "COUNT", count, "BLOCK", block_ms, "STREAMS", stream
        self._block_s = block_ms / 1000
        self._connection: FollowingConnection | None = None

    async def after(self, last: str) -> list[StreamEntry]:
        """Waits for the next entry as long as it may, and returns all that are there."""
        answer = await self._ask(*self._words, last, within_s=self._block_s + PATIENCE_S)
        return [StreamEntry(*entry) for entry in answer[0][1]] if answer else []

    async def value(self, key: str) -> bytes | None:
        """The value under the key, at least as new as the entries read before."""
        value: bytes | None = await self._ask("GET", key, within_s=PATIENCE_S)
        return value

    async def close(self) -> None:
        await self._hang_up()
        await self._redis.aclose()

    # Any: an answer of Redis may be of many types.
    async def _ask(self, *words: str | int, within_s: float) -> Any:
        try:
            async with asyncio.timeout(within_s):
                connection = await self._connected()
                connection.send_now(pack(*words))
                return await connection.read_response()
        except BaseException:
            # A late reply would be taken for that of the next question.
            await self._hang_up()
            raise

    async def _connected(self) -> FollowingConnection:
        if self._connection is None:
            pool = self._redis.connection_pool
            self._connection = await pool.get_connection()  # type: ignore[no-untyped-call]
        return self._connection

    async def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.hang_up()
            await self._redis.connection_pool.release(connection)
