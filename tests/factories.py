"""Rows for tests: `make_*` with sensible defaults and keyword overrides, nothing random."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from accounts.keys.issuing import issue_key
from accounts.models import Account, ApiKey, Tier, User
from core import clock
from instruments.catalogue import catalogue
from instruments.models import Instrument, TradingCalendar
from market import runtime as market
from market.models import Candle
from market.prices.candles import PriceBar
from market.prices.records import Tick
from news.models import NewsItem
from signals_feed.exits import result
from signals_feed.models import Signal
from signals_feed.publishers.stored_events import stored_signals
from signals_feed.publishers.verdicts import verdicts

# Rank, requests a minute, streams, AI calls a day, as specified, and whether it has the archive.
TIERS = {
    "free": (1, 60, 2, 5, False),
    "pro": (2, 120, 5, 20, False),
    "premium": (3, 300, 10, 50, True),
}
ZERO = Decimal(0)
# What a signal has only once it is closed.
RESULT = (
    *("status", "close_price", "closed_at", "close_reason", "cancel_reason"),
    *("pnl", "pnl_percent", "pnl_r", "best_r", "worst_r"),
)
NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
_numbers = itertools.count(1)


def make_tier(name: str, **limits: int) -> Tier:
    defaults = {"rank": 9, "requests_per_minute": 1000, "streams": 10, "ai_calls_per_day": 10, **limits}
    return Tier.objects.update_or_create(name=name, defaults=defaults)[0]


def make_tiers() -> None:
    for name, (rank, requests, streams, ai_calls, archive) in TIERS.items():
        limits = {"requests_per_minute": requests, "streams": streams, "ai_calls_per_day": ai_calls}
        make_tier(name, rank=rank, archive=archive, **limits)


def make_user(username: str = "", password: str = "", **fields: Any) -> User:
    username = username or f"user{next(_numbers)}"
    return User.objects.create_user(
        username, fields.pop("email", f"{username}@example.com"), password or None, **fields
    )


def make_account(user: User | None = None, tier: Tier | str = "free", **fields: Any) -> Account:
    tier = Tier.objects.get(name=tier) if isinstance(tier, str) else tier
    return Account.objects.create(user=user or make_user(), tier=tier, **fields)


def make_key(account: Account | None = None, name: str = "test", **changes: Any) -> str:
    """The secret of a new key."""
    key, secret = issue_key(account or make_account(), name, by="test")
    if changes:
        ApiKey.objects.filter(pk=key.pk).update(**changes)
    return secret


def make_calendar(name: str = "always", sessions: str = "24/7", **fields: Any) -> TradingCalendar:
    return TradingCalendar.objects.update_or_create(name=name, defaults={"sessions": sessions, **fields})[0]


def make_instrument(symbol: str = "EURUSD", **fields: Any) -> Instrument:
    """Open around the clock unless a calendar is given, and known to the running service at once."""
    defaults: dict[str, Any] = {
        "name": f"Test {symbol}",
        "type": "forex",
        "pip_size": Decimal("0.0001"),
        "contract_size": Decimal(100_000),
        "margin_rate": Decimal("0.0333"),
        "min_lot": Decimal("0.01"),
        # Tests push whatever prices show best what they are about.
        "outlier_percent": Decimal(0),
        "max_lot": Decimal(50),
        "digits": 5,
    }
    calendar = fields.pop("calendar", None) or make_calendar()
    instrument = Instrument.objects.create(symbol=symbol, calendar=calendar, **(defaults | fields))
    catalogue.load_now()
    return instrument


def make_instruments(symbols: Sequence[str], **fields: Any) -> list[Instrument]:
    """Like `make_instrument`, which would load all that there are after each."""
    first = make_instrument(symbols[0], **fields)
    kept = {field.attname: getattr(first, field.attname) for field in Instrument._meta.concrete_fields}
    del kept["id"], kept["symbol"]
    Instrument.objects.bulk_create(Instrument(symbol=symbol, **kept) for symbol in symbols[1:])
    catalogue.load_now()
    return list(Instrument.objects.filter(symbol__in=symbols).order_by("symbol"))


def put_quote(
    symbol: str = "EURUSD", bid: float = 1.0841, ask: float = 1.08424, at_ms: int | None = None
) -> Tick:
    """Show a quote on the running service's board."""
    facts = catalogue.get_any(symbol)
    tick = Tick(symbol, bid, ask, clock.now_ms() if at_ms is None else at_ms, 1.0)
    market.prices.quotes.put(tick, facts.digits)
    return tick


def put_candles(symbol: str, timeframe: str, opened_ms: Sequence[int], price: float = 1.08) -> list[PriceBar]:
    """Closed candles in the running service's memory, each a little higher than the one before."""
    history = market.prices.history(catalogue.get_any(symbol))
    candles = []
    for number, opened in enumerate(opened_ms):
        low = round(price + number / 10_000, 5)
        high, close = round(low + 0.0003, 5), round(low + 0.0002, 5)
        candles.append(PriceBar(opened, round(low + 0.0001, 5), high, low, close, 10.0 + number, high, low))
        history.restore(timeframe, candles[-1])
    return candles


def make_candle(
    instrument: Instrument, timeframe: str = "1m", opened_at: datetime = NOON, **fields: Any
) -> Candle:
    prices = {"open": "1.0801", "high": "1.0804", "low": "1.0800", "close": "1.0802", "volume": "12"}
    values = {name: Decimal(value) for name, value in prices.items()} | fields
    return Candle.objects.create(instrument=instrument, timeframe=timeframe, opened_at=opened_at, **values)


def make_signal(instrument: Instrument | None = None, user: User | None = None, **fields: Any) -> Signal:
    """An active buy, or a closed one with the result that its close price gives."""
    instrument = instrument or Instrument.objects.filter(symbol="EURUSD").first() or make_instrument()
    terms: dict[str, Any] = {
        "direction": "buy",
        "entry": Decimal("1.0842"),
        "stop_loss": Decimal("1.0810"),
        "take_profit": Decimal("1.0900"),
        "published_at": NOON,
    } | fields
    terms.setdefault("tradable_price", terms["entry"])
    if terms.get("status") != "closed":
        return vouch_for(Signal.objects.create(instrument=instrument, user=user or make_user(), **terms))
    # Nothing is published closed: the database refuses it.
    begun = {name: value for name, value in terms.items() if name not in RESULT}
    signal = Signal.objects.create(instrument=instrument, user=user or make_user(), **begun)
    ended = {name: value for name, value in closed_terms(terms, instrument).items() if name in RESULT}
    Signal.objects.filter(pk=signal.pk).update(**ended)
    signal.refresh_from_db()
    return vouch_for(signal)


def vouch_for(signal: Signal) -> Signal:
    """It counts, though the ledger does not know of it."""
    verdicts.know({hash(row): True for row in stored_signals(Signal.objects.filter(pk=signal.pk))})
    return signal


def closed_terms(terms: dict[str, Any], instrument: Instrument) -> dict[str, Any]:
    close_price = terms.get("close_price", terms["take_profit"])
    outcome = result(
        terms["direction"],
        terms["entry"],
        terms["stop_loss"],
        terms["tradable_price"],
        close_price,
        instrument.pip_size,
    )
    defaults = {"close_price": close_price, "closed_at": terms["published_at"], "close_reason": "take_profit"}
    defaults |= {"best_r": max(outcome.pnl_r, ZERO), "worst_r": min(outcome.pnl_r, ZERO)}
    return defaults | outcome._asdict() | terms


def make_news(title: str = "Dollar slips as yields ease", **fields: Any) -> NewsItem:
    """A published, scored item unless told otherwise."""
    defaults: dict[str, Any] = {
        "category": "forex",
        "status": "published",
        "sentiment_score": 0.4,
        "model": "test",
        "published_at": NOON,
    }
    return NewsItem.objects.create(title=title, **(defaults | fields))
