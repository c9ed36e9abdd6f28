"""Runs the engine: its clock, its feeds, its writing, and the time before, in which it follows the one that
it stands in for. It owns the tasks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from math import inf

from core.background import BackgroundLoop, cancel_and_wait
from core.clock import clock, go_on_from, now_ms
from core.fault_log import EachFault, LastingFault
from core.process import freeze_startup_objects
from core.redis.connections import AWAY
from core.threads import in_thread
from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts
from market.engine.bus.bus_reader import BusListener, PriceFollower
from market.engine.bus.local_bus import LocalBus
from market.engine.bus.redis_bus import FULL, RedisBus
from market.engine.feeds.supervisor import FeedSupervisor, MakeFeed
from market.prices.quotes import Prices
from market.prices.records import AnyRecord, JournalPosition, Tick
from market.store import retention
from market.store.series import LoadedMarket, load, reload_candles

from .engine import NO_ROOM, Engine
from .listeners import EngineListener, EngineStart, FillTerms, SymbolStanding
from .push_queue import NothingKept
from .recent_ticks import recorder
from .series_changes import SeriesChanges
from .status import EngineStatus, status_of
from .writer import LOOK_S, EngineWriter

# A stand-in has in memory what the database holds, and follows what the other engine writes: the candles of
# thousands of instruments take longer to read than prices may stand still.
logger = logging.getLogger(__name__)
TRIES, FOLLOW_RETRY_S = 10, 0.2


class StandIn:
    """Goes no further on the bus than the database has come: what was published after that belongs to the
    tail, which the engine takes up once the lease is its own."""

    def __init__(self, prices: Prices, default_feed: str, bus: LocalBus | RedisBus) -> None:
        self._prices, self._default_feed, self._bus = prices, default_feed, bus
        self._follower = PriceFollower(prices, NO_LISTENER)
        self._reached: JournalPosition | None = None
        """None: all has to be read."""
        self._stale: set[str] = set()
        """Symbols whose candles something else than an engine has written."""

    def forget(self, symbol: str) -> None:
        self._stale.add(symbol)

    def take_stale(self) -> set[str]:
        stale, self._stale = self._stale, set()
        return stale

    async def follow(self, written: JournalPosition) -> None:
        """Go on to what the database holds now."""
        if self._reached is None:
            await self.load()
            logger.info("The candles of %d instruments are in memory", len(self._prices.histories))
        elif self._stale:
            await self.load()
        elif written.epoch != self._reached.epoch or written.number > self._reached.number:
            await self._go_on(self._reached, written)

    async def load(self) -> LoadedMarket:
        """All as the database has it; only what is not known yet is read."""
        while True:
            reached, stale = self._reached, self.take_stale()
            histories = {} if reached is None else self._prices.histories
            known = {symbol: each for symbol, each in histories.items() if symbol not in stale}
            fresh = Prices(self._prices.candle_price)
            # If this fails, what is stale has to be read all the same.
            self._reached = None
            loaded = await in_thread(load, fresh, self._default_feed, known)
            reloaded = {symbol for symbol, each in fresh.histories.items() if each is not known.get(symbol)}
            self._prices.replace(fresh)
            with suppress(*AWAY):
                if reached is None or await self._go_on(reached, loaded.journal_position, but_for=reloaded):
                    self._reached = loaded.journal_position
                    return loaded

    async def _go_on(
        self, reached: JournalPosition, until: JournalPosition, but_for: Collection[str] = ()
    ) -> bool:
        """False if something is missing: then everything is reloaded."""
        records = await self._read(reached, until)
        self._reached = None
        if records is None:
            return False
        await self._follower.take([record for record in records if record.symbol not in but_for], [])
        self._reached = until
        return True

    async def _read(self, reached: JournalPosition, until: JournalPosition) -> list[AnyRecord] | None:
        if not isinstance(self._bus, RedisBus):
            return None
        for _ in range(TRIES):
            if (records := await self._bus.between(reached, until)) is not None:
                return records
            # The last of it may have reached the database first.
            await asyncio.sleep(FOLLOW_RETRY_S)
        return None


def hear_nothing(records: list[AnyRecord]) -> None:
    """For a stand-in without listeners."""


NO_LISTENER = BusListener(
    hear_nothing, lambda symbol, records, came_ms: None, lambda epoch, checkpoints: None, lambda: None
)


fault = EachFault(logger, "The market engine")
standing_waits = LastingFault(logger, "The stand-in waits for the database or Redis")
CLOCK_S = 0.25

# Instruments whose minute is closed in one piece, before others have their turn: at most 20 ms.
AT_ONCE = 50
TELL_S = 1.0

# The shortest time between two reports.
TELL_PAUSE_S = 0.1
RETRY_S = 1.0
REPEATED_AT_ONCE = 1_000

# A look at the clock this long after the last one means that the machine slept, stood still or is overloaded:
# what arrived in between waits to be read, and still counts.
AWAY_S = 1.0


class Lateness:
    """Notes each look at the clock. For a while after a late one, what arrived since the look before may be
    unread. If all looks are late, that is still no more than the delay of one."""

    def __init__(self, while_s: float) -> None:
        self._while_s = while_s
        self._looked_s = -inf
        self._late: list[tuple[float, float]] = []
        """Late looks of that while, and how late each was."""

    def look(self, now_s: float) -> float:
        """Seconds: what arrived earlier than this long ago was read. Infinite while unknown."""
        late_s, self._looked_s = now_s - self._looked_s, now_s
        self._late = [(at_s, each_s) for at_s, each_s in self._late if now_s - at_s < self._while_s]
        if late_s > AWAY_S:
            self._late.append((now_s, late_s))
        return max((each_s for _, each_s in self._late), default=0.0)


class Runner:
    """One engine with what keeps it going."""

    def __init__(
        self,
        engine: Engine,
        make_feed: MakeFeed,
        bus: LocalBus | RedisBus,
        listeners: Sequence[EngineListener] = (),
        on_status: Callable[[EngineStatus], None] = lambda status: None,
    ) -> None:
        self.engine = engine
        self.bus = bus
        engine.has_room = lambda: bus.fault != FULL
        self.listeners = listeners
        self.writer = EngineWriter(engine, bus, listeners, self.publish)
        self.series = SeriesChanges(engine, self.writer)
        self.feeds = FeedSupervisor(engine, make_feed, self.publish)
        self.stand_in = StandIn(engine.prices, engine.default_feed, bus)
        self._following: asyncio.Task[None] | None = None
        self.is_running = False
        """Between start and stop; before, it waits for the lease and knows nothing."""
        self._lateness = Lateness(engine.grace_ms / 1000)
        self._on_status = on_status
        self._tell_now = asyncio.Event()
        self._steps = 0
        """How often the machine's clock was set, as far as reported."""
        self._tasks: list[asyncio.Task[None]] = []

    async def stand_by(self) -> None:
        """Until the lease is ours, and as little as possible is left to do then."""
        while not await self.writer.try_lease():
            if self._following is None or self._following.done():
                self._following = asyncio.create_task(self._follow(), name="market stand-in")
            await asyncio.sleep(LOOK_S)

    async def _follow(self) -> None:
        try:
            await self.stand_in.follow(self.writer.lease.written)
        except Exception as error:  # noqa: BLE001 - the top of a task: what is missing is read at the start
            standing_waits.tell(error)
        else:
            standing_waits.over()
            # Now, because it blocks for a second with thousands of instruments.
            freeze_startup_objects()

    async def write_remains(self) -> None:
        """What an engine before this one published, and was killed before it wrote it."""
        await self._go_on()
        await self.stop()

    async def _go_on(self) -> None:
        self.writer.lease_lost.clear()
        self.writer.beats.start()
        if self._following is not None:
            # What it is reading is not read again.
            await self._following
        loaded = await self.stand_in.load()
        at_ms = now_ms()
        self.engine.resume(loaded.checkpoints, at_ms)
        standings = self._standings()
        tail = await self.bus.open(self.writer, loaded.journal_position)
        for number, record in enumerate(tail, 1):
            self.engine.repeat(record, at_ms)
            if number % REPEATED_AT_ONCE == 0:
                # It may span hours, and the lease has to be kept.
                await asyncio.sleep(0)
        last = [state.last.time_ms for state in self.engine.instruments.values() if state.last is not None]
        go_on_from(max(last, default=0))
        restart = partial(self.bus.restart_numbering, self.writer)
        start = EngineStart(self.epoch, self.writer.lease.hold, tail, self.fill_terms, restart, standings)
        for listener in self.listeners:
            await listener.begin(start)

    def _standings(self) -> dict[str, SymbolStanding]:
        histories = self.engine.prices.histories
        return {
            symbol: SymbolStanding(state.seq, histories[symbol].closed_until_ms if symbol in histories else 0)
            for symbol, state in self.engine.instruments.items()
        }

    async def start(self) -> None:
        self.writer.is_behind = True
        await self._go_on()
        self._lateness = Lateness(self.engine.grace_ms / 1000)
        self.is_running = True
        # Before a feed sends anything: what its source is may have changed while no engine ran.
        await self.series.settle()
        await self.series.fill_simulated()
        self.writer.is_behind = False
        self.writer.begin()
        if self.writer.lease.is_held and self.writer.flush_now.is_set():
            # A successor knows the new numbering before anything is acknowledged in it.
            await self.writer.flush()
        for facts in filter(None, map(catalogue.known, self.stand_in.take_stale())):
            await self.reload(facts)
        self._run(self._keep_time, 0, "market clock")
        self._tell_now.set()
        self._run(self._keep_telling, TELL_PAUSE_S, "market status")
        self._run(self._keep_writing, 0, "market store")
        self._tasks.append(asyncio.create_task(retention.keep_tidy(), name="market retention"))
        await self.feeds.refresh()

    async def reload(self, facts: InstrumentFacts) -> None:
        """Something else than this engine has written its candles."""
        if not self.is_running:
            self.stand_in.forget(facts.symbol)
            return
        await self.writer.flush()
        if (quote := await reload_candles(self.engine.prices, facts)) is not None:
            self.engine.go_on_from(self.engine.instrument(facts, now_ms()), quote)

    async def stop(self) -> None:
        self.is_running = False
        # First, or one that lost its lease might take it again while its feeds hang up.
        await cancel_and_wait(*self._tasks, self._following)
        self._tasks.clear()
        await self.feeds.stop()
        self.publish()
        for listener in self.listeners:
            await listener.end()
        if self.writer.lease.is_held:
            await self.writer.flush()
        await self.bus.close()
        self.writer.beats.stop()
        await self.writer.leave()
        self.engine.clear()

    def push(self, origin: str, ticks: list[Tick], sent_ms: int = 0, key: str = "") -> list[str | None]:
        """Ticks that a client pushed, and may forget once they are taken. `sent_ms` is the newest time that
        it gave one of them, or 0; `key` the public ID of its key."""
        if not self.writer.lease.is_held:
            raise NothingKept
        if not self.bus.is_whole and self.writer.is_refused:
            self.engine.refuse(origin, ticks, now_ms(), "neither the journal nor the database takes anything")
            raise NothingKept
        if sent_ms:
            clock.hear(sent_ms, now_ms())
        reasons = self.engine.take(origin, ticks, now_ms(), key)
        self.publish()
        if NO_ROOM in reasons:
            raise NothingKept
        return reasons

    def fill_terms(self, symbol: str) -> FillTerms:
        return self.engine.fill_terms(symbol, now_ms())

    def epoch(self) -> str:
        return self.bus.journal_position.epoch

    def publish(self) -> None:
        """Pass the engine's records to the listeners and the bus."""
        if self.engine.must_tell:
            self._tell_now.set()
        if self.engine.records:
            records, self.engine.records = self.engine.records, []
            for listener in self.listeners:
                listener.hear(records)
            self.bus.publish(records)

    async def _keep_time(self) -> None:
        late_s, at_ms = self._lateness.look(time.monotonic()), now_ms()
        if clock.steps != self._steps:
            # The times reported before are on another clock.
            self._steps = clock.steps
            self.tell()
        if late_s < inf:
            while self.engine.keep_time(now_ms(), round(late_s * 1000), AT_ONCE):
                self.publish()
                await asyncio.sleep(0)
            self.publish()
        # Minutes close on time: the next look is no later than the next of them.
        left_ms = MINUTE_MS - (at_ms - self.engine.grace_ms) % MINUTE_MS
        await asyncio.sleep(min(CLOCK_S, left_ms / 1000))

    async def _keep_telling(self) -> None:
        """Each second, and at once when prices are unsettled. Apart from the writing: how it is doing is
        asked most while the database does not answer."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TELL_S - TELL_PAUSE_S):
                await self._tell_now.wait()
        self.tell()

    def tell(self) -> None:
        """How the engine is doing."""
        self._tell_now.clear()
        self.engine.must_tell = False
        # Between processes only one may speak; an engine within its process speaks to that alone.
        if self.writer.lease.is_held or isinstance(self.bus, LocalBus):
            writer = self.writer.writer if self.writer.lease.is_held else ""
            bus = self.bus
            epoch, faults = bus.journal_position.epoch, (bus.has_hole, bus.fault, recorder.fault)
            status = status_of(self.engine, now_ms(), writer, epoch, clock, *faults)
            self.bus.tell(status)
            self._on_status(status)

    async def _keep_writing(self) -> None:
        if await self.writer.keep_writing():
            await self.series.settle()

    def _run(self, act: Callable[[], Awaitable[None]], pause_s: float, name: str) -> None:
        broke, again_s = f"The {name} broke and goes on", RETRY_S + pause_s
        loop = BackgroundLoop(name, act, fault=fault, broke=broke, passing=(), after=pause_s, again=again_s)
        self._tasks.append(asyncio.create_task(loop.run(), name=name))
