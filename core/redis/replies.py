"""The replies of a connection, each passed on as it arrives, without a task that waits for it."""

import asyncio
from collections.abc import Callable
from typing import Any, NoReturn

import hiredis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import InvalidResponse, OutOfMemoryError, RedisError

INCOMPLETE = object()
HAS_ENDED = "Redis closed the connection"
HAS_CHANGED = "Redis has become a replica and takes nothing"


def is_of_replica(error: RedisError) -> bool:
    # Before Redis 7, what a script met comes as an error without a kind, which quotes this.
    return "READONLY" in str(error)


def is_of_full(error: BaseException) -> bool:
    """Whether Redis has no memory left for a write."""
    # The client strips the kind of an error. Before Redis 7, what a script met quotes it.
    return isinstance(error, OutOfMemoryError) or "-OOM" in str(error)


class Replies(asyncio.Protocol):
    """Replaces the protocol of a stream that is no longer read from."""

    def __init__(
        self,
        stream: asyncio.BaseProtocol,
        take: Callable[[Any], object],
        make_error: Callable[[str], Exception],
    ) -> None:
        self._stream, self._take = stream, take
        # Its types are written down for text alone.
        make_reader: Any = hiredis.Reader
        self._reader = make_reader(
            protocolError=InvalidResponse, replyError=make_error, notEnoughData=INCOMPLETE
        )
        self.end: asyncio.Future[NoReturn] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        reader = self._reader
        reader.feed(data)
        while not self.end.done():
            try:
                reply = reader.gets()
            except RedisError as error:
                self._lose(error)
                return
            if reply is INCOMPLETE:
                return
            if isinstance(reply, RedisConnectionError):
                self._lose(reply)
            elif isinstance(reply, RedisError) and is_of_replica(reply):
                self._lose(RedisConnectionError(HAS_CHANGED))
            elif not isinstance(reply, hiredis.PushNotification):
                self._take(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose(RedisConnectionError(str(exc) if exc else HAS_ENDED))
        # A caller that closes the stream may wait for this.
        self._stream.connection_lost(exc)

    def _lose(self, fault: Exception) -> None:
        if not self.end.done():
            self.end.set_exception(fault)
