"""Stored minutes, which judge a signal whose ticks nobody watched."""

from decimal import Decimal

from django.conf import settings
from django.db.models import Max, Min, Q, QuerySet

from core.times import MINUTE_MS, epoch_ms_after, moment
from instruments.sources import IMPORTED
from market.models import Candle, FormingMinute
from market.store import present_kind
from signals_feed.exits import exit_price
from signals_feed.models import Signal
from signals_feed.rules import StoredMinute

# A market may be closed for some days.
PRICES = ("open", "low", "high", "ask_low", "ask_high")


def quoted_minutes(instrument_id: int, until_ms: int) -> QuerySet[Candle]:
    """Minutes over by then, except those of trade prices and from files, which nobody was quoted, and
    those of which something was missed."""
    own = Candle.objects.filter(
        instrument=instrument_id, simulated=present_kind(instrument_id), timeframe="1m"
    )
    return own.filter(opened_at__lte=moment(until_ms - MINUTE_MS)).exclude(
        Q(basis=Candle.Basis.TRADES) | Q(source=IMPORTED) | Q(partial=True)
    )


def read_minutes(instrument_id: int, since_ms: int, until_ms: int) -> list[StoredMinute]:
    if since_ms + MINUTE_MS > until_ms:
        return []
    minutes = quoted_minutes(instrument_id, until_ms).filter(opened_at__gte=moment(since_ms))
    rows = minutes.order_by("opened_at").values_list("basis", "opened_at", *PRICES)
    return [minute_of(basis, epoch_ms_after(at), *prices) for basis, at, *prices in rows]


def minute_of(basis: str, opened_ms: int, *prices: object) -> StoredMinute:
    minute = StoredMinute(opened_ms, *prices)  # type: ignore[arg-type]
    if basis == Candle.Basis.MID:
        return minute._replace(bid_open=None, bid_low=None, bid_high=None)
    return minute


def prices_known(signal: Signal, until_ms: int) -> list[Decimal]:
    """Prices of the exit side since the publication, extremes among them, as far as they were kept."""
    entry = signal.entry_quote()
    prices = [] if entry is None else [exit_price(signal.direction, entry.bid, entry.ask)]
    is_buy = signal.direction == "buy"
    # Candles of mid prices say nothing about the bid.
    if is_buy and settings.CANDLE_PRICE == "mid":
        return prices
    low, high = ("low", "high") if is_buy else ("ask_low", "ask_high")
    own = Q(instrument=signal.instrument_id, opened_at__gte=signal.published_at)
    found = quoted_minutes(signal.instrument_id, until_ms).filter(own).aggregate(low=Min(low), high=Max(high))
    forming = FormingMinute.objects.filter(own, opened_at__lte=moment(until_ms)).values_list(low, high)
    known = [*found.values(), *(forming.first() or ())]
    return prices + [price for price in known if price is not None]
