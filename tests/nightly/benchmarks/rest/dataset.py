"""The rows that ours and every peer answer from: one database, filled once, nothing random."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from accounts.models import User
from core.times import MINUTE_MS
from instruments.models import Instrument
from market.prices.candles import COARSER, TIMEFRAMES, PriceBar, interval_start
from market.prices.history import KEPT
from market.prices.records import Tick
from market.store import candle_rows, checkpoints
from news.models import NewsItem
from signals_feed.ledger.guards import put_up_triggers, take_down_triggers
from signals_feed.models import Signal
from tests.factories import closed_terms, make_account, make_instrument, make_key, make_tier, make_user

SYMBOLS = ("EURUSD", "GBPUSD", "USDCHF", "AUDUSD")
NEWEST = datetime(2026, 11, 18, 12, tzinfo=UTC)
# One signal in ten is active, as in a feed that has been running for a while.
ACTIVE_EVERY = 10
BATCH = 2_000
MINUTES = 10_000
"""Of the first instrument: as many as a page of history has."""


def prepare(rows: int, now_ms: int) -> str:
    """Fill an empty database; returns an API key whose window no measurement uses up."""
    instruments = [make_instrument(symbol) for symbol in SYMBOLS]
    for number, instrument in enumerate(instruments):
        candle_rows.write_candles(candles(instrument.pk, now_ms, KEPT if number else MINUTES))
    for row in instruments:
        checkpoints.write_quote(row.pk, Tick(row.symbol, 1.0841, 1.08424, now_ms))
    users = [make_user(f"publisher{number}") for number in range(10)]
    # The database takes no signal that is born closed, and closing them one by one would take minutes.
    take_down_triggers()
    Signal.objects.bulk_create(signals(rows, instruments, users), batch_size=BATCH)
    put_up_triggers()
    NewsItem.objects.bulk_create(news(rows), batch_size=BATCH)
    return make_key(make_account(tier=make_tier("boundless", requests_per_minute=1_000_000_000)))


def candles(instrument_id: int, now_ms: int, kept_minutes: int) -> Iterator[candle_rows.CandleToWrite]:
    """Minutes up to now, and 500 of the others; the newest are what the minutes of today add up to."""
    midnight_ms = interval_start(now_ms, TIMEFRAMES["1d"])
    first_ms = min(midnight_ms, interval_start(now_ms, MINUTE_MS) - (kept_minutes - 1) * MINUTE_MS)
    minutes = [candle(number, at_ms) for number, at_ms in enumerate(range(first_ms, now_ms + 1, MINUTE_MS))]
    for minute in minutes:
        yield instrument_id, "1m", minute, "bid"
    for timeframe, span_ms in COARSER.items():
        newest_ms = interval_start(now_ms, span_ms)
        for number in range(1, KEPT):
            yield instrument_id, timeframe, candle(number, newest_ms - number * span_ms), "bid"
        newest = total([minute for minute in minutes if minute.opened_ms >= newest_ms])
        yield instrument_id, timeframe, newest, "bid"


def total(minutes: Sequence[PriceBar]) -> PriceBar:
    first, last = minutes[0], minutes[-1]
    return PriceBar(
        opened_ms=first.opened_ms,
        open=first.open,
        high=max(minute.high for minute in minutes),
        low=min(minute.low for minute in minutes),
        close=last.close,
        volume=sum(minute.volume for minute in minutes),
        ask_high=max(minute.ask_high for minute in minutes),
        ask_low=min(minute.ask_low for minute in minutes),
    )


def candle(number: int, opened_ms: int) -> PriceBar:
    low = round(1.08 + number % 97 / 10_000, 5)
    opened, close, high = (round(low + more, 5) for more in (0.00012, 0.00021, 0.00034))
    return PriceBar(opened_ms, opened, high, low, close, 100.0 + number % 53, high, low)


def signals(rows: int, instruments: list[Instrument], users: list[User]) -> Iterator[Signal]:
    for number in range(rows):
        instrument, entry = instruments[number % len(instruments)], Decimal(10_800 + number % 97) / 10_000
        terms = {
            "id": uuid.uuid5(uuid.NAMESPACE_OID, str(number)),
            "direction": "buy",
            "entry": entry,
            # No price of these comes near: who is active stays so, however long it is measured.
            "stop_loss": Decimal("0.5"),
            "take_profit": Decimal("2"),
            "tradable_price": entry,
            "published_at": NEWEST - timedelta(seconds=number),
            "expires_at": NEWEST + timedelta(days=3650),
        }
        if number % ACTIVE_EVERY:
            terms = closed_terms(terms | {"status": "closed"}, instrument)
        yield Signal(instrument=instrument, user=users[number % len(users)], **terms)


def news(rows: int) -> Iterator[NewsItem]:
    categories = NewsItem.Category.values
    for number in range(rows):
        yield NewsItem(
            title=f"Dollar slips as yields ease for the {number}th time this year",
            category=categories[number % len(categories)],
            status="published",
            sentiment_score=(number % 201 - 100) / 100,
            model="test",
            published_at=NEWEST - timedelta(seconds=number),
        )
