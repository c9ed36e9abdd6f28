"""The feeds by name, with their settings; and the supervisor, which runs those that instruments name."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from django.conf import settings

from core.background import cancel_and_wait
from core.clock import now_ms
from instruments.catalogue import catalogue
from instruments.facts import DEMO, PUSH, REPLAY, InstrumentFacts, feeds_of
from market.engine.engine import Engine
from market.engine.feeds.demo_feed import DemoFeed
from market.engine.feeds.feed import FeedPace, MarketFeed, Unheard
from market.engine.feeds.replay import ReplayFeed
from market.engine.venues import binance, kraken, oanda
from market.engine.venues.venue_history import LONGEST_MS
from market.prices.candles import PriceBar
from market.prices.records import Tick


class Venue(NamedTuple):
    usual_name: Callable[[str], str]
    """The venue's symbol for ours."""
    make_feed: Callable[[dict[str, str]], MarketFeed]
    """From the venue's symbols by ours."""
    addresses: tuple[str, ...]
    """The settings with its addresses."""
    other_own: tuple[str, ...] = ()
    """Addresses of its own beside those that are built in."""


VENUES = {
    "kraken": Venue(
        kraken.venue_symbol,
        lambda names: kraken.KrakenFeed(names, settings.KRAKEN_WS_URL, settings.KRAKEN_REST_URL),
        ("KRAKEN_WS_URL", "KRAKEN_REST_URL"),
    ),
    "oanda": Venue(
        oanda.venue_symbol,
        lambda names: oanda.OandaFeed(
            names,
            *(settings.OANDA_TOKEN, settings.OANDA_ACCOUNT),
            *(settings.OANDA_STREAM_URL, settings.OANDA_REST_URL),
            candle_price=settings.CANDLE_PRICE,
        ),
        ("OANDA_STREAM_URL", "OANDA_REST_URL"),
        oanda.LIVE_ADDRESSES,
    ),
    "binance": Venue(
        binance.venue_symbol,
        lambda names: binance.BinanceFeed(names, settings.BINANCE_WS_URL, settings.BINANCE_REST_URL),
        ("BINANCE_WS_URL", "BINANCE_REST_URL"),
    ),
}


def make_feed(
    name: str,
    instruments: list[InstrumentFacts],
    known_ms: Mapping[str, int] | None = None,
    since_ms: int | None = None,
) -> MarketFeed:
    """`known_ms` is the time of each symbol's last tick; a simulated series continues after it."""
    if name == DEMO:
        return DemoFeed(
            settings.DEMO_SEED,
            since_ms=since_ms or now_ms(),
            known_ms=known_ms or {},
            # Looked up at each step, because hours and digits may be edited meanwhile.
            instruments=lambda: [facts for given in instruments if (facts := catalogue.find(given.symbol))],
            rate=settings.DEMO_RATE,
        )
    if name == REPLAY:
        return ReplayFeed(settings.REPLAY_DIR, instruments, settings.REPLAY_SPEED)
    if name in VENUES:
        venue = VENUES[name]
        return venue.make_feed(venue_symbols(name, instruments, venue.usual_name))
    raise LookupError(f"There is no feed {name!r}.")


def is_moved(feed: str) -> bool:
    """Whether it is a venue's, and comes from an address that is not the venue's own."""
    venue = VENUES.get(feed)
    if venue is None:
        return False
    own = (*venue.other_own, *(settings.BUILT_IN_ADDRESSES[name] for name in venue.addresses))
    return any(getattr(settings, name).rstrip("/") not in own for name in venue.addresses)


def venue_symbols(
    feed: str, instruments: list[InstrumentFacts], usual_name: Callable[[str], str]
) -> dict[str, str]:
    """The venue's symbols by ours: the usual one, unless the instrument says `kraken:BTC/USD`."""
    names = {}
    for facts in instruments:
        given = [name.partition(":") for name in (facts.source, facts.fallback)]
        own = next((theirs for named, _, theirs in given if named == feed), "")
        names[facts.symbol] = own or usual_name(facts.symbol)
    return names


logger = logging.getLogger(__name__)
MakeFeed = Callable[[str, list[InstrumentFacts]], MarketFeed]
Wanted = dict[str, tuple[tuple[str, str, str], ...]]
"""For each feed the instruments it serves: symbol, source and fallback."""


class FeedSupervisor:
    def __init__(self, engine: Engine, make_feed: MakeFeed, publish: Callable[[], None]) -> None:
        self._engine = engine
        self._make_feed = make_feed
        self._publish = publish
        self._running: dict[str, asyncio.Task[None]] = {}
        self._serving: Wanted = {}
        self._refreshing = asyncio.Lock()

    async def stop(self) -> None:
        for name in list(self._running):
            await self._end(name)

    async def refresh(self) -> None:
        """Start, end and restart feeds to match the instruments."""
        async with self._refreshing:
            wanted = self._wanted()
            for name in list(self._running):
                if self._serving[name] != wanted.get(name):
                    await self._end(name)
            for name, serving in wanted.items():
                if name not in self._running:
                    self._serving[name] = serving
                    self._running[name] = asyncio.create_task(self._run_feed(name), name=f"{name} feed")

    def _wanted(self) -> Wanted:
        by_feed = defaultdict(list)
        for facts in catalogue.active():
            for name in feeds_of(facts.source, facts.fallback, self._engine.default_feed):
                if name.partition(":")[0] != PUSH:
                    by_feed[name].append((facts.symbol, facts.source, facts.fallback))
        return {name: tuple(sorted(serving)) for name, serving in by_feed.items()}

    async def _run_feed(self, name: str) -> None:
        receiver = EngineReceiver(self._engine, name, self._serves(name), self._publish)
        feed_state = self._engine.feed_state(name)
        feed_state.is_moved, feed_state.source_ms = is_moved(name), 0 if name in VENUES else None
        pace, clock, failures = FeedPace(), asyncio.get_running_loop().time, 0
        while True:
            began_s = clock()
            try:
                await self._make_feed(name, self._instruments(name)).run(receiver)
                if self._engine.feed_state(name).lost_ms is None:
                    receiver.lost("it has nothing more to send")
                logger.info("The %s feed has ended", name)
                return
            except Exception as error:  # noqa: BLE001 - the top of a task: what broke is logged and tried again
                logger.exception("The %s feed broke and starts again", name)
                receiver.lost(f"it broke: {error}")
            if clock() - began_s >= pace.steady_s:
                failures = 0
            await pace.sleep(pace.retry_s(failures))
            failures += 1

    async def _end(self, name: str) -> None:
        task = self._running.pop(name)
        del self._serving[name]
        await cancel_and_wait(task)

    def _serves(self, name: str) -> list[str]:
        return [symbol for symbol, _, _ in self._serving[name]]

    def _instruments(self, name: str) -> list[InstrumentFacts]:
        return [facts for symbol in self._serves(name) if (facts := catalogue.find(symbol))]


class EngineReceiver:
    """The engine as one feed sees it."""

    def __init__(self, engine: Engine, name: str, symbols: list[str], publish: Callable[[], None]) -> None:
        self._engine = engine
        self._name = name
        self._symbols = symbols
        self._publish = publish

    def take(self, ticks: list[Tick]) -> None:
        self._engine.take(self._name, ticks, now_ms())
        self._publish()

    def note_time(self, source_ms: int, ahead_ms: int) -> None:
        self._engine.feed_state(self._name).note_time(source_ms, ahead_ms)

    def begun(self) -> None:
        self._break(is_over=False)

    def _break(self, *, is_over: bool) -> None:
        at_ms = now_ms()
        for symbol in self._symbols:
            self._engine.breaks(self._name, symbol, at_ms, is_over=is_over)

    def lost(self, why: str) -> None:
        self._break(is_over=True)
        self._engine.feed_state(self._name).lost(now_ms(), why)
        logger.warning("The %s feed is lost: %s", self._name, why)

    def refuse(self, reason: str, what: str = "", symbols: Sequence[str] = ()) -> None:
        self._engine.feed_state(self._name).refuse(reason, what)
        for symbol in symbols:
            self._engine.serves_no_more(self._name, symbol)

    def missing(self) -> dict[str, int]:
        at_ms = now_ms()
        found = {}
        for symbol in self._symbols:
            state = self._engine.instruments.get(symbol)
            since_ms = self._engine.missing_since(symbol, at_ms, LONGEST_MS)
            if since_ms is not None and (state is None or state.choice.feed == self._name):
                found[symbol] = since_ms
        return found

    def unheard(self) -> dict[str, Unheard]:
        at_ms = now_ms()
        found = {}
        for symbol in self._symbols:
            facts = catalogue.find(symbol)
            if facts is not None and self._engine.is_priced_by(self._name, facts, at_ms):
                found[symbol] = self._engine.unheard(symbol, at_ms)
        return {symbol: unheard for symbol, unheard in found.items() if unheard is not None}

    def heal(self, symbol: str, trades: list[Tick], since_ms: int) -> None:
        facts, at_ms = catalogue.find(symbol), now_ms()
        if facts is not None and self._engine.is_priced_by(self._name, facts, at_ms):
            taken = self._engine.heal(symbol, trades, at_ms, since_ms)
            self._publish()
            logger.info("%s: %d missed trades counted from the history of %s", symbol, taken, self._name)

    def backfill(self, symbol: str, minutes: list[PriceBar], basis: str) -> None:
        facts, at_ms = catalogue.find(symbol), now_ms()
        # Another feed may price it by now, and its series may be of the other kind.
        if facts is None or not self._engine.is_priced_by(self._name, facts, at_ms):
            logger.info("%s: the history of %s is not taken, which does not price it now", symbol, self._name)
            return
        taken = self._engine.backfill(symbol, minutes, basis, at_ms)
        self._publish()
        logger.info("%s: %d minutes filled from the history of %s", symbol, taken, self._name)
