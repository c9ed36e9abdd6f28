"""The connection loop of every live feed: connect, subscribe, read while the past is filled, and again."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from itertools import starmap
from typing import ClassVar, NamedTuple, NoReturn, Protocol

import httpx2

from core.background import cancel_and_wait
from core.clock import clock as market_clock
from core.clock import now_ms as market_ms
from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from market.engine.feeds.feed import FeedPace, FeedReceiver, HeldTicks, Unheard
from market.prices.candles import PriceBar, interval_start
from market.prices.records import Tick

from .time_base import TimeBase
from .venue_history import (
    MinutesRequest,
    TradesRequest,
    VenueTrade,
    sound_minutes,
    sound_trades,
    whole_minutes,
)

logger = logging.getLogger(__name__)

# What a hostile message may raise: msgspec's errors are ValueErrors, deep nesting is a RecursionError.
MALFORMED = (ValueError, RecursionError, OverflowError)

# So many failures that the wait is at its cap.
SELDOM = 30

# Nothing comes for these instruments until somebody names another source.
FOR_STAFF = ("unknown_symbol", "not_traded")

# After so many different complaints about one connection, more are counted but not logged.
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
    """An open connection that has been told what to send."""

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
        """What the last connection said of them, when it ended before the history came."""

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
        told_ms = base.told_ms + self.quiet_ms
        if base.is_known and told_ms > held.told_ms:
            market_clock.hear(base.told_ms, at_ms)
            held.tell(told_ms, base.ahead_ms)

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
