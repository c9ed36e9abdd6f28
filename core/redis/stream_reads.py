"""The entries of a Redis Stream, and a value, over one connection that costs little for each answer."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from core.deadlines import patient

from .connections import FollowingConnection, connect_redis
from .script_calls import pack

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
        """What stands under it, as new as the entries that were read before."""
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
            # What was asked may still be answered, and would be taken for the answer to the next question.
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
