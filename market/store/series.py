"""The simulated and the real series of an instrument, which never mix: what is stored of them, the change
from one to the other, and how they are loaded, all at the start and one after a change."""

import asyncio
import logging
from collections.abc import Mapping
from datetime import timedelta
from math import inf
from typing import NamedTuple

from django.conf import settings
from django.db import transaction

from core.clock import now_ms
from core.database import database
from core.threads import in_thread
from core.times import MINUTE_MS, epoch_ms, moment
from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts, default_feed, feeds_of, is_simulated
from instruments.models import Instrument
from market.models import AbsorptionWindows, EngineState, FormerQuote, FormingMinute, LastQuote
from market.prices.candles import DAY_MS, TIMEFRAMES, interval_start
from market.prices.history import History
from market.prices.quotes import Prices
from market.prices.records import JournalPosition, Tick
from market.store import candle_rows, checkpoints
from market.store.checkpoints import Checkpoint, tick_of

# An advisory lock, because the rows themselves are written every second.
SERIES_LOCK = 20_261
QUOTE = ("simulated", "source", "bid", "ask", "quoted_at", "flow_state", "source_seqs")
NONE = {field.name: field.get_default() for field in LastQuote._meta.fields if field.name in QUOTE}


def wanted_kind(facts: InstrumentFacts | Instrument, default: str | None = None) -> bool:
    """Whether what prices it by now is simulated."""
    default = default or default_feed(settings.DEMO)
    return is_simulated(feeds_of(facts.source, facts.fallback, default)[0])


def present_kind(instrument_id: int) -> bool:
    """Whether the series that is answered is simulated, as the engine wrote it last."""
    stored = LastQuote.objects.filter(pk=instrument_id).values_list("simulated", flat=True).first()
    return wanted_kind(Instrument.objects.get(pk=instrument_id)) if stored is None else stored


class SeriesStart(NamedTuple):
    since_ms: int = 0
    """No quote of the series before is as young; one of a venue whose clock is behind ours may be older."""
    after_seq: int | None = None
    """No quote of the series before has a higher number, in the numbering of the database."""


def hold_series(instrument_id: int) -> SeriesStart:
    """Within a transaction: where the present series began. It does not end before the transaction does."""
    database().lock(SERIES_LOCK, instrument_id, shared=True)
    found = LastQuote.objects.filter(pk=instrument_id).values_list("kind_since", "kind_after_seq").first()
    since, after_seq = found or (None, None)
    return SeriesStart() if since is None else SeriesStart(epoch_ms(since), after_seq)


def lock_series(instrument_id: int) -> None:
    """Within the transaction that ends it, before anything of it is read: those that held it are done."""
    database().lock(SERIES_LOCK, instrument_id)


@transaction.atomic
def change_kind(facts: InstrumentFacts, at_ms: int, *, simulated: bool) -> Checkpoint:
    """Begin the series of the other kind; returns where it ended last. The numbers of the ticks continue,
    because those of the streams do."""
    lock_series(facts.id)
    row, _ = LastQuote.objects.select_for_update().get_or_create(instrument_id=facts.id)
    former = FormerQuote.objects.filter(pk=facts.id, simulated=simulated).first()
    ended = {name: getattr(row, name) for name in QUOTE}
    again = NONE if former is None else {name: getattr(former, name) for name in QUOTE}
    if row.bid is not None and row.simulated != simulated:
        FormerQuote.objects.update_or_create(instrument_id=facts.id, defaults=ended)
    elif former is not None:
        former.delete()
    for name, value in again.items():
        setattr(row, name, value)
    # A source's clock may be ahead of ours, and its last quote with it.
    since = moment(at_ms)
    if ended["quoted_at"] is not None:
        since = max(since, ended["quoted_at"] + timedelta(milliseconds=1))
    row.simulated, row.kind_since, row.kind_after_seq = simulated, since, row.seq
    row.save()
    FormingMinute.objects.filter(pk=facts.id).delete()
    AbsorptionWindows.objects.filter(pk=facts.id).delete()
    numbers = row.seq, row.flow_seq, row.flow_state, row.source_seqs
    kind = simulated, row.source, epoch_ms(since), row.candle_seqs or {}
    return Checkpoint(tick_of(row, facts.symbol), None, *numbers, *kind)


class LoadedMarket(NamedTuple):
    checkpoints: dict[str, Checkpoint]
    journal_position: JournalPosition
    """What the database holds is everything up to here."""


@transaction.atomic
def load(prices: Prices, default_feed: str | None = None, known: Mapping[str, History] = {}) -> LoadedMarket:
    """Fill the memory of a process from one state of the database, with each instrument's present series. The
    histories in `known` are not read, unless they are of another kind."""
    database().see_one_state()
    state = EngineState.objects.first() or EngineState()
    by_id = checkpoints.read_checkpoints()
    found: dict[str, Checkpoint] = {}
    for facts in catalogue.all():
        checkpoint = by_id.get(facts.id)
        simulated = wanted_kind(facts, default_feed) if checkpoint is None else checkpoint.simulated
        history = known.get(facts.symbol)
        is_known = history is not None and history.simulated == simulated
        if is_known and history is not None:
            prices.histories[facts.symbol] = history
        else:
            load_history(history := prices.history(facts), facts, simulated=simulated)
        if checkpoint is None:
            continue
        found[facts.symbol] = checkpoint
        if (last := checkpoint.last) is not None:
            if not is_known:
                history.builder.resume_forming(checkpoint.minute, prices.price_of(last, facts), last.ask)
            prices.quotes.put(last, facts.digits, checkpoint.seq)
    return LoadedMarket(found, JournalPosition(state.epoch, state.position))


def load_history(
    history: History, facts: InstrumentFacts, *, simulated: bool, before_ms: int | None = None
) -> None:
    """The series of one kind, or what of it opened before a moment."""
    history.simulated = simulated
    for timeframe in TIMEFRAMES:
        rows = candle_rows.read_candles(facts, timeframe, simulated=simulated, before_ms=before_ms)
        history.restore_all(timeframe, rows)
    # Not today's: what formed when the service ended may be of Friday, and is closed now.
    last_ms = history.last_closed_ms("1m")
    if last_ms is not None:
        first_ms = min(interval_start(last_ms, DAY_MS), last_ms - DAY_MS)
        minutes = candle_rows.read_minutes_since(facts, first_ms, simulated=simulated)
        at_ms = max(now_ms() if before_ms is None else before_ms, last_ms + MINUTE_MS)
        closed = (minute for minute in minutes if minute.opened_ms <= last_ms)
        history.resume(closed, at_ms, _over_ms(facts, at_ms))


def _over_ms(facts: InstrumentFacts, at_ms: int) -> float:
    """What ends by then has nothing more to come."""
    if facts.hours.is_open(at_ms):
        return at_ms
    reopens_ms = facts.hours.next_open(at_ms)
    return inf if reopens_ms is None else reopens_ms


logger = logging.getLogger(__name__)

# A change of kind reaches every process within a moment, and what waits behind this may not wait long.
TRIES, RETRY_S = 5, 0.1


async def reload_candles(prices: Prices, facts: InstrumentFacts) -> Tick | None:
    """What was closed before this must be written; what closes while it reads is not lost. Returns the stored
    quote, if it is newer than the known one."""
    for _ in range(TRIES):
        old, fresh = prices.history(facts), History(facts.digits)
        stored = await in_thread(_load_present, fresh, facts)
        if prices.history(facts) is old and old.simulated in (None, fresh.simulated):
            return _go_on_with(fresh, old, stored, prices, facts)
        # What is read may be of one kind and what is known of the other, while that changes.
        await asyncio.sleep(RETRY_S)
    logger.warning("The candles of %s are not loaded again: its source changes", facts.symbol)
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
    quote = prices.quotes.get(facts.symbol)
    if quote is not None:
        price = (quote.bid + quote.ask) / 2 if prices.candle_price == "mid" else quote.bid
        fresh.builder.resume_forming(old.builder.forming("1m"), round(price, facts.digits), quote.ask)
    prices.histories[facts.symbol] = fresh
    is_newer = stored is not None and (quote is None or stored.time_ms > quote.time_ms)
    return stored if is_newer else None


def _round_quote(before: int, stored: Tick | None, prices: Prices, facts: InstrumentFacts) -> None:
    """Round the known quote, as its next tick may be far off. The stored value has all of its decimals."""
    quote = prices.quotes.get(facts.symbol)
    if quote is None:
        return
    known = Tick(quote.symbol, quote.bid, quote.ask, quote.time_ms)
    is_it = stored is not None and _rounded(stored, before) == _rounded(known, before)
    prices.quotes.put(stored if stored is not None and is_it else known, facts.digits, quote.seq)


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
