"""Series that were written past the engine, or are of another kind now, taken into memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from django.db import transaction

from accounts.outbox import ControlEvent
from accounts.threads import in_thread
from instruments.catalogue import InstrumentFacts
from market.models import LastQuote
from market.prices.history import History
from market.prices.market import Prices
from market.prices.ticks import Tick
from market.prices.timeframes import MINUTE_MS, interval_start

from .boot import load_history
from .checkpoints import tick_of
from .engine import Engine
from .series import present_kind
from .simulated_past import fill_gap, last_quote

logger = logging.getLogger(__name__)

# A change of kind reaches every process within a moment, and what waits behind this may not wait long.
TRIES, AGAIN_S = 5, 0.1


async def reload_candles(prices: Prices, facts: InstrumentFacts) -> Tick | None:
    """Beside what goes on forming. What was closed before this must be written; what closes while it reads is
    not lost. Returns the stored quote, if it is newer than the one that is known."""
    for _ in range(TRIES):
        old, fresh = prices.history(facts), History(facts.digits)
        stored = await in_thread(_load_present, fresh, facts)
        if prices.history(facts) is old and old.simulated in (None, fresh.simulated):
            return _go_on_with(fresh, old, stored, prices, facts)
        # What is read may be of one kind and what is known of the other, while that changes.
        await asyncio.sleep(AGAIN_S)
    logger.warning("The candles of %s are not loaded anew: its source changes", facts.symbol)
    return None


def _go_on_with(
    fresh: History, old: History, stored: Tick | None, prices: Prices, facts: InstrumentFacts
) -> Tick | None:
    stored_ms = fresh.last_closed_ms("1m") or 0
    for minute in old.recent:
        if minute.opened_ms > stored_ms:
            fresh.add_minute(minute)
    fresh.close_like(old)
    if old.digits != facts.digits:
        _round_quote(old.digits, stored, prices, facts)
    quote = prices.board.get(facts.symbol)
    if quote is not None:
        price = (quote.bid + quote.ask) / 2 if prices.candle_price == "mid" else quote.bid
        fresh.builder.resume_forming(old.builder.forming("1m"), round(price, facts.digits), quote.ask)
    fresh.builder.price_by(old.builder.source)
    prices.put_history(facts.symbol, fresh)
    is_newer = stored is not None and (quote is None or stored.time_ms > quote.time_ms)
    return stored if is_newer else None


def _round_quote(before: int, stored: Tick | None, prices: Prices, facts: InstrumentFacts) -> None:
    """The known quote, which no tick may follow soon. What is stored of it has all of its decimals."""
    quote = prices.board.get(facts.symbol)
    if quote is None:
        return
    known = Tick(quote.symbol, quote.bid, quote.ask, quote.time_ms)
    is_it = stored is not None and _rounded(stored, before) == _rounded(known, before)
    prices.board.put(stored if stored is not None and is_it else known, facts.digits, quote.seq)


def _rounded(tick: Tick, digits: int) -> tuple[int, float, float]:
    return tick.time_ms, round(tick.bid, digits), round(tick.ask, digits)


@transaction.atomic
def _load_present(history: History, facts: InstrumentFacts) -> Tick | None:
    load_history(history, facts, simulated=present_kind(facts.id))
    row = LastQuote.objects.filter(pk=facts.id).first()
    return None if row is None else tick_of(row, facts.symbol)


async def load_series(facts: InstrumentFacts, at_ms: int, *, simulated: bool) -> History:
    """The candles of a kind, up to the moment at which they begin to go on."""
    fresh = History(facts.digits)
    await in_thread(load_history, fresh, facts, simulated=simulated, before_ms=at_ms)
    return fresh


async def fill_simulated(engine: Engine, facts: InstrumentFacts, at_ms: int) -> bool:
    """The simulated minutes since the last one; the quote follows them."""
    book, last_ms = engine.book(facts, at_ms), engine.prices.history(facts).last_closed_ms("1m")
    if last_ms is None:
        return False
    until_ms = interval_start(at_ms, MINUTE_MS)
    begun_ms = -(-(book.kind_since_ms or 0) // MINUTE_MS) * MINUTE_MS
    since_ms = max(last_ms + MINUTE_MS, begun_ms)
    if not await in_thread(fill_gap, facts, last_ms, since_ms, until_ms):
        return False
    fresh = await load_series(facts, until_ms, simulated=True)
    tick = last_quote(facts, until_ms)
    if tick is not None and tick.time_ms > book.known_ms:
        engine.go_on_from(book, tick)
    if book.last is not None:
        forming = engine.prices.history(facts).builder.forming("1m")
        price = engine.prices.price_of(book.last, facts)
        fresh.builder.resume_forming(forming, price, book.last.ask)
    fresh.builder.price_by(book.source)
    engine.prices.put_history(facts.symbol, fresh)
    return True


def tell_reloaded(filled: Iterable[InstrumentFacts]) -> None:
    """Processes that read the prices from the bus have them from before."""
    for facts in filled:
        ControlEvent.objects.publish("market.candles_imported", symbol=facts.symbol)
