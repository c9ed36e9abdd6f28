"""Runs the feeds that the instruments name, each with the instruments that name it."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence

from core.background import cancel_and_wait
from core.clock import now_ms
from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts
from instruments.sources import PUSH, feeds_of
from market.engine.engine import Engine
from market.prices.candles import PriceBar
from market.prices.records import Tick

from ..venues.venue_history import LONGEST_MS
from .feed import FeedPace, MarketFeed, Unheard
from .registry import VENUES, is_moved

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
        """Start, end and begin anew what the instruments ask for now."""
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
        feed_state.is_moved, feed_state.told_ms = is_moved(name), 0 if name in VENUES else None
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

    def told(self, told_ms: int, ahead_ms: int) -> None:
        self._engine.feed_state(self._name).told(told_ms, ahead_ms)

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
