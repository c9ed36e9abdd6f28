"""The connection loop of every live feed, which connects, subscribes and reads while the past is filled; and
its form over a WebSocket, with a sentence for every way to lose the connection."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from functools import partial
from itertools import starmap
from typing import ClassVar, NamedTuple, NoReturn, Protocol

import httpx2
from django.conf import settings
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, InvalidURI, WebSocketException
from websockets.uri import parse_uri

from core.background import cancel_and_wait
from core.clock import clock as market_clock
from core.clock import now_ms as market_ms
from core.deadlines import patient
from core.http import open_client
from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from market.engine.feeds.feed import FeedPace, FeedReceiver, HeldTicks, Unheard
from market.engine.venues.time_base import TimeBase
from market.engine.venues.venue_history import (
    TIMEOUT_S,
    MinutesRequest,
    TradesBefore,
    TradesRequest,
    VenueTrade,
    sound_minutes,
    sound_trades,
    whole_minutes,
)
from market.engine.venues.venue_quotes import VenueQuotes
from market.prices.candles import PriceBar, interval_start
from market.prices.records import Tick

logger = logging.getLogger(__name__)

# What a hostile message may raise: msgspec's errors are ValueErrors, deep nesting is a RecursionError.
MALFORMED = (ValueError, RecursionError, OverflowError)

# After this many failures, the wait is at its cap.
SELDOM = 30

# Nothing comes for these instruments until staff name another source.
FOR_STAFF = ("unknown_symbol", "not_traded")

# After this many different complaints about one connection, more are counted but not logged.
MOST_LOGGED = 50


class Refuse(Protocol):
    def __call__(self, reason: str, what: str, name: str = "") -> None:
        """A reason to count ("malformed"), a sentence to log, and the venue's name for what does not come."""


class FeedLost(Exception):
    """The connection is gone or could not be had; the message tells the operator why."""

    def __init__(self, why: str, *, is_lasting: bool = False, wait_s: float = 0.0) -> None:
        super().__init__(why)
        self.is_lasting = is_lasting
        """Nothing will change until someone acts (a wrong key): tried again as seldom as the cap allows."""
        self.wait_s = wait_s
        """The venue asked us to stay away for so long."""


class VenueLine(NamedTuple):
    """An open connection with its subscriptions."""

    receive: Callable[[], Awaitable[bytes | str]]
    """The next message, or `FeedLost`."""
    read: Callable[[bytes | str, int], list[Tick]]
    """The ticks of a message that came at this time (ms), which may depend on messages before it. A message
    that makes no sense is a ValueError."""
    base: TimeBase


def not_served(name: str, why: str, example: str) -> str:
    return f"{name} is not served: {why}; an instrument's source can name another symbol, like {example}"


def in_batches(names: list[str], size: int) -> Iterator[list[str]]:
    for begin in range(0, len(names), size):
        yield names[begin : begin + size]


def halves(names: list[str]) -> tuple[list[str], list[str]]:
    """Where one bad name spoils a request, it is found by asking for half of them."""
    middle = len(names) // 2
    return names[:middle], names[middle:]


class VenueFeed(ABC):
    """A venue says how to open a line; this keeps one open."""

    venue: ClassVar[str]
    """Its name for people: "Kraken"."""
    quiet_ms: ClassVar[int] = 0
    """How long it says nothing of its clock, where it cannot be asked for it."""
    basis: str
    """What the bars of its history are made of."""
    rest_url: str
    """Where its history is asked for, as `rest_setting` says."""
    rest_setting: ClassVar[str]
    secrets: tuple[str, ...] = ()
    """What must not be logged."""

    def __init__(
        self,
        symbols: Mapping[str, str],
        pace: FeedPace | None = None,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        """`symbols` are the venue's names by ours."""
        self.symbols = dict(symbols)
        self.pace = pace or FeedPace()
        self.now_ms = now_ms or market_ms
        self.hear_raw: Callable[[bytes, int], None] | None = None
        """Each message as it came, and when."""
        self._failures = 0
        self._awaited: set[str] = set()
        """Whose history is on its way."""
        self._left: list[Tick] = []
        """Ticks of a connection that ended before the history came."""

    @abstractmethod
    def open(self, refuse: Refuse) -> AbstractAsyncContextManager[VenueLine]:
        """Connect and subscribe; `FeedLost` says why that could not be done. Closes what it opened."""

    @abstractmethod
    def client(self) -> httpx2.AsyncClient:
        """For its REST side, as long as the line is open."""

    @abstractmethod
    async def history(self, wanted: MinutesRequest) -> list[PriceBar]:
        """Closed minutes, oldest first, not checked yet; whatever it raises is logged."""

    async def trades(self, wanted: TradesRequest) -> list[VenueTrade]:
        """All since then, one by one, not checked yet, where a venue has trades."""
        return []

    async def run(self, receiver: FeedReceiver) -> None:
        self._failures = 0
        while True:
            lost = await self._follow(receiver)
            receiver.lost(self._masked(str(lost)))
            wait_s = max(lost.wait_s, self.pace.retry_s(SELDOM if lost.is_lasting else self._failures))
            self._failures += 1
            logger.info("%s: the next try is in %.1f s", self.venue, wait_s)
            await self.pace.sleep(wait_s)

    async def _follow(self, receiver: FeedReceiver) -> FeedLost:
        """One connection, from its opening to its end."""
        try:
            refuse = self._refuser(receiver)
            async with self.open(refuse) as line:
                logger.info("%s: connected for %d instruments", self.venue, len(self.symbols))
                held, self._left = HeldTicks(receiver, self.pace.held_at_most, self._left), []
                self._awaited.clear()
                filling = asyncio.create_task(self._fill(receiver, held), name=f"{self.venue} history")
                try:
                    # It ends in its first step where nothing is missing.
                    await asyncio.sleep(0)
                    await self._listen(line, held, refuse)
                finally:
                    awaited = frozenset(self._awaited)
                    await cancel_and_wait(filling)
                    self._left = held.leave(awaited)
        except FeedLost as lost:
            return lost
        except Exception as error:  # noqa: BLE001 - the top of a task: what broke is logged and tried again
            logger.exception("%s: the feed broke", self.venue)
            return FeedLost(f"the feed broke ({type(error).__name__})")

    async def _listen(self, line: VenueLine, held: HeldTicks, refuse: Refuse) -> NoReturn:
        silent_s, clock = self.pace.silent_s, asyncio.get_running_loop().time
        began_s = heard_s = clock()
        try:
            async with asyncio.timeout(silent_s) as patience:
                while True:
                    raw = await line.receive()
                    heard_s = clock()
                    patience.reschedule(heard_s + silent_s)
                    at_ms = self.now_ms()
                    if self.hear_raw is not None:
                        self.hear_raw(raw if isinstance(raw, bytes) else raw.encode(), at_ms)
                    try:
                        ticks = line.read(raw, at_ms)
                    except MALFORMED as error:
                        refuse("malformed", f"a message makes no sense ({error}): {raw[:200]!r}")
                    else:
                        self._tell_time(line.base, held, at_ms)
                        held.take(ticks, is_doubted=line.base.is_doubted)
                    if held.is_full:
                        await held.released.wait()
        except TimeoutError as error:
            if patience.expired():
                raise FeedLost(f"{self.venue} was silent for {silent_s:g} s") from error
            raise
        finally:
            if heard_s - began_s >= self.pace.steady_s:
                self._failures = 0

    def _tell_time(self, base: TimeBase, held: HeldTicks, at_ms: int) -> None:
        source_ms = base.source_ms + self.quiet_ms
        if base.is_known and source_ms > held.source_ms:
            market_clock.hear(base.source_ms, at_ms)
            held.tell(source_ms, base.ahead_ms)

    async def _fill(self, receiver: FeedReceiver, held: HeldTicks) -> None:
        """Ask for what is missing before the first live tick; if that fails or is late, the live feed
        goes on. Messages are read meanwhile, as the time of some is that of their receipt."""
        try:
            await self._fill_missing(receiver, held)
        except Exception:  # noqa: BLE001 - the top of a task: the live feed goes on
            logger.exception("%s: what is missing could not be filled", self.venue)
        self._awaited.clear()
        await held.release()

    async def _fill_missing(self, receiver: FeedReceiver, held: HeldTicks) -> None:
        failed: dict[str, str] = {}
        receiver.begun()
        self._awaited.update({**receiver.missing(), **receiver.unheard()})
        if not self._awaited:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self.pace.clock_s):
                await held.clocked.wait()
                # Only now it is known which minute it is there.
                receiver.begun()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.pace.history_s):
                # First, because the minutes of the history close those before them.
                await self._heal(receiver, failed)
                upto_ms = 0
                # A minute that ended meanwhile was heard in part, if at all.
                while (end_ms := interval_start(self.now_ms(), MINUTE_MS)) > upto_ms:
                    upto_ms = end_ms
                    await self._fill_until(end_ms, receiver, failed)
        self._log_failures(failed)

    async def _heal(self, receiver: FeedReceiver, failed: dict[str, str]) -> None:
        """Ask for the trades that open minutes lack, one by one."""
        wanted = {name: each for name, each in receiver.unheard().items() if name in self.symbols}
        gate = asyncio.Semaphore(self.pace.history_at_once)

        async def heal(symbol: str, unheard: Unheard) -> None:
            request = TradesRequest(self.client(), self.rest_url, self.symbols[symbol], *unheard)
            try:
                async with gate:
                    trades = sound_trades(await self.trades(request), request)
            except Exception as error:  # noqa: BLE001 - the top of a task: whatever it is, the live feed goes on
                failed[symbol] = str(error) or repr(error)
                return
            receiver.heal(symbol, [trade.tick(symbol) for trade in trades], unheard.since_ms)

        await asyncio.gather(*starmap(heal, wanted.items()))

    async def _fill_until(self, end_ms: int, receiver: FeedReceiver, failed: dict[str, str]) -> None:
        missing = receiver.missing().items()
        wanted = {name: ms for name, ms in missing if name in self.symbols and ms < end_ms}
        gate = asyncio.Semaphore(self.pace.history_at_once)
        self._awaited.update(wanted)
        failed |= dict.fromkeys(wanted, f"not within {self.pace.history_s:g} s")

        async def fill(symbol: str, start_ms: int) -> None:
            try:
                async with gate:
                    minutes = await self._minutes(self._request(symbol, start_ms, end_ms))
                receiver.backfill(symbol, minutes, self.basis)
                del failed[symbol]
            except Exception as error:  # noqa: BLE001 - the top of a task: whatever it is, the live feed goes on
                failed[symbol] = str(error) or repr(error)
            self._awaited.discard(symbol)

        await asyncio.gather(*starmap(fill, wanted.items()))

    def _request(self, symbol: str, start_ms: int, end_ms: int) -> MinutesRequest:
        facts, between = catalogue.find(symbol), whole_minutes(start_ms, end_ms)
        counted = facts is not None and facts.volume_kind == "ticks"
        return MinutesRequest(self.client(), self.rest_url, self.symbols[symbol], *between, counted)

    async def _minutes(self, wanted: MinutesRequest) -> list[PriceBar]:
        if wanted.start_ms >= wanted.end_ms:
            return []
        minutes, refused = sound_minutes(await self.history(wanted), wanted.start_ms, wanted.end_ms)
        if refused:
            name = f"{self.venue} {wanted.name}"
            logger.warning("%s: %d bars of its history make no sense", name, refused)
        return minutes

    def _log_failures(self, failed: Mapping[str, str]) -> None:
        """One line for each reason, however many instruments it concerns."""
        at = f"{self.rest_url} ({self.rest_setting})" if failed else ""
        for why in dict.fromkeys(failed.values()):
            symbols = ", ".join(symbol for symbol in failed if failed[symbol] == why)
            why = self._masked(why)
            logger.warning("%s: no history of %s from %s: %s", self.venue, symbols, at, why)

    def _masked(self, text: str) -> str:
        """A venue may repeat what it was asked with."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text

    def _refuser(self, receiver: FeedReceiver) -> Refuse:
        logged: set[str] = set()

        def refuse(reason: str, what: str, name: str = "") -> None:
            what = self._masked(what)
            symbols = [ours for ours, theirs in self.symbols.items() if theirs == name] if name else []
            receiver.refuse(reason, what if reason in FOR_STAFF else "", symbols)
            if what not in logged and len(logged) < MOST_LOGGED:
                logged.add(what)
                logger.warning("%s: %s", self.venue, what)

        return refuse


MAX_BYTES = 1_048_576
SendToVenue = Callable[[bytes], None]


class MessageReader(ABC):
    """Our side of the venue's protocol on one connection, without a socket: it is given a way to send."""

    def __init__(self, symbols: Mapping[str, str], refuse: Refuse, say: SendToVenue) -> None:
        self.names = sorted(set(symbols.values()))
        self.refuse, self.say = refuse, say
        self.quotes, self.base = VenueQuotes(symbols, refuse), TimeBase()
        self.before: dict[str, TradesBefore] = {}
        """By the names whose last trades the venue sends without a request."""

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
        """All that are wanted, if the connection itself sent them."""
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
