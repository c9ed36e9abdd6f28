"""Reads the facts of an analysis: prices from memory on the event loop, the rest in a thread."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import islice

from django.db.models import QuerySet
from msgspec.structs import replace

from analysis.drivers import LOOKED_BACK_MS, TREND_WEIGHTS, Flows
from core.threads import in_thread_promptly
from core.times import epoch_ms, moment
from instruments.catalogue import InstrumentFacts
from market import runtime as market
from market.prices import TIMEFRAMES, CandleRow, interval_start
from news.calibration import category_of, side_of
from news.models import NewsItem
from signals_feed.models import Signal

from .facts import AnalysedBar, Facts, NewsFact, QuoteFact, SignalFact

BARS = 260
MOST_ITEMS, MOST_SIGNALS = 30, 500

# Read from the database; items that say nothing about the instrument are then left out.
MOST_READ = 120
flows = Flows()


async def read_facts(instrument: InstrumentFacts, at_ms: int) -> Facts:
    """`at_ms` is the present; anything later is left out."""
    prices = market.prices
    history, quote = prices.candles(instrument), prices.quote(instrument.symbol)
    rows = {name: history.rows(name, BARS, closed_only=True) for name in TREND_WEIGHTS}
    days = history.rows("1d", 1, closed_only=False)
    facts = Facts(
        symbol=instrument.symbol,
        digits=instrument.digits,
        category=category_of(instrument.symbol, instrument.type),
        at_ms=at_ms,
        state=prices.quotes.state(instrument, at_ms),
        # The quote counts now, even if its source's clock runs a little ahead of ours.
        quote=None if quote is None else QuoteFact(quote.bid, quote.ask, min(quote.time_ms, at_ms)),
        flow=flows.of(instrument.symbol, at_ms, has_sides=instrument.order_flow_source == "trades"),
    )
    return await in_thread_promptly(complete, facts, instrument, rows, days)


def complete(
    facts: Facts,
    instrument: InstrumentFacts,
    rows: Mapping[str, Sequence[CandleRow]],
    days: Sequence[CandleRow],
) -> Facts:
    today_ms = interval_start(facts.at_ms, TIMEFRAMES["1d"])
    return replace(
        facts,
        bars={name: tuple(map(bar_of, found)) for name, found in rows.items()},
        day=next((bar_of(row) for row in days if row.opened_ms == today_ms), None),
        news=read_news(instrument, facts.category, facts.at_ms),
        signals=read_signals(instrument.id),
    )


def bar_of(row: CandleRow) -> AnalysedBar:
    return AnalysedBar(row.opened_ms, row.high, row.low, row.close)


def read_news(instrument: InstrumentFacts, category: str, at_ms: int) -> tuple[NewsFact, ...]:
    """Items that name the instrument, and items of its category that name none, if the score concerns it."""
    now = moment(at_ms)
    feed = NewsItem.objects.for_feed().filter(
        published_at__lte=now, published_at__gt=now - timedelta(milliseconds=LOOKED_BACK_MS)
    )
    own, others = feed.filter(symbols=instrument.id), feed.filter(category=category, symbols=None)
    return (*news_facts(own, instrument, names_symbol=True), *news_facts(others, instrument))


def news_facts(
    items: QuerySet[NewsItem], instrument: InstrumentFacts, *, names_symbol: bool = False
) -> Iterator[NewsFact]:
    rows = items.values_list("pk", "title", "category", "sentiment_score", "published_at")[:MOST_READ]
    facts = (
        NewsFact(
            id_,
            title,
            score or 0.0,
            epoch_ms(published_at),
            names_symbol,
            side_of(title, category, instrument.symbol, instrument.type, is_named=names_symbol),
        )
        for id_, title, category, score, published_at in rows
    )
    return islice((fact for fact in facts if fact.side), MOST_ITEMS)


def read_signals(instrument_id: int) -> tuple[SignalFact, ...]:
    active = Signal.objects.active().for_instrument(instrument_id).for_feed()
    rows = active.values_list("direction", "entry", "stop_loss", "published_at")[:MOST_SIGNALS]
    return tuple(
        SignalFact(1 if direction == "buy" else -1, float(entry), float(stop_loss), epoch_ms(published_at))
        for direction, entry, stop_loss, published_at in rows
    )
