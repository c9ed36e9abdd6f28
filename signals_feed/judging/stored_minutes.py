"""The stored minutes that judge a signal while nobody watches its ticks."""

from __future__ import annotations

from decimal import Decimal

from django.conf import settings
from django.db.models import Max, Min, Q

from market.engine.store.series import present_kind
from market.models import IMPORTED, Candle, FormingMinute
from signals_feed.models import Evidence, Signal

from .rules import MINUTE_MS, SeenExtremes, StoredMinute, exit_price, moment, ms

PRICES = ("open", "low", "high", "ask_low", "ask_high")


def read_minutes(instrument_id: int, since_ms: int, until_ms: int) -> list[StoredMinute]:
    if since_ms + MINUTE_MS > until_ms:
        return []
    rows = (
        Candle.objects.filter(instrument=instrument_id, simulated=present_kind(instrument_id), timeframe="1m")
        .filter(opened_at__gte=moment(since_ms), opened_at__lte=moment(until_ms - MINUTE_MS))
        .exclude(Q(basis=Candle.Basis.TRADES) | Q(source=IMPORTED))
        .order_by("opened_at")
    )
    return [
        minute_of(basis, ms(at), *prices)
        for basis, at, *prices in rows.values_list("basis", "opened_at", *PRICES)
    ]


def minute_of(basis: str, opened_ms: int, *prices: object) -> StoredMinute:
    minute = StoredMinute(opened_ms, *prices)  # type: ignore[arg-type]
    if basis == Candle.Basis.MID:
        return minute._replace(bid_open=None, bid_low=None, bid_high=None)
    return minute


def best_and_worst(
    signal: Signal, close_price: Decimal, at_ms: int, seen: SeenExtremes | None
) -> tuple[Decimal, Decimal]:
    """Best and worst. What nobody watched is taken from the stored minutes that lie within its life."""
    prices = [close_price]
    if seen is not None:
        prices += [seen.high, seen.low]
    if seen is None or seen.since_ms:
        prices += _entry(signal) + _stored(signal, at_ms if seen is None else seen.since_ms)
    high, low = max(prices), min(prices)
    # At the target it is over: what the tick showed beyond it was not for the publisher.
    if signal.direction == "buy":
        return min(high, signal.take_profit), low
    return max(low, signal.take_profit), high


def _entry(signal: Signal) -> list[Decimal]:
    entry = Evidence.objects.filter(signal=signal, kind=Evidence.Kind.ENTRY).first()
    if entry is None or entry.bid is None or entry.ask is None:
        return []
    return [exit_price(signal.direction, entry.bid, entry.ask)]


def _stored(signal: Signal, until_ms: int) -> list[Decimal]:
    """Nothing of a buy where the candles are made of mids."""
    is_buy = signal.direction == "buy"
    if is_buy and settings.CANDLE_PRICE == "mid":
        return []
    high, low = ("high", "low") if is_buy else ("ask_high", "ask_low")
    own = Q(instrument=signal.instrument_id, opened_at__gte=signal.published_at)
    kind = present_kind(signal.instrument_id)
    minutes = Candle.objects.filter(
        own, simulated=kind, timeframe="1m", opened_at__lte=moment(until_ms - MINUTE_MS)
    )
    own_minutes = minutes.exclude(Q(basis=Candle.Basis.TRADES) | Q(source=IMPORTED))
    found = own_minutes.aggregate(high=Max(high), low=Min(low))
    forming = FormingMinute.objects.filter(own, opened_at__lte=moment(until_ms)).values_list(high, low)
    known = [found["high"], found["low"], *(forming.first() or ())]
    return [price for price in known if price is not None]
