"""The market of this process: what other rooms may ask of it."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from math import inf
from typing import Any, NamedTuple

from django.conf import settings

from core.clock import clock
from core.clock import now_ms as now_ms
from core.deadlines import patient
from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts, default_feed
from market.engine.bus.bus_reader import (
    BusListener,
    BusReader,
    FollowedSymbols,
    NumberingListener,
    ReplicaWatch,
)
from market.engine.bus.journal import RecentRecords, RecordKeeper, RecordListener, StreamNumbers
from market.engine.bus.local_bus import LocalBus, LocalJournal
from market.engine.bus.redis_bus import RedisBus
from market.engine.engine import Engine
from market.engine.feeds.feed import MarketFeed
from market.engine.feeds.supervisor import make_feed
from market.engine.listeners import EngineListener
from market.engine.push_queue import PushQueue
from market.engine.runner import Runner
from market.engine.tick_pages import FoundTicks, TickPlace, WantedTicks
from market.prices.candles import key_of_candles
from market.prices.quotes import Prices, Quote
from market.prices.records import AnyRecord, StatusRecord, Tick
from market.store.checkpoints import Checkpoint
from market.store.series import reload_candles

from .engine import status as engine_status
from .models import EngineState

logger = logging.getLogger(__name__)

# An engine says each second how it is doing.
SILENT_S = patient(2.25)
LOOK_S = 0.25

# A look that is this late means that this process was held up: what arrived has not been read yet.
HELD_UP_S = 1.0

# One that is this late means that what arrived is old: the machine slept, or the process was stopped.
STOOD_STILL_S = 5.0
SHOWN_FIRST = ("EURUSD", "BTCUSD")


def bus_url() -> str:
    """Of the Redis that takes ticks and passes them on; empty where the engine is part of the one process."""
    return settings.BUS_REDIS_URL or settings.REDIS_URL


class EngineLiveness:
    """Whether this process hears the engine, and how far it may be behind in reading what came for it."""

    def __init__(self) -> None:
        self.watchers: list[Callable[[bool], None]] = []
        """Called with whether the engine is heard, each time that this changes."""
        self.is_heard = True
        self.losses = 0
        # Before the start there are no looks, so nothing is late.
        self._heard_s, self._looked_s = 0.0, inf
        self._reads_old = self._is_behind = False
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self.is_heard, self._reads_old, self._is_behind = True, False, False
        self._heard_s = self._looked_s = time.monotonic()
        self._timer = loop.call_later(LOOK_S, self._look, loop)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.is_heard, self._looked_s = True, inf

    def heard(self, now_s: float) -> None:
        if self._is_behind:
            return
        self._heard_s = now_s
        if now_s - self._looked_s > STOOD_STILL_S + LOOK_S:
            # What arrives may have waited as long, so clients are informed before it is passed on.
            self.look(now_s)
        elif not self.is_heard and not self._reads_old:
            self._turn(True)

    def look(self, now_s: float) -> None:
        late_s, self._looked_s = now_s - self._looked_s - LOOK_S, now_s
        if late_s > STOOD_STILL_S:
            self._stood_still(late_s)
        elif late_s > HELD_UP_S:
            self._heard_s = max(self._heard_s, now_s - SILENT_S + LOOK_S)
        elif self._reads_old:
            self._reads_old = False
            if now_s - self._heard_s <= SILENT_S:
                self._turn(True)
        elif self.is_heard and now_s - self._heard_s > SILENT_S:
            self.losses += 1
            logger.warning("The market engine is not heard: the streams are stale")
            self._turn(False)

    def fall_behind(self, is_behind: bool) -> None:
        """What is heard is older than it may be, so it does not count."""
        self._is_behind = is_behind
        if is_behind and self.is_heard:
            self.losses += 1
            self._turn(False)

    def _stood_still(self, late_s: float) -> None:
        logger.warning("This process stood still for %.0f s: the streams are stale", late_s)
        self._reads_old = True
        if self.is_heard:
            self._turn(False)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(LOOK_S, self._look, loop)
        self.look(time.monotonic())

    def _turn(self, is_heard: bool) -> None:
        self.is_heard = is_heard
        for on_change in self.watchers:
            on_change(is_heard)


def given_numbers(engine: Engine) -> StreamNumbers:
    """How far the streams' numbers have come."""
    numbers = StreamNumbers()
    for symbol, checkpoint in engine.numbers().items():
        numbers[symbol] = checkpoint.seq, checkpoint.flow_seq
        for timeframe, seq in checkpoint.candle_seqs.items():
            numbers[key_of_candles(symbol, timeframe)] = seq, 0
    return numbers


ReadArchived = Callable[[WantedTicks, TickPlace | None], Awaitable[FoundTicks]]
"""Ticks of finished days, up to the place where those begin that are kept here; None if there are none."""


class Listener(NamedTuple):
    """See `MarketRuntime.listen`."""

    hear: RecordListener
    begin: NumberingListener
    keep: RecordKeeper
    followed: FollowedSymbols


class MarketRuntime:
    """The prices of this process and who makes them: an engine of its own, or one beside it on the bus."""

    def __init__(self) -> None:
        self.prices = Prices(settings.CANDLE_PRICE)
        self.engine = Engine(self.prices, default_feed(settings.DEMO), settings.CLOSE_GRACE_MS)
        self.status = engine_status.EngineStatus()
        """The engine's latest report about itself."""
        self.is_untold = False
        """It follows an engine that has not reported yet."""
        self.runner: Runner | None = None
        self._reader: BusReader | None = None
        self._replica: ReplicaWatch | None = None
        self._push_queue: PushQueue | None = None
        self._listeners: list[Listener] = []
        self.liveness = EngineLiveness()
        self.engine_listeners: list[EngineListener] = []
        """Follow each decision of an engine in this process, and write within its transactions."""
        self.read_archived: ReadArchived | None = None
        """Set by the archive, a room above."""

    async def start(self) -> None:
        if bus_url():
            self._push_queue = PushQueue(bus_url())
            await self._push_queue.start()
            url = settings.BUS_REPLICA_URL or bus_url()
            self.is_untold = True
            listener = BusListener(self._hear, self._keep, self._begin, self._followed, self._take_status)
            self._reader = reader = BusReader(url, self.prices, listener)
            checkpoints = await reader.start()
            if settings.BUS_REPLICA_URL:
                self._replica = ReplicaWatch(
                    bus_url(), lambda: reader.journal_position, self.liveness.fall_behind
                )
                await self._replica.start()
            self._begin(self._reader.journal_position.epoch, checkpoints)
            self.liveness.start()
            return
        self.runner = self.own_engine()
        await self.runner.writer.take_over()
        await self.runner.start()
        self._begin(self.runner.bus.journal_position.epoch, self.engine.numbers())
        self.liveness.start()

    async def stop(self) -> None:
        self.liveness.stop()
        for part in (self._replica, self._push_queue, self._reader, self.runner):
            if part is not None:
                await part.stop()
        self._replica = self._push_queue = self._reader = self.runner = None
        self.engine.clear()
        self.status, self.is_untold = engine_status.EngineStatus(), False

    async def write_remains(self) -> None:
        """Of an engine that was killed, unless another one runs and has written them."""
        await catalogue.load()
        runner = self.separate_engine() if bus_url() else self.own_engine()
        if await runner.writer.try_lease():
            await runner.write_remains()
        self.runner = None

    def own_engine(self) -> Runner:
        """Within this process."""
        journal = LocalJournal(settings.VAR_DIR / "journal", partial(given_numbers, self.engine))
        return Runner(self.engine, self.make_feed, LocalBus(self._hear, journal), self.engine_listeners)

    def separate_engine(self) -> Runner:
        """For a process that does nothing else: the web processes hear of it over Redis."""
        bus = RedisBus(bus_url())
        listeners = self.engine_listeners
        self.runner = Runner(self.engine, self.make_feed, bus, listeners, self._note_status)
        return self.runner

    def _take_status(self, status: bytes) -> None:
        self._note_status(engine_status.read_status(status))

    def _note_status(self, status: engine_status.EngineStatus) -> None:
        self.status, self.is_untold = status, False

    def is_unsettled(self, symbol: str) -> bool:
        return self.is_untold or symbol in self.status.unsettled

    @property
    def epoch(self) -> str:
        source = self._reader if self.runner is None else self.runner.bus
        return "" if source is None else source.journal_position.epoch

    def listen(
        self,
        hear: RecordListener,
        begin: NumberingListener,
        keep: RecordKeeper,
        followed: FollowedSymbols = set,
    ) -> None:
        """`hear` gets records after they have been applied, and `keep` those of symbols that no client wanted
        when they came. `begin` gets where they begin: when the market starts, and when it goes on after
        something was missed. `followed` returns the symbols whose records `hear` wants at once."""
        self._listeners.append(Listener(hear, begin, keep, followed))

    def _followed(self) -> Collection[str] | None:
        found = [each.followed() for each in self._listeners]
        return None if None in found else set().union(*filter(None, found))

    def follow(self, symbols: Collection[str] | None) -> None:
        """From now on, clients are sent the frames of these symbols, or of all. Nothing may be awaited
        between this and the subscription."""
        if self._reader is not None and symbols is None:
            self._reader.follower.follow_all()
        elif self._reader is not None:
            self._reader.follower.follow(symbols or ())

    async def push(self, origin: str, ticks: list[Tick], sent_ms: int = 0, key: str = "") -> list[str | None]:
        """Ticks from outside; for each the reason why it was refused. The rest is as in `Runner.push`."""
        if self._push_queue is not None:
            return await self._push_queue.send(origin, ticks, sent_ms, key)
        if self.runner is None:
            return ["not_running"] * len(ticks)
        return self.runner.push(origin, ticks, sent_ms, key)

    def make_feed(self, name: str, instruments: list[InstrumentFacts]) -> MarketFeed:
        """What is simulated goes on where the store ends, and not before it began."""
        known_ms = {symbol: state.known_ms for symbol, state in self.engine.instruments.items()}
        closed_ms = [self.prices.history(facts).last_closed_ms("1m") or 0 for facts in instruments]
        since_ms = max(closed_ms, default=0) + MINUTE_MS or now_ms()
        return make_feed(name, instruments, known_ms, since_ms)

    def take_recent(self) -> RecentRecords:
        """What the streams were sent lately in this numbering; returned once, to the first caller."""
        bus = None if self.runner is None else self.runner.bus
        return bus.take_recent() if isinstance(bus, LocalBus) else RecentRecords()

    def _hear(self, records: list[AnyRecord]) -> None:
        self.liveness.heard(time.monotonic())
        for record in records:
            if type(record) is StatusRecord:
                self._hear_status(engine_status.read_status(record.status))
        for listener in self._listeners:
            listener.hear(records)

    def _hear_status(self, status: engine_status.EngineStatus) -> None:
        if self._reader is not None:
            clock.lead(status.at_ms)
        if status.epoch:
            # Of an engine within this process, or of release 0.1.0.
            self._note_status(status)
        elif self._reader is not None:
            self._reader.must_read_status = True

    def _keep(self, symbol: str, records: list[AnyRecord], came_ms: list[int]) -> None:
        for listener in self._listeners:
            listener.keep(symbol, records, came_ms)

    def _begin(self, epoch: str, checkpoints: Mapping[str, Checkpoint]) -> None:
        for listener in self._listeners:
            listener.begin(epoch, checkpoints)

    async def refresh_feeds(self, _: dict[str, Any]) -> None:
        if self.runner is not None and self.runner.is_running:
            await self.runner.series.settle()
            await self.runner.feeds.refresh()
        for facts in filter(self.prices.rounds_otherwise, catalogue.all()):
            await self.reload({"symbol": facts.symbol})

    async def reload(self, event: dict[str, Any]) -> None:
        facts = catalogue.known(event["symbol"])
        if facts is None:
            return
        self.follow([facts.symbol])
        if self.runner is not None:
            await self.runner.reload(facts)
        elif (quote := await reload_candles(self.prices, facts)) is not None:
            self.prices.quotes.put(quote, facts.digits)


market = MarketRuntime()
prices, engine = market.prices, market.engine
start, stop, push, listen = market.start, market.stop, market.push, market.listen
follow, take_recent = market.follow, market.take_recent


def is_heard() -> bool:
    """Whether this process hears an engine."""
    return market.liveness.is_heard


def quote(symbol: str) -> Quote | None:
    return prices.quote(symbol)


def epoch() -> str:
    """Of the numbers that this process' quotes have."""
    return market.epoch


def feeds(facts: InstrumentFacts) -> tuple[str, ...]:
    """Those that its prices may come from."""
    return market.engine.feeds(facts)


def is_unsettled(symbol: str) -> bool:
    """Whether its price may be another than this process knows: one was refused and may yet be confirmed."""
    return market.is_unsettled(symbol)


def is_lagging(symbol: str) -> bool:
    """Whether its prices come too late to be filled at."""
    return symbol in market.status.lagging


def own_ms(symbol: str) -> int:
    """Now, by the clock that its prices are dated by."""
    quote = prices.quotes.get(symbol)
    return now_ms() - (0 if quote is None else quote.ahead_ms)


def state(facts: InstrumentFacts) -> str:
    return prices.state(facts, now_ms())


def open_symbol(**_: Any) -> str:
    """One that trades now, so that an example has something to show; any other where none does."""
    offered = [facts for facts in catalogue.offered() if state(facts) == "open"] or catalogue.offered()
    symbols = [facts.symbol for facts in offered]
    return next((symbol for symbol in SHOWN_FIRST if symbol in symbols), (symbols or SHOWN_FIRST)[0])


def epoch_written() -> str:
    """Of the numbers in the database."""
    return EngineState.objects.values_list("epoch", flat=True).first() or ""


def status() -> engine_status.EngineStatus:
    return market.status
