"""A venue's connection over a WebSocket: what is sent and when, and a sentence for every way to lose it."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import ClassVar

import httpx2
from django.conf import settings
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, InvalidURI, WebSocketException
from websockets.uri import parse_uri

from core.deadlines import patient
from core.http import open_client
from market.engine.feeds.feed import FeedPace
from market.prices.records import Tick

from .time_base import TimeBase
from .venue_feed import FeedLost, Refuse, VenueFeed, VenueLine
from .venue_history import TIMEOUT_S, TradesBefore, TradesRequest, VenueTrade
from .venue_quotes import VenueQuotes

MAX_BYTES = 1_048_576
SendToVenue = Callable[[bytes], None]


class MessageReader(ABC):
    """Our side of the venue's protocol on one connection, without a socket: it is given a way to send."""

    def __init__(self, symbols: Mapping[str, str], refuse: Refuse, say: SendToVenue) -> None:
        self.names = sorted(set(symbols.values()))
        self.refuse, self.say = refuse, say
        self.quotes, self.base = VenueQuotes(symbols, refuse), TimeBase()
        self.before: dict[str, TradesBefore] = {}
        """By the names of which the venue tells the last trades by itself."""

    @abstractmethod
    def subscribe(self) -> None: ...

    @abstractmethod
    def probe(self) -> None:
        """Say something that the venue answers."""

    def read(self, raw: bytes | str, received_ms: int) -> list[Tick]:
        self.base.receive(received_ms)
        ticks = self.read_message(raw, received_ms)
        if self.quotes.undated and self.base.is_known:
            ticks = self.quotes.date_all(self.base.date(received_ms)) + ticks
        return ticks

    @abstractmethod
    def read_message(self, raw: bytes | str, received_ms: int) -> list[Tick]: ...

    def date(self, received_ms: int) -> int | None:
        """Of a message that brings no time."""
        return self.base.date(received_ms) if self.base.is_known else None


class WebSocketFeed(VenueFeed):
    url_setting: ClassVar[str]
    path: ClassVar[str] = ""
    reader: ClassVar[type[MessageReader]]
    basis = "trades"

    def __init__(
        self,
        symbols: Mapping[str, str],
        url: str,
        rest_url: str,
        pace: FeedPace | None = None,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        super().__init__(symbols, pace, now_ms)
        self.url = url.rstrip("/") + self.path
        self.rest_url = rest_url.rstrip("/")
        self._client: httpx2.AsyncClient | None = None
        self._before: Mapping[str, TradesBefore] = {}
        self._told_by_s = 0.0
        self._is_waiting, self._unheeded = False, 0
        """For a message, and the probes that were sent meanwhile."""

    async def trades_before(self, wanted: TradesRequest) -> list[VenueTrade]:
        """All that are wanted, if the connection itself told them."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._told_by_s):
                if before := self._before.get(wanted.name):
                    return await before.all_wanted(wanted)
        return []

    async def served(self, refuse: Refuse) -> Mapping[str, str]:
        """What of `symbols` the venue has, where it does not say so itself when it is asked for more."""
        return self.symbols

    @asynccontextmanager
    async def open(self, refuse: Refuse) -> AsyncIterator[VenueLine]:
        to_say: asyncio.Queue[bytes] = asyncio.Queue()
        with raising_feed_lost(self.venue, self.url, self.url_setting):
            async with AsyncExitStack() as self._opened, self._connect() as connection:
                reader = self.reader(await self.served(refuse), refuse, to_say.put_nowait)
                reader.subscribe()
                self._before = reader.before
                self._told_by_s = asyncio.get_running_loop().time() + self.pace.clock_s
                talking = asyncio.create_task(
                    self._talk(connection, to_say, reader), name=f"{self.venue} talk"
                )
                try:
                    yield VenueLine(partial(self._receive, connection), reader.read, reader.base)
                except ConnectionClosed:
                    if talking.done() and (why := talking.result()):
                        raise FeedLost(why) from None
                    raise
                finally:
                    await _end(talking)

    def client(self) -> httpx2.AsyncClient:
        """Opened when something is missing; lives as long as the connection."""
        if self._client is None or self._client.is_closed:
            self._client = open_client(timeout=TIMEOUT_S)
            self._opened.push_async_callback(self._client.aclose)
        return self._client

    def _connect(self) -> connect:
        pace = self.pace
        try:
            parse_uri(self.url)
        except ValueError as error:
            # Not every bad port is reported as a bad address.
            raise InvalidURI(self.url, str(error)) from error
        return connect(
            self.url,
            open_timeout=pace.open_s,
            close_timeout=pace.close_s,
            max_size=MAX_BYTES,
            compression=None,
        )

    async def _receive(self, connection: ClientConnection) -> bytes:
        self._is_waiting = True
        try:
            # As bytes, so that what is not UTF-8 is one malformed message and not the end.
            return await connection.recv(decode=False)
        finally:
            self._is_waiting, self._unheeded = False, 0

    async def _talk(
        self, connection: ClientConnection, to_say: asyncio.Queue[bytes], reader: MessageReader
    ) -> str:
        """Returns why it gave the connection up, if it did."""
        # Counted in probes, so that a process that stood still itself reads first what came meanwhile.
        grace_s = patient(settings.CLOSE_GRACE_MS / 1000)
        try:
            while True:
                try:
                    async with asyncio.timeout(self.pace.probe_s):
                        text = await to_say.get()
                except TimeoutError:
                    if self._unheeded and self._unheeded * self.pace.probe_s >= grace_s:
                        connection.transport.abort()
                        return f"{self.venue} was silent, and left a probe unanswered for {grace_s:g} s"
                    self._unheeded += self._is_waiting
                    reader.base.ask(self.now_ms())
                    reader.probe()
                    continue
                await connection.send(text, text=True)
                await asyncio.sleep(self.pace.say_gap_s)
        except ConnectionClosed:
            # The reader gets the same exception, and reports it.
            return ""


async def _end(task: asyncio.Task[str]) -> None:
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()


@contextmanager
def raising_feed_lost(venue: str, url: str, setting: str) -> Iterator[None]:
    at = f"{url} ({setting})"
    try:
        yield
    except ConnectionClosed as closed:
        raise FeedLost(_closed(venue, closed)) from closed
    except InvalidStatus as refused:
        status = refused.response.status_code
        # A client that is not let in, or is asked to slow down, gains nothing by trying again soon.
        is_lasting = httpx2.codes.is_client_error(status)
        raise FeedLost(f"{at} refused the connection with HTTP {status}", is_lasting=is_lasting) from refused
    except InvalidURI as error:
        raise FeedLost(f"{at} is not the address of a WebSocket", is_lasting=True) from error
    except WebSocketException as error:
        raise FeedLost(f"{at} did not answer as a WebSocket: {error}") from error
    except TimeoutError as error:
        raise FeedLost(f"{at} did not answer in time") from error
    except OSError as error:
        raise FeedLost(f"{at} cannot be reached: {error.strerror or error}") from error


def _closed(venue: str, closed: ConnectionClosed) -> str:
    if closed.rcvd is not None and closed.rcvd_then_sent:
        return f"{venue} closed the connection: {closed.rcvd}"
    if closed.sent is not None:
        return f"the connection to {venue} was given up: {closed.sent}"
    return f"the connection to {venue} broke off"
