"""Signals as the service publishes and closes them, with their evidence and ledger entries."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from accounts.models import User
from core.times import moment
from instruments.models import Instrument
from signals_feed.closing import Closing, close_signal
from signals_feed.models import Evidence, Signal
from signals_feed.publishing.actions import enter_feed
from signals_feed.rules import Quoted
from tests.factories import NOON, make_user

SHOWN = "0b7d1a9c-3a5e-4c86-8a43-5f0f5f3f1d77"


def quoted(bid: str, ask: str, at: datetime = NOON, **place: Any) -> Quoted:
    return Quoted(Decimal(bid), Decimal(ask), round(at.timestamp() * 1000), **place)


def make_published(instrument: Instrument, quote: Quoted, user: User | None = None, **terms: Any) -> Signal:
    """An active buy at the ask of the quote, unless told otherwise."""
    direction = terms.pop("direction", "buy")
    tradable = quote.ask if direction == "buy" else quote.bid
    sign = 1 if direction == "buy" else -1
    values: dict[str, Any] = {
        "entry": tradable,
        "stop_loss": tradable - sign * Decimal("0.0032"),
        "take_profit": tradable + sign * Decimal("0.0058"),
        "published_at": moment(quote.time_ms),
    } | {name: Decimal(value) if isinstance(value, str) else value for name, value in terms.items()}
    signal = Signal(
        instrument=instrument,
        user=user or make_user(),
        direction=direction,
        tradable_price=tradable,
        expires_at=values["published_at"] + timedelta(days=7),
        **values,
    )
    enter_feed(signal, quote)
    return signal


def end(signal: Signal, quote: Quoted, rule: str = "current", reason: str = "manual") -> Signal:
    """Closed by a tick, at the price that the rule says."""
    price = quote.bid if signal.direction == "buy" else quote.ask
    if rule == "target":
        price = signal.take_profit
    shown = quote.shown
    closing = Closing(signal.pk, price, reason, quote.time_ms, rule, Evidence.Source.TICK, shown)
    assert close_signal(closing)
    signal.refresh_from_db()
    return signal


def make_shown(instrument: Instrument) -> Signal:
    """The closed signal that the reference names in its examples, so that those paths answer."""
    quote = quoted("1.08400", "1.08424", epoch="k3v9", seq=41)
    signal = make_published(instrument, quote, make_user("marta"), id=UUID(SHOWN))
    return end(signal, quoted("1.08790", "1.08812", NOON + timedelta(hours=3)))
