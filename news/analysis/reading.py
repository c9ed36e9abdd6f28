"""The facts of an analysis: prices from memory, on the event loop; the rest from a thread."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from accounts.threads import in_thread
from instruments.catalogue import InstrumentFacts
from market import services as market
from market.engine.store import moment, to_ms
from market.prices.timeframes import TIMEFRAMES, interval_start
from news.models import NewsItem
from signals_feed.models import Signal

from .drivers.news import LOOKED_BACK_MS
from .drivers.trend import WEIGHTS
from .facts import Bar, Facts, NewsFact, QuoteFact, SignalFact
from .flow import Flows

BARS = 260
MOST_ITEMS, MOST_SIGNALS = 30, 500
CATEGORIES = {"forex": "forex", "crypto": "crypto", "index": "macro", "stock": "macro"}
METALS = ("XAU", "XAG", "XPT", "XPD")

flows = Flows()
market.listen(flows.hear, flows.begin)


class EncodedBar(msgspec.Struct):
    """A candle as the market answers it."""

    time: datetime
    high: float
    low: float
    close: float


bars_decoder = msgspec.json.Decoder(list[EncodedBar])


async def read_facts(instrument: InstrumentFacts, at_ms: int) -> Facts:
    """As they are now: `at_ms` is the present, by which later ones are told apart."""
    prices = market.prices
    history, quote = prices.history(instrument), prices.board.get(instrument.symbol)
    encoded = {
        name: history.bars(name, BARS, at_ms, is_open=True, closed_only=True).ohlcv for name in WEIGHTS
    }
    day = history.bars("1d", 1, at_ms, is_open=True, closed_only=False).ohlcv
    facts = Facts(
        symbol=instrument.symbol,
        digits=instrument.digits,
        category=category_of(instrument),
        at_ms=at_ms,
        state=prices.board.state(instrument, at_ms),
        quote=None if quote is None else QuoteFact(quote.bid, quote.ask, quote.time_ms),
        flow=flows.of(instrument.symbol, at_ms, has_sides=instrument.order_flow_source == "trades"),
    )
    return await in_thread(complete, facts, instrument.id, encoded, day)


def complete(facts: Facts, instrument_id: int, encoded: dict[str, bytes], day: bytes) -> Facts:
    today_ms = interval_start(facts.at_ms, TIMEFRAMES["1d"])
    days = [bar for bar in decode_bars(day) if bar.opened_ms == today_ms]
    return msgspec.structs.replace(
        facts,
        bars={name: decode_bars(ohlcv) for name, ohlcv in encoded.items()},
        day=days[0] if days else None,
        news=read_news(instrument_id, facts.category, facts.at_ms),
        signals=read_signals(instrument_id),
    )


def decode_bars(ohlcv: bytes) -> tuple[Bar, ...]:
    return tuple(
        Bar(to_ms(bar.time), bar.high, bar.low, bar.close) for bar in bars_decoder.decode(b"[%s]" % ohlcv)
    )


def category_of(instrument: InstrumentFacts) -> str:
    """Metals go with the news of gold; oil and the like with those of the economy."""
    if instrument.type == "commodity":
        return "gold" if instrument.symbol.startswith(METALS) else "macro"
    return CATEGORIES[instrument.type]


def read_news(instrument_id: int, category: str, at_ms: int) -> tuple[NewsFact, ...]:
    """What names the instrument, and what is of its category and names none."""
    now = moment(at_ms)
    feed = NewsItem.objects.for_feed().filter(
        published_at__lte=now, published_at__gt=now - timedelta(milliseconds=LOOKED_BACK_MS)
    )
    columns = ("pk", "title", "sentiment_score", "published_at")
    own = feed.filter(symbols=instrument_id).values_list(*columns)[:MOST_ITEMS]
    others = feed.filter(category=category, symbols=None).values_list(*columns)[:MOST_ITEMS]
    return (*news_facts(own, names_symbol=True), *news_facts(others, names_symbol=False))


def news_facts(
    rows: Iterable[tuple[int, str, float | None, datetime]], *, names_symbol: bool
) -> list[NewsFact]:
    return [
        NewsFact(id_, title, score or 0.0, to_ms(published_at), names_symbol)
        for id_, title, score, published_at in rows
    ]


def read_signals(instrument_id: int) -> tuple[SignalFact, ...]:
    active = Signal.objects.active().for_instrument(instrument_id).for_feed()
    rows = active.values_list("direction", "entry", "stop_loss", "published_at")[:MOST_SIGNALS]
    return tuple(
        SignalFact(1 if direction == "buy" else -1, float(entry), float(stop_loss), to_ms(published_at))
        for direction, entry, stop_loss, published_at in rows
    )
