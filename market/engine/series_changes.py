"""Simulated and real prices of an instrument are two series: one ends and the other goes on when its feeds
change. Simulated minutes are filled in for the time in which no engine ran."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial

from core.clock import now_ms
from core.database import UNANSWERED
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.threads import in_thread
from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from instruments.facts import DEMO, IMPORTED, InstrumentFacts, is_simulated
from market.engine.bus.local_bus import LocalBus
from market.prices.candles import interval_start
from market.prices.history import History
from market.prices.records import MarketClosed, SeriesBegan
from market.simulated_past import fill_gap, last_quote
from market.store.checkpoints import Checkpoint
from market.store.lease import LeaseLost
from market.store.series import change_kind, load_series, lock_series

from .admission import FeedChoice
from .engine import NEVER_MS, Engine
from .instrument_state import InstrumentState
from .listeners import SeriesEnding
from .writer import EngineWriter

logger = logging.getLogger(__name__)


class SeriesChanges:
    def __init__(self, engine: Engine, writer: EngineWriter) -> None:
        self._engine, self._writer = engine, writer
        self._changing = asyncio.Lock()

    async def settle(self) -> None:
        """Change the series of instruments whose feeds are of the other kind now. What cannot be done is
        tried again with the next writing."""
        async with self._changing:
            for facts in catalogue.all():
                state = self._engine.instrument(facts, now_ms())
                if state.simulated == is_simulated(self._engine.feeds(facts)[0]):
                    self._take_up_again(state)
                elif self._writer.lease.is_held:
                    try:
                        await self._change_kind(state)
                    except UNANSWERED as error:
                        logger.warning(
                            "%s waits for the database before it gets new prices: %s", facts.symbol, error
                        )
                    except LeaseLost:
                        self._writer.lose_lease()

    async def fill_simulated(self) -> None:
        """Minutes of the simulated market for the time when no engine ran; their ticks were never sent."""
        at_ms = now_ms()
        simulated = [facts for facts in catalogue.active() if self._engine.is_priced_by(DEMO, facts, at_ms)]
        if not simulated or not self._writer.lease.is_held:
            return
        # What formed when the last engine ended is closed by now, and stays as it was sent.
        for facts in simulated:
            self._engine.end_until(self._engine.instrument(facts, at_ms), at_ms)
        filled: list[InstrumentFacts] = []
        try:
            if await self._writer.flush():
                for facts in simulated:
                    # Before it is known whether there was anything: it may be written and fail then.
                    filled.append(facts)
                    if not await _fill_simulated(self._engine, facts, at_ms):
                        filled.remove(facts)
        except UNANSWERED as error:
            logger.warning("The simulated market continues with a gap: %s", error)
        finally:
            if filled:
                await self._tell_filled(filled)

    async def _tell_filled(self, filled: list[InstrumentFacts]) -> None:
        writer = self._writer
        try:
            for listener in writer.listeners:
                await listener.stored({facts.symbol for facts in filled})
            writer.is_behind = False
            if await writer.flush() and not isinstance(writer.bus, LocalBus):
                await in_thread(_tell_reloaded, filled)
        except UNANSWERED as error:
            logger.warning("The simulated minutes are not announced yet: %s", error)

    def _take_up_again(self, state: InstrumentState) -> None:
        """Its series was to end, and is not any more: staff put the source back before that was written."""
        if state.choice.admits_none:
            state.choose(FeedChoice(self._engine.feeds(state.facts), now_ms()))

    async def _change_kind(self, state: InstrumentState) -> None:
        engine, writer, facts, at_ms = self._engine, self._writer, state.facts, now_ms()
        # Nothing more is admitted, and each candle is closed with what it has.
        state.choice.admits_none = True
        engine.apply_if_it_closes(state, MarketClosed(facts.symbol, NEVER_MS), at_ms)
        simulated = not state.simulated
        next_source = engine.feeds(facts)[0]
        # Prices from a file were never quoted.
        last = None if state.origin == IMPORTED else state.last
        ending = SeriesEnding(facts.symbol, last, state.seq, state.source, next_source)
        # All of the old series is written before the database says that it is over, and nothing after.
        async with writer.flushing:
            if not await writer.flush_alone():
                return
            notes = [await listener.series_ends(ending) for listener in writer.listeners]
            write = partial(_write_change, facts, at_ms, simulated, notes)
            checkpoint = await in_thread(writer.write_alone, write)
            history = await load_series(facts, at_ms, simulated=simulated)
            self._begin(state, history, checkpoint, at_ms)
        writer.publish()
        logger.info("%s is priced by %s now, no longer by %s", facts.symbol, next_source, ending.source)

    def _begin(self, state: InstrumentState, history: History, checkpoint: Checkpoint, at_ms: int) -> None:
        """The series of the other kind continues from its last end."""
        engine, facts = self._engine, state.facts
        choice = FeedChoice(engine.feeds(facts), at_ms)
        # It may have been changed back meanwhile.
        choice.admits_none = is_simulated(choice.feed) != checkpoint.simulated
        state.begin(checkpoint, choice, at_ms)
        engine.note_unsettled(state)
        engine.prices.histories[facts.symbol] = history
        last = checkpoint.last
        quote = () if last is None else (last.bid, last.ask, last.time_ms)
        record = SeriesBegan(facts.symbol, state.simulated, at_ms, state.seq, *quote)
        engine.prices.apply(record, facts)
        engine.records.append(record)


def _write_change(
    facts: InstrumentFacts, at_ms: int, simulated: bool, notes: list[Callable[[], None]]
) -> Checkpoint:
    lock_series(facts.id)
    for note in notes:
        note()
    return change_kind(facts, at_ms, simulated=simulated)


async def _fill_simulated(engine: Engine, facts: InstrumentFacts, at_ms: int) -> bool:
    """The simulated minutes since the last one; the quote follows them."""
    state, last_ms = engine.instrument(facts, at_ms), engine.prices.history(facts).last_closed_ms("1m")
    if last_ms is None:
        return False
    until_ms = interval_start(at_ms, MINUTE_MS)
    begun_ms = -(-(state.kind_since_ms or 0) // MINUTE_MS) * MINUTE_MS
    since_ms = max(last_ms + MINUTE_MS, begun_ms)
    if not await in_thread(fill_gap, facts, last_ms, since_ms, until_ms):
        return False
    fresh = await load_series(facts, until_ms, simulated=True)
    tick = last_quote(facts, until_ms)
    if tick is not None and tick.time_ms > state.known_ms:
        engine.go_on_from(state, tick)
    if state.last is not None:
        forming = engine.prices.history(facts).builder.forming("1m")
        price = engine.prices.price_of(state.last, facts)
        fresh.builder.resume_forming(forming, price, state.last.ask)
    before, engine.prices.histories[facts.symbol] = engine.prices.history(facts), fresh
    engine.tell_filled(state, before, until_ms)
    return True


def _tell_reloaded(filled: Iterable[InstrumentFacts]) -> None:
    """Processes that read the prices from the bus have them from before."""
    for facts in filled:
        ControlEvent.objects.publish(EventKind.CANDLES_IMPORTED, symbol=facts.symbol)
