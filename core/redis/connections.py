"""Clients of Redis, made of addresses. Behind an address is one server, or whichever Sentinel names."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from django.conf import settings
from redis import Redis as SyncRedis
from redis import sentinel as sync_sentinel
from redis.asyncio import Redis
from redis.asyncio.connection import (
    AbstractConnection,
    Connection,
    ConnectionPool,
    SSLConnection,
    UnixDomainSocketConnection,
)
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import (
    MasterNotFoundError,
    SentinelConnectionPool,
    SentinelManagedConnection,
    SentinelManagedSSLConnection,
)
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError
from redis.retry import Retry as SyncRetry

from core.background import cancel_and_wait
from core.deadlines import patient

from .replies import HAS_CHANGED, HAS_ENDED, Replies, is_of_replica
from .urls import RedisAddress, read_redis_address

# Connecting to the server itself takes more time, and some callers wait half a second at most.
SENTINEL_WITHIN_S = patient(0.25)
ASKED = ("SENTINEL MASTER", "SENTINEL GET-MASTER-ADDR-BY-NAME")
AWAY = (RedisError, OSError)

# The library would send its name to the server, which few Redis users may do, and which costs a round trip.
UNNAMED: dict[str, Any] = {"driver_info": None}


def key_of(name: str) -> str:
    """The name of a key or channel in Redis: installations that share one have different prefixes."""
    return f"{settings.REDIS_PREFIX}:{name}"


def connect_redis(url: str, **options: Any) -> Redis:
    """Connects when it is first used, and again after each fault."""
    address = read_redis_address(url)
    given = address.options | options | UNNAMED
    if address.sentinels:
        kind = EncryptedMasterConnection if address.is_encrypted else MasterConnection
        asks = SentinelGroup(address)
        # Its types are not written down.
        make_pool: Any = SentinelConnectionPool
        return Redis.from_pool(make_pool(address.master, asks, connection_class=kind, **given))
    single = SocketConnection if address.is_socket else TcpConnection
    return Redis.from_pool(ConnectionPool(EncryptedConnection if address.is_encrypted else single, **given))


def connect_shared(**options: Any) -> Redis | None:
    """To the Redis in which processes keep what they share; None where one process serves alone."""
    return connect_redis(settings.REDIS_URL, **options) if settings.REDIS_URL else None


def connect_redis_of_threads(url: str, **options: Any) -> SyncRedis:
    """For code that runs in a thread and cannot await."""
    address = read_redis_address(url)
    given: dict[str, Any] = {**address.options, **options, **UNNAMED, "retry": SyncRetry(NoBackoff(), 0)}
    if not address.sentinels:
        if address.is_socket:
            given["unix_socket_path"] = given.pop("path")
        return SyncRedis(ssl=address.is_encrypted, **given)
    make_pool: Any = sync_sentinel.SentinelConnectionPool
    asks = SentinelGroupOfThreads(address)
    return SyncRedis.from_pool(make_pool(address.master, asks, ssl=address.is_encrypted, **given))


class FollowingConnection(AbstractConnection):
    """Hangs up on a server that has become a replica: behind the same address there may be another by now."""

    async def read_response(self, *args: Any, **options: Any) -> Any:
        try:
            return await super().read_response(*args, **options)
        except ResponseError as error:
            if not is_of_replica(error):
                raise
            await self.disconnect()
            raise RedisConnectionError(HAS_CHANGED) from None

    def pass_replies_to(self, take: Callable[[Any], object]) -> "asyncio.Future[NoReturn]":
        """Passes each further reply of an open connection to `take`. The future fails when the connection
        ends."""
        stream, writer = self._reader, self._writer
        if stream is None or writer is None or stream.at_eof() or writer.is_closing():
            raise RedisConnectionError(HAS_ENDED)
        transport = writer.transport
        replies = Replies(transport.get_protocol(), take, self._parser.parse_error)
        transport.set_protocol(replies)
        return replies.end

    def send_now(self, packed: bytes) -> None:
        """Over an open connection. If it is lost, the replies end with that fault."""
        if self._writer is not None:
            self._writer.write(packed)

    async def hang_up(self) -> None:
        """At once, whatever is on its way. An encrypted connection would otherwise wait for the goodbye of a
        server that may never say it."""
        if self._writer is not None:
            self._writer.transport.abort()
        await self.disconnect(nowait=True)


class TcpConnection(FollowingConnection, Connection):
    pass


class EncryptedConnection(FollowingConnection, SSLConnection):
    pass


class SocketConnection(FollowingConnection, UnixDomainSocketConnection):
    pass


class MasterConnection(FollowingConnection, SentinelManagedConnection):
    pass


class EncryptedMasterConnection(FollowingConnection, SentinelManagedSSLConnection):
    pass


class NamedMaster(NamedTuple):
    """The answer of one Sentinel."""

    epoch: int
    """Counts the failovers: a Sentinel that was cut off names an older master with a smaller one."""
    host: str
    port: int
    is_down: bool


def read_named(answers: list[Any]) -> NamedMaster:
    for answer in answers:
        if isinstance(answer, RedisError):
            raise answer
    state, found = answers
    host, port = (text.decode() if isinstance(text, bytes) else text for text in found)
    is_same = (state["ip"], int(state["port"])) == (host, int(port))
    is_down = is_same and bool(state["is_sdown"] or state["is_odown"])
    return NamedMaster(int(state["config-epoch"]), host, int(port), is_down)


def choose(name: str, named: Sequence[NamedMaster], faults: Sequence[str]) -> tuple[str, int]:
    if not named:
        raise MasterNotFoundError(f"No Sentinel says where {name!r} is: {'; '.join(sorted(set(faults)))}")
    newest = max(each.epoch for each in named)
    for each in named:
        if each.epoch == newest and not each.is_down:
            return each.host, each.port
    raise MasterNotFoundError(f"Sentinel takes {name!r} for down, and no other server has taken over yet")


class SentinelGroup:
    """Asks all Sentinels at once, and heeds the newest answer: of those who came first, if they are more than
    half, and otherwise of however many answer."""

    def __init__(self, address: RedisAddress) -> None:
        self._sentinels, self._most = address.sentinels, len(address.sentinels) // 2 + 1
        self._options = address.sentinel_options | UNNAMED | {"ssl": address.is_encrypted}

    async def discover_master(self, name: str) -> tuple[str, int]:
        """Called by the pool of connections for each new one."""
        asking = [asyncio.create_task(self._ask(name, *each), name="a Sentinel") for each in self._sentinels]
        named: list[NamedMaster] = []
        faults: list[str] = []
        try:
            for answer in asyncio.as_completed(asking):
                try:
                    named.append(await answer)
                except AWAY as error:
                    faults.append(str(error) or type(error).__name__)
                if len(named) >= self._most:
                    break
        finally:
            await cancel_and_wait(*asking)
        return choose(name, named, faults)

    async def _ask(self, name: str, host: str, port: int) -> NamedMaster:
        sentinel = Redis(host=host, port=port, retry=Retry(NoBackoff(), 0), **self._options)
        try:
            async with asyncio.timeout(SENTINEL_WITHIN_S), sentinel.pipeline(transaction=False) as asked:
                for question in ASKED:
                    asked.execute_command(question, name)
                return read_named(await asked.execute(raise_on_error=False))
        finally:
            # Shielded, because a timeout at this moment must not leave it open.
            await asyncio.shield(sentinel.aclose())


class SentinelGroupOfThreads:
    """The synchronous version, until more than half have answered or all were asked."""

    def __init__(self, address: RedisAddress) -> None:
        self._sentinels, self._most = address.sentinels, len(address.sentinels) // 2 + 1
        within = {"socket_timeout": SENTINEL_WITHIN_S, "socket_connect_timeout": SENTINEL_WITHIN_S}
        self._options = address.sentinel_options | UNNAMED | {"ssl": address.is_encrypted} | within

    def discover_master(self, name: str) -> tuple[str, int]:
        named: list[NamedMaster] = []
        faults: list[str] = []
        for host, port in self._sentinels:
            try:
                named.append(self._ask(name, host, port))
            except AWAY as error:
                faults.append(str(error))
            if len(named) >= self._most:
                break
        return choose(name, named, faults)

    def _ask(self, name: str, host: str, port: int) -> NamedMaster:
        once = SyncRetry(NoBackoff(), 0)
        with (
            SyncRedis(host=host, port=port, retry=once, **self._options) as sentinel,
            sentinel.pipeline(transaction=False) as asked,
        ):
            for question in ASKED:
                asked.execute_command(question, name)
            return read_named(asked.execute(raise_on_error=False))
